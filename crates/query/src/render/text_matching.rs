//! Text matching with the same meaning of patterns in each database.
//!
//! `like` and the operators based on it are case-sensitive, `ilike` is not, and a backslash escapes a wildcard. LIKE of
//! SQLite ignores the case of ASCII letters and has no default escape, so there `like` becomes GLOB and `ilike` becomes
//! LIKE.

use sqlparser::ast::{BinaryOperator, Expr, Value};
use tidegate_sql::{Parameter, SqlDialect};

use super::build::binary_expression;
use crate::spec::ComparisonOperator;

/// The pattern for `value`; values that are not text stay unchanged.
pub(super) fn build_pattern(operator: ComparisonOperator, value: &Parameter, dialect: SqlDialect) -> Parameter {
    let Parameter::Text(text) = value else { return value.clone() };
    let like = match operator {
        ComparisonOperator::Contains => format!("%{}%", escape_wildcards(text)),
        ComparisonOperator::StartsWith => format!("{}%", escape_wildcards(text)),
        _ => text.clone(),
    };
    let is_glob = dialect.has_glob() && operator != ComparisonOperator::Ilike;
    Parameter::Text(if is_glob { like_to_glob(&like) } else { like })
}

pub(super) fn match_expression(
    column: Box<Expr>,
    operator: ComparisonOperator,
    pattern: Expr,
    dialect: SqlDialect,
) -> Expr {
    let negated = operator == ComparisonOperator::NotLike;
    match (dialect, operator) {
        (SqlDialect::Sqlite, ComparisonOperator::Ilike) => {
            let escape_char = Some(Value::SingleQuotedString("\\".to_owned()).into());
            Expr::Like { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char }
        }
        (SqlDialect::Sqlite, _) => {
            let op = BinaryOperator::Custom(if negated { "NOT GLOB" } else { "GLOB" }.to_owned());
            binary_expression(*column, op, pattern)
        }
        (SqlDialect::DataFusion | SqlDialect::Postgres, ComparisonOperator::Ilike) => {
            Expr::ILike { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char: None }
        }
        (SqlDialect::DataFusion | SqlDialect::Postgres, _) => {
            Expr::Like { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char: None }
        }
    }
}

fn escape_wildcards(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The GLOB pattern with the same meaning as `like`.
fn like_to_glob(like: &str) -> String {
    let mut glob = String::with_capacity(like.len());
    let mut characters = like.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => glob.push('*'),
            '_' => glob.push('?'),
            '\\' => push_glob_literal(characters.next().unwrap_or('\\'), &mut glob),
            other => push_glob_literal(other, &mut glob),
        }
    }
    glob
}

fn push_glob_literal(character: char, glob: &mut String) {
    match character {
        '*' | '?' | '[' => glob.extend(['[', character, ']']),
        other => glob.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translates_like_to_glob() {
        assert_eq!(like_to_glob("a%b_"), "a*b?");
        assert_eq!(like_to_glob("100\\%*[x]?\\\\"), "100%[*][[]x][?]\\");
        assert_eq!(like_to_glob("end\\"), "end\\");
        assert_eq!(like_to_glob(&escape_wildcards("50%_\\*")), "50%_\\[*]");
    }
}
