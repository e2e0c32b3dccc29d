//! PostgreSQL's regular expressions, and `SIMILAR TO`, whose patterns become such.
//!
//! A pattern finds the leftmost match, and of those the longest or the shortest, as its first quantifier says; each
//! group takes as much as its own part prefers. No engine of backtracking or of leftmost-first alternatives does the
//! same, so patterns are compiled here, as PostgreSQL's compiler does. Where only the beginning of a match is sought,
//! or whether there is one, the crate `regex` finds it first.
//!
//! The crate `regex-automata` finds the longest match (`MatchKind::All`), but it has no lookaround, and the borders of
//! words are those of another version of Unicode. Both are states of the automaton here, so it would be needed beside that one.

mod automaton;
mod charset;
mod dissect;
mod lexer;
mod parser;

use std::time::{Duration, Instant};

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};

use automaton::{StepBudget, Translation};
use dissect::{Dissection, PartBuilder, RegexPart};
use lexer::{RegexFlags, invalid_regex_error};

pub(crate) use charset::{lower, simple_lower, simple_upper, upper};

/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 32 << 10;

/// Bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// How long all matches in one text may be sought.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(2);

/// Whether the character is a letter or a digit, as the class `alnum` has it.
pub(crate) fn is_alphanumeric(character: char) -> bool {
    character != '_' && charset::is_word(character)
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct PgRegex {
    root: RegexPart,
    /// Finds where a match may begin.
    candidates: regex::Regex,
    translation: Translation,
    groups: usize,
    is_caseless: bool,
    has_backreferences: bool,
    steps: StepBudget,
}

/// Where a match is, and where its groups are; the first is the match itself.
pub(crate) type Captures = Vec<Option<(usize, usize)>>;

/// The letters of flags: those that a pattern is read with, and whether `g` is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RegexOptions {
    flags: RegexFlags,
    pub(crate) is_global: bool,
}

impl RegexOptions {
    pub(crate) fn parse(letters: &str) -> Result<Self> {
        let mut options = Self::default();
        for option in letters.chars() {
            if option == 'g' {
                options.is_global = true;
            } else if !options.flags.set(option)? {
                return exec_err!("invalid regular expression option: \"{option}\"");
            }
        }
        Ok(options)
    }

    pub(crate) fn caseless() -> Self {
        Self { flags: RegexFlags { is_caseless: true, ..RegexFlags::default() }, is_global: false }
    }
}

impl PgRegex {
    pub(crate) fn new(pattern: &str, options: RegexOptions) -> Result<Self> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid_regex_error("regular expression is too complex"));
        }
        let parsed = parser::parse(pattern, options.flags)?;
        let mut builder = PartBuilder::new(parsed.groups);
        let root = builder.alternation(&parsed.alternation)?;
        let language = automaton::LanguageBuilder::new(parsed.groups).build_alternation(&parsed.alternation);
        let mut translation = Translation::new(&language);
        let refers = has_backreferences(&root);
        translation.is_exact &= !refers;
        let candidates = regex::RegexBuilder::new(&translation.pattern)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|_| invalid_regex_error("regular expression is too complex"))?;
        let (groups, is_caseless) = (parsed.groups, parsed.is_caseless);
        Ok(Self {
            root,
            candidates,
            translation,
            groups,
            is_caseless,
            has_backreferences: refers,
            steps: StepBudget::new(),
        })
    }

    /// Returns the pattern for the crate `regex`, if it finds a match in the same texts.
    pub(crate) fn equivalent(&self) -> Option<&str> {
        self.translation.is_exact.then_some(self.translation.pattern.as_str())
    }

    /// Returns the number of capturing groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        if self.translation.is_exact {
            return Ok(self.candidates.is_match(text));
        }
        Ok(self.find_from(text, 0, false)?.is_some())
    }

    /// Returns the first match that begins at `start` or later. It has groups if the caller requests them.
    pub(crate) fn find_from(&self, text: &str, start: usize, with_groups: bool) -> Result<Option<Captures>> {
        self.steps.reset();
        let needs_groups = self.has_backreferences || (with_groups && self.root.captures());
        let mut from = start;
        // Where the shortest match without its references ends, after some have failed.
        let mut tried: Option<usize> = None;
        while let Some(candidate) = self.candidates.find_at(text, from) {
            let begin = candidate.start();
            // PostgreSQL searches again behind that end, but not at the end of the text.
            if tried.is_some_and(|tried| begin > tried && text[tried..].chars().nth(1).is_none()) {
                return Ok(None);
            }
            if let Some(found) = self.match_at(text, begin, needs_groups)? {
                return Ok(Some(found));
            }
            let Some(character) = text[begin..].chars().next() else { return Ok(None) };
            from = begin + character.len_utf8();
            if self.has_backreferences {
                let end = self.root.automaton.shortest(text, begin, begin, text.len(), &self.steps)?;
                tried = [tried.filter(|tried| begin <= *tried), end].into_iter().flatten().min();
            }
        }
        Ok(None)
    }

    fn match_at(&self, text: &str, begin: usize, needs_groups: bool) -> Result<Option<Captures>> {
        let automaton = &self.root.automaton;
        let is_short = self.root.prefers_shorter();
        let (mut least, mut limit) = (begin, text.len());
        loop {
            let end = if is_short {
                automaton.shortest(text, begin, least, limit, &self.steps)?
            } else {
                automaton.longest(text, begin, limit, &self.steps)?
            };
            let Some(end) = end else { return Ok(None) };
            let mut captures = vec![None; self.groups + 1];
            if needs_groups {
                let (is_caseless, steps) = (self.is_caseless, &self.steps);
                let mut dissection = Dissection { text, is_caseless, steps, groups: captures };
                if !dissection.dissect(&self.root, begin, end)? {
                    let next = if is_short { text[end..].chars().next() } else { text[begin..end].chars().next_back() };
                    let Some(character) = next else { return Ok(None) };
                    (least, limit) = if is_short {
                        (end + character.len_utf8(), limit)
                    } else {
                        (least, end - character.len_utf8())
                    };
                    continue;
                }
                captures = dissection.groups;
            }
            captures[0] = Some((begin, end));
            return Ok(Some(captures));
        }
    }

    /// Calls `on_match` for each match after `start` until it returns `false`.
    pub(crate) fn each(
        &self,
        text: &str,
        start: usize,
        with_groups: bool,
        mut on_match: impl FnMut(&Captures) -> Result<bool>,
    ) -> Result<()> {
        let began = Instant::now();
        let mut from = start;
        while let Some(found) = self.find_from(text, from, with_groups)? {
            let (begin, end) = found[0].ok_or_else(|| exec_datafusion_err!("a match has no position"))?;
            if !on_match(&found)? {
                return Ok(());
            }
            // Behind an empty match the search goes on one character later.
            from = end;
            if begin == end {
                match text[end..].chars().next() {
                    Some(character) => from += character.len_utf8(),
                    None => return Ok(()),
                }
            }
            if began.elapsed() > SEARCH_TIME_MAX {
                let message = "all matches of a regular expression in a text take too long; write a simpler one";
                return Err(DataFusionError::ResourcesExhausted(message.to_owned()));
            }
        }
        Ok(())
    }
}

fn has_backreferences(part: &RegexPart) -> bool {
    use dissect::PartKind;
    match &part.kind {
        PartKind::Whole => false,
        PartKind::Backreference { .. } => true,
        PartKind::Concat(left, right) => has_backreferences(left) || has_backreferences(right),
        PartKind::Either(parts) => parts.iter().any(has_backreferences),
        PartKind::Iterate { part, .. } | PartKind::Group(part) => has_backreferences(part),
    }
}

/// The regular expression that means what the pattern of `SIMILAR TO` means, anchored at both ends; with `separators`,
/// `escape-double-quote`, it has three parts of which the middle one is captured.
pub(crate) fn similar_pattern(pattern: &str, escape: Option<&str>) -> Result<String> {
    let mut escape_characters = escape.unwrap_or("\\").chars();
    let escape = escape_characters.next();
    if escape_characters.next().is_some() {
        return exec_err!("invalid escape string. Escape string must be empty or one character.");
    }
    let mut result = String::from("^(?:");
    let mut is_escaped = false;
    let mut in_brackets = false;
    let mut separators = 0;
    for character in pattern.chars() {
        if is_escaped {
            if character == '"' && !in_brackets {
                match separators {
                    0 => result.push_str("){1,1}?("),
                    1 => result.push_str("){1,1}(?:"),
                    _ => {
                        return exec_err!(
                            "SQL regular expression may not contain more than two escape-double-quote separators"
                        );
                    }
                }
                separators += 1;
            } else {
                result.push('\\');
                result.push(character);
            }
            is_escaped = false;
            continue;
        }
        match character {
            _ if Some(character) == escape => is_escaped = true,
            _ if in_brackets => {
                if character == '\\' {
                    result.push('\\');
                }
                result.push(character);
                in_brackets = character != ']';
            }
            '[' => {
                result.push('[');
                in_brackets = true;
            }
            '%' => result.push_str(".*"),
            '_' => result.push('.'),
            '(' => result.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                result.push('\\');
                result.push(character);
            }
            other => result.push(other),
        }
    }
    result.push_str(")$");
    Ok(result)
}
