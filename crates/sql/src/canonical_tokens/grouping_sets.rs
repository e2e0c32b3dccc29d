//! Flattens `GROUPING SETS`, `ROLLUP` and `CUBE` within `GROUPING SETS`, which the parser does not support there.

use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use super::clauses::{is_space, is_word};

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

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::flatten;

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
}
