//! The filter of a row policy as SQL.

use tidegate_query::{RowFilter, RowValue};
use tidegate_sql::Comparator;

use crate::tables::quote_identifier;

/// The maximum length of a pattern that SQLite matches, in bytes. Longer ones fail.
const PATTERN_BYTES_MAX: usize = 100;

/// Converts `filter` over `columns` to SQL. The error says why SQLite cannot evaluate it.
pub(super) fn filter_to_sql(filter: &RowFilter, columns: &[String]) -> Result<String, String> {
    let name = |column: usize| {
        columns
            .get(column)
            .map(|name| quote_identifier(name))
            .ok_or_else(|| "it uses a column that does not exist".to_owned())
    };
    Ok(match filter {
        RowFilter::All(filters) => join_filters(filters, " AND ", "1", columns)?,
        RowFilter::Any(filters) => join_filters(filters, " OR ", "0", columns)?,
        RowFilter::Not(filter) => format!("(NOT {})", filter_to_sql(filter, columns)?),
        RowFilter::Constant(value) => u8::from(*value).to_string(),
        RowFilter::IsNull { column, is_negated } => {
            format!("({} IS {}NULL)", name(*column)?, not_keyword(*is_negated))
        }
        RowFilter::IsTrue(column) => format!("({} AND 1)", name(*column)?),
        RowFilter::Compare { column, comparator, value } => {
            let prefix = affinity_prefix(std::slice::from_ref(value));
            format!("({prefix}{} COLLATE BINARY {} {})", name(*column)?, operator_sql(*comparator), literal(value))
        }
        RowFilter::CompareColumns { left, comparator, right } => {
            format!("({} COLLATE BINARY {} {})", name(*left)?, operator_sql(*comparator), name(*right)?)
        }
        RowFilter::In { column, values, is_negated } => {
            let list: Vec<String> = values.iter().map(literal).collect();
            let (prefix, list) = (affinity_prefix(values), list.join(", "));
            format!("({prefix}{} COLLATE BINARY {}IN ({list}))", name(*column)?, not_keyword(*is_negated))
        }
        RowFilter::Like { column, pattern, is_negated } => {
            let pattern = like_to_glob(pattern);
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(format!("a pattern has more than {PATTERN_BYTES_MAX} bytes"));
            }
            format!("({} {}GLOB {})", name(*column)?, not_keyword(*is_negated), text_literal(&pattern))
        }
    })
}

fn join_filters(filters: &[RowFilter], separator: &str, empty: &str, columns: &[String]) -> Result<String, String> {
    let parts = filters.iter().map(|filter| filter_to_sql(filter, columns)).collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.is_empty() { empty.to_owned() } else { format!("({})", parts.join(separator)) })
}

fn not_keyword(is_negated: bool) -> &'static str {
    if is_negated { "NOT " } else { "" }
}

fn operator_sql(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Equal => "=",
        Comparator::NotEqual => "<>",
        Comparator::Less => "<",
        Comparator::LessOrEqual => "<=",
        Comparator::Greater => ">",
        Comparator::GreaterOrEqual => ">=",
    }
}

/// Prevents numeric affinity, so that `007` is not 7. Other texts can still use an index on the column.
fn affinity_prefix(values: &[RowValue]) -> &'static str {
    let is_like_a_number =
        |value: &RowValue| matches!(value, RowValue::Text(text) if text.trim().parse::<f64>().is_ok());
    if values.iter().any(is_like_a_number) { "+" } else { "" }
}

fn literal(value: &RowValue) -> String {
    match value {
        RowValue::Boolean(value) => u8::from(*value).to_string(),
        RowValue::Integer(value) => value.to_string(),
        // With a point or an exponent, so that SQLite does not read an integer.
        RowValue::Number(value) => format!("{value:?}"),
        RowValue::Text(value) => text_literal(value),
        RowValue::Date(value) => text_literal(&value.to_string()),
        RowValue::Timestamp(value) => text_literal(&value.to_string()),
    }
}

fn text_literal(value: &str) -> String {
    if !value.contains('\0') {
        return format!("'{}'", value.replace('\'', "''"));
    }
    format!("CAST(x'{}' AS TEXT)", hex::encode(value))
}

/// Converts a LIKE pattern to GLOB, which is case-sensitive.
fn like_to_glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (character, is_escaped) = match character {
            '\\' => (characters.next().unwrap_or('\\'), true),
            character => (character, false),
        };
        match (character, is_escaped) {
            ('%', false) => glob.push('*'),
            ('_', false) => glob.push('?'),
            ('*' | '?' | '[', _) => glob.extend(['[', character, ']']),
            (character, _) => glob.push(character),
        }
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_patterns_become_equal_globs() {
        assert_eq!(like_to_glob(r"a%b_c\%d\_e*?[x]\\"), r"a*b?c%d_e[*][?][[]x]\");
        assert_eq!(text_literal("it's"), "'it''s'");
        assert_eq!(text_literal("a\0b"), "CAST(x'610062' AS TEXT)");
        assert_eq!(affinity_prefix(&[RowValue::Text(" 007 ".to_owned())]), "+");
        assert_eq!(affinity_prefix(&[RowValue::Text("2024-01-01".to_owned())]), "");
    }
}
