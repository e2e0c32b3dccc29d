//! The sets of texts that parts of a pattern match, and their patterns for the crate `regex`.

use std::fmt::Write as _;
use std::sync::Arc;

use super::charset::{CharSet, short_name};
use super::position::TextPosition;
use super::syntax::{Alternation, Atom, Branch, Constraint, QuantifiedAtom};

/// A set of texts that match.
#[derive(Debug, Clone)]
pub(super) enum Language {
    Empty,
    Set(Arc<CharSet>),
    At(TextPosition),
    Look { is_behind: bool, is_negated: bool, inside: Arc<Language> },
    Concat(Vec<Arc<Language>>),
    Either(Vec<Arc<Language>>),
    Repeat { inside: Arc<Language>, min: u32, max: Option<u32> },
}

/// Builds the languages of parts. `groups` are the languages of the groups before them, by number.
pub(super) struct LanguageBuilder {
    pub(super) groups: Vec<Arc<Language>>,
}

impl LanguageBuilder {
    pub(super) fn new(groups: usize) -> Self {
        Self { groups: (0..=groups).map(|_| Arc::new(Language::Empty)).collect() }
    }

    pub(super) fn build_alternation(&mut self, alternation: &Alternation) -> Arc<Language> {
        let mut branches: Vec<_> = alternation.iter().map(|branch| self.build_branch(branch)).collect();
        match branches.pop() {
            Some(only) if branches.is_empty() => only,
            last => {
                branches.extend(last);
                Arc::new(Language::Either(branches))
            }
        }
    }

    fn build_branch(&mut self, branch: &Branch) -> Arc<Language> {
        let parts = branch.iter().map(|atom| self.build_quantified(atom)).collect();
        concat(parts)
    }

    pub(super) fn build_quantified(&mut self, quantified: &QuantifiedAtom) -> Arc<Language> {
        let inside = self.build_atom(&quantified.atom);
        repeat(inside, quantified.min, quantified.max)
    }

    pub(super) fn build_atom(&mut self, atom: &Atom) -> Arc<Language> {
        match atom {
            Atom::Set(set) => Arc::new(Language::Set(set.clone())),
            Atom::Group(number, alternation) => {
                let inside = self.build_alternation(alternation);
                if let Some(number) = number {
                    self.groups[*number] = inside.clone();
                }
                inside
            }
            // A back reference matches the same text, but not the conditions on its position.
            Atom::Backreference(number) => without_constraints(&self.groups[*number]),
            Atom::Constraint(constraint) => self.build_constraint(constraint),
        }
    }

    fn build_constraint(&mut self, constraint: &Constraint) -> Arc<Language> {
        Arc::new(match constraint {
            Constraint::At(position) => Language::At(*position),
            Constraint::Look { is_behind, is_negated, inside } => {
                let inside = self.build_alternation(inside);
                Language::Look { is_behind: *is_behind, is_negated: *is_negated, inside }
            }
        })
    }
}

pub(super) fn concat(mut parts: Vec<Arc<Language>>) -> Arc<Language> {
    match parts.len() {
        0 => Arc::new(Language::Empty),
        1 => parts.remove(0),
        _ => Arc::new(Language::Concat(parts)),
    }
}

pub(super) fn repeat(inside: Arc<Language>, min: u32, max: Option<u32>) -> Arc<Language> {
    match (min, max) {
        (1, Some(1)) => inside,
        (0, Some(0)) => Arc::new(Language::Empty),
        _ => Arc::new(Language::Repeat { inside, min, max }),
    }
}

fn without_constraints(language: &Arc<Language>) -> Arc<Language> {
    let each = |parts: &Vec<Arc<Language>>| parts.iter().map(without_constraints).collect();
    match &**language {
        Language::At(_) | Language::Look { .. } => Arc::new(Language::Empty),
        Language::Concat(parts) => Arc::new(Language::Concat(each(parts))),
        Language::Either(parts) => Arc::new(Language::Either(each(parts))),
        Language::Repeat { inside, min, max } => {
            Arc::new(Language::Repeat { inside: without_constraints(inside), min: *min, max: *max })
        }
        Language::Empty | Language::Set(_) => language.clone(),
    }
}

/// A pattern of the crate `regex`.
#[derive(Debug, Default)]
pub(super) struct Translation {
    pub(super) pattern: String,
    /// Whether it matches nothing more than the original.
    pub(super) is_exact: bool,
}

impl Translation {
    pub(super) fn new(language: &Language) -> Self {
        let mut translation = Self { pattern: String::new(), is_exact: true };
        translation.write(language);
        translation
    }

    fn write(&mut self, language: &Language) {
        match language {
            Language::Empty => self.pattern.push_str("(?:)"),
            Language::Set(set) => self.write_set(set),
            Language::At(TextPosition::TextStart) => self.pattern.push_str(r"\A"),
            Language::At(TextPosition::TextEnd) => self.pattern.push_str(r"\z"),
            Language::At(TextPosition::LineStart) => self.pattern.push_str("(?m:^)"),
            Language::At(TextPosition::LineEnd) => self.pattern.push_str("(?m:$)"),
            Language::At(_) | Language::Look { .. } => {
                self.is_exact = false;
                self.pattern.push_str("(?:)");
            }
            Language::Concat(parts) => parts.iter().for_each(|part| self.write(part)),
            Language::Either(parts) => {
                self.pattern.push_str("(?:");
                for (position, part) in parts.iter().enumerate() {
                    if position > 0 {
                        self.pattern.push('|');
                    }
                    self.write(part);
                }
                self.pattern.push(')');
            }
            Language::Repeat { inside, min, max } => {
                self.pattern.push_str("(?:");
                self.write(inside);
                self.pattern.push(')');
                match (min, max) {
                    (0, None) => self.pattern.push('*'),
                    (1, None) => self.pattern.push('+'),
                    (0, Some(1)) => self.pattern.push('?'),
                    // Writing into a text cannot fail.
                    (_, None) => drop(write!(self.pattern, "{{{min},}}")),
                    (_, Some(max)) => drop(write!(self.pattern, "{{{min},{max}}}")),
                }
            }
        }
    }

    fn write_set(&mut self, set: &CharSet) {
        if let Some(character) = set.single() {
            return self.pattern.push_str(&regex_syntax::escape(&character.to_string()));
        }
        if set.ranges() == [('\0', char::MAX)] {
            return self.pattern.push_str("(?s:.)");
        }
        if set.ranges().is_empty() {
            return self.pattern.push_str(r"[^\x{0}-\x{10FFFF}]");
        }
        if let Some(name) = short_name(set) {
            return self.pattern.push_str(&name);
        }
        self.pattern.push('[');
        for (low, high) in set.ranges() {
            self.pattern.push_str(&in_class(*low));
            if low != high {
                self.pattern.push('-');
                self.pattern.push_str(&in_class(*high));
            }
        }
        self.pattern.push(']');
    }
}

fn in_class(character: char) -> String {
    if character.is_ascii_alphanumeric() {
        return character.to_string();
    }
    format!("\\x{{{:X}}}", character as u32)
}
