//! Statements for servers that read quotation marks or placeholders differently.

use sqlparser::tokenizer::{Token, Whitespace, Word};
use tidegate_core::{Error, ErrorKind};

use crate::canonical_tokens::pair_with_sources;
use crate::dialect::SqlDialect;
use crate::parse::{self, EscapeHandling};
use crate::statement::{Parameter, Statement};

impl Statement {
    /// The text with identifiers in `quote`, for a server that reads them so. `has_standard_texts` is false for a server
    /// that does not read a text literal as the standard has it: two quotation marks as one, and a backslash as itself.
    ///
    /// # Errors
    /// `InvalidArguments` when the text has no form that such a server certainly reads in the same way.
    pub fn text_for_server(&self, quote: char, has_standard_texts: bool) -> Result<String, Error> {
        if self.dialect().reads_quote(quote) && has_standard_texts {
            return Ok(self.text().to_owned());
        }
        if !['"', '`'].contains(&quote) {
            let message = format!("the server quotes identifiers with {quote:?}; only \" and ` are supported");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let tokens = parse::tokenize(self.text(), self.dialect(), EscapeHandling::Verbatim)?;
        tokens.into_iter().map(|token| text_of(token.token, quote, has_standard_texts)).collect()
    }
}

impl Statement {
    /// The text with `?` for each placeholder, and the number of each, for a server whose placeholders have no numbers:
    /// 1 is the first parameter.
    ///
    /// The text has no comments but hints, and spaces after minus signs and slashes: a driver that looks for `:name` outside
    /// of text literals reads no character after them, and would replace names within a literal that begins there.
    ///
    /// # Errors
    /// `InvalidArguments` when the text of a statement that was not parsed cannot be read.
    pub fn text_with_plain_placeholders(&self) -> Result<(String, Vec<usize>), Error> {
        let tokens = parse::tokenize(self.text(), self.dialect(), EscapeHandling::Verbatim)?;
        let (mut text, mut numbers) = (String::with_capacity(self.text().len()), Vec::new());
        for (token, source) in pair_with_sources(self.text(), tokens) {
            match token.token {
                Token::Placeholder(name) => {
                    let number = name.trim_start_matches(['$', '?']).parse::<usize>();
                    numbers.push(number.unwrap_or(numbers.len() + 1));
                    text.push('?');
                }
                Token::Whitespace(Whitespace::SingleLineComment { .. }) => text.push('\n'),
                Token::Whitespace(Whitespace::MultiLineComment(comment)) if !is_read_by_mysql(&comment) => {
                    text.push(' ');
                }
                Token::Minus | Token::Div | Token::Whitespace(Whitespace::MultiLineComment(_)) => {
                    text.push_str(source);
                    text.push(' ');
                }
                _ => text.push_str(source),
            }
        }
        Ok((text, numbers))
    }

    /// As [`Statement::text_for_server`], with the parameters as literals, for a server that binds no values.
    ///
    /// # Errors
    /// As of [`Statement::text_for_server`], also for the texts among the parameters, and for a number that is not finite.
    pub fn text_with_values(&self, quote: char, has_standard_texts: bool) -> Result<String, Error> {
        let text = self.text_for_server(quote, has_standard_texts)?;
        // The text is canonical, so that placeholders are `$1`, `$2` and so on, and quotation marks are as the server reads
        // them.
        let dialect = if quote == '"' { self.dialect() } else { SqlDialect::Sqlite };
        let tokens = parse::tokenize(&text, dialect, EscapeHandling::Verbatim)?;
        let text_of = |token: Token| match token {
            Token::Placeholder(name) => {
                let number = name.trim_start_matches(['$', '?']).parse::<usize>().ok();
                let value = number.and_then(|number| self.parameters().get(number.checked_sub(1)?));
                let value = value.ok_or_else(|| {
                    Error::new(ErrorKind::InvalidArguments, format!("the placeholder {name} has no value"))
                })?;
                literal(value, has_standard_texts)
            }
            token => Ok(token.to_string()),
        };
        tokens.into_iter().map(|token| text_of(token.token)).collect()
    }
}

/// Whether a server of MySQL or MariaDB reads `comment`: as a hint, or for its version.
fn is_read_by_mysql(comment: &str) -> bool {
    ["+", "!", "M!"].iter().any(|mark| comment.starts_with(mark))
}

fn literal(value: &Parameter, has_standard_texts: bool) -> Result<String, Error> {
    match value {
        Parameter::Null => Ok("NULL".to_owned()),
        Parameter::Boolean(value) => Ok(if *value { "TRUE" } else { "FALSE" }.to_owned()),
        Parameter::Integer(value) if *value < 0 => Ok(format!("({value})")),
        Parameter::Integer(value) => Ok(value.to_string()),
        // The shortest text that is read as the same number.
        Parameter::Float(value) if value.is_finite() => Ok(format!("CAST('{value:?}' AS DOUBLE)")),
        Parameter::Float(value) => Err(Error::new(
            ErrorKind::InvalidArguments,
            format!("{value} cannot be sent to a server that binds no values"),
        )),
        Parameter::Text(text) => text_of(Token::SingleQuotedString(text.replace('\'', "''")), '"', has_standard_texts),
    }
}

/// `token`, whose escapes are verbatim, as text.
fn text_of(token: Token, quote: char, has_standard_texts: bool) -> Result<String, Error> {
    match token {
        Token::Word(Word { value, quote_style: Some(own @ ('"' | '`')), .. }) => {
            let name = value.replace(&format!("{own}{own}"), &own.to_string());
            Ok(format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}"))))
        }
        Token::SingleQuotedString(text) if has_standard_texts || !text.contains(['\\', '\'']) => {
            Ok(format!("'{text}'"))
        }
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::UnicodeStringLiteral(_) => {
            let message = "a text with a quotation mark or a backslash cannot be sent to this server, which may read it \
                           differently";
            Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Pass the text as a parameter, or compare with LIKE and _ instead of the character."))
        }
        Token::DoubleQuotedString(_) | Token::DollarQuotedString(_) | Token::NationalStringLiteral(_) => {
            let message = format!("{token} cannot be sent to this server, which may read it differently");
            Err(Error::new(ErrorKind::InvalidArguments, message).with_hint("Write texts as 'text'."))
        }
        token => Ok(token.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(sql: &str) -> Result<String, Error> {
        Statement::parse(sql, SqlDialect::DataFusion).unwrap().text_for_server('`', false)
    }

    #[test]
    fn identifiers_get_backquotes() {
        let sql = "SELECT \"a b\", \"c\"\"d`e\", 'x', 1.5, t.\"f\" FROM \"t u\" AS t WHERE a >= 2 -- end";
        let converted = convert(sql).unwrap();
        assert_eq!(converted, "SELECT `a b`, `c\"d``e`, 'x', 1.5, t.`f` FROM `t u` AS t WHERE a >= 2");
    }

    #[test]
    fn texts_that_servers_read_differently_are_refused() {
        for sql in ["SELECT 'it''s'", "SELECT 'a\\b'", "SELECT E'a\\nb'", "SELECT $$a$$"] {
            let error = convert(sql).unwrap_err();
            assert!(error.to_string().contains("read it differently"), "{sql}: {error}");
        }
        let statement = Statement::parse("SELECT 'it''s' AS \"a\"", SqlDialect::DataFusion).unwrap();
        assert_eq!(statement.text_for_server('`', true).unwrap(), "SELECT 'it''s' AS `a`");
        assert!(statement.text_for_server('"', false).is_err());
    }

    #[test]
    fn values_are_literals_for_servers_that_bind_none() {
        let values = [
            Parameter::Integer(-7),
            Parameter::Null,
            Parameter::Boolean(true),
            Parameter::Float(1.5e300),
            Parameter::Text("$1 -- ?".to_owned()),
        ];
        let sql = "SELECT \"a$1\", '$2', $1, $2, $3, $4, $5 FROM t WHERE x = ($5)";
        let statement =
            Statement::parse(sql, SqlDialect::DataFusion).unwrap().with_parameters(values.to_vec()).unwrap();
        let rest = "'$2', (-7), NULL, TRUE, CAST('1.5e300' AS DOUBLE), '$1 -- ?' FROM t WHERE x = ('$1 -- ?')";
        assert_eq!(statement.text_with_values('"', true).unwrap(), format!("SELECT \"a$1\", {rest}"));
        assert_eq!(statement.text_with_values('`', false).unwrap(), format!("SELECT `a$1`, {rest}"));
        let statement_with = |value| {
            let statement = Statement::parse("SELECT $1", SqlDialect::DataFusion).unwrap();
            statement.with_parameters(vec![value]).unwrap()
        };
        let text = statement_with(Parameter::Text("it's \\".to_owned()));
        assert_eq!(text.text_with_values('"', true).unwrap(), "SELECT 'it''s \\'");
        assert!(text.text_with_values('`', false).is_err());
        assert!(statement_with(Parameter::Float(f64::NAN)).text_with_values('"', true).is_err());
    }

    #[test]
    fn placeholders_lose_their_numbers() {
        let plain = |sql: &str| {
            let statement = Statement::parse(sql, SqlDialect::MySql).unwrap();
            statement.text_with_plain_placeholders().unwrap()
        };
        let expected = "SELECT ?, ?, '?1', ? FROM `t?`".to_owned();
        assert_eq!(plain("SELECT $2, $1, '?1', $2 FROM `t?`"), (expected.clone(), vec![2, 1, 2]));
        assert_eq!(plain("SELECT ?, ?, '?1', ? FROM `t?`"), (expected, vec![1, 2, 3]));
        let owners = Statement::from_owner("SELECT $1 -- it's\n, \"$2\"", Vec::new(), SqlDialect::MySql);
        let expected = "SELECT ? \n, \"$2\"".to_owned();
        assert_eq!(owners.text_with_plain_placeholders().unwrap(), (expected, vec![1]));
    }

    /// A driver skips the character after a minus sign or a slash, so a quotation mark must not stand there.
    #[test]
    fn literals_are_found_by_a_driver_that_looks_for_names() {
        let sql = "SELECT /*+ MAX_EXECUTION_TIME(9) */'a:b'-':c'/':d'/**/, /* it's */ a--5, # it's\n':e'";
        let owners = Statement::from_owner(sql, Vec::new(), SqlDialect::MySql);
        let expected = "SELECT /*+ MAX_EXECUTION_TIME(9) */ 'a:b'- ':c'/ ':d' ,   a- - 5, \n':e'".to_owned();
        assert_eq!(owners.text_with_plain_placeholders().unwrap(), (expected, Vec::new()));
    }

    #[test]
    fn other_servers_get_the_canonical_text() {
        let statement = Statement::parse("SELECT \"a\" FROM t", SqlDialect::DataFusion).unwrap();
        assert_eq!(statement.text_for_server('"', true).unwrap(), statement.text());
        assert!(statement.text_for_server('[', true).is_err());
        let statement = Statement::parse("SELECT \"a\" FROM t", SqlDialect::Sqlite).unwrap();
        assert_eq!(statement.text_for_server('"', true).unwrap(), statement.text());
    }
}
