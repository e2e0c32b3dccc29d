//! Text functions with linear running time.
//!
//! The running time of SQLite's own functions grows with the product of the argument lengths: a search for eight
//! million characters in sixteen million takes hours. Nothing can end it, since SQLite checks for interrupts only between
//! instructions, and a function is one instruction. These replacements return the same results.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result, ffi};

/// Replaces SQLite's functions; none of the replacements returns more than `bytes_max`.
pub(super) fn replace_builtin_functions(connection: &Connection, bytes_max: usize) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let converter = TextConverter::new()?;
    let add = |name, arguments, function: fn(&TextConverter, &Context<'_>, usize) -> Result<Value>| {
        let converter = converter.clone();
        connection
            .create_scalar_function(name, arguments, flags, move |context| function(&converter, context, bytes_max))
    };
    add("instr", 2, |converter, context, _| instr(converter, context))?;
    add("replace", 3, replace)?;
    add("trim", 2, |converter, context, _| trim(converter, context, true, true))?;
    add("ltrim", 2, |converter, context, _| trim(converter, context, true, false))?;
    add("rtrim", 2, |converter, context, _| trim(converter, context, false, true))?;
    add("unhex", 2, |converter, context, _| unhex(converter, context))
}

/// The position of the second argument in the first, from 1; 0 if it does not occur.
fn instr(converter: &TextConverter, context: &Context<'_>) -> Result<Value> {
    let (text, expected) = match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Null, _) | (_, ValueRef::Null) => return Ok(Value::Null),
        // The standard library searches converter in linear time, but not bytes. Therefore each byte becomes a character.
        (ValueRef::Blob(bytes), ValueRef::Blob(expected)) => {
            (bytes_to_chars(bytes).into(), bytes_to_chars(expected).into())
        }
        (text, expected) => {
            (converter.to_text(text)?.unwrap_or_default(), converter.to_text(expected)?.unwrap_or_default())
        }
    };
    let position = text.find(expected.as_ref()).map_or(0, |at| text[..at].chars().count() + 1);
    Ok(i64::try_from(position).map_or(Value::Null, Value::Integer))
}

fn bytes_to_chars(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The first argument, with each occurrence of the second replaced by the third.
fn replace(converter: &TextConverter, context: &Context<'_>, bytes_max: usize) -> Result<Value> {
    let (Some(text), Some(expected)) =
        (converter.to_exact_text(context.get_raw(0))?, converter.to_text(context.get_raw(1))?)
    else {
        return Ok(Value::Null);
    };
    if expected.is_empty() {
        return Ok(Value::Text(text.into_owned()));
    }
    let Some(new) = converter.to_exact_text(context.get_raw(2))? else { return Ok(Value::Null) };
    let count = text.matches(expected.as_ref()).count();
    let bytes = (text.len() - count * expected.len()).saturating_add(count.saturating_mul(new.len()));
    if bytes > bytes_max {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None));
    }
    Ok(Value::Text(text.replace(expected.as_ref(), &new)))
}

/// The first argument without the characters of the second at its ends.
fn trim(converter: &TextConverter, context: &Context<'_>, at_start: bool, at_end: bool) -> Result<Value> {
    let (Some(text), Some(characters)) =
        (converter.to_exact_text(context.get_raw(0))?, converter.to_text(context.get_raw(1))?)
    else {
        return Ok(Value::Null);
    };
    let characters: HashSet<char> = characters.chars().collect();
    let mut rest = text.as_ref();
    if at_start {
        rest = rest.trim_start_matches(|character| characters.contains(&character));
    }
    if at_end {
        rest = rest.trim_end_matches(|character| characters.contains(&character));
    }
    Ok(Value::Text(rest.to_owned()))
}

/// Decodes the hexadecimal digits of the first argument; ignores the characters of the second between bytes.
fn unhex(converter: &TextConverter, context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(between)) = (converter.to_text(context.get_raw(0))?, converter.to_text(context.get_raw(1))?)
    else {
        return Ok(Value::Null);
    };
    let between: HashSet<char> = between.chars().collect();
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character.to_digit(16), characters.clone().next().and_then(|second| second.to_digit(16))) {
            (Some(first), Some(second)) => {
                characters.next();
                // Two digits fit in a byte.
                bytes.push((first << 4 | second) as u8);
            }
            (None, _) if between.contains(&character) => {}
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::Blob(bytes))
}

#[derive(Clone)]
struct TextConverter {
    /// Only SQLite can format a real as SQLite does. This connection has no file and is used for nothing else.
    writer: Arc<Mutex<Connection>>,
}

impl TextConverter {
    fn new() -> Result<Self> {
        Ok(Self { writer: Arc::new(Mutex::new(Connection::open_in_memory()?)) })
    }

    fn to_text<'a>(&self, value: ValueRef<'a>) -> Result<Option<Cow<'a, str>>> {
        Ok(match value {
            ValueRef::Null => None,
            ValueRef::Integer(value) => Some(value.to_string().into()),
            ValueRef::Real(value) => {
                let text: String =
                    self.writer.lock().query_row("SELECT CAST(?1 AS TEXT)", [value], |row| row.get(0))?;
                Some(text.into())
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
        })
    }

    /// As [`Self::to_text`], for text that gets into a result.
    fn to_exact_text<'a>(&self, value: ValueRef<'a>) -> Result<Option<Cow<'a, str>>> {
        match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) if std::str::from_utf8(bytes).is_err() => {
                Err(Error::UserFunctionError("an argument is text that is not UTF-8".into()))
            }
            value => self.to_text(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn argument() -> impl Strategy<Value = Value> {
        prop_oneof![
            1 => Just(Value::Null),
            2 => any::<i64>().prop_map(Value::Integer),
            2 => (-1000..1000_i64).prop_map(Value::Integer),
            2 => any::<f64>().prop_filter("no NaN", |value| !value.is_nan()).prop_map(Value::Real),
            2 => (-1e6..1e6).prop_map(Value::Real),
            8 => "[ab1.éx-]{0,12}".prop_map(Value::Text),
            8 => "[a1]{0,3}".prop_map(Value::Text),
            3 => "[ab1]{0,6}".prop_map(|text| Value::Blob(text.into_bytes())),
        ]
    }

    fn connections() -> [Connection; 2] {
        let ours = Connection::open_in_memory().unwrap();
        replace_builtin_functions(&ours, 1 << 20).unwrap();
        [Connection::open_in_memory().unwrap(), ours]
    }

    proptest! {
        #[test]
        fn results_match_sqlite(a in argument(), b in argument(), c in argument()) {
            let [theirs, ours] = connections();
            for call in ["instr(?1, ?2)", "replace(?1, ?2, ?3)", "trim(?1, ?2)", "ltrim(?1, ?2)", "rtrim(?1, ?2)", "unhex(?1, ?2)"] {
                let answer = |connection: &Connection| -> Value {
                    connection.query_row(&format!("SELECT {call}, ?1, ?2, ?3"), [&a, &b, &c], |row| row.get(0)).unwrap()
                };
                prop_assert_eq!(answer(&theirs), answer(&ours), "{} {:?} {:?} {:?}", call, &a, &b, &c);
            }
        }
    }
}
