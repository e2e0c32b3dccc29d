//! The tokens of a regular expression: bracket expressions, positions that it can require, and the others.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};

use super::charset::{CharSet, find_class, is_word};

/// The options of a pattern, from its flags and its embedded options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RegexFlags {
    pub(super) is_caseless: bool,
    /// White space and comments are not part of the pattern.
    pub(super) is_expanded: bool,
    /// The pattern is a text to look for.
    pub(super) is_literal: bool,
    /// `.` and complements do not match a newline.
    pub(super) stops_at_newline: bool,
    /// `^` and `$` match at newlines.
    pub(super) anchors_at_newline: bool,
}

impl RegexFlags {
    /// Sets an option. Returns false if there is none with this letter.
    pub(super) fn set(&mut self, option: char) -> Result<bool> {
        match option {
            'b' | 'e' => {
                return exec_err!(
                    "basic and extended regular expressions (option \"{option}\") are not available; \
                     write an advanced one, without the option"
                );
            }
            'c' => self.is_caseless = false,
            'i' => self.is_caseless = true,
            'm' | 'n' => (self.stops_at_newline, self.anchors_at_newline) = (true, true),
            'p' => (self.stops_at_newline, self.anchors_at_newline) = (true, false),
            'q' => self.is_literal = true,
            's' => (self.stops_at_newline, self.anchors_at_newline) = (false, false),
            't' => self.is_expanded = false,
            'w' => (self.stops_at_newline, self.anchors_at_newline) = (false, true),
            'x' => self.is_expanded = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Returns the error for an invalid pattern.
pub(super) fn invalid_regex_error(reason: &str) -> DataFusionError {
    exec_datafusion_err!("invalid regular expression: {reason}")
}

#[derive(Debug, Clone)]
pub(super) enum RegexToken {
    End,
    Bar,
    Close,
    Open { captures: bool },
    OpenLook { is_behind: bool, is_negated: bool },
    Set(Arc<CharSet>),
    At(TextPosition),
    Backreference(usize),
    Repeat { min: u32, max: Option<u32>, is_greedy: bool },
    OpenBound,
}

impl PartialEq for RegexToken {
    fn eq(&self, other: &Self) -> bool {
        matches!((self, other), (Self::End, Self::End) | (Self::Bar, Self::Bar) | (Self::Close, Self::Close))
    }
}

/// `{m}`, `{m,}` or `{m,n}`.
pub(super) struct RepeatBound {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) is_range: bool,
    pub(super) is_greedy: bool,
}

pub(super) struct RegexLexer {
    pub(super) pattern: Vec<char>,
    pub(super) at: usize,
    pub(super) flags: RegexFlags,
}

/// The meaning of an escape.
enum Escape {
    Character(char),
    Class(Arc<CharSet>),
    At(TextPosition),
    Backreference(usize),
}

impl RegexLexer {
    /// Reads the options at the beginning of the pattern.
    pub(super) fn new(pattern: &str, flags: RegexFlags) -> Result<(Self, RegexFlags)> {
        let mut lexer = Self { pattern: pattern.chars().collect(), at: 0, flags };
        if flags.is_literal {
            lexer.set_literal();
            return Ok((lexer, flags));
        }
        if lexer.eat("***") {
            match lexer.take() {
                Some('=') => {
                    lexer.set_literal();
                    let flags = lexer.flags;
                    return Ok((lexer, flags));
                }
                Some(':') => {}
                _ => return Err(invalid_regex_error("quantifier operand invalid")),
            }
        }
        if lexer.looking_at("(?") && lexer.pattern.get(lexer.at + 2).is_some_and(char::is_ascii_alphabetic) {
            lexer.at += 2;
            loop {
                match lexer.take() {
                    Some(')') => break,
                    Some(option) if option.is_ascii_alphabetic() && lexer.flags.set(option)? => {}
                    _ => return Err(invalid_regex_error("invalid embedded option")),
                }
            }
            if lexer.flags.is_literal {
                lexer.set_literal();
            }
        }
        let flags = lexer.flags;
        Ok((lexer, flags))
    }

    fn set_literal(&mut self) {
        self.flags = RegexFlags { is_literal: true, is_caseless: self.flags.is_caseless, ..RegexFlags::default() };
    }

    fn looking_at(&self, text: &str) -> bool {
        let mut rest = self.pattern[self.at.min(self.pattern.len())..].iter();
        text.chars().all(|expected| rest.next() == Some(&expected))
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_there = self.looking_at(text);
        if is_there {
            self.at += text.chars().count();
        }
        is_there
    }

    fn peek(&self) -> Option<char> {
        self.pattern.get(self.at).copied()
    }

    pub(super) fn take(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    /// Returns the set of one character. If case is ignored, it has both cases.
    fn set_of(&self, character: char) -> Arc<CharSet> {
        self.cased(CharSet::from_char(character))
    }

    fn cased(&self, set: CharSet) -> Arc<CharSet> {
        Arc::new(if self.flags.is_caseless { set.with_cases() } else { set })
    }

    fn skip(&mut self) -> Result<()> {
        loop {
            let start = self.at;
            if self.flags.is_expanded {
                while self.peek().is_some_and(is_space) {
                    self.at += 1;
                }
                if self.peek() == Some('#') {
                    while self.peek().is_some_and(|character| character != '\n') {
                        self.at += 1;
                    }
                }
            }
            if self.looking_at("(?#") {
                while self.peek().is_some_and(|character| character != ')') {
                    self.at += 1;
                }
                self.at += usize::from(self.peek().is_some());
            }
            if self.at == start {
                return Ok(());
            }
        }
    }

    /// Reads the next token. `groups` capturing groups were opened before.
    pub(super) fn next(&mut self, groups: usize) -> Result<RegexToken> {
        if self.flags.is_literal {
            return Ok(self.take().map_or(RegexToken::End, |character| RegexToken::Set(self.set_of(character))));
        }
        self.skip()?;
        let Some(character) = self.take() else { return Ok(RegexToken::End) };
        let at = |position| Ok(RegexToken::At(position));
        let in_lines = self.flags.anchors_at_newline;
        match character {
            '|' => Ok(RegexToken::Bar),
            '*' => Ok(self.repeat(0, None)),
            '+' => Ok(self.repeat(1, None)),
            '?' => Ok(self.repeat(0, Some(1))),
            '{' => {
                if self.flags.is_expanded {
                    self.skip()?;
                }
                let is_bound = self.peek().is_some_and(|next| next.is_ascii_digit());
                Ok(if is_bound { RegexToken::OpenBound } else { RegexToken::Set(self.set_of('{')) })
            }
            '(' => self.open(),
            ')' => Ok(RegexToken::Close),
            '[' if self.eat("[:<:]]") => at(TextPosition::WordStart),
            '[' if self.eat("[:>:]]") => at(TextPosition::WordEnd),
            '[' => parse_brackets(self).map(RegexToken::Set),
            '.' if self.flags.stops_at_newline => Ok(RegexToken::Set(Arc::new(CharSet::from_char('\n').negated()))),
            '.' => Ok(RegexToken::Set(Arc::new(CharSet::all()))),
            '^' => at(if in_lines { TextPosition::LineStart } else { TextPosition::TextStart }),
            '$' => at(if in_lines { TextPosition::LineEnd } else { TextPosition::TextEnd }),
            '\\' => Ok(match self.escape(groups)? {
                Escape::Character(character) => RegexToken::Set(self.set_of(character)),
                Escape::Class(set) => RegexToken::Set(set),
                Escape::At(position) => RegexToken::At(position),
                Escape::Backreference(number) => RegexToken::Backreference(number),
            }),
            other => Ok(RegexToken::Set(self.set_of(other))),
        }
    }

    fn repeat(&mut self, min: u32, max: Option<u32>) -> RegexToken {
        let is_greedy = !self.eat("?");
        RegexToken::Repeat { min, max, is_greedy }
    }

    fn open(&mut self) -> Result<RegexToken> {
        if !self.eat("?") {
            return Ok(RegexToken::Open { captures: true });
        }
        let look = |is_behind, is_negated| Ok(RegexToken::OpenLook { is_behind, is_negated });
        match (self.take(), self.peek()) {
            (Some(':'), _) => Ok(RegexToken::Open { captures: false }),
            (Some('='), _) => look(false, false),
            (Some('!'), _) => look(false, true),
            (Some('<'), Some('=')) => {
                self.at += 1;
                look(true, false)
            }
            (Some('<'), Some('!')) => {
                self.at += 1;
                look(true, true)
            }
            _ => Err(invalid_regex_error("quantifier operand invalid")),
        }
    }

    /// Reads the bounds between `{` and `}`.
    pub(super) fn bound(&mut self) -> Result<RepeatBound> {
        let min = self.number()?;
        let is_range = self.eat(",");
        let max = match (is_range, self.peek()) {
            (false, _) => Some(min),
            (true, Some(digit)) if digit.is_ascii_digit() => Some(self.number()?),
            (true, _) => None,
        };
        if self.peek().is_none() {
            return Err(invalid_regex_error("braces {} not balanced"));
        }
        if !self.eat("}") {
            return Err(invalid_regex_error("invalid repetition count(s)"));
        }
        let is_greedy = !self.eat("?");
        Ok(RepeatBound { min, max, is_range, is_greedy })
    }

    fn number(&mut self) -> Result<u32> {
        let mut number = 0_u32;
        while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(10)) {
            number = number.saturating_mul(10).saturating_add(digit).min(1_000);
            self.at += 1;
        }
        Ok(number)
    }

    /// Reads the escape after a backslash.
    fn escape(&mut self, groups: usize) -> Result<Escape> {
        let Some(escaped) = self.take() else { return Err(invalid_regex_error("invalid escape \\ sequence")) };
        let character = |character| Ok(Escape::Character(character));
        let at = |position| Ok(Escape::At(position));
        match escaped {
            'a' => character('\u{7}'),
            'b' => character('\u{8}'),
            'B' => character('\\'),
            'c' => match self.take() {
                Some(control) => character(char::from((control as u32 & 0x1f) as u8)),
                None => Err(invalid_regex_error("invalid escape \\ sequence")),
            },
            'e' => character('\u{1b}'),
            'f' => character('\u{c}'),
            'n' => character('\n'),
            'r' => character('\r'),
            't' => character('\t'),
            'v' => character('\u{b}'),
            'd' | 'D' => self.named_class("digit", escaped == 'D'),
            's' | 'S' => self.named_class("space", escaped == 'S'),
            'w' | 'W' => self.named_class("word", escaped == 'W'),
            'A' => at(TextPosition::TextStart),
            'Z' => at(TextPosition::TextEnd),
            'm' => at(TextPosition::WordStart),
            'M' => at(TextPosition::WordEnd),
            'y' => at(TextPosition::WordBoundary),
            'Y' => at(TextPosition::NotWordBoundary),
            'u' => self.code(16, 4, 4).and_then(character),
            'U' => self.code(16, 8, 8).and_then(character),
            'x' => self.code(16, 1, 255).and_then(character),
            '0'..='9' => self.digits(escaped, groups),
            other if other.is_ascii_alphanumeric() => Err(invalid_regex_error("invalid escape \\ sequence")),
            other => character(other),
        }
    }

    fn named_class(&self, name: &str, is_negated: bool) -> Result<Escape> {
        let set = find_class(name).ok_or_else(|| invalid_regex_error("invalid character class"))?;
        Ok(Escape::Class(if is_negated { Arc::new(set.negated()) } else { set }))
    }

    /// Parses a back reference, or a character with an octal number.
    fn digits(&mut self, first: char, groups: usize) -> Result<Escape> {
        let start = self.at - 1;
        if first != '0' {
            self.at = start;
            let number = self.number()? as usize;
            if self.at == start + 1 || (number > 0 && number <= groups) {
                return Ok(Escape::Backreference(number));
            }
        }
        self.at = start;
        let mut code = 0;
        let mut count = 0;
        while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(8))
            && count < 3
            && code * 8 + digit <= 0xff
        {
            code = code * 8 + digit;
            count += 1;
            self.at += 1;
        }
        if count == 0 {
            return Err(invalid_regex_error("invalid escape \\ sequence"));
        }
        char::from_u32(code).map(Escape::Character).ok_or_else(|| invalid_regex_error("invalid escape \\ sequence"))
    }

    fn code(&mut self, radix: u32, least: usize, most: usize) -> Result<char> {
        let (mut code, mut count) = (0_u32, 0);
        while let Some(digit) = self.peek().and_then(|digit| digit.to_digit(radix))
            && count < most
        {
            code = code.saturating_mul(radix).saturating_add(digit);
            count += 1;
            self.at += 1;
        }
        let character = char::from_u32(code).filter(|_| count >= least);
        character.ok_or_else(|| invalid_regex_error("invalid escape \\ sequence"))
    }
}

fn is_space(character: char) -> bool {
    find_class("space").is_some_and(|space| space.contains(character))
}

/// An item of a bracket expression.
enum BracketItem {
    Character(char),
    Class(Arc<CharSet>),
    Range,
    End,
}

/// Parses a bracket expression after `[`.
fn parse_brackets(lexer: &mut RegexLexer) -> Result<Arc<CharSet>> {
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

/// A condition on a position of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPosition {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NotWordBoundary,
}

impl TextPosition {
    /// Whether the condition holds at the offset `at` of `text`.
    pub(super) fn is_at(self, text: &str, at: usize) -> bool {
        let before = || text[..at].chars().next_back();
        let after = || text[at..].chars().next();
        let is_in_word = || (before().is_some_and(is_word), after().is_some_and(is_word));
        match self {
            Self::TextStart => at == 0,
            Self::TextEnd => at == text.len(),
            Self::LineStart => at == 0 || before() == Some('\n'),
            Self::LineEnd => at == text.len() || after() == Some('\n'),
            Self::WordStart => is_in_word() == (false, true),
            Self::WordEnd => is_in_word() == (true, false),
            Self::WordBoundary => matches!(is_in_word(), (true, false) | (false, true)),
            Self::NotWordBoundary => matches!(is_in_word(), (true, true) | (false, false)),
        }
    }
}
