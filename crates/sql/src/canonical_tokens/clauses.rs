//! Rewrites clauses and text syntax of PostgreSQL that the parser does not support. `GROUPING SETS`, `ROLLUP` and `CUBE` within
//! `GROUPING SETS` are flattened.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

/// The marker in PARTITION BY for `EXCLUDE …` of a window frame; the kind of exclusion follows it.
const EXCLUSION_MARK: &str = "exclude\u{1}";

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
    flatten(written)
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

fn is_space(token: &TokenWithSpan) -> bool {
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

/// The tokens of all sets of one clause.
const TOKENS_MAX: usize = 100_000;
/// Columns of a nested CUBE.
const CUBE_COLUMNS_MAX: usize = 6;

/// Replaces each `GROUPING SETS` that contains others with the sets that it means.
pub(super) fn flatten(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(&token.token, "sets")) {
        return tokens;
    }
    let mut written = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        if is_word(&token.token, "grouping")
            && let Some((elements, length)) = list_after(rest, &["grouping", "sets"])
            && elements.iter().any(|element| is_nested(element))
            && let Some(sets) = all_sets(&elements)
        {
            let words = ["GROUPING", "SETS"].map(|word| with_span(Token::make_keyword(word), token.span));
            let [grouping, word] = words;
            written.extend([grouping, with_span(Token::Whitespace(Whitespace::Space), token.span), word]);
            let sets: Vec<&[TokenWithSpan]> = sets.iter().map(Vec::as_slice).collect();
            written.extend(tuple(&sets, token.span));
            rest = &rest[length..];
            continue;
        }
        written.push(token.clone());
        rest = after;
    }
    written
}

fn with_span(token: Token, span: Span) -> TokenWithSpan {
    TokenWithSpan { token, span }
}

/// Returns the elements of the list in parentheses after `words`, with which `tokens` begin, and the length of all.
fn list_after<'a>(tokens: &'a [TokenWithSpan], words: &[&str]) -> Option<(Vec<&'a [TokenWithSpan]>, usize)> {
    let mut solid = (0..tokens.len()).filter(|position| !is_space(&tokens[*position]));
    for word in words {
        is_word(&tokens[solid.next()?].token, word).then_some(())?;
    }
    let open = solid.next().filter(|position| tokens[*position].token == Token::LParen)?;
    let (mut start, mut depth) = (open + 1, 0_usize);
    let mut elements = Vec::new();
    for (position, token) in tokens.iter().enumerate().skip(open + 1) {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen if depth == 0 => {
                elements.push(trimmed(&tokens[start..position]));
                return Some((elements, position + 1));
            }
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.checked_sub(1)?,
            Token::Comma if depth == 0 => {
                elements.push(trimmed(&tokens[start..position]));
                start = position + 1;
            }
            _ => {}
        }
    }
    None
}

fn trimmed(mut tokens: &[TokenWithSpan]) -> &[TokenWithSpan] {
    while let [first, rest @ ..] = tokens
        && is_space(first)
    {
        tokens = rest;
    }
    while let [rest @ .., last] = tokens
        && is_space(last)
    {
        tokens = rest;
    }
    tokens
}

/// Returns the elements of `element` if it is the list after `words` and nothing else.
fn whole_list<'a>(element: &'a [TokenWithSpan], words: &[&str]) -> Option<Vec<&'a [TokenWithSpan]>> {
    list_after(element, words).filter(|(_, length)| *length == element.len()).map(|(elements, _)| elements)
}

fn is_nested(element: &[TokenWithSpan]) -> bool {
    [["grouping", "sets"].as_slice(), &["rollup"], &["cube"]].iter().any(|words| whole_list(element, words).is_some())
}

/// Returns the sets that the elements of `GROUPING SETS` mean; `None` if they are too long.
fn all_sets(elements: &[&[TokenWithSpan]]) -> Option<Vec<Vec<TokenWithSpan>>> {
    let mut sets = SetList { sets: Vec::new(), tokens_left: TOKENS_MAX };
    for element in elements {
        sets.add(element)?;
    }
    Some(sets.sets)
}

/// The sets, and how many tokens they may still have.
struct SetList {
    sets: Vec<Vec<TokenWithSpan>>,
    tokens_left: usize,
}

impl SetList {
    fn add(&mut self, element: &[TokenWithSpan]) -> Option<()> {
        let span = element.first()?.span;
        if let Some(elements) = whole_list(element, &["grouping", "sets"]) {
            return elements.into_iter().try_for_each(|element| self.add(element));
        }
        if let Some(elements) = whole_list(element, &["rollup"]) {
            let columns: Vec<_> = elements.iter().map(|element| columns_of(element)).collect();
            return (0..=columns.len()).rev().try_for_each(|length| self.push(&columns[..length].concat(), span));
        }
        if let Some(elements) = whole_list(element, &["cube"]) {
            let columns: Vec<_> = elements.iter().map(|element| columns_of(element)).collect();
            if columns.len() > CUBE_COLUMNS_MAX {
                return None;
            }
            return (0..1_usize << columns.len()).rev().try_for_each(|mask| {
                let chosen = columns.iter().enumerate().filter(|(index, _)| (mask >> index) & 1 == 1);
                let chosen: Vec<&[TokenWithSpan]> = chosen.flat_map(|(_, columns)| columns.iter().copied()).collect();
                self.push(&chosen, span)
            });
        }
        self.tokens_left = self.tokens_left.checked_sub(element.len())?;
        self.sets.push(element.to_vec());
        Some(())
    }

    /// Adds the set of `columns`.
    fn push(&mut self, columns: &[&[TokenWithSpan]], span: Span) -> Option<()> {
        let tokens: usize = columns.iter().map(|column| column.len() + 1).sum();
        self.tokens_left = self.tokens_left.checked_sub(tokens + 1)?;
        self.sets.push(tuple(columns, span));
        Some(())
    }
}

/// Returns the columns of an element of ROLLUP or CUBE, which may be several in parentheses.
fn columns_of(element: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    whole_list(element, &[]).unwrap_or_else(|| vec![element])
}

/// Writes `(a, b)`.
fn tuple(elements: &[&[TokenWithSpan]], span: Span) -> Vec<TokenWithSpan> {
    let mut written = vec![with_span(Token::LParen, span)];
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            written.push(with_span(Token::Comma, span));
        }
        written.extend_from_slice(element);
    }
    written.push(with_span(Token::RParen, span));
    written
}

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

    use super::{flatten, rewrite_clauses, rewrite_text_forms};

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

    fn flattened(sql: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        flatten(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn sets_within_sets_are_sets_beside_them() {
        assert_eq!(
            flattened("GROUP BY GROUPING SETS (a, grouping sets ((b, c), ()), f(a, b)) HAVING x"),
            "GROUP BY GROUPING SETS(a,(b, c),(),f(a, b)) HAVING x"
        );
        assert_eq!(
            flattened("grouping sets (rollup ((a, b), c), cube(a, b))"),
            "GROUPING SETS((a,b,c),(a,b),(),(a,b),(b),(a),())"
        );
        for sql in ["GROUPING SETS ((a, b), a, ())", "SELECT sets FROM grouping", "GROUPING SETS (a, rollup(b)"] {
            assert_eq!(flattened(sql), sql);
        }
        // Their sets are too long, or they are no lists.
        for sql in [format!("GROUPING SETS (ROLLUP(a{}))", ",a".repeat(50_000)), "GROUPING SETS ( ]".repeat(50_000)] {
            assert_eq!(flattened(&sql), sql);
        }
    }

    fn rewritten_text(sql: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        rewrite_text_forms(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn rewrites_postgresql_text_syntax_for_parser() {
        assert_eq!(rewritten_text("SELECT 'a'\n  'b'"), "SELECT 'ab'");
        assert_eq!(rewritten_text("SELECT 'a' 'b'"), "SELECT 'a' 'b'");
        assert_eq!(rewritten_text("SUBSTRING(a SIMILAR 'x' ESCAPE '#')"), "SUBSTRING(a FROM 'x' FOR '#')");
        assert_eq!(rewritten_text("f(a SIMILAR TO 'x' ESCAPE '#')"), "f(a SIMILAR TO 'x' ESCAPE '#')");
        assert_eq!(rewritten_text("trim(FROM ' a ')"), "trim( ' a ')");
        assert_eq!(rewritten_text("trim('x' FROM ' a ')"), "trim('x' FROM ' a ')");
        assert_eq!(rewritten_text("trim(both FROM ' a ')"), "trim(both  ' a ')");
        assert_eq!(rewritten_text("U&'d!0061t!+000061!!' UESCAPE '!'"), "'data!'");
    }
}
