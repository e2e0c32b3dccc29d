//! Matching of text: the same pattern means the same in each database.
//!
//! `like` and what is built on it see the case of letters, `ilike` does not, and a backslash takes
//! away a wildcard's meaning. SQLite's LIKE is blind to the case of ASCII letters and knows no
//! escape unless told, so there `like` becomes GLOB and `ilike` LIKE.

use sqlparser::ast::{BinaryOperator, Expr, Value};

use super::build::binary;
use crate::dialect::SqlDialect;
use crate::parameter::Parameter;
use crate::spec::Operator;

/// The pattern that is bound for `value`; what is no text stays as it is.
pub(super) fn pattern(operator: Operator, value: &Parameter, dialect: SqlDialect) -> Parameter {
    let Parameter::Text(text) = value else { return value.clone() };
    let like = match operator {
        Operator::Contains => format!("%{}%", literally(text)),
        Operator::StartsWith => format!("{}%", literally(text)),
        _ => text.clone(),
    };
    let is_glob = dialect == SqlDialect::Sqlite && operator != Operator::Ilike;
    Parameter::Text(if is_glob { glob(&like) } else { like })
}

/// `column` matched with `pattern`, which [`pattern`] made.
pub(super) fn matches(column: Box<Expr>, operator: Operator, pattern: Expr, dialect: SqlDialect) -> Expr {
    let negated = operator == Operator::NotLike;
    match (dialect, operator) {
        (SqlDialect::Sqlite, Operator::Ilike) => {
            let escape_char = Some(Value::SingleQuotedString("\\".to_owned()).into());
            Expr::Like { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char }
        }
        (SqlDialect::Sqlite, _) => {
            let op = BinaryOperator::Custom(if negated { "NOT GLOB" } else { "GLOB" }.to_owned());
            binary(*column, op, pattern)
        }
        (SqlDialect::DataFusion | SqlDialect::Postgres, Operator::Ilike) => {
            Expr::ILike { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char: None }
        }
        (SqlDialect::DataFusion | SqlDialect::Postgres, _) => {
            Expr::Like { negated, any: false, expr: column, pattern: Box::new(pattern), escape_char: None }
        }
    }
}

/// `text` with the wildcards of LIKE escaped.
fn literally(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The pattern of GLOB that means what `like` means.
fn glob(like: &str) -> String {
    let mut glob = String::with_capacity(like.len());
    let mut characters = like.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => glob.push('*'),
            '_' => glob.push('?'),
            '\\' => literal_in_glob(characters.next().unwrap_or('\\'), &mut glob),
            other => literal_in_glob(other, &mut glob),
        }
    }
    glob
}

fn literal_in_glob(character: char, glob: &mut String) {
    match character {
        '*' | '?' | '[' => glob.extend(['[', character, ']']),
        other => glob.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_like_become_patterns_of_glob() {
        assert_eq!(glob("a%b_"), "a*b?");
        assert_eq!(glob("100\\%*[x]?\\\\"), "100%[*][[]x][?]\\");
        assert_eq!(glob("end\\"), "end\\");
        assert_eq!(glob(&literally("50%_\\*")), "50%_\\[*]");
    }
}
