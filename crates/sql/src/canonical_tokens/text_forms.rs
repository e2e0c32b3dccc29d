//! Rewrites text syntax of PostgreSQL that the parser does not support.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::clauses::is_word;

/// Joins literals that a line break separates, and rewrites `substring(a SIMILAR b ESCAPE c)` as `substring(a FROM b
/// FOR c)`, `trim(both FROM a)` as `trim(both a)`, and `U&'…' UESCAPE '!'` as its text.
pub(crate) fn rewrite_text_forms(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    rewrite_interval_precision(rewrite_function_syntax(join_string_literals(tokens)))
}

fn join_string_literals(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Token::SingleQuotedString(more) = &token.token {
            use Whitespace::{Newline, SingleLineComment};
            let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
            let is_break =
                |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(Newline | SingleLineComment { .. }));
            let start = joined.iter().rposition(|token| !is_space(token)).map_or(0, |last| last + 1);
            if joined[start..].iter().any(is_break)
                && start > 0
                && let Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) =
                    &mut joined[start - 1].token
            {
                text.push_str(more);
                joined.truncate(start);
                continue;
            }
        }
        joined.push(token);
    }
    joined
}

/// Rewrites `interval(3) '…'` as a cast, because the parser drops the digits.
fn rewrite_interval_precision(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut spelt: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if matches!(token.token, Token::SingleQuotedString(_))
            && let Some(word) = find_interval_prefix(&spelt)
        {
            let cast = TokenWithSpan { token: Token::DoubleColon, span: token.span };
            let gap = TokenWithSpan { token: Token::Whitespace(Whitespace::Space), span: token.span };
            spelt.splice(word..word, [token, cast]);
            spelt.push(gap);
            continue;
        }
        spelt.push(token);
    }
    spelt
}

fn find_interval_prefix(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut positions =
        (0..tokens.len()).rev().filter(|position| !matches!(tokens[*position].token, Token::Whitespace(_)));
    let mut next = || positions.next();
    let (close, digits, open, word) = (next()?, next()?, next()?, next()?);
    let is_call = tokens[close].token == Token::RParen
        && matches!(tokens[digits].token, Token::Number(..))
        && tokens[open].token == Token::LParen;
    (is_call && is_word(&tokens[word].token, "interval")).then_some(word)
}

fn rewrite_function_syntax(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut substituted: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // For each open parenthesis: whether it belongs to `substring`.
    let mut open = Vec::new();
    let mut last = [Token::EOF, Token::EOF];
    for mut token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            substituted.push(token);
            continue;
        }
        match &token.token {
            Token::LParen => open.push(is_word(&last[1], "substring")),
            Token::RParen => {
                open.pop();
            }
            word if open.last() == Some(&true) && is_word(word, "similar") => {
                token.token = Token::make_keyword("FROM");
            }
            word if open.last() == Some(&true) && is_word(word, "escape") => {
                token.token = Token::make_keyword("FOR");
            }
            word if is_word(word, "from") && last[1] == Token::LParen && is_word(&last[0], "trim") => continue,
            word if is_word(word, "from") && last[0] == Token::LParen && is_trim_side(&last[1]) => continue,
            Token::SingleQuotedString(escape) if is_word(&last[1], "uescape") => {
                if let Some(text) = decode_unicode_escapes(&last[0], escape) {
                    while substituted.last().is_some_and(|token| !matches!(token.token, Token::UnicodeStringLiteral(_)))
                    {
                        substituted.pop();
                    }
                    substituted.pop();
                    token.token = Token::SingleQuotedString(text);
                }
            }
            _ => {}
        }
        last.swap(0, 1);
        last[1] = token.token.clone();
        substituted.push(token);
    }
    substituted
}

fn is_trim_side(token: &Token) -> bool {
    ["both", "leading", "trailing"].iter().any(|side| is_word(token, side))
}

/// The text of `U&'…'` with the escape character `escape` instead of a backslash.
fn decode_unicode_escapes(literal: &Token, escape: &str) -> Option<String> {
    let Token::UnicodeStringLiteral(text) = literal else { return None };
    let mut characters = escape.chars();
    let (Some(escape), None) = (characters.next(), characters.next()) else { return None };
    if escape.is_ascii_hexdigit() || escape.is_whitespace() || matches!(escape, '+' | '\'' | '"') {
        return None;
    }
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != escape {
            unescaped.push(character);
            continue;
        }
        let digits = match rest.as_str() {
            doubled if doubled.starts_with(escape) => {
                unescaped.push(escape);
                rest.next();
                continue;
            }
            long if long.starts_with('+') => long.get(1..7)?,
            short => short.get(..4)?,
        };
        unescaped.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        let length = digits.len() + usize::from(rest.as_str().starts_with('+'));
        rest = rest.as_str()[length..].chars();
    }
    Some(unescaped)
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::rewrite_text_forms;

    fn rewritten(sql: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        rewrite_text_forms(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn rewrites_postgresql_text_syntax_for_parser() {
        assert_eq!(rewritten("SELECT 'a'\n  'b'"), "SELECT 'ab'");
        assert_eq!(rewritten("SELECT 'a' 'b'"), "SELECT 'a' 'b'");
        assert_eq!(rewritten("SUBSTRING(a SIMILAR 'x' ESCAPE '#')"), "SUBSTRING(a FROM 'x' FOR '#')");
        assert_eq!(rewritten("f(a SIMILAR TO 'x' ESCAPE '#')"), "f(a SIMILAR TO 'x' ESCAPE '#')");
        assert_eq!(rewritten("trim(FROM ' a ')"), "trim( ' a ')");
        assert_eq!(rewritten("trim('x' FROM ' a ')"), "trim('x' FROM ' a ')");
        assert_eq!(rewritten("trim(both FROM ' a ')"), "trim(both  ' a ')");
        assert_eq!(rewritten("U&'d!0061t!+000061!!' UESCAPE '!'"), "'data!'");
    }
}
