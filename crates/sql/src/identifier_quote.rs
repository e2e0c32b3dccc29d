//! Statements for servers that quote identifiers differently.

use sqlparser::tokenizer::{Token, Word};
use tidegate_core::{Error, ErrorKind};

use crate::dialect::SqlDialect;
use crate::parse::{self, EscapeHandling};
use crate::statement::Statement;

impl Statement {
    /// The text with identifiers in `quote` instead of double quotes, for a server that reports this quotation mark.
    ///
    /// # Errors
    /// `InvalidArguments` when the text has no form that such a server certainly reads in the same way: servers with
    /// backquotes differ in how a text literal contains a quotation mark or a backslash.
    pub fn text_with_identifier_quote(&self, quote: char) -> Result<String, Error> {
        // SQLite itself reads both.
        if quote == self.dialect().identifier_quote() || self.dialect() == SqlDialect::Sqlite {
            return Ok(self.text().to_owned());
        }
        if quote != '`' {
            let message = format!("the server quotes identifiers with {quote:?}; only \" and ` are supported");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let tokens = parse::tokenize(self.text(), self.dialect(), EscapeHandling::Verbatim)?;
        tokens.into_iter().map(|token| with_backquotes(token.token)).collect()
    }
}

/// `token`, whose escapes are verbatim, as text.
fn with_backquotes(token: Token) -> Result<String, Error> {
    match token {
        Token::Word(Word { value, quote_style: Some('"'), .. }) => {
            let name = value.replace("\"\"", "\"");
            Ok(format!("`{}`", name.replace('`', "``")))
        }
        Token::SingleQuotedString(text) if !text.contains(['\\', '\'']) => Ok(format!("'{text}'")),
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::UnicodeStringLiteral(_) => {
            let message = "a text with a quotation mark or a backslash cannot be sent to this server, which may read it \
                           differently";
            Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Pass the text as a parameter, or compare with LIKE and _ in the place of the character."))
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
        Statement::parse(sql, SqlDialect::DataFusion).unwrap().text_with_identifier_quote('`')
    }

    #[test]
    fn identifiers_get_backquotes() {
        let sql = "SELECT \"a b\", \"c\"\"d`e\", 'x', 1.5, t.\"f\" FROM \"t u\" AS t WHERE a >= 2 -- end";
        let converted = convert(sql).unwrap();
        assert_eq!(converted, "SELECT `a b`, `c\"d``e`, 'x', 1.5, t.`f` FROM `t u` AS t WHERE a >= 2");
    }

    #[test]
    fn texts_that_servers_read_differently_are_refused() {
        for sql in ["SELECT 'it''s'", "SELECT 'a\\b'", "SELECT E'a\\nb'", "SELECT $$it's$$"] {
            let error = convert(sql).unwrap_err();
            assert!(error.to_string().contains("read it differently"), "{sql}: {error}");
        }
        assert_eq!(convert("SELECT $$a$$").unwrap(), "SELECT 'a'");
    }

    #[test]
    fn other_servers_get_the_canonical_text() {
        let statement = Statement::parse("SELECT \"a\" FROM t", SqlDialect::DataFusion).unwrap();
        assert_eq!(statement.text_with_identifier_quote('"').unwrap(), statement.text());
        assert!(statement.text_with_identifier_quote('[').is_err());
        let statement = Statement::parse("SELECT \"a\" FROM t", SqlDialect::Sqlite).unwrap();
        assert_eq!(statement.text_with_identifier_quote('"').unwrap(), statement.text());
    }
}
