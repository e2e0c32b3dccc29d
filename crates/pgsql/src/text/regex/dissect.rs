//! Which part of a pattern matches which part of a text, once it is known that all of it does.
//!
//! The parts are those whose borders must be known, as PostgreSQL's compiler makes them: which of them prefers the longer
//! match and which the shorter one decides what a group captures.

use datafusion::common::Result;

use super::automaton::StepBudget;
use super::tree::{PartKind, RegexPart};

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
