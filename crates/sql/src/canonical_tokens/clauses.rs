//! Rewrites clauses of PostgreSQL that the parser does not support.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::grouping_sets;

/// The marker in PARTITION BY for `EXCLUDE …` of a window frame; the kind of exclusion follows it.
pub(crate) const EXCLUSION_MARK: &str = "exclude\u{1}";

/// Rewrites `ORDER BY x USING >` as `ORDER BY x DESC`, `ROWS FROM (…)` as `rows_from(…)`, `EXCLUDE …` of a frame as a
/// string in front of PARTITION BY, and `'1 day'::interval PRECEDING` as `('1 day'::interval) PRECEDING`. Names records
/// without an alias, and flattens `GROUPING SETS`.
pub(crate) fn rewrite_clauses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // The positions in `written` of open parentheses.
    let mut open: Vec<usize> = Vec::new();
    // The position of the parenthesis that was closed last.
    let mut closed = None;
    let mut rest = tokens.into_iter();
    while let Some(token) = rest.next() {
        match &token.token {
            Token::LParen => open.push(written.len()),
            Token::RParen => {
                closed = open.pop();
                if let Some(parenthesis) = closed {
                    move_exclusion(&mut written, parenthesis);
                }
            }
            word if is_word(word, "as") => {
                let follows = rest.as_slice().iter().find(|token| !is_space(token));
                let is_unnamed = follows.is_some_and(|token| token.token == Token::LParen);
                let name = closed.filter(|_| is_unnamed).and_then(|closed| record_function(&written, closed)).cloned();
                written.push(token);
                written.extend(name);
                continue;
            }
            Token::Lt | Token::Gt if last_word_is(&written, "using") => {
                let direction = if token.token == Token::Gt { "DESC" } else { "ASC" };
                pop_word(&mut written);
                written.push(TokenWithSpan { token: Token::make_keyword(direction), span: token.span });
                continue;
            }
            word if is_word(word, "from") && ends_with_rows_in_from(&written) && begins_with_call(rest.as_slice()) => {
                while rest.as_slice().first().is_some_and(is_space) {
                    rest.next();
                }
                let span = pop_word(&mut written).map_or(token.span, |token| token.span);
                written.push(TokenWithSpan { token: Token::make_word("rows_from", None), span });
                continue;
            }
            word if is_word(word, "preceding") || is_word(word, "following") => parenthesize_cast(&mut written),
            _ => {}
        }
        written.push(token);
    }
    grouping_sets::flatten(written)
}

/// Returns the name of the function of records whose call, with its parenthesis at the position `open`, ends `written`.
/// Its alias may have columns only: `json_to_record(…) AS (a int)`.
fn record_function(written: &[TokenWithSpan], open: usize) -> Option<&TokenWithSpan> {
    const FUNCTIONS: [&str; 4] = ["json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset"];
    let ends_with_call = written.iter().rev().find(|token| !is_space(token))?.token == Token::RParen;
    let name = written.get(..open)?.iter().rev().find(|token| !is_space(token))?;
    (ends_with_call && FUNCTIONS.iter().any(|function| is_word(&name.token, function))).then_some(name)
}

/// Parenthesizes the cast of a string to a type of one word at the end of `written`.
fn parenthesize_cast(written: &mut Vec<TokenWithSpan>) {
    let mut positions = (0..written.len()).rev().filter(|position| !is_space(&written[*position]));
    let (Some(data_type), Some(colons), Some(text)) = (positions.next(), positions.next(), positions.next()) else {
        return;
    };
    let is_cast = matches!(written[data_type].token, Token::Word(_))
        && written[colons].token == Token::DoubleColon
        && matches!(written[text].token, Token::SingleQuotedString(_));
    if is_cast {
        let span = written[text].span;
        written.insert(data_type + 1, TokenWithSpan { token: Token::RParen, span });
        written.insert(text, TokenWithSpan { token: Token::LParen, span });
    }
}

/// Expands `TABLE name`, which is short for `SELECT * FROM name`, where a query begins.
pub(crate) fn expand_table_commands(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written = Vec::with_capacity(tokens.len());
    let mut begins_a_query = true;
    for token in tokens {
        if begins_a_query && matches!(&token.token, Token::Word(word) if word.keyword == Keyword::TABLE) {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            written.extend(words.map(|word| TokenWithSpan { token: word, span: token.span }));
            begins_a_query = false;
            continue;
        }
        if !is_space(&token) {
            begins_a_query = can_precede_query(&token.token);
        }
        written.push(token);
    }
    written
}

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

pub(super) fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

pub(super) fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn last_word_is(written: &[TokenWithSpan], text: &str) -> bool {
    written.iter().rev().find(|token| !is_space(token)).is_some_and(|token| is_word(&token.token, text))
}

fn pop_word(written: &mut Vec<TokenWithSpan>) -> Option<TokenWithSpan> {
    while written.last().is_some_and(is_space) {
        written.pop();
    }
    written.pop()
}

/// Whether `written` ends with the word `rows` where a table of FROM begins.
fn ends_with_rows_in_from(written: &[TokenWithSpan]) -> bool {
    let mut tokens = written.iter().rev().filter(|token| !is_space(token)).map(|token| &token.token);
    let begins_table =
        |token: &Token| *token == Token::Comma || ["from", "join", "lateral"].iter().any(|word| is_word(token, word));
    tokens.next().is_some_and(|token| is_word(token, "rows")) && tokens.next().is_some_and(begins_table)
}

/// Whether a function is called in the parenthesis at the beginning. After a column `rows`, a query may be there.
fn begins_with_call(rest: &[TokenWithSpan]) -> bool {
    let mut tokens = rest.iter().filter(|token| !is_space(token)).map(|token| &token.token);
    let mut next = || tokens.next();
    next() == Some(&Token::LParen)
        && matches!(next(), Some(Token::Word(_)))
        && matches!(next(), Some(Token::LParen | Token::Period))
}

/// Moves the exclusion at the end of the window whose parenthesis is at the position `parenthesis` to its front.
fn move_exclusion(written: &mut Vec<TokenWithSpan>, parenthesis: usize) {
    const EXCLUSIONS: [(&[&str], &str); 4] = [
        (&["exclude", "current", "row"], "current row"),
        (&["exclude", "group"], "group"),
        (&["exclude", "ties"], "ties"),
        (&["exclude", "no", "others"], "no others"),
    ];
    let words: Vec<usize> = (parenthesis + 1..written.len()).filter(|index| !is_space(&written[*index])).collect();
    let ends_with = |names: &[&str]| {
        words.len() > names.len() + 1
            && words.iter().rev().zip(names.iter().rev()).all(|(index, name)| is_word(&written[*index].token, name))
    };
    let Some((names, kind)) = EXCLUSIONS.into_iter().find(|(names, _)| ends_with(names)) else { return };
    let (words, of_clause) = words.split_at(words.len() - names.len());
    let span = written[parenthesis].span;
    written.truncate(of_clause.first().copied().unwrap_or(written.len()));
    if kind == "no others" {
        return;
    }
    let with_span = |token: Token| TokenWithSpan { token, span };
    let space = || with_span(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
    // In parentheses, because standalone constants are ignored in PARTITION BY.
    let mark = with_span(Token::SingleQuotedString(format!("{EXCLUSION_MARK}{kind}")));
    let mark = [with_span(Token::LParen), mark, with_span(Token::RParen)];
    let by = words.iter().zip(words.iter().skip(1)).find(|(partition, by)| {
        is_word(&written[**partition].token, "partition") && is_word(&written[**by].token, "by")
    });
    if let Some((_, by)) = by {
        let by = by + 1;
        let mark = std::iter::once(space()).chain(mark).chain([with_span(Token::Comma), space()]);
        written.splice(by..by, mark);
        return;
    }
    // The name of a window comes first.
    let starts = ["order", "rows", "range", "groups"];
    let first = words.iter().copied().find(|index| starts.iter().any(|start| is_word(&written[*index].token, start)));
    let first = first.unwrap_or(parenthesis + 1);
    let [partition, by] = ["PARTITION", "BY"].map(|word| with_span(Token::make_keyword(word)));
    let clause = [partition, space(), by, space()].into_iter().chain(mark).chain([space()]);
    written.splice(first..first, clause);
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::rewrite_clauses;

    fn rewritten(sql: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        rewrite_clauses(tokens).iter().map(|token| token.token.to_string()).collect::<String>().replace('\u{1}', "*")
    }

    #[test]
    fn rewrites_postgresql_clauses_for_parser() {
        assert_eq!(rewritten("ORDER BY x USING >, y USING <"), "ORDER BY x DESC, y ASC");
        assert_eq!(rewritten("a JOIN b USING (x)"), "a JOIN b USING (x)");
        assert_eq!(rewritten("FROM ROWS FROM (f(1), g()) AS t"), "FROM rows_from(f(1), g()) AS t");
        assert_eq!(rewritten("SELECT rows FROM t"), "SELECT rows FROM t");
        assert_eq!(rewritten("SELECT rows FROM (SELECT 1)"), "SELECT rows FROM (SELECT 1)");
        assert_eq!(
            rewritten("OVER (ORDER BY f(x) ROWS 1 PRECEDING EXCLUDE TIES)"),
            "OVER (PARTITION BY ('exclude*ties') ORDER BY f(x) ROWS 1 PRECEDING )"
        );
        assert_eq!(
            rewritten("(w PARTITION BY a ROWS 1 PRECEDING EXCLUDE CURRENT ROW)"),
            "(w PARTITION BY ('exclude*current row'),  a ROWS 1 PRECEDING )"
        );
        assert_eq!(rewritten("(ROWS 1 PRECEDING EXCLUDE NO OTHERS)"), "(ROWS 1 PRECEDING )");
        assert_eq!(rewritten("SELECT * EXCLUDE (a)"), "SELECT * EXCLUDE (a)");
        assert_eq!(
            rewritten("FROM json_to_record(f(x)) AS (a int)"),
            "FROM json_to_record(f(x)) ASjson_to_record (a int)"
        );
        assert_eq!(rewritten("WITH a(b) AS (SELECT f(x) AS c)"), "WITH a(b) AS (SELECT f(x) AS c)");
        assert_eq!(
            rewritten("RANGE BETWEEN '1 day'::interval PRECEDING AND 2::int FOLLOWING"),
            "RANGE BETWEEN ('1 day'::interval) PRECEDING AND 2::int FOLLOWING"
        );
    }
}
