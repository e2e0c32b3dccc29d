//! The sets of texts that parts of a pattern match, and their patterns for the crate `regex`; automata that find where a
//! match of a part can end.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};

use super::charset::{CharSet, short_name};
use super::lexer::{TextPosition, invalid_regex_error};
use super::parser::{Alternation, Atom, Branch, Constraint, QuantifiedAtom};

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

/// States of all automata of a pattern.
const STATES_MAX: usize = 30_000;

/// Steps that one search of a pattern may take.
const STEPS_MAX: u64 = 300_000_000;

#[derive(Debug)]
enum AutomatonState {
    Match,
    Set(Arc<CharSet>),
    Split(usize, usize),
    Jump(usize),
    At(TextPosition),
    Look { is_behind: bool, is_negated: bool, inside: Box<Automaton> },
}

/// An automaton; a state that consumes a character or checks a condition is followed by the next one.
#[derive(Debug)]
pub(super) struct Automaton {
    states: Vec<AutomatonState>,
    scratch: RefCell<Scratch>,
}

#[derive(Debug, Default)]
struct Scratch {
    current: Vec<usize>,
    next: Vec<usize>,
    pending: Vec<usize>,
    seen: Vec<u32>,
    generation: u32,
}

/// The remaining steps of a search.
#[derive(Debug)]
pub(super) struct StepBudget(Cell<u64>);

impl StepBudget {
    pub(super) fn new() -> Self {
        Self(Cell::new(STEPS_MAX))
    }

    /// Restores the steps for the next search.
    pub(super) fn reset(&self) {
        self.0.set(STEPS_MAX);
    }

    pub(super) fn take(&self, steps: usize) -> Result<()> {
        let left = self.0.get().checked_sub(steps as u64);
        left.map(|left| self.0.set(left)).ok_or_else(|| {
            let message = "a regular expression takes too many steps for a text; write a simpler one";
            DataFusionError::ResourcesExhausted(message.to_owned())
        })
    }
}

/// The number of states that a pattern may still have.
pub(super) struct StateBudget(usize);

impl StateBudget {
    pub(super) fn new() -> Self {
        Self(STATES_MAX)
    }

    fn take(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| invalid_regex_error("regular expression is too complex"))?;
        Ok(())
    }
}

impl Automaton {
    pub(super) fn new(language: &Language, budget: &mut StateBudget) -> Result<Self> {
        let mut states = Vec::new();
        add(&mut states, language, budget)?;
        push(&mut states, AutomatonState::Match, budget)?;
        Ok(Self { states, scratch: RefCell::default() })
    }

    /// Returns the last position up to `limit` where a match from `start` can end.
    pub(super) fn longest(&self, text: &str, start: usize, limit: usize, steps: &StepBudget) -> Result<Option<usize>> {
        let mut result = None;
        self.run(text, start, limit, steps, |end| {
            result = Some(end);
            true
        })?;
        Ok(result)
    }

    /// Returns the first position from `least` to `limit` where a match from `start` can end.
    pub(super) fn shortest(
        &self,
        text: &str,
        start: usize,
        least: usize,
        limit: usize,
        steps: &StepBudget,
    ) -> Result<Option<usize>> {
        let mut result = None;
        self.run(text, start, limit, steps, |end| {
            if end >= least {
                result = Some(end);
            }
            result.is_none()
        })?;
        Ok(result)
    }

    /// Whether a match from `start` can end at `end`.
    pub(super) fn spans(&self, text: &str, start: usize, end: usize, steps: &StepBudget) -> Result<bool> {
        Ok(self.longest(text, start, end, steps)? == Some(end))
    }

    /// Calls `on_match` with the positions where a match can end, until it returns false.
    fn run(
        &self,
        text: &str,
        start: usize,
        limit: usize,
        steps: &StepBudget,
        mut on_match: impl FnMut(usize) -> bool,
    ) -> Result<()> {
        // A lookaround never runs the automaton that contains it, so the buffer is not borrowed twice.
        let mut scratch = self.scratch.take();
        scratch.seen.resize(self.states.len(), 0);
        scratch.current.clear();
        let mut at = start;
        let mut is_match = self.start(0, text, at, &mut scratch, steps)?;
        std::mem::swap(&mut scratch.current, &mut scratch.next);
        loop {
            if (is_match && !on_match(at)) || at >= limit || scratch.current.is_empty() {
                break;
            }
            let Some(character) = text[at..].chars().next() else { break };
            at += character.len_utf8();
            scratch.next.clear();
            scratch.generation = scratch.generation.wrapping_add(1);
            is_match = false;
            let current = std::mem::take(&mut scratch.current);
            steps.take(current.len())?;
            for state in &current {
                if let AutomatonState::Set(set) = &self.states[*state]
                    && set.contains(character)
                {
                    is_match |= self.add_reachable(state + 1, text, at, &mut scratch, steps)?;
                }
            }
            scratch.current = current;
            std::mem::swap(&mut scratch.current, &mut scratch.next);
        }
        self.scratch.replace(scratch);
        Ok(())
    }

    fn start(&self, state: usize, text: &str, at: usize, scratch: &mut Scratch, steps: &StepBudget) -> Result<bool> {
        scratch.next.clear();
        scratch.generation = scratch.generation.wrapping_add(1);
        self.add_reachable(state, text, at, scratch, steps)
    }

    /// Adds the states that are reached from `state` without a character. Returns whether the match is one of them.
    fn add_reachable(
        &self,
        state: usize,
        text: &str,
        at: usize,
        scratch: &mut Scratch,
        steps: &StepBudget,
    ) -> Result<bool> {
        let mut is_match = false;
        scratch.pending.push(state);
        while let Some(state) = scratch.pending.pop() {
            if scratch.seen[state] == scratch.generation {
                continue;
            }
            scratch.seen[state] = scratch.generation;
            steps.take(1)?;
            match &self.states[state] {
                AutomatonState::Match => is_match = true,
                AutomatonState::Set(_) => scratch.next.push(state),
                AutomatonState::Split(left, right) => scratch.pending.extend([*left, *right]),
                AutomatonState::Jump(target) => scratch.pending.push(*target),
                AutomatonState::At(position) if position.is_at(text, at) => scratch.pending.push(state + 1),
                AutomatonState::At(_) => {}
                AutomatonState::Look { is_behind, is_negated, inside } => {
                    let is_found = if *is_behind {
                        inside.ends_at(text, at, steps)?
                    } else {
                        inside.shortest(text, at, at, text.len(), steps)?.is_some()
                    };
                    if is_found != *is_negated {
                        scratch.pending.push(state + 1);
                    }
                }
            }
        }
        Ok(is_match)
    }

    /// Whether any match ends at `end`.
    fn ends_at(&self, text: &str, end: usize, steps: &StepBudget) -> Result<bool> {
        for start in (0..=end).rev().filter(|start| text.is_char_boundary(*start)) {
            if self.spans(text, start, end, steps)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn push(states: &mut Vec<AutomatonState>, state: AutomatonState, budget: &mut StateBudget) -> Result<usize> {
    budget.take()?;
    states.push(state);
    Ok(states.len() - 1)
}

fn add(states: &mut Vec<AutomatonState>, language: &Language, budget: &mut StateBudget) -> Result<()> {
    match language {
        Language::Empty => {}
        Language::Set(set) => {
            push(states, AutomatonState::Set(set.clone()), budget)?;
        }
        Language::At(position) => {
            push(states, AutomatonState::At(*position), budget)?;
        }
        Language::Look { is_behind, is_negated, inside } => {
            let inside = Box::new(Automaton::new(inside, budget)?);
            push(states, AutomatonState::Look { is_behind: *is_behind, is_negated: *is_negated, inside }, budget)?;
        }
        Language::Concat(parts) => parts.iter().try_for_each(|part| add(states, part, budget))?,
        Language::Either(parts) => {
            let mut ends = Vec::new();
            for (position, part) in parts.iter().enumerate() {
                if position + 1 == parts.len() {
                    add(states, part, budget)?;
                    continue;
                }
                let split = push(states, AutomatonState::Split(0, 0), budget)?;
                add(states, part, budget)?;
                ends.push(push(states, AutomatonState::Jump(0), budget)?);
                states[split] = AutomatonState::Split(split + 1, states.len());
            }
            let target = states.len();
            ends.into_iter().for_each(|end| states[end] = AutomatonState::Jump(target));
        }
        Language::Repeat { inside, min, max } => add_repeated(states, inside, *min, *max, budget)?,
    }
    Ok(())
}

fn add_repeated(
    states: &mut Vec<AutomatonState>,
    inside: &Language,
    min: u32,
    max: Option<u32>,
    budget: &mut StateBudget,
) -> Result<()> {
    for _ in 0..min {
        budget.take()?;
        add(states, inside, budget)?;
    }
    let Some(max) = max else {
        let split = push(states, AutomatonState::Split(0, 0), budget)?;
        add(states, inside, budget)?;
        push(states, AutomatonState::Jump(split), budget)?;
        states[split] = AutomatonState::Split(split + 1, states.len());
        return Ok(());
    };
    let mut splits = Vec::new();
    for _ in min..max {
        splits.push(push(states, AutomatonState::Split(0, 0), budget)?);
        add(states, inside, budget)?;
    }
    let target = states.len();
    splits.into_iter().for_each(|split| states[split] = AutomatonState::Split(split + 1, target));
    Ok(())
}
