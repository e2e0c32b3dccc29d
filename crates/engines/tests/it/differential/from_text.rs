//! PostgreSQL's values from its text format.

use tokio_postgres::types::{Kind, Type};

use super::answer::{TypeClass, Value};
use super::number::Decimal;

/// Relative difference of `double precision`: functions are computed by different libraries.
pub(crate) const DOUBLE_DIFFERENCE: f64 = 1e-12;
/// Relative difference of `real`.
pub(crate) const REAL_DIFFERENCE: f64 = 1e-6;

/// The class of PostgreSQL's type.
pub(crate) fn class_of(of: &Type) -> TypeClass {
    match of.kind() {
        Kind::Array(element) => return TypeClass::Array(Box::new(class_of(element))),
        Kind::Domain(base) => return class_of(base),
        Kind::Enum(_) => return TypeClass::Text,
        _ => {}
    }
    match of.name() {
        "int2" | "int4" | "int8" | "numeric" | "float4" | "float8" | "oid" => TypeClass::Number,
        "text" | "varchar" | "bpchar" | "name" | "char" | "unknown" | "uuid" => TypeClass::Text,
        "bool" => TypeClass::Boolean,
        "date" => TypeClass::Date,
        "time" => TypeClass::Time,
        "timestamp" => TypeClass::Timestamp,
        "timestamptz" => TypeClass::Instant,
        "interval" => TypeClass::Interval,
        "bytea" => TypeClass::Bytes,
        "json" | "jsonb" => TypeClass::Json,
        name => TypeClass::Other(name.to_owned()),
    }
}

/// The value of a text of PostgreSQL.
pub(crate) fn value_of(text: Option<&str>, of: &Type) -> Value {
    let Some(text) = text else { return Value::Null };
    if let Kind::Array(element) = of.kind() {
        return array_of(text, element);
    }
    match (class_of(of), of.name()) {
        (TypeClass::Number, "float4") => Value::Float(float_of(text), REAL_DIFFERENCE),
        (TypeClass::Number, "float8") => Value::Float(float_of(text), DOUBLE_DIFFERENCE),
        (TypeClass::Number, _) => {
            Decimal::parse(text).map_or_else(|| Value::Float(float_of(text), DOUBLE_DIFFERENCE), Value::Exact)
        }
        (TypeClass::Json, _) => json_of(text),
        (TypeClass::Interval, _) => interval_of(text).unwrap_or_else(|| panic!("{text:?} is no interval")),
        _ => Value::Plain(text.to_owned()),
    }
}

fn float_of(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// A JSON document, or the text if it is not JSON.
pub(crate) fn json_of(text: &str) -> Value {
    serde_json::from_str(text).map_or_else(|_| Value::Plain(text.to_owned()), Value::Json)
}

/// Reads `1 year 2 mons -3 days +04:05:06.7`.
fn interval_of(text: &str) -> Option<Value> {
    let (mut months, mut days, mut microseconds) = (0, 0, 0);
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if word.contains(':') {
            microseconds = time_of(word)?;
            continue;
        }
        let count: i64 = word.parse().ok()?;
        match words.next()? {
            "year" | "years" => months += 12 * count,
            "mon" | "mons" => months += count,
            "day" | "days" => days += count,
            _ => return None,
        }
    }
    Some(Value::Interval(months, days, microseconds))
}

/// Microseconds of `-04:05:06.7`.
fn time_of(text: &str) -> Option<i128> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.trim_start_matches('+')),
    };
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let whole_of = |text: &str| text.parse::<i128>().ok();
    let seconds = (whole_of(hours)? * 60 + whole_of(minutes)?) * 60 + whole_of(whole)?;
    Some(sign * (seconds * 1_000_000 + whole_of(&format!("{fraction:0<6}"))?))
}

/// Reads `{1,NULL,"a b",{…}}`.
fn array_of(text: &str, element: &Type) -> Value {
    // Bounds that do not start at 1: `[0:2]={…}`.
    let text = text.find('{').map_or(text, |start| &text[start..]);
    let mut characters = text.chars().peekable();
    array_from(&mut characters, element)
}

fn array_from(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, element: &Type) -> Value {
    assert_eq!(characters.next(), Some('{'));
    let mut values = Vec::new();
    loop {
        match characters.peek().copied() {
            Some('}') => {
                characters.next();
                return Value::Array(values);
            }
            Some(',') => {
                characters.next();
            }
            Some('{') => values.push(array_from(characters, element)),
            Some(_) => values.push(element_from(characters, element)),
            None => panic!("an array without an end"),
        }
    }
}

fn element_from(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, element: &Type) -> Value {
    let is_quoted = characters.next_if_eq(&'"').is_some();
    let mut text = String::new();
    while let Some(character) = characters.peek().copied() {
        match character {
            '"' if is_quoted => {
                characters.next();
                break;
            }
            ',' | '}' if !is_quoted => break,
            '\\' => {
                characters.next();
                text.extend(characters.next());
            }
            _ => text.extend(characters.next()),
        }
    }
    let is_null = !is_quoted && text == "NULL";
    value_of((!is_null).then_some(text.as_str()), element)
}

#[test]
fn texts_of_postgresql_are_read() {
    assert_eq!(
        value_of(Some("1 year 2 mons -3 days -00:00:01.5"), &Type::INTERVAL),
        Value::Interval(14, -3, -1_500_000)
    );
    assert_eq!(value_of(Some("00:00:00"), &Type::INTERVAL), Value::Interval(0, 0, 0));
    let texts = [Value::Plain("a,\"b".to_owned()), Value::Null, Value::Plain("NULL".to_owned())];
    assert_eq!(value_of(Some(r#"{"a,\"b",NULL,"NULL"}"#), &Type::TEXT_ARRAY), Value::Array(texts.to_vec()));
    assert_eq!(value_of(Some("{{1},{2}}"), &Type::INT4_ARRAY).to_string(), "{{1},{2}}");
}
