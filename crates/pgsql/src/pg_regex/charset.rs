//! Sets of characters, as bracket expressions and class escapes name them.
//!
//! Upper and lower case of single characters are those of the C library's `towupper` and `towlower`: a character stays one
//! character.

use std::sync::{Arc, LazyLock};

use regex_syntax::hir::{Class, HirKind};

/// Ranges of characters, sorted and apart from each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CharSet {
    ranges: Vec<(char, char)>,
    ascii: u128,
}

impl CharSet {
    pub(super) fn new(mut ranges: Vec<(char, char)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(char, char)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1 || after(last.1) == Some(low) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        let mut ascii = 0;
        for code in 0..128_u8 {
            let character = char::from(code);
            if merged.iter().any(|(low, high)| (*low..=*high).contains(&character)) {
                ascii |= 1 << code;
            }
        }
        Self { ranges: merged, ascii }
    }

    pub(super) fn from_char(character: char) -> Self {
        Self::new(vec![(character, character)])
    }

    pub(super) fn all() -> Self {
        Self::new(vec![('\0', char::MAX)])
    }

    pub(super) fn contains(&self, character: char) -> bool {
        if character.is_ascii() {
            return self.ascii >> (character as u32) & 1 == 1;
        }
        let after = self.ranges.partition_point(|(low, _)| *low <= character);
        after > 0 && character <= self.ranges[after - 1].1
    }

    pub(super) fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Returns the only character of the set; `None` if it has more or none.
    pub(super) fn single(&self) -> Option<char> {
        match self.ranges.as_slice() {
            [(low, high)] if low == high => Some(*low),
            _ => None,
        }
    }

    pub(super) fn negated(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = Some('\0');
        for (low, high) in &self.ranges {
            if let (Some(start), Some(end)) = (next, before(*low))
                && start <= end
            {
                ranges.push((start, end));
            }
            next = after(*high);
        }
        if let Some(start) = next {
            ranges.push((start, char::MAX));
        }
        Self::new(ranges)
    }

    /// Returns the set with the simple lower and upper case of each of its characters.
    pub(super) fn with_cases(&self) -> Self {
        let mut ranges = self.ranges.clone();
        for (character, lower, upper) in CASED_CHARACTERS.iter().filter(|(character, ..)| self.contains(*character)) {
            ranges.extend([lower, upper].into_iter().filter(|case| *case != character).map(|case| (*case, *case)));
        }
        Self::new(ranges)
    }
}

/// The characters that have another case, with their lower and their upper one.
static CASED_CHARACTERS: LazyLock<Vec<(char, char, char)>> = LazyLock::new(|| {
    let cases = |character| (character, simple_lower(character), simple_upper(character));
    ('\0'..=char::MAX).map(cases).filter(|(character, lower, upper)| lower != character || upper != character).collect()
});

fn after(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

fn before(character: char) -> Option<char> {
    ('\0'..character).next_back()
}

/// The classes that have a name. A name is also how the class is written for the other engine.
const CLASSES: [(&str, &str); 12] = [
    (
        "alpha",
        concat!(
            r"[[\p{Alphabetic}\p{Nd}]&&\p{age=14.0}--[0-9\x{363}-\x{36F}\x{C04}\x{F82}\x{F83}",
            r"\x{1DD3}-\x{1DE6}\x{11080}\x{11081}]]"
        ),
    ),
    (
        "alnum",
        concat!(
            r"[[\p{Alphabetic}\p{Nd}]&&\p{age=14.0}--[\x{363}-\x{36F}\x{C04}\x{F82}\x{F83}",
            r"\x{1DD3}-\x{1DE6}\x{11080}\x{11081}]]"
        ),
    ),
    (
        "word",
        concat!(
            r"[[\p{Alphabetic}\p{Nd}_]&&\p{age=14.0}--[\x{363}-\x{36F}\x{C04}\x{F82}\x{F83}",
            r"\x{1DD3}-\x{1DE6}\x{11080}\x{11081}]]"
        ),
    ),
    ("digit", r"[0-9]"),
    ("xdigit", r"[0-9A-Fa-f]"),
    ("space", r"[\t-\r\x20\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{2028}\x{2029}\x{205F}\x{3000}]"),
    ("blank", r"[\t\x20]"),
    ("cntrl", r"\p{Cc}"),
    ("upper", r"[[\p{Uppercase}\p{Lt}]&&\p{age=14.0}]"),
    ("lower", r"[[\p{Lowercase}\x{1C5}\x{1C8}\x{1CB}\x{1F2}]&&\p{age=14.0}--[\x{10FC}\x{A7F2}-\x{A7F4}\x{AB69}]]"),
    (
        "graph",
        concat!(
            r"[\p{age=14.0}&&[^\p{Cc}\p{Cn}\t-\r\x20\x{1680}\x{2000}-\x{2006}",
            r"\x{2008}-\x{200A}\x{2028}\x{2029}\x{205F}\x{3000}]]"
        ),
    ),
    ("print", r"[\p{age=14.0}&&[^\p{Cc}\p{Cn}\x{2028}\x{2029}]]"),
];

static CLASS_SETS: LazyLock<Vec<(&'static str, Arc<CharSet>)>> = LazyLock::new(|| {
    let mut sets: Vec<(&'static str, Arc<CharSet>)> =
        CLASSES.iter().map(|(name, class)| (*name, Arc::new(parsed(class)))).collect();
    let find = |name: &str| sets.iter().find(|(other, _)| *other == name).map(|(_, set)| set.clone());
    if let (Some(graph), Some(alnum)) = (find("graph"), find("alnum")) {
        let others = CharSet::new([graph.negated().ranges, alnum.ranges.clone()].concat());
        sets.push(("punct", Arc::new(others.negated())));
    }
    sets.push(("ascii", Arc::new(CharSet::new(vec![('\0', '\x7f')]))));
    sets
});

fn parsed(class: &str) -> CharSet {
    let hir = regex_syntax::parse(class).map(regex_syntax::hir::Hir::into_kind);
    let Ok(HirKind::Class(Class::Unicode(class))) = hir else { return CharSet::new(Vec::new()) };
    CharSet::new(class.iter().map(|range| (range.start(), range.end())).collect())
}

/// Returns the class `name` of `[[:name:]]`. The class `word` is `\w`.
pub(super) fn find_class(name: &str) -> Option<Arc<CharSet>> {
    CLASS_SETS.iter().find(|(other, _)| *other == name).map(|(_, set)| set.clone())
}

/// Writes the set for the crate `regex` if it is a named class or the complement of one.
pub(super) fn short_name(set: &CharSet) -> Option<String> {
    if set.ranges.len() < 8 {
        return None;
    }
    for (name, class) in CLASSES {
        let named_set = find_class(name)?;
        if *named_set == *set {
            return Some(class.to_owned());
        }
        if named_set.negated() == *set {
            return Some(format!("[^{class}]"));
        }
    }
    None
}

/// Whether the character may be part of a word.
pub(super) fn is_word(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    static WORD: LazyLock<Option<Arc<CharSet>>> = LazyLock::new(|| find_class("word"));
    WORD.as_ref().is_some_and(|word| word.contains(character))
}

/// Returns the upper case of a character, one character.
pub(crate) fn simple_upper(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next(), character) {
        (Some(one), None, _) => one,
        // These have an upper case of one character beside the one of two.
        (_, _, '\u{1F80}'..='\u{1F87}' | '\u{1F90}'..='\u{1F97}' | '\u{1FA0}'..='\u{1FA7}') => {
            char::from_u32(character as u32 + 8).unwrap_or(character)
        }
        (_, _, '\u{1FB3}') => '\u{1FBC}',
        (_, _, '\u{1FC3}') => '\u{1FCC}',
        (_, _, '\u{1FF3}') => '\u{1FFC}',
        _ => character,
    }
}

/// Returns the lower case of a character, one character.
pub(crate) fn simple_lower(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    // Only U+0130 has a lower case of two characters, of which the first is the simple one.
    character.to_lowercase().next().unwrap_or(character)
}

/// Converts `text` to lower case.
pub(crate) fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(simple_lower).collect() }
}

/// Converts `text` to upper case.
pub(crate) fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(simple_upper).collect() }
}
