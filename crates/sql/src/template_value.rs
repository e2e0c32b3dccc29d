//! The values of a template's names, and how they are written: as placeholders or identifiers.

use std::fmt::Write as _;

use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::{Error, ErrorKind};

use crate::canonical_tokens;
use crate::dialect::SqlDialect;
use crate::parameter::Parameter;
use crate::template::TemplateName;

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
    /// A list of bound values, for `IN (:ids)` and `= ANY (:ids)`.
    List {
        /// The values; `None` is null.
        values: Option<Vec<Parameter>>,
        /// A type of the database's SQL, for null and for the values of an array.
        cast: Option<&'static str>,
    },
    /// An attribute of the caller: one value or several. Without values, it is null.
    CallerAttribute(Vec<Parameter>),
    /// A column or table from an allowlist, never from a caller.
    Identifier(String),
}

impl TemplateValue {
    /// Whether it is written in another way where an array is expected.
    pub(crate) fn has_forms(&self) -> bool {
        matches!(self, Self::List { .. } | Self::CallerAttribute(_))
    }
}

/// How a list is written where its name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListForm {
    /// One value after the other, as in `IN (:ids)`.
    Values,
    /// As `Values`, outside of `IN (…)` and `ARRAY[…]`: several values may mean something else there.
    Operand,
    /// One array, as in `= ANY (:ids)`.
    Array,
    /// Its first value, as in `:ids IS NULL`.
    NullTest,
}

impl ListForm {
    /// The form of the name between the tokens `before` and `behind`.
    pub(crate) fn find(before: &[TokenWithSpan], behind: &[TokenWithSpan], dialect: SqlDialect) -> Self {
        let is_code = |token: &&Token| !matches!(token, Token::Whitespace(_));
        let mut before = before.iter().rev().map(|token| &token.token).filter(is_code);
        let mut behind = behind.iter().map(|token| &token.token).filter(is_code);
        let is_word = |token: Option<&Token>, words: &[&str]| {
            let Some(Token::Word(word)) = token else { return false };
            word.quote_style.is_none() && words.iter().any(|other| word.value.eq_ignore_ascii_case(other))
        };
        let (test, negation) = (behind.next(), behind.next());
        let is_null = is_word(negation, &["NULL"]) || is_word(negation, &["NOT"]) && is_word(behind.next(), &["NULL"]);
        // `a = :ids IS NULL` tests the comparison.
        if is_word(test, &["IS"]) && is_null && !before.clone().next().is_some_and(canonical_tokens::is_operator) {
            return Self::NullTest;
        }
        let functions: &[&str] =
            if dialect.is_postgres() { &["ANY", "ALL", "SOME", "UNNEST"] } else { &["ANY", "ALL", "SOME"] };
        let mut outward = before.clone();
        if outward.next() == Some(&Token::LParen) && is_word(outward.next(), functions) {
            return Self::Array;
        }
        let mut depth = 0_usize;
        while let Some(token) = before.next() {
            match token {
                Token::RParen | Token::RBracket => depth += 1,
                Token::LBracket if depth == 0 => return Self::Values,
                Token::LParen if depth == 0 => {
                    return if is_word(before.next(), &["IN"]) { Self::Values } else { Self::Operand };
                }
                Token::LParen | Token::LBracket => depth -= 1,
                _ => {}
            }
        }
        Self::Operand
    }
}

/// Adds values to the parameters of a statement.
pub(crate) struct PlaceholderWriter<'a> {
    pub(crate) dialect: SqlDialect,
    pub(crate) parameters: &'a mut Vec<Parameter>,
}

impl PlaceholderWriter<'_> {
    /// The text that stands for `value` of `name`.
    pub(crate) fn write(&mut self, name: &TemplateName, value: TemplateValue, form: ListForm) -> Result<String, Error> {
        let (values, value_cast, array_cast) = match value {
            TemplateValue::Identifier(identifier) => return Ok(self.dialect.quote_identifier(&identifier)),
            TemplateValue::Value { value, cast } => return Ok(self.bind(value, cast)),
            TemplateValue::List { values: Some(values), .. } if values.is_empty() => {
                let message = format!("{name} is an empty list; give at least one value");
                return Err(Error::new(ErrorKind::InvalidArguments, message));
            }
            TemplateValue::List { values: Some(values), cast } => (values, None, cast),
            TemplateValue::List { values: None, cast } => (Vec::new(), cast, cast),
            TemplateValue::CallerAttribute(values) if values.len() > 1 && form == ListForm::Operand => {
                let message = format!("{name} has {} values, and one is expected", values.len());
                return Err(Error::new(ErrorKind::Forbidden, message)
                    .with_hint(format!("The SQL of the tool can take several: IN (:{name}).")));
            }
            TemplateValue::CallerAttribute(values) => {
                // The embedded engine needs a type when the statement is planned, before the caller is known.
                let cast = self.dialect.is_embedded().then_some("VARCHAR");
                (values, cast, cast)
            }
        };
        match form {
            ListForm::NullTest => {
                let first = values.into_iter().next().unwrap_or(Parameter::Null);
                // PostgreSQL cannot infer a type from IS NULL.
                let cast = array_cast.or(self.dialect.has_typed_columns().then_some("VARCHAR"));
                Ok(self.bind(first, cast))
            }
            ListForm::Values | ListForm::Operand if values.is_empty() => Ok(self.bind(Parameter::Null, value_cast)),
            ListForm::Values | ListForm::Operand => {
                let bound: Vec<String> = values.into_iter().map(|value| self.bind(value, value_cast)).collect();
                Ok(bound.join(", "))
            }
            ListForm::Array => self.write_array(name, values, array_cast),
        }
    }

    fn write_array(
        &mut self,
        name: &TemplateName,
        values: Vec<Parameter>,
        cast: Option<&str>,
    ) -> Result<String, Error> {
        match self.dialect {
            SqlDialect::Postgres => {
                let value = if values.is_empty() { Parameter::Null } else { Parameter::Text(array_literal(&values)) };
                let cast = cast.map(|cast| format!("{cast}[]"));
                Ok(self.bind(value, cast.as_deref()))
            }
            SqlDialect::DataFusion => {
                // A comparison with an array that holds only null is null, as a comparison with null.
                let values = if values.is_empty() { vec![Parameter::Null] } else { values };
                let bound: Vec<String> = values.into_iter().map(|value| self.bind(value, cast)).collect();
                Ok(format!("ARRAY[{}]", bound.join(", ")))
            }
            SqlDialect::Sqlite => {
                let message = format!("SQLite has no arrays, so {name} cannot stand in ANY, ALL or SOME");
                Err(Error::new(ErrorKind::InvalidArguments, message).with_hint(format!("Write IN (:{name}).")))
            }
        }
    }

    fn bind(&mut self, value: Parameter, cast: Option<&str>) -> String {
        self.parameters.push(value);
        let number = self.parameters.len();
        cast.map_or_else(|| format!("${number}"), |cast| format!("CAST(${number} AS {cast})"))
    }
}

/// An array in the text form of PostgreSQL: `{1,"a \"b\"",NULL}`. The server parses it as the type that it inferred.
fn array_literal(values: &[Parameter]) -> String {
    let mut literal = String::from("{");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            literal.push(',');
        }
        // Writing to a text cannot fail.
        let _ = match value {
            Parameter::Null => write!(literal, "NULL"),
            Parameter::Boolean(value) => write!(literal, "{value}"),
            Parameter::Integer(value) => write!(literal, "{value}"),
            Parameter::Float(value) => write!(literal, "{value}"),
            Parameter::Text(text) => write!(literal, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        };
    }
    literal.push('}');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_literals_quote_texts() {
        let text = |text: &str| Parameter::Text(text.to_owned());
        let values = [Parameter::Integer(1), Parameter::Null, text("NULL"), text("a,\"b\"\\{}"), text("")];
        assert_eq!(array_literal(&values), r#"{1,NULL,"NULL","a,\"b\"\\{}",""}"#);
    }
}
