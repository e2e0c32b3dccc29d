//! Full-text conditions as SQL.
//!
//! The scan folds case as Unicode does; no database does the same. They agree on texts of ASCII. Rows with other texts
//! are therefore excluded from what a database counts, and scanned.

use tidegate_query::{BoundExpression, QueryCondition};
use tidegate_sql::SqlDialect;
use tidegate_telemetry::logs::{LogCondition, MISSING, TextPattern};

use super::column_sql::{ColumnForm, ColumnSql, constant, is_exact_text, plain};

/// The maximum length of a pattern in SQLite, as its sessions limit it.
const SQLITE_PATTERN_BYTES_MAX: usize = 100;

/// `condition` as SQL, if there is an exact form for the rows that all of `countable` include, to which it adds. `column`
/// finds the columns of the source: the outer `None` if SQL cannot compare a column, the inner one if there is no such
/// column.
pub(super) fn text_match(
    condition: &LogCondition,
    dialect: SqlDialect,
    column: &dyn Fn(&str) -> Option<Option<ColumnSql>>,
    countable: &mut Vec<QueryCondition>,
) -> Option<QueryCondition> {
    let mut all = |parts: &[LogCondition]| -> Option<Vec<QueryCondition>> {
        parts.iter().map(|part| text_match(part, dialect, column, countable)).collect()
    };
    Some(match condition {
        LogCondition::And(parts) if parts.is_empty() => constant(true),
        LogCondition::Or(parts) if parts.is_empty() => constant(false),
        LogCondition::And(parts) => QueryCondition::And(all(parts)?),
        LogCondition::Or(parts) => QueryCondition::Or(all(parts)?),
        LogCondition::Not(inner) => QueryCondition::Not(Box::new(text_match(inner, dialect, column, countable)?)),
        LogCondition::Missing { column: name } => match column(name)? {
            Some(column) => column.is_missing(),
            None => constant(true),
        },
        LogCondition::Contains { column: name, pattern, is_case_sensitive }
        | LogCondition::Equals { column: name, pattern, is_case_sensitive } => {
            let is_whole_text = matches!(condition, LogCondition::Equals { .. });
            match column(name)? {
                Some(column) => compare(&column, dialect, pattern, is_whole_text, *is_case_sensitive, countable)?,
                None => constant(false),
            }
        }
    })
}

fn compare(
    column: &ColumnSql,
    dialect: SqlDialect,
    pattern: &TextPattern,
    is_whole_text: bool,
    is_case_sensitive: bool,
    countable: &mut Vec<QueryCondition>,
) -> Option<QueryCondition> {
    let folded = if is_case_sensitive { pattern.clone() } else { pattern.to_folded() };
    if !folded.parts().iter().all(|part| is_exact_text(part)) {
        return None;
    }
    let text = column.display_text()?;
    // In PostgreSQL, the bytes of a text of any characters compare exactly.
    let needs_ascii = match dialect {
        SqlDialect::Postgres => column.form == ColumnForm::Text && !is_case_sensitive,
        SqlDialect::Sqlite => true,
        SqlDialect::DataFusion => return None,
    };
    if needs_ascii {
        let is_ascii = is_ascii(column, dialect);
        if !countable.contains(&is_ascii) {
            countable.push(is_ascii);
        }
        if !folded.is_ascii() {
            return Some(constant(false));
        }
    }
    let uses_glob = dialect.has_glob() && is_case_sensitive;
    let pattern = if uses_glob { glob } else { like }(&folded, is_whole_text);
    if dialect.has_glob() && pattern.len() > SQLITE_PATTERN_BYTES_MAX {
        return None;
    }
    let mut sql = BoundExpression::default();
    let pattern = sql.bind(pattern);
    let matches = match dialect {
        SqlDialect::Sqlite if uses_glob => format!("glob({pattern}, {text})"),
        SqlDialect::Sqlite => format!("like({pattern}, {text}, '\\')"),
        SqlDialect::DataFusion | SqlDialect::Postgres => {
            format!("{text} {} {pattern}", if is_case_sensitive { "LIKE" } else { "ILIKE" })
        }
    };
    // True or false for every row, so that a negation is right.
    sql.text = format!("{} IS NOT NULL AND {text} <> '{MISSING}' AND {matches}", column.name);
    Some(QueryCondition::Bound(sql))
}

/// The rows where the text of `column` is ASCII, or null.
fn is_ascii(column: &ColumnSql, dialect: SqlDialect) -> QueryCondition {
    let name = &column.name;
    if !dialect.has_typed_columns() {
        // Also a text with a NUL is shorter than its bytes.
        let text = format!("typeof({name}) = 'text' AND length({name}) = length(CAST({name} AS blob))");
        return plain(format!("typeof({name}) IN ('null', 'integer') OR ({text})"));
    }
    // In other encodings, characters that are not ASCII may have one byte.
    let text = format!("octet_length({name}) = char_length({name}) AND getdatabaseencoding() = 'UTF8'");
    plain(format!("{name} IS NULL OR ({text})"))
}

fn like(pattern: &TextPattern, is_whole_text: bool) -> String {
    let like = pattern.to_like();
    if is_whole_text { like } else { format!("%{like}%") }
}

fn glob(pattern: &TextPattern, is_whole_text: bool) -> String {
    let escape = |part: &String| -> String {
        part.chars()
            .map(|character| match character {
                '*' | '?' | '[' => format!("[{character}]"),
                other => other.to_string(),
            })
            .collect()
    };
    let glob = pattern.parts().iter().map(escape).collect::<Vec<_>>().join("*");
    if is_whole_text { glob } else { format!("*{glob}*") }
}
