//! The filter of a row policy as SQL.

use std::fmt::Write as _;

use tidegate_query::{Comparator, RowFilter, RowValue};

use crate::tables::quoted;

/// Bytes of a pattern that SQLite matches; it fails where one is longer.
const PATTERN_BYTES_MAX: usize = 100;

/// `filter` over `columns`; why SQLite cannot have it.
pub(super) fn sql(filter: &RowFilter, columns: &[String]) -> Result<String, String> {
    let name = |column: usize| {
        columns.get(column).map(|name| quoted(name)).ok_or_else(|| "it asks for a column that is not there".to_owned())
    };
    Ok(match filter {
        RowFilter::All(filters) => joined(filters, " AND ", "1", columns)?,
        RowFilter::Any(filters) => joined(filters, " OR ", "0", columns)?,
        RowFilter::Not(filter) => format!("(NOT {})", sql(filter, columns)?),
        RowFilter::Constant(value) => u8::from(*value).to_string(),
        RowFilter::IsNull { column, is_negated } => {
            format!("({} IS {}NULL)", name(*column)?, not(*is_negated))
        }
        RowFilter::IsTrue(column) => format!("({} AND 1)", name(*column)?),
        RowFilter::Compare { column, comparator, value } => {
            let plain = plain(std::slice::from_ref(value));
            format!("({plain}{} COLLATE BINARY {} {})", name(*column)?, sign(*comparator), literal(value))
        }
        RowFilter::CompareColumns { left, comparator, right } => {
            format!("({} COLLATE BINARY {} {})", name(*left)?, sign(*comparator), name(*right)?)
        }
        RowFilter::In { column, values, is_negated } => {
            let list: Vec<String> = values.iter().map(literal).collect();
            let (plain, list) = (plain(values), list.join(", "));
            format!("({plain}{} COLLATE BINARY {}IN ({list}))", name(*column)?, not(*is_negated))
        }
        RowFilter::Like { column, pattern, is_negated } => {
            let pattern = glob(pattern);
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(format!("a pattern has more than {PATTERN_BYTES_MAX} bytes"));
            }
            format!("({} {}GLOB {})", name(*column)?, not(*is_negated), text(&pattern))
        }
    })
}

fn joined(filters: &[RowFilter], by: &str, none: &str, columns: &[String]) -> Result<String, String> {
    let parts = filters.iter().map(|filter| sql(filter, columns)).collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.is_empty() { none.to_owned() } else { format!("({})", parts.join(by)) })
}

fn not(is_negated: bool) -> &'static str {
    if is_negated { "NOT " } else { "" }
}

fn sign(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Equal => "=",
        Comparator::NotEqual => "<>",
        Comparator::Less => "<",
        Comparator::LessOrEqual => "<=",
        Comparator::Greater => ">",
        Comparator::GreaterOrEqual => ">=",
    }
}

/// What keeps a column from making numbers of texts: `007` must not be 7. Other texts stay what they are, and the
/// column may be looked up in an index.
fn plain(values: &[RowValue]) -> &'static str {
    let is_like_a_number =
        |value: &RowValue| matches!(value, RowValue::Text(text) if text.trim().parse::<f64>().is_ok());
    if values.iter().any(is_like_a_number) { "+" } else { "" }
}

fn literal(value: &RowValue) -> String {
    match value {
        RowValue::Boolean(value) => u8::from(*value).to_string(),
        RowValue::Integer(value) => value.to_string(),
        // With a point or an exponent, so that it is no integer.
        RowValue::Number(value) => format!("{value:?}"),
        RowValue::Text(value) => text(value),
        RowValue::Date(value) => text(&value.to_string()),
        RowValue::Timestamp(value) => text(&value.to_string()),
    }
}

/// `value` as a literal; SQL ends where a text holds a NUL.
fn text(value: &str) -> String {
    if !value.contains('\0') {
        return format!("'{}'", value.replace('\'', "''"));
    }
    let mut hexadecimal = String::with_capacity(value.len() * 2);
    for byte in value.bytes() {
        // Writing to a String cannot fail.
        let _ = write!(hexadecimal, "{byte:02x}");
    }
    format!("CAST(x'{hexadecimal}' AS TEXT)")
}

/// A pattern of LIKE as one of GLOB, which tells cases apart.
fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let (letter, is_plain) = match letter {
            '\\' => (letters.next().unwrap_or('\\'), true),
            letter => (letter, false),
        };
        match (letter, is_plain) {
            ('%', false) => glob.push('*'),
            ('_', false) => glob.push('?'),
            ('*' | '?' | '[', _) => glob.extend(['[', letter, ']']),
            (letter, _) => glob.push(letter),
        }
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_keep_their_meaning() {
        assert_eq!(glob(r"a%b_c\%d\_e*?[x]\\"), r"a*b?c%d_e[*][?][[]x]\");
        assert_eq!(text("it's"), "'it''s'");
        assert_eq!(text("a\0b"), "CAST(x'610062' AS TEXT)");
        assert_eq!(plain(&[RowValue::Text(" 007 ".to_owned())]), "+");
        assert_eq!(plain(&[RowValue::Text("2024-01-01".to_owned())]), "");
    }
}
