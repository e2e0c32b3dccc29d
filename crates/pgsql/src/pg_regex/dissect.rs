//! Which part of a pattern matches which part of a text, once it is known that all of it does.
//!
//! The parts are those whose borders must be known, as PostgreSQL's compiler makes them: which of them prefers the longer
//! match and which the shorter one decides what a group captures.

use std::sync::Arc;

use datafusion::common::Result;

use super::automaton::{Automaton, Language, LanguageBuilder, StateBudget, StepBudget, concat, repeat};
use super::parser::{Alternation, Atom, LONGER, QuantifiedAtom, SHORTER};

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
    languages: LanguageBuilder,
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

/// A text whose match is divided among the parts of a pattern.
pub(super) struct Dissection<'a> {
    pub(super) text: &'a str,
    pub(super) is_caseless: bool,
    pub(super) steps: &'a StepBudget,
    /// Where each group has matched.
    pub(super) groups: Vec<Option<(usize, usize)>>,
}

impl Dissection<'_> {
    fn before(&self, at: usize) -> usize {
        self.text[..at].chars().next_back().map_or(0, |character| at - character.len_utf8())
    }

    fn after(&self, at: usize) -> usize {
        self.text[at..].chars().next().map_or(at, |character| at + character.len_utf8())
    }

    fn clear_groups(&mut self, part: &RegexPart) {
        if part.group > 0 {
            self.groups[part.group] = None;
        }
        match &part.kind {
            PartKind::Whole | PartKind::Backreference { .. } => {}
            PartKind::Concat(left, right) => {
                self.clear_groups(left);
                self.clear_groups(right);
            }
            PartKind::Either(parts) => parts.iter().for_each(|part| self.clear_groups(part)),
            PartKind::Iterate { part, .. } | PartKind::Group(part) => self.clear_groups(part),
        }
    }

    /// Whether `part`, which can match all from `start` to `end` without its references, does so with them.
    pub(super) fn dissect(&mut self, part: &RegexPart, start: usize, end: usize) -> Result<bool> {
        self.steps.take(1)?;
        let is_match = match &part.kind {
            PartKind::Whole => true,
            PartKind::Backreference { group, min, max } => self.matches_repeated_group(*group, *min, *max, start, end),
            PartKind::Concat(left, right) => self.concat(left, right, start, end)?,
            PartKind::Either(parts) => self.either(parts, start, end)?,
            PartKind::Iterate { part, min, max } => self.iterate(part, *min, *max, start, end)?,
            PartKind::Group(inside) => self.dissect(inside, start, end)?,
        };
        if is_match && part.group > 0 {
            self.groups[part.group] = Some((start, end));
        }
        Ok(is_match)
    }

    fn matches_repeated_group(&self, group: usize, min: u32, max: Option<u32>, start: usize, end: usize) -> bool {
        let Some((from, to)) = self.groups[group] else { return false };
        let once = &self.text[from..to];
        if once.is_empty() {
            return start == end;
        }
        if start == end {
            return min == 0;
        }
        let folded = |text: &str| if self.is_caseless { super::charset::lower(text) } else { text.to_owned() };
        let (once, all) = (folded(once), folded(&self.text[start..end]));
        let times = all.len() / once.len();
        all.len() % once.len() == 0
            && times >= min as usize
            && max.is_none_or(|max| times <= max as usize)
            && all == once.repeat(times)
    }

    fn either(&mut self, parts: &[RegexPart], start: usize, end: usize) -> Result<bool> {
        for part in parts {
            if part.automaton.spans(self.text, start, end, self.steps)? && self.dissect(part, start, end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn concat(&mut self, left: &RegexPart, right: &RegexPart, start: usize, end: usize) -> Result<bool> {
        let is_short = left.prefers_shorter();
        let mut middle = if is_short {
            left.automaton.shortest(self.text, start, start, end, self.steps)?
        } else {
            left.automaton.longest(self.text, start, end, self.steps)?
        };
        while let Some(border) = middle {
            if right.automaton.spans(self.text, border, end, self.steps)?
                && self.dissect(left, start, border)?
                && self.dissect(right, border, end)?
            {
                return Ok(true);
            }
            self.clear_groups(left);
            self.clear_groups(right);
            middle = match is_short {
                true if border >= end => None,
                true => left.automaton.shortest(self.text, start, self.after(border), end, self.steps)?,
                false if border == start => None,
                false => left.automaton.longest(self.text, start, self.before(border), self.steps)?,
            };
        }
        Ok(false)
    }

    fn iterate(&mut self, part: &RegexPart, min: u32, max: Option<u32>, start: usize, end: usize) -> Result<bool> {
        let least = min.max(1) as usize;
        let most = max.map_or(end - start, |max| (end - start).min(max as usize)).max(least);
        let is_found = if part.prefers_shorter() {
            self.iterate_shortest_first(part, least, most, start, end)?
        } else {
            self.iterate_longest_first(part, least, most, start, end)?
        };
        // No iteration matches an empty text too, but one is preferred, because it captures.
        Ok(is_found || (min == 0 && start == end))
    }

    /// Checks the iterations after `verified`, and returns the first one that does not match.
    fn verify(&mut self, part: &RegexPart, borders: &[usize], verified: &mut usize) -> Result<Option<usize>> {
        while *verified + 1 < borders.len() {
            let iteration = *verified + 1;
            // Captures of earlier iterations are discarded.
            self.clear_groups(part);
            if !self.dissect(part, borders[iteration - 1], borders[iteration])? {
                return Ok(Some(iteration));
            }
            *verified = iteration;
        }
        Ok(None)
    }

    fn iterate_longest_first(
        &mut self,
        part: &RegexPart,
        min: usize,
        max: usize,
        start: usize,
        end: usize,
    ) -> Result<bool> {
        let mut borders = vec![start];
        let (mut verified, mut limit) = (0, end);
        loop {
            let from = borders[borders.len() - 1];
            if let Some(to) = part.automaton.longest(self.text, from, limit, self.steps)? {
                borders.push(to);
                let count = borders.len() - 1;
                verified = verified.min(count - 1);
                if to == end && count >= min {
                    let Some(failed) = self.verify(part, &borders, &mut verified)? else { return Ok(true) };
                    borders.truncate(failed + 1);
                } else if to != end {
                    let is_needless = to == from && (count >= min || min - count < end - to);
                    if count >= max {
                        borders.pop();
                    } else if !is_needless {
                        limit = end;
                        continue;
                    }
                }
            }
            // The last iteration must be shorter, or the one before it.
            loop {
                let count = borders.len() - 1;
                if count == 0 {
                    return Ok(false);
                }
                let (previous, last) = (borders[count - 1], borders[count]);
                borders.pop();
                if last > previous {
                    limit = self.before(last);
                    if limit > previous || (count < min && min - count >= end - previous) {
                        break;
                    }
                }
            }
            verified = verified.min(borders.len() - 1);
        }
    }

    fn iterate_shortest_first(
        &mut self,
        part: &RegexPart,
        min: usize,
        max: usize,
        start: usize,
        end: usize,
    ) -> Result<bool> {
        let mut borders = vec![start];
        let mut verified = 0;
        // The next border must be this far at least.
        let mut least = if min > end - start { start } else { self.after(start) };
        loop {
            let count = borders.len();
            let from = borders[count - 1];
            // The last one that there may be must take all the rest.
            let expected = if count >= max { end } else { least };
            let found = if expected > end {
                None
            } else {
                part.automaton.shortest(self.text, from, expected, end, self.steps)?
            };
            if let Some(to) = found {
                borders.push(to);
                verified = verified.min(count - 1);
                if to == end {
                    if count >= min {
                        let Some(failed) = self.verify(part, &borders, &mut verified)? else { return Ok(true) };
                        borders.truncate(failed + 1);
                    }
                } else if count < max {
                    let is_empty_needed = min > count && min - count > end - to;
                    least = if is_empty_needed { to } else { self.after(to) };
                    continue;
                }
            }
            // The last iteration must be longer, or the one before it.
            loop {
                let count = borders.len() - 1;
                if count == 0 {
                    return Ok(false);
                }
                let last = borders[count];
                borders.pop();
                if last < end {
                    least = self.after(last);
                    break;
                }
            }
            verified = verified.min(borders.len() - 1);
        }
    }
}
