//! Distinguishes `?` as a placeholder from the JSON operator of PostgreSQL.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Converts each `?` that does not follow an operand to a placeholder.
pub(crate) fn mark_placeholders(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut ends_operand = false;
    for TokenWithSpan { token, .. } in &mut tokens {
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        if *token == Token::Question && !ends_operand {
            *token = Token::Placeholder("?".to_owned());
        }
        ends_operand = is_end_of_operand(token);
    }
    tokens
}

#[rustfmt::skip]
const KEYWORDS_BEFORE_OPERANDS: &[Keyword] = &[
    Keyword::ALL, Keyword::AND, Keyword::ANY, Keyword::BETWEEN, Keyword::BY, Keyword::CASE, Keyword::DISTINCT,
    Keyword::ELSE, Keyword::ESCAPE, Keyword::FIRST, Keyword::FROM, Keyword::HAVING, Keyword::ILIKE, Keyword::IN,
    Keyword::LIKE, Keyword::LIMIT, Keyword::NEXT, Keyword::NOT, Keyword::OFFSET, Keyword::ON, Keyword::OR,
    Keyword::SELECT, Keyword::THEN, Keyword::TO, Keyword::VALUES, Keyword::WHEN, Keyword::WHERE,
];

fn is_end_of_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || !KEYWORDS_BEFORE_OPERANDS.contains(&word.keyword),
        Token::RParen | Token::RBracket | Token::Number(..) | Token::Placeholder(_) => true,
        other => is_text(other),
    }
}

fn is_text(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_))
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn placeholders(sql: &str) -> usize {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        let tokens = mark_placeholders(tokens);
        tokens.iter().filter(|token| matches!(token.token, Token::Placeholder(_))).count()
    }

    #[test]
    fn distinguishes_placeholder_from_json_operator() {
        assert_eq!(placeholders("SELECT * FROM t WHERE id IN (?, ?) AND a = ? LIMIT ? OFFSET ?"), 5);
        assert_eq!(placeholders("SELECT ? WHERE ? = a AND a BETWEEN ? AND ?"), 4);
        assert_eq!(placeholders("SELECT doc ? 'a', doc -> 'b' ? key, (doc) ? ('a') FROM t"), 0);
        assert_eq!(placeholders("SELECT doc ? ? FROM t WHERE data ? 'x'"), 1);
    }
}
