//! SQL with named parameters, as a configuration declares it: `WHERE customer_id = :customer`.
//!
//! Values are bound to placeholders and never inserted into the text. A name may also stand for an identifier; then
//! only names of an allowlist replace it, in quotation marks.

use std::collections::BTreeSet;

use sqlparser::tokenizer::{Location, Token};
use tidegate_core::{Error, ErrorKind};

use crate::canonical_tokens;
use crate::dialect::SqlDialect;
use crate::parameter::Parameter;
use crate::parse::{self, EscapeHandling};

/// SQL with named parameters.
#[derive(Debug, Clone)]
pub struct SqlTemplate {
    dialect: SqlDialect,
    pieces: Vec<TemplatePart>,
}

#[derive(Debug, Clone)]
enum TemplatePart {
    Text(String),
    Name(String),
}

/// The value of a name.
#[derive(Debug, Clone, PartialEq)]
pub enum TemplateValue {
    /// A bound value, cast to `cast` where the database cannot infer the type.
    Value {
        /// The value.
        value: Parameter,
        /// A type of the database's SQL.
        cast: Option<&'static str>,
    },
    /// A list of bound values, as in `IN (:ids)`.
    List(Vec<Parameter>),
    /// A column or table from an allowlist, never from a caller.
    Identifier(String),
}

/// A template with its values: text with placeholders, and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundSql {
    /// The text, with `$1`, `$2`, …
    pub sql: String,
    /// The values, `$1` first.
    pub parameters: Vec<Parameter>,
}

impl SqlTemplate {
    /// Parses `sql`. A name is a word directly after a single colon.
    ///
    /// # Errors
    /// `InvalidArguments` when the text cannot be tokenized, or has other placeholders.
    pub fn parse(sql: &str, dialect: SqlDialect) -> Result<Self, Error> {
        let mut tokens = parse::tokenize(sql, dialect, EscapeHandling::Verbatim)?;
        if dialect == SqlDialect::DataFusion {
            tokens = canonical_tokens::mark_placeholders(tokens);
        }
        let offsets = ByteOffsets::new(sql);
        let mut pieces = Vec::new();
        let mut text_from = 0;
        for pair in tokens.windows(2) {
            let [colon, word] = pair else { continue };
            match (&colon.token, &word.token) {
                (Token::Placeholder(placeholder), _) => return Err(unnamed_placeholder_error(placeholder)),
                (Token::Colon, Token::Word(name)) if name.quote_style.is_none() => {
                    pieces.push(TemplatePart::Text(sql[text_from..offsets.byte_offset(colon.span.start)].to_owned()));
                    pieces.push(TemplatePart::Name(name.value.clone()));
                    text_from = offsets.byte_offset(word.span.end);
                }
                _ => {}
            }
        }
        if let Some(Token::Placeholder(placeholder)) = tokens.last().map(|last| &last.token) {
            return Err(unnamed_placeholder_error(placeholder));
        }
        pieces.push(TemplatePart::Text(sql[text_from..].to_owned()));
        Ok(Self { dialect, pieces })
    }

    /// The names in the template, unique, in alphabetical order.
    pub fn names(&self) -> BTreeSet<&str> {
        let names = self.pieces.iter().filter_map(|piece| match piece {
            TemplatePart::Name(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        });
        names.collect()
    }

    /// Replaces each name by the value that `filling` returns. A name that occurs several times is one placeholder.
    ///
    /// # Errors
    /// Those of `filling`; `InvalidArguments` for an empty list.
    pub fn fill(&self, filling: impl Fn(&str) -> Result<TemplateValue, Error>) -> Result<BoundSql, Error> {
        let mut filled = BoundSql { sql: String::new(), parameters: Vec::new() };
        let mut placeholders: Vec<(&str, String)> = Vec::new();
        for piece in &self.pieces {
            match piece {
                TemplatePart::Text(text) => filled.sql.push_str(text),
                TemplatePart::Name(name) => match placeholders.iter().find(|(other, _)| *other == name.as_str()) {
                    Some((_, written)) => filled.sql.push_str(written),
                    None => {
                        let written = self.render_value(name, filling(name)?, &mut filled.parameters)?;
                        filled.sql.push_str(&written);
                        placeholders.push((name, written));
                    }
                },
            }
        }
        Ok(filled)
    }

    fn render_value(
        &self,
        name: &str,
        filling: TemplateValue,
        parameters: &mut Vec<Parameter>,
    ) -> Result<String, Error> {
        Ok(match filling {
            TemplateValue::Identifier(identifier) => self.dialect.quote_identifier(&identifier),
            TemplateValue::Value { value, cast } => {
                parameters.push(value);
                let number = parameters.len();
                cast.map_or_else(|| format!("${number}"), |cast| format!("CAST(${number} AS {cast})"))
            }
            TemplateValue::List(values) => {
                if values.is_empty() {
                    let message = format!("{name} is an empty list; give at least one value");
                    return Err(Error::new(ErrorKind::InvalidArguments, message));
                }
                let bind = |value| {
                    parameters.push(value);
                    format!("${}", parameters.len())
                };
                values.into_iter().map(bind).collect::<Vec<_>>().join(", ")
            }
        })
    }
}

fn unnamed_placeholder_error(placeholder: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("the placeholder {placeholder} in the SQL has no name"))
        .with_hint("Write parameters as :name and declare each under input.")
}

struct ByteOffsets<'a> {
    sql: &'a str,
    lines: Vec<usize>,
}

impl<'a> ByteOffsets<'a> {
    fn new(sql: &'a str) -> Self {
        let breaks = sql.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { sql, lines: std::iter::once(0).chain(breaks).collect() }
    }

    fn byte_offset(&self, at: Location) -> usize {
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
        let start = self.lines.get(index(at.line)).copied().unwrap_or(self.sql.len());
        let rest = &self.sql[start..];
        start + rest.char_indices().nth(index(at.column)).map_or(rest.len(), |(byte, _)| byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(sql: &str) -> SqlTemplate {
        SqlTemplate::parse(sql, SqlDialect::DataFusion).unwrap()
    }

    #[track_caller]
    fn filled(sql: &str) -> String {
        let filled = template(sql).fill(|name| {
            Ok(match name {
                "column" => TemplateValue::Identifier("placed \"at\"".to_owned()),
                "ids" => TemplateValue::List(vec![Parameter::Integer(1), Parameter::Integer(2)]),
                "day" => TemplateValue::Value { value: Parameter::Text("2013-01-01".to_owned()), cast: Some("DATE") },
                _ => TemplateValue::Value { value: Parameter::Text(name.to_owned()), cast: None },
            })
        });
        let filled = filled.unwrap();
        format!("{} {:?}", filled.sql, filled.parameters.len())
    }

    #[test]
    fn names_become_placeholders_and_identifiers() {
        assert_eq!(filled("SELECT 1"), "SELECT 1 0");
        assert_eq!(
            filled("SELECT * FROM t WHERE a = :a AND (:a IS NULL OR b=:b)"),
            "SELECT * FROM t WHERE a = $1 AND ($1 IS NULL OR b=$2) 2"
        );
        assert_eq!(
            filled("SELECT * FROM :column\nWHERE ü = 'é' AND i IN (:ids) AND d > :day"),
            "SELECT * FROM \"placed \"\"at\"\"\"\nWHERE ü = 'é' AND i IN ($1, $2) AND d > CAST($3 AS DATE) 3"
        );
    }

    #[test]
    fn ignores_colons_in_strings_comments_and_casts() {
        let sql = "SELECT ':a', \":b\", x::int, a[1 : n] -- :c\n/* :d */ FROM t";
        assert_eq!(filled(sql), format!("{sql} 0"));
        assert_eq!(filled("SELECT 'it''s', E'\\'', $$:a$$"), "SELECT 'it''s', E'\\'', $$:a$$ 0");
    }

    #[test]
    fn placeholders_without_a_name_are_refused() {
        for sql in ["SELECT $1", "SELECT ? + 1", "SELECT * FROM t WHERE a = ?"] {
            assert!(SqlTemplate::parse(sql, SqlDialect::DataFusion).is_err(), "{sql}");
        }
    }

    #[test]
    fn an_empty_list_is_refused() {
        let error = template("SELECT :ids").fill(|_| Ok(TemplateValue::List(Vec::new()))).unwrap_err();
        assert_eq!(error.message(), "ids is an empty list; give at least one value");
    }
}
