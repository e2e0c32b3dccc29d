//! The parts of a pattern whose borders must be known, as PostgreSQL's compiler makes them: which of them prefers the
//! longer match and which the shorter one decides what a group captures.

use std::sync::Arc;

use datafusion::common::Result;

use super::automaton::{Automaton, StateBudget};
use super::language::{Language, LanguageBuilder, concat, repeat};
use super::syntax::{Alternation, Atom, LONGER, QuantifiedAtom, SHORTER};

const MIXED: u8 = 4;
const CAPTURES: u8 = 8;
const REFERS: u8 = 16;

/// A part of a pattern that is matched as a whole, or consists of other parts.
#[derive(Debug)]
pub(super) struct RegexPart {
    pub(super) kind: PartKind,
    flags: u8,
    /// The number of its capturing group; 0 for none.
    pub(super) group: usize,
    language: Arc<Language>,
    pub(super) automaton: Automaton,
}

#[derive(Debug)]
pub(super) enum PartKind {
    Whole,
    Backreference { group: usize, min: u32, max: Option<u32> },
    Concat(Box<RegexPart>, Box<RegexPart>),
    Either(Vec<RegexPart>),
    Iterate { part: Box<RegexPart>, min: u32, max: Option<u32> },
    Group(Box<RegexPart>),
}

impl RegexPart {
    pub(super) fn prefers_shorter(&self) -> bool {
        self.flags & SHORTER != 0
    }

    pub(super) fn captures(&self) -> bool {
        self.flags & CAPTURES != 0
    }
}

fn is_mixed(flags: u8) -> bool {
    flags & LONGER != 0 && flags & SHORTER != 0
}

fn inherited(flags: u8) -> u8 {
    flags & (MIXED | CAPTURES | REFERS) | if is_mixed(flags) { MIXED } else { 0 }
}

fn is_messy(flags: u8) -> bool {
    flags & (MIXED | CAPTURES | REFERS) != 0
}

fn preference(flags: u8) -> u8 {
    flags & (LONGER | SHORTER)
}

fn combined(first: u8, second: u8) -> u8 {
    let preferred = if preference(first) == 0 { preference(second) } else { preference(first) };
    inherited(first | second) | preferred
}

/// Builds the parts of a pattern.
pub(super) struct PartBuilder {
    pub(super) languages: LanguageBuilder,
    budget: StateBudget,
}

impl PartBuilder {
    pub(super) fn new(groups: usize) -> Self {
        Self { languages: LanguageBuilder::new(groups), budget: StateBudget::new() }
    }

    fn part(&mut self, kind: PartKind, flags: u8, language: Arc<Language>) -> Result<RegexPart> {
        let automaton = Automaton::new(&language, &mut self.budget)?;
        Ok(RegexPart { kind, flags, group: 0, language, automaton })
    }

    pub(super) fn alternation(&mut self, alternation: &Alternation) -> Result<RegexPart> {
        let mut branches = Vec::new();
        for branch in alternation {
            branches.push(self.branch(branch)?);
        }
        if branches.len() == 1
            && let Some(only) = branches.pop()
        {
            return Ok(only);
        }
        let flags = branches.iter().fold(LONGER, |flags, branch| flags | inherited(flags | branch.flags));
        let language = Arc::new(Language::Either(branches.iter().map(|branch| branch.language.clone()).collect()));
        let kind = if is_messy(flags) { PartKind::Either(branches) } else { PartKind::Whole };
        self.part(kind, flags, language)
    }

    fn branch(&mut self, atoms: &[QuantifiedAtom]) -> Result<RegexPart> {
        let mut prefix = Vec::new();
        let mut flags = 0;
        for (position, quantified) in atoms.iter().enumerate() {
            let atom = match &quantified.atom {
                Atom::Constraint(_) => {
                    prefix.push(self.languages.build_atom(&quantified.atom));
                    continue;
                }
                Atom::Set(_) if !is_messy(inherited(flags | quantified.preference)) => {
                    prefix.push(self.languages.build_quantified(quantified));
                    flags |= quantified.preference;
                    continue;
                }
                atom => self.atom(atom)?,
            };
            if quantified.max == Some(0) {
                prefix.push(Arc::new(Language::Empty));
                continue;
            }
            let all = flags | quantified.preference | atom.flags;
            if !matches!(atom.kind, PartKind::Backreference { .. }) && atom.group == 0 && !is_messy(inherited(all)) {
                prefix.push(repeat(atom.language, quantified.min, quantified.max));
                flags = all;
                continue;
            }
            return self.joined(prefix, flags, quantified, atom, &atoms[position + 1..]);
        }
        self.part(PartKind::Whole, flags, concat(prefix))
    }

    fn atom(&mut self, atom: &Atom) -> Result<RegexPart> {
        match atom {
            Atom::Group(None, alternation) => self.alternation(alternation),
            Atom::Group(Some(number), alternation) => {
                let mut inside = self.alternation(alternation)?;
                self.languages.groups[*number] = inside.language.clone();
                if inside.group != 0 {
                    let (flags, language) = (inside.flags, inside.language.clone());
                    inside = self.part(PartKind::Group(Box::new(inside)), flags, language)?;
                }
                inside.flags |= CAPTURES;
                inside.group = *number;
                Ok(inside)
            }
            Atom::Backreference(group) => {
                let language = self.languages.build_atom(atom);
                self.part(PartKind::Backreference { group: *group, min: 1, max: Some(1) }, REFERS, language)
            }
            Atom::Set(_) | Atom::Constraint(_) => {
                let language = self.languages.build_atom(atom);
                self.part(PartKind::Whole, 0, language)
            }
        }
    }

    /// Joins the part before a quantified atom, the atom, and the part after it. `atom` is its part without quantifier.
    fn joined(
        &mut self,
        prefix: Vec<Arc<Language>>,
        mut flags: u8,
        quantified: &QuantifiedAtom,
        atom: RegexPart,
        rest: &[QuantifiedAtom],
    ) -> Result<RegexPart> {
        let prefix_flags = preference(flags);
        let mut tail_flags = combined(quantified.preference, atom.flags);
        let atom = self.repeated(quantified, atom)?;
        let tail = if rest.is_empty() {
            flags |= combined(flags, atom.flags);
            atom
        } else {
            let rest = self.branch(rest)?;
            tail_flags |= combined(tail_flags, rest.flags);
            flags |= combined(flags, tail_flags);
            let language = Arc::new(Language::Concat(vec![atom.language.clone(), rest.language.clone()]));
            let both = atom.flags | rest.flags;
            let are_whole = matches!((&atom.kind, &rest.kind), (PartKind::Whole, PartKind::Whole));
            if !prefix.is_empty() && are_whole && !is_messy(inherited(both)) {
                self.part(PartKind::Whole, combined(atom.flags, rest.flags), language)?
            } else {
                self.part(PartKind::Concat(Box::new(atom), Box::new(rest)), tail_flags, language)?
            }
        };
        if prefix.is_empty() {
            return Ok(tail);
        }
        let prefix = self.part(PartKind::Whole, prefix_flags, concat(prefix))?;
        let language = Arc::new(Language::Concat(vec![prefix.language.clone(), tail.language.clone()]));
        self.part(PartKind::Concat(Box::new(prefix), Box::new(tail)), flags, language)
    }

    fn repeated(&mut self, quantified: &QuantifiedAtom, mut atom: RegexPart) -> Result<RegexPart> {
        let (min, max) = (quantified.min, quantified.max);
        let flags = combined(quantified.preference, atom.flags);
        let language = repeat(atom.language.clone(), min, max);
        if let PartKind::Backreference { group, .. } = atom.kind {
            atom.kind = PartKind::Backreference { group, min, max };
            atom.flags |= flags;
            atom.automaton = Automaton::new(&language, &mut self.budget)?;
            atom.language = language;
            return Ok(atom);
        }
        let own = atom.flags & (LONGER | SHORTER | MIXED);
        if (min, max) == (1, Some(1)) && (quantified.preference == 0 || own == 0 || quantified.preference == own) {
            return Ok(atom);
        }
        if atom.flags & (CAPTURES | REFERS) == 0 {
            return self.part(PartKind::Whole, flags, language);
        }
        if min > 0 && atom.flags & REFERS == 0 {
            // Only the last repetition captures.
            let before = repeat(atom.language.clone(), min - 1, max.map(|max| max - 1));
            let before = self.part(PartKind::Whole, preference(flags), before)?;
            return self.part(PartKind::Concat(Box::new(before), Box::new(atom)), flags, language);
        }
        self.part(PartKind::Iterate { part: Box::new(atom), min, max }, flags, language)
    }
}
