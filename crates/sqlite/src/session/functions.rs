//! Functions of texts that take a time with the length of their arguments.
//!
//! SQLite's own take one with the product of the lengths: a search for eight million letters in sixteen million takes
//! hours, and nothing can end it, since SQLite looks at its flag between instructions and a function is one. These
//! give the same results.

use std::borrow::Cow;
use std::collections::HashSet;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result, ffi};

/// Puts our functions in the place of SQLite's; none gives more than `bytes_max`.
pub(super) fn replace_slow(connection: &Connection, bytes_max: usize) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("instr", 2, flags, instr)?;
    connection.create_scalar_function("replace", 3, flags, move |context| replace(context, bytes_max))?;
    connection.create_scalar_function("trim", 2, flags, |context| trim(context, true, true))?;
    connection.create_scalar_function("ltrim", 2, flags, |context| trim(context, true, false))?;
    connection.create_scalar_function("rtrim", 2, flags, |context| trim(context, false, true))?;
    connection.create_scalar_function("unhex", 2, flags, unhex)
}

/// The place of the second argument in the first, from 1; 0 when it is not there.
fn instr(context: &Context<'_>) -> Result<Option<i64>> {
    let (text, wanted) = match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Null, _) | (_, ValueRef::Null) => return Ok(None),
        // The standard library searches texts in linear time, but not bytes: each byte is made a letter.
        (ValueRef::Blob(bytes), ValueRef::Blob(wanted)) => (letters(bytes).into(), letters(wanted).into()),
        (text, wanted) => (text_of(text).unwrap_or_default(), text_of(wanted).unwrap_or_default()),
    };
    let place = text.find(wanted.as_ref()).map_or(0, |at| text[..at].chars().count() + 1);
    Ok(i64::try_from(place).ok())
}

fn letters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The first argument with the third in each place of the second.
fn replace(context: &Context<'_>, bytes_max: usize) -> Result<Option<String>> {
    let [Some(text), Some(wanted), Some(new)] = [0, 1, 2].map(|index| text_of(context.get_raw(index))) else {
        return Ok(None);
    };
    if wanted.is_empty() {
        return Ok(Some(text.into_owned()));
    }
    let count = text.matches(wanted.as_ref()).count();
    let bytes = (text.len() - count * wanted.len()).saturating_add(count.saturating_mul(new.len()));
    if bytes > bytes_max {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None));
    }
    Ok(Some(text.replace(wanted.as_ref(), &new)))
}

/// The first argument without the letters of the second at its ends.
fn trim(context: &Context<'_>, at_start: bool, at_end: bool) -> Result<Option<String>> {
    let [Some(text), Some(letters)] = [0, 1].map(|index| text_of(context.get_raw(index))) else { return Ok(None) };
    let letters: HashSet<char> = letters.chars().collect();
    let mut rest = text.as_ref();
    if at_start {
        rest = rest.trim_start_matches(|letter| letters.contains(&letter));
    }
    if at_end {
        rest = rest.trim_end_matches(|letter| letters.contains(&letter));
    }
    Ok(Some(rest.to_owned()))
}

/// The bytes whose hexadecimal digits the first argument is; letters of the second may stand between them.
fn unhex(context: &Context<'_>) -> Result<Option<Vec<u8>>> {
    let [Some(text), Some(between)] = [0, 1].map(|index| text_of(context.get_raw(index))) else { return Ok(None) };
    let between: HashSet<char> = between.chars().collect();
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter.to_digit(16), letters.clone().next().and_then(|second| second.to_digit(16))) {
            (Some(first), Some(second)) => {
                letters.next();
                // Two digits fit a byte.
                bytes.push((first << 4 | second) as u8);
            }
            (None, _) if between.contains(&letter) => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(bytes))
}

/// A value as text, none for null.
fn text_of(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string().into()),
        ValueRef::Real(value) => Some(real_text(value).into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
    }
}

/// A real as SQLite writes it: `1.0`, `0.00012`, `1.0e+20`.
fn real_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        // As many places as there are digits at most.
        Ok(-4..=16) => format!("{value:?}"),
        Ok(exponent) => {
            let point = if digits.contains('.') { "" } else { ".0" };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}{point}e{sign}{:02}", exponent.abs())
        }
        Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::types::Value;

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
        replace_slow(&ours, 1 << 20).unwrap();
        [Connection::open_in_memory().unwrap(), ours]
    }

    proptest! {
        #[test]
        fn results_are_those_of_sqlite(a in argument(), b in argument(), c in argument()) {
            let [theirs, ours] = connections();
            for call in ["instr(?1, ?2)", "replace(?1, ?2, ?3)", "trim(?1, ?2)", "ltrim(?1, ?2)", "rtrim(?1, ?2)", "unhex(?1, ?2)"] {
                let answer = |connection: &Connection| -> Value {
                    connection.query_row(&format!("SELECT {call}, ?1, ?2, ?3"), [&a, &b, &c], |row| row.get(0)).unwrap()
                };
                prop_assert_eq!(answer(&theirs), answer(&ours), "{} {:?} {:?} {:?}", call, &a, &b, &c);
            }
        }

        #[test]
        fn reals_are_written_as_sqlite_writes_them(value in any::<f64>().prop_filter("no NaN", |value| !value.is_nan())) {
            let [theirs, _] = connections();
            let text: String = theirs.query_row("SELECT CAST(?1 AS TEXT)", [value], |row| row.get(0)).unwrap();
            prop_assert_eq!(text, real_text(value));
        }
    }
}
