//! Bracket expressions.

use std::sync::Arc;

use datafusion::common::Result;

use super::charset::{CharSet, class};
use super::lexer::{Escape, Lexer, invalid};

/// What may stand in brackets.
enum Item {
    Character(char),
    Class(Arc<CharSet>),
    Range,
    End,
}

/// Reads what follows `[`.
pub(super) fn read(lexer: &mut Lexer) -> Result<Arc<CharSet>> {
    let is_negated = lexer.eat("^");
    let mut ranges = Vec::new();
    let mut is_first = true;
    let mut item = next(lexer, &mut is_first)?;
    loop {
        match item {
            Item::End => break,
            Item::Range => return Err(invalid("invalid character range")),
            Item::Class(set) => {
                ranges.extend_from_slice(set.ranges());
                item = next(lexer, &mut is_first)?;
            }
            Item::Character(start) => {
                item = next(lexer, &mut is_first)?;
                let mut end = start;
                if matches!(item, Item::Range) {
                    end = match next(lexer, &mut is_first)? {
                        Item::Character(end) => end,
                        Item::Range => '-',
                        _ => return Err(invalid("invalid character range")),
                    };
                    item = next(lexer, &mut is_first)?;
                }
                if start > end {
                    return Err(invalid("invalid character range"));
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

fn next(lexer: &mut Lexer, is_first: &mut bool) -> Result<Item> {
    let is_first = std::mem::take(is_first);
    let unbalanced = || invalid("brackets [] not balanced");
    let character = lexer.take().ok_or_else(unbalanced)?;
    match character {
        ']' if !is_first => Ok(Item::End),
        '-' if is_first || lexer.peek() == Some(']') => Ok(Item::Character('-')),
        '-' => Ok(Item::Range),
        '\\' => match lexer.escape(0)? {
            Escape::Character(character) => Ok(Item::Character(character)),
            Escape::Class(set) => Ok(Item::Class(set)),
            _ => Err(invalid("invalid escape \\ sequence")),
        },
        '[' => match lexer.peek() {
            Some(kind @ ('.' | '=' | ':')) => {
                lexer.at += 1;
                named(lexer, kind)
            }
            Some(_) => Ok(Item::Character('[')),
            None => Err(unbalanced()),
        },
        other => Ok(Item::Character(other)),
    }
}

/// `[:class:]`, `[.x.]` or `[=x=]`, after the first two characters.
fn named(lexer: &mut Lexer, kind: char) -> Result<Item> {
    let start = lexer.at;
    while !lexer.looking_at(&format!("{kind}]")) {
        lexer.take().ok_or_else(|| invalid("brackets [] not balanced"))?;
    }
    let name: String = lexer.pattern[start..lexer.at].iter().collect();
    lexer.at += 2;
    if kind == ':' {
        let folded =
            if lexer.flags.is_caseless && matches!(name.as_str(), "upper" | "lower") { "alpha" } else { &name };
        return class(folded).map(Item::Class).ok_or_else(|| invalid("invalid character class"));
    }
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if kind == '.' => Ok(Item::Character(character)),
        (Some(character), None) => Ok(Item::Class(lexer.set_of(character))),
        _ => Err(invalid("invalid collating element")),
    }
}
