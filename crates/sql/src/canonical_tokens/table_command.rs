//! Expands `TABLE name`, which is short for `SELECT * FROM name`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keyword_token;

/// Replaces TABLE by `SELECT * FROM` where a query begins.
pub(crate) fn expand_table_commands(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written = Vec::with_capacity(tokens.len());
    let mut begins_a_query = true;
    for token in tokens {
        let is_space = matches!(token.token, Token::Whitespace(_));
        if begins_a_query && matches!(&token.token, Token::Word(word) if word.keyword == Keyword::TABLE) {
            let words = [keyword_token("SELECT", Keyword::SELECT), Token::Mul, keyword_token("FROM", Keyword::FROM)];
            written.extend(words.map(|word| TokenWithSpan { token: word, span: token.span }));
            begins_a_query = false;
            continue;
        }
        if !is_space {
            begins_a_query = can_precede_query(&token.token);
        }
        written.push(token);
    }
    written
}

/// Whether a query can begin after `token`.
pub(super) fn can_precede_query(token: &Token) -> bool {
    match token {
        Token::LParen | Token::RParen | Token::SemiColon => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::ALL | Keyword::DISTINCT
        ),
        _ => false,
    }
}
