//! Bracket expressions.

use std::sync::Arc;

use datafusion::common::Result;

use super::{Escape, RegexLexer, invalid_regex_error};
use crate::text::regex::charset::{CharSet, find_class};

/// An item of a bracket expression.
enum BracketItem {
    Character(char),
    Class(Arc<CharSet>),
    Range,
    End,
}

/// Parses a bracket expression after `[`.
pub(super) fn parse_brackets(lexer: &mut RegexLexer) -> Result<Arc<CharSet>> {
    let is_negated = lexer.eat("^");
    let mut ranges = Vec::new();
    let mut is_first = true;
    let mut item = next_item(lexer, &mut is_first)?;
    loop {
        match item {
            BracketItem::End => break,
            BracketItem::Range => return Err(invalid_regex_error("invalid character range")),
            BracketItem::Class(set) => {
                ranges.extend_from_slice(set.ranges());
                item = next_item(lexer, &mut is_first)?;
            }
            BracketItem::Character(start) => {
                item = next_item(lexer, &mut is_first)?;
                let mut end = start;
                if matches!(item, BracketItem::Range) {
                    end = match next_item(lexer, &mut is_first)? {
                        BracketItem::Character(end) => end,
                        BracketItem::Range => '-',
                        _ => return Err(invalid_regex_error("invalid character range")),
                    };
                    item = next_item(lexer, &mut is_first)?;
                }
                if start > end {
                    return Err(invalid_regex_error("invalid character range"));
                }
                ranges.push((start, end));
            }
        }
    }
    let set = lexer.cased(CharSet::new(ranges));
    if !is_negated {
        return Ok(set);
    }
    if lexer.flags.stops_at_newline {
        let with_newline = CharSet::new([set.ranges(), &[('\n', '\n')]].concat());
        return Ok(Arc::new(with_newline.negated()));
    }
    Ok(Arc::new(set.negated()))
}

fn next_item(lexer: &mut RegexLexer, is_first: &mut bool) -> Result<BracketItem> {
    let is_first = std::mem::take(is_first);
    let unbalanced = || invalid_regex_error("brackets [] not balanced");
    let character = lexer.take().ok_or_else(unbalanced)?;
    match character {
        ']' if !is_first => Ok(BracketItem::End),
        '-' if is_first || lexer.peek() == Some(']') => Ok(BracketItem::Character('-')),
        '-' => Ok(BracketItem::Range),
        '\\' => match lexer.escape(0)? {
            Escape::Character(character) => Ok(BracketItem::Character(character)),
            Escape::Class(set) => Ok(BracketItem::Class(set)),
            _ => Err(invalid_regex_error("invalid escape \\ sequence")),
        },
        '[' => match lexer.peek() {
            Some(kind @ ('.' | '=' | ':')) => {
                lexer.at += 1;
                parse_named_class(lexer, kind)
            }
            Some(_) => Ok(BracketItem::Character('[')),
            None => Err(unbalanced()),
        },
        other => Ok(BracketItem::Character(other)),
    }
}

/// Parses `[:class:]`, `[.x.]` or `[=x=]` after the first two characters.
fn parse_named_class(lexer: &mut RegexLexer, kind: char) -> Result<BracketItem> {
    let start = lexer.at;
    while !lexer.looking_at(&format!("{kind}]")) {
        lexer.take().ok_or_else(|| invalid_regex_error("brackets [] not balanced"))?;
    }
    let name: String = lexer.pattern[start..lexer.at].iter().collect();
    lexer.at += 2;
    if kind == ':' {
        let folded =
            if lexer.flags.is_caseless && matches!(name.as_str(), "upper" | "lower") { "alpha" } else { &name };
        return find_class(folded)
            .map(BracketItem::Class)
            .ok_or_else(|| invalid_regex_error("invalid character class"));
    }
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if kind == '.' => Ok(BracketItem::Character(character)),
        (Some(character), None) => Ok(BracketItem::Class(lexer.set_of(character))),
        _ => Err(invalid_regex_error("invalid collating element")),
    }
}
