//! SQL with named parameters, as a configuration declares it: `WHERE customer_id = :customer`.
//!
//! Values are bound to placeholders and never inserted into the text. A name may also stand for an identifier; then
//! only names of an allowlist replace it, in quotation marks.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use tidegate_core::{Error, ErrorKind};

use crate::dialect::SqlDialect;
use crate::parse::EscapeHandling;
use crate::statement::Parameter;
use crate::{canonical_tokens, parse};

/// The first name of an attribute of the caller.
const CALLER: &str = "caller";

/// SQL with named parameters.
#[derive(Debug, Clone)]
pub struct SqlTemplate {
    dialect: SqlDialect,
    pieces: Vec<TemplatePart>,
}

#[derive(Debug, Clone)]
enum TemplatePart {
    Text(String),
    Name(TemplateName, ListForm),
}

/// A name in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateName {
    /// A parameter: `:name`.
    Parameter(String),
    /// The path of an attribute of the caller: `claims`, `tenant` for `:caller.claims.tenant`.
    CallerAttribute(Vec<String>),
}

impl fmt::Display for TemplateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) => f.write_str(name),
            Self::CallerAttribute(path) => write!(f, "{CALLER}.{}", path.join(".")),
        }
    }
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
    /// Parses `sql`. A name is a word directly after a single colon. `caller` and the words after its dots are one name.
    ///
    /// # Errors
    /// `InvalidArguments` when the text cannot be tokenized, or has other placeholders.
    pub fn parse(sql: &str, dialect: SqlDialect) -> Result<Self, Error> {
        let tokens = tokenize_with_placeholders(sql, dialect)?;
        let offsets = ByteOffsets::new(sql);
        let mut pieces = Vec::new();
        let (mut text_from, mut index) = (0, 0);
        while let Some(token) = tokens.get(index) {
            if let Token::Placeholder(placeholder) = &token.token {
                return Err(unnamed_placeholder_error(placeholder));
            }
            index += 1;
            let name = (token.token == Token::Colon).then(|| read_name(&tokens[index..])).flatten();
            let Some((name, length)) = name else { continue };
            let form = ListForm::find(&tokens[..index - 1], &tokens[index + length..], dialect);
            pieces.push(TemplatePart::Text(sql[text_from..offsets.byte_offset(token.span.start)].to_owned()));
            pieces.push(TemplatePart::Name(name, form));
            index += length;
            text_from = offsets.byte_offset(tokens[index - 1].span.end);
        }
        pieces.push(TemplatePart::Text(sql[text_from..].to_owned()));
        Ok(Self { dialect, pieces })
    }

    fn template_names(&self) -> impl Iterator<Item = &TemplateName> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePart::Name(name, _) => Some(name),
            TemplatePart::Text(_) => None,
        })
    }

    /// The names of the parameters, unique, in alphabetical order.
    pub fn names(&self) -> BTreeSet<&str> {
        let names = self.template_names().filter_map(|name| match name {
            TemplateName::Parameter(name) => Some(name.as_str()),
            TemplateName::CallerAttribute(_) => None,
        });
        names.collect()
    }

    /// The paths of the attributes of the caller.
    pub fn caller_attributes(&self) -> impl Iterator<Item = &[String]> {
        self.template_names().filter_map(|name| match name {
            TemplateName::Parameter(_) => None,
            TemplateName::CallerAttribute(path) => Some(path.as_slice()),
        })
    }

    /// Replaces each name by the value that `filling` returns. A name that occurs several times is one placeholder,
    /// unless it is a list that is written in several forms.
    ///
    /// # Errors
    /// Those of `filling`; `InvalidArguments` for an empty list, and for an array in SQLite.
    pub fn fill(&self, filling: impl Fn(&TemplateName) -> Result<TemplateValue, Error>) -> Result<BoundSql, Error> {
        let mut filled = BoundSql { sql: String::new(), parameters: Vec::new() };
        // The form is `None` for a value that has only one.
        let mut placeholders: Vec<(&TemplateName, Option<ListForm>, String)> = Vec::new();
        for piece in &self.pieces {
            let (name, form) = match piece {
                TemplatePart::Text(text) => {
                    filled.sql.push_str(text);
                    continue;
                }
                TemplatePart::Name(name, form) => (name, *form),
            };
            let is_same = |other: &&(&TemplateName, Option<ListForm>, String)| {
                other.0 == name && other.1.is_none_or(|other| other == form)
            };
            if let Some((.., written)) = placeholders.iter().find(is_same) {
                filled.sql.push_str(written);
                continue;
            }
            let value = filling(name)?;
            let own_form = value.has_forms().then_some(form);
            let mut writer = PlaceholderWriter { dialect: self.dialect, parameters: &mut filled.parameters };
            let written = writer.write(name, value, form)?;
            filled.sql.push_str(&written);
            placeholders.push((name, own_form, written));
        }
        Ok(filled)
    }
}

/// `sql` with the name `names[n]` as `:name` instead of its placeholder with the number n. Placeholders are `$1`, `?1`,
/// and `?`, which are numbered from left to right. Returns the numbers of placeholders without a name too.
///
/// # Errors
/// `InvalidArguments` when the text cannot be tokenized.
pub fn name_placeholders(sql: &str, dialect: SqlDialect, names: &[String]) -> Result<(String, Vec<usize>), Error> {
    let tokens = tokenize_with_placeholders(sql, dialect)?;
    let offsets = ByteOffsets::new(sql);
    let (mut named, mut unnamed) = (String::new(), Vec::new());
    let (mut text_from, mut count) = (0, 0_usize);
    for (index, token) in tokens.iter().enumerate() {
        let written = match &token.token {
            Token::Placeholder(placeholder) => {
                count += 1;
                let digits = placeholder.trim_start_matches(['$', '?', '@', ':']);
                let number: usize = if digits.is_empty() { count } else { digits.parse().unwrap_or(0) };
                let name = number.checked_sub(1).and_then(|index| names.get(index));
                if name.is_none() {
                    unnamed.push(number);
                }
                name.map(|name| format!(":{name}"))
            }
            // Otherwise a word after a colon, as in a[1:n], would be read as a parameter.
            Token::Colon if read_name(&tokens[index + 1..]).is_some() => Some(": ".to_owned()),
            _ => None,
        };
        let Some(written) = written else { continue };
        named.push_str(&sql[text_from..offsets.byte_offset(token.span.start)]);
        named.push_str(&written);
        text_from = offsets.byte_offset(token.span.end);
    }
    named.push_str(&sql[text_from..]);
    Ok((named, unnamed))
}

fn tokenize_with_placeholders(sql: &str, dialect: SqlDialect) -> Result<Vec<TokenWithSpan>, Error> {
    let tokens = parse::tokenize(sql, dialect, EscapeHandling::Verbatim)?;
    Ok(if dialect.is_embedded() { canonical_tokens::mark_placeholders(tokens) } else { tokens })
}

/// The name at the beginning of `tokens`, and the number of its tokens.
fn read_name(tokens: &[TokenWithSpan]) -> Option<(TemplateName, usize)> {
    let word = |index: usize| match tokens.get(index).map(|token| &token.token) {
        Some(Token::Word(word)) => Some(word),
        _ => None,
    };
    let first = word(0).filter(|word| word.quote_style.is_none())?;
    let mut length = 1;
    let mut path = Vec::new();
    while first.value == CALLER
        && tokens.get(length).is_some_and(|token| token.token == Token::Period)
        && let Some(name) = word(length + 1)
    {
        path.push(name.value.clone());
        length += 2;
    }
    match path.is_empty() {
        true => Some((TemplateName::Parameter(first.value.clone()), length)),
        false => Some((TemplateName::CallerAttribute(path), length)),
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
    fn has_forms(&self) -> bool {
        matches!(self, Self::List { .. } | Self::CallerAttribute(_))
    }
}

/// How a list is written where its name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListForm {
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
struct PlaceholderWriter<'a> {
    pub(crate) dialect: SqlDialect,
    pub(crate) parameters: &'a mut Vec<Parameter>,
}

impl PlaceholderWriter<'_> {
    /// The text that stands for `value` of `name`.
    fn write(&mut self, name: &TemplateName, value: TemplateValue, form: ListForm) -> Result<String, Error> {
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
                let cast = array_cast.or(self.dialect.has_postgres_grammar().then_some("VARCHAR"));
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
            SqlDialect::Sqlite | SqlDialect::MySql => {
                let database = self.dialect.name();
                let message = format!("{database} has no arrays, so {name} cannot stand in ANY, ALL or SOME");
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

    fn template(sql: &str) -> SqlTemplate {
        SqlTemplate::parse(sql, SqlDialect::DataFusion).unwrap()
    }

    #[track_caller]
    fn filled(sql: &str) -> String {
        filled_in(sql, SqlDialect::DataFusion)
    }

    #[track_caller]
    fn filled_in(sql: &str, dialect: SqlDialect) -> String {
        let ids = vec![Parameter::Integer(1), Parameter::Integer(2)];
        let filled = SqlTemplate::parse(sql, dialect).unwrap().fill(|name| {
            Ok(match name.to_string().as_str() {
                "column" => TemplateValue::Identifier("placed \"at\"".to_owned()),
                "ids" => TemplateValue::List { values: Some(ids.clone()), cast: None },
                "days" => TemplateValue::List { values: Some(ids.clone()), cast: Some("DATE") },
                "none" => TemplateValue::List { values: None, cast: Some("BIGINT") },
                "caller.claims.groups" => TemplateValue::CallerAttribute(ids.clone()),
                "caller.subject" => TemplateValue::CallerAttribute(vec![Parameter::Text("ann".to_owned())]),
                "day" => TemplateValue::Value { value: Parameter::Text("2013-01-01".to_owned()), cast: Some("DATE") },
                name => TemplateValue::Value { value: Parameter::Text(name.to_owned()), cast: None },
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
    fn lists_are_values_or_arrays() {
        let sql = "SELECT a IN (:ids) AND b = ANY (:ids) AND c <> ALL(:days) AND (:none IS NULL OR d = any(:none))";
        assert_eq!(
            filled_in(sql, SqlDialect::Postgres),
            "SELECT a IN ($1, $2) AND b = ANY ($3) AND c <> ALL(CAST($4 AS DATE[])) AND (CAST($5 AS BIGINT) IS NULL OR \
             d = any(CAST($6 AS BIGINT[]))) 6"
        );
        assert_eq!(
            filled(sql),
            "SELECT a IN ($1, $2) AND b = ANY (ARRAY[$3, $4]) AND c <> ALL(ARRAY[CAST($5 AS DATE), CAST($6 AS DATE)]) \
             AND (CAST($7 AS BIGINT) IS NULL OR d = any(ARRAY[CAST($8 AS BIGINT)])) 8"
        );
        assert_eq!(filled_in("SELECT unnest(:ids::int[])", SqlDialect::Postgres), "SELECT unnest($1::int[]) 1");
        assert_eq!(filled_in("SELECT :ids IS NOT NULL", SqlDialect::Sqlite), "SELECT $1 IS NOT NULL 1");
        let array = SqlTemplate::parse("SELECT 1 = ANY(:ids)", SqlDialect::Sqlite).unwrap();
        let ids = || TemplateValue::List { values: Some(vec![Parameter::Integer(1)]), cast: None };
        assert!(array.fill(|_| Ok(ids())).unwrap_err().to_string().contains("IN (:ids)"));
    }

    #[test]
    fn attributes_of_the_caller_are_names_with_dots() {
        let sql = "SELECT a = :caller.subject, b = ANY(:caller.claims.groups), :caller, :call.x";
        assert_eq!(
            filled_in(sql, SqlDialect::Postgres),
            "SELECT a = $1, b = ANY($2), $3, $4.x 4",
            "a parameter may be called caller"
        );
        assert_eq!(
            filled(sql),
            "SELECT a = CAST($1 AS VARCHAR), b = ANY(ARRAY[CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)]), $4, $5.x 5"
        );
        let template = template("SELECT :caller.claims.\"odd name\".x");
        assert_eq!(template.caller_attributes().collect::<Vec<_>>(), [["claims", "odd name", "x"]]);
    }

    #[test]
    fn numbered_placeholders_receive_names() {
        let names = ["a", "b"].map(str::to_owned);
        let named = |sql: &str, dialect| name_placeholders(sql, dialect, &names).unwrap();
        assert_eq!(
            named("SELECT '$1', $2::int, x[1:n], j ? 'k' -- $1\nWHERE $1 = $3", SqlDialect::Postgres),
            ("SELECT '$1', :b::int, x[1: n], j ? 'k' -- $1\nWHERE :a = $3".to_owned(), vec![3])
        );
        assert_eq!(named("SELECT ?, ?", SqlDialect::Sqlite), ("SELECT :a, :b".to_owned(), Vec::new()));
        assert_eq!(named("SELECT ?2, ?1", SqlDialect::Sqlite), ("SELECT :b, :a".to_owned(), Vec::new()));
    }

    #[test]
    fn an_empty_list_is_refused() {
        let empty = || TemplateValue::List { values: Some(Vec::new()), cast: None };
        let error = template("SELECT :ids").fill(|_| Ok(empty())).unwrap_err();
        assert_eq!(error.message(), "ids is an empty list; give at least one value");
    }

    #[test]
    fn array_literals_quote_texts() {
        let text = |text: &str| Parameter::Text(text.to_owned());
        let values = [Parameter::Integer(1), Parameter::Null, text("NULL"), text("a,\"b\"\\{}"), text("")];
        assert_eq!(array_literal(&values), r#"{1,NULL,"NULL","a,\"b\"\\{}",""}"#);
    }
}
