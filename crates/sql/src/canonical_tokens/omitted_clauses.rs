//! Clauses of PostgreSQL that the parser does not support and that do not matter to the statement policy.
//!
//! They contain only names, constants and operators. The parser does not receive them; the database does. The embedded
//! engine refuses them.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::Error;

use super::clauses::is_word;
use super::is_operator;
use crate::refusal::{refusal_error, refuse_only};

/// Leaves out `SEARCH …` and `CYCLE …` of common table expressions, `USING` with an operator, `.*` after an expression,
/// `ONLY` before a table, and the names of XML elements and attributes. `tokens` contains no whitespace.
pub(crate) fn omit_clauses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // For each open parenthesis: the position of its predecessor in `kept`.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        let function = open.last().copied().flatten().map(|position| &kept[position].token);
        if let Some(length) = omitted_length(kept.last().map(|token| &token.token), function, rest, &kept) {
            rest = &rest[length..];
            continue;
        }
        if let Some((table, length)) = table_after_only(kept.last().map(|token| &token.token), rest) {
            kept.extend_from_slice(table);
            rest = &rest[length..];
            continue;
        }
        match token.token {
            Token::LParen => open.push(kept.len().checked_sub(1)),
            Token::RParen => {
                open.pop();
            }
            _ => {}
        }
        kept.push(token.clone());
        rest = after;
    }
    kept
}

/// Returns the refusal of a clause that only PostgreSQL itself supports, if `tokens` have one. The parser reports a
/// syntax error.
pub(crate) fn clause_refusal(tokens: &[TokenWithSpan]) -> Option<Error> {
    for three in tokens.windows(3) {
        let [mark, ampersand, name] = three else { continue };
        let is_quoted = matches!(&name.token, Token::Word(word) if word.quote_style.is_some());
        if is_word(&mark.token, "u") && ampersand.token == Token::Ampersand && is_quoted {
            return Some(unicode_name_error());
        }
    }
    let tokens: Vec<TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).cloned().collect();
    for index in 1..tokens.len() {
        let (before, rest) = (&tokens[index - 1].token, &tokens[index..]);
        let follows_query = *before == Token::RParen;
        if follows_query && is_word(&rest[0].token, "search") && search_length(rest).is_some() {
            let hint = "Collect the keys of the path in an array, path || id, and order by it.";
            return Some(refusal_error("SEARCH", "orders of recursive queries are not supported", hint));
        }
        if follows_query && is_word(&rest[0].token, "cycle") && cycle_length(rest).is_some() {
            let hint = "Collect the keys of the path in an array, path || id, and stop where id = ANY (path).";
            return Some(refusal_error("CYCLE", "marks of recursive queries are not supported", hint));
        }
        if is_word(&rest[0].token, "using") && has_alias(&rest[1..]) {
            let hint = "Leave it out, and name the columns without a table: USING merges them.";
            return Some(refusal_error("the alias of USING", "the merged columns are no table here", hint));
        }
        let begins_table = *before == Token::Comma || ["from", "join"].iter().any(|word| is_word(before, word));
        if begins_table && is_word(&rest[0].token, "only") {
            return Some(refuse_only());
        }
    }
    None
}

/// Whether `rest` is a list in parentheses and `AS`.
fn has_alias(rest: &[TokenWithSpan]) -> bool {
    let end = rest.iter().position(|token| !matches!(token.token, Token::LParen | Token::Word(_) | Token::Comma));
    rest.first().is_some_and(|token| token.token == Token::LParen)
        && end.is_some_and(|end| {
            rest[end].token == Token::RParen && rest.get(end + 1).is_some_and(|token| is_word(&token.token, "as"))
        })
}

/// The refusal of `U&"…"`.
pub(super) fn unicode_name_error() -> Error {
    let reason = "escapes in names are not supported";
    refusal_error("a name with escapes (U&\"…\")", reason, "Write the characters themselves.")
}

/// The number of tokens at the beginning of `rest` that are left out. `function` is the word before the innermost open
/// parenthesis.
fn omitted_length(
    before: Option<&Token>,
    function: Option<&Token>,
    rest: &[TokenWithSpan],
    kept: &[TokenWithSpan],
) -> Option<usize> {
    let in_function = |names: &[&str]| function.is_some_and(|word| names.iter().any(|name| is_word(word, name)));
    match &rest.first()?.token {
        Token::Period if rest.get(1).is_some_and(|token| token.token == Token::Mul) => {
            follows_expression(kept).then_some(2)
        }
        word if is_word(word, "search") && before == Some(&Token::RParen) => search_length(rest),
        word if is_word(word, "cycle") && before == Some(&Token::RParen) => cycle_length(rest),
        word if is_word(word, "using") => operator_length(&rest[1..]).map(|length| 1 + length),
        word if is_word(word, "name") && before == Some(&Token::LParen) && in_function(&["xmlelement", "xmlpi"]) => {
            let length = 1 + name_length(&rest[1..])?;
            Some(length + usize::from(rest.get(length).is_some_and(|token| token.token == Token::Comma)))
        }
        word if is_word(word, "as") && in_function(&["xmlattributes", "xmlforest"]) => {
            name_length(&rest[1..]).map(|length| 1 + length)
        }
        _ => None,
    }
}

/// Whether `kept` ends with an expression in parentheses or brackets, perhaps with fields after it. `schema.table.*` and
/// `table.*` are not such.
fn follows_expression(kept: &[TokenWithSpan]) -> bool {
    let mut kept = kept;
    while let [rest @ .., TokenWithSpan { token: Token::Period, .. }, TokenWithSpan { token: Token::Word(_), .. }] =
        kept
    {
        kept = rest;
    }
    matches!(kept.last().map(|token| &token.token), Some(Token::RParen | Token::RBracket))
}

/// Returns the name of the table in parentheses after `ONLY` at the beginning of `rest`, empty without parentheses, and
/// the length that it replaces.
fn table_after_only<'a>(before: Option<&Token>, rest: &'a [TokenWithSpan]) -> Option<(&'a [TokenWithSpan], usize)> {
    // PostgreSQL reserves the word. It is a name only here, and ends `FETCH FIRST 2 ROWS ONLY`.
    let is_other =
        |token: &Token| *token == Token::Period || ["as", "row", "rows"].iter().any(|word| is_word(token, word));
    if !is_word(&rest.first()?.token, "only") || before.is_some_and(is_other) {
        return None;
    }
    match &rest.get(1)?.token {
        Token::Word(_) => Some((&rest[..0], 1)),
        Token::LParen => {
            let name =
                rest[2..].iter().take_while(|token| matches!(token.token, Token::Word(_) | Token::Period)).count();
            let closes = rest.get(2 + name).is_some_and(|token| token.token == Token::RParen);
            (closes && name > 0).then(|| (&rest[2..2 + name], name + 3))
        }
        _ => None,
    }
}

fn name_length(rest: &[TokenWithSpan]) -> Option<usize> {
    matches!(rest.first()?.token, Token::Word(_)).then_some(1)
}

/// The length of `rest` if it begins with `words`.
fn words_length(rest: &[TokenWithSpan], words: &[&str]) -> Option<usize> {
    let begins = rest.len() >= words.len() && rest.iter().zip(words).all(|(token, word)| is_word(&token.token, word));
    begins.then_some(words.len())
}

/// `a, b SET c`
fn columns_length(rest: &[TokenWithSpan]) -> Option<usize> {
    let mut length = name_length(rest)?;
    while rest.get(length)?.token == Token::Comma {
        length += 1;
        length += name_length(&rest[length..])?;
    }
    length += words_length(&rest[length..], &["set"])?;
    Some(length + name_length(&rest[length..])?)
}

/// `SEARCH BREADTH FIRST BY a, b SET c`
fn search_length(rest: &[TokenWithSpan]) -> Option<usize> {
    let length = words_length(rest, &["search", "depth", "first", "by"])
        .or_else(|| words_length(rest, &["search", "breadth", "first", "by"]))?;
    Some(length + columns_length(&rest[length..])?)
}

/// `CYCLE a, b SET c TO 'x' DEFAULT 'y' USING d`
fn cycle_length(rest: &[TokenWithSpan]) -> Option<usize> {
    let mut length = 1 + columns_length(&rest[1..])?;
    if let Some(to) = words_length(&rest[length..], &["to"]) {
        length += to + constant_length(&rest[length + to..])?;
        length += words_length(&rest[length..], &["default"])?;
        length += constant_length(&rest[length..])?;
    }
    length += words_length(&rest[length..], &["using"])?;
    Some(length + name_length(&rest[length..])?)
}

fn constant_length(rest: &[TokenWithSpan]) -> Option<usize> {
    match &rest.first()?.token {
        Token::Minus => matches!(rest.get(1)?.token, Token::Number(..)).then_some(2),
        Token::Number(..) | Token::SingleQuotedString(_) => Some(1),
        word => ["true", "false", "null"].iter().any(|name| is_word(word, name)).then_some(1),
    }
}

/// `>` or `OPERATOR(schema.>)`
fn operator_length(rest: &[TokenWithSpan]) -> Option<usize> {
    if is_operator(&rest.first()?.token) {
        return Some(1);
    }
    let mut length = words_length(rest, &["operator"])?;
    if rest.get(length)?.token != Token::LParen {
        return None;
    }
    length += 1;
    while let Some(name) = name_length(&rest[length..]) {
        if rest.get(length + name)?.token != Token::Period {
            return None;
        }
        length += name + 1;
    }
    let closes = is_operator(&rest.get(length)?.token) && rest.get(length + 1)?.token == Token::RParen;
    closes.then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::{Token, Tokenizer};

    use super::{clause_refusal, omit_clauses};

    fn kept(sql: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        let tokens = tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
        let kept: Vec<String> = omit_clauses(tokens).iter().map(|token| token.token.to_string()).collect();
        kept.join(" ")
    }

    #[test]
    fn omits_clauses_of_names_and_constants() {
        assert_eq!(kept("(SELECT 1) SEARCH DEPTH FIRST BY a, b SET c SELECT 2"), "( SELECT 1 ) SELECT 2");
        assert_eq!(kept("(SELECT 1) CYCLE a SET b USING c SELECT 2"), "( SELECT 1 ) SELECT 2");
        assert_eq!(
            kept("() SEARCH BREADTH FIRST BY a SET s CYCLE a SET b TO 'y' DEFAULT 'n' USING c, x AS ()"),
            "( ) , x AS ( )"
        );
        assert_eq!(kept("ORDER BY a USING >, b USING OPERATOR(s.>), c"), "ORDER BY a , b , c");
        assert_eq!(
            kept("SELECT (c).*, (f(x)).a.*, t.*, s.t.* FROM t"),
            "SELECT ( c ) , ( f ( x ) ) . a , t . * , s . t . * FROM t"
        );
        assert_eq!(
            kept("FROM ONLY a x, ONLY (s.b) AS y JOIN ONLY \"c\" ON true FETCH FIRST ROW ONLY"),
            "FROM a x , s . b AS y JOIN \"c\" ON true FETCH FIRST ROW ONLY"
        );
        assert_eq!(
            kept("xmlelement(name a, xmlattributes(f(b) AS c, CAST(d AS int) AS e), 'x')"),
            "xmlelement ( xmlattributes ( f ( b ) , CAST ( d AS int ) ) , 'x' )"
        );
    }

    #[test]
    fn keeps_what_may_be_something_else() {
        for sql in [
            "a JOIN b USING ( x )",
            "( SELECT 1 ) search",
            "( 1 ) CYCLE a SET b TO f ( ) DEFAULT 1 USING c",
            "SELECT a AS only , b . only FROM c FETCH NEXT 2 ROWS ONLY",
            "FROM ONLY ( a , b )",
            "FROM \"only\" a",
        ] {
            assert_eq!(kept(sql), sql);
        }
    }

    #[test]
    fn refusals_name_the_clause() {
        for (sql, part) in [
            ("WITH RECURSIVE t AS (SELECT 1) SEARCH DEPTH FIRST BY a SET b SELECT 1", "SEARCH is refused"),
            ("WITH RECURSIVE t AS (SELECT 1) CYCLE a SET b USING c SELECT 1", "CYCLE is refused"),
            ("SELECT * FROM a JOIN b USING (x, y) AS z", "the alias of USING is refused"),
            ("SELECT * FROM ONLY a AS b", "ONLY is refused"),
            ("SELECT 1 AS U&\"d\\0061t\"", "a name with escapes"),
        ] {
            let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
            let error = clause_refusal(&tokens).map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with(part), "{sql}: {error}");
        }
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, "SELECT a FROM b JOIN c USING (d)").tokenize_with_location();
        assert!(clause_refusal(&tokens.unwrap()).is_none());
    }
}
