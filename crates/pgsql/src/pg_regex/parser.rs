//! Parses PostgreSQL's advanced regular expressions.

use std::sync::Arc;

use datafusion::common::Result;

use super::charset::CharSet;
use super::lexer::{RegexFlags, RegexLexer, RegexToken, TextPosition, invalid_regex_error};

/// Prefers the longer match.
pub(super) const LONGER: u8 = 1;

/// Prefers the shorter match.
pub(super) const SHORTER: u8 = 2;

/// Branches of which one matches.
pub(super) type Alternation = Vec<Branch>;

/// A sequence of quantified atoms.
pub(super) type Branch = Vec<QuantifiedAtom>;

/// An atom with its quantifier, or a constraint.
#[derive(Debug, Clone)]
pub(super) struct QuantifiedAtom {
    pub(super) atom: Atom,
    pub(super) min: u32,
    /// `None` if the number is not limited.
    pub(super) max: Option<u32>,
    /// [`LONGER`], [`SHORTER`] or 0.
    pub(super) preference: u8,
}

#[derive(Debug, Clone)]
pub(super) enum Atom {
    Set(Arc<CharSet>),
    /// A group, with its number if it captures.
    Group(Option<usize>, Alternation),
    /// The match of the group with this number.
    Backreference(usize),
    Constraint(Constraint),
}

/// A condition on a position of the text.
#[derive(Debug, Clone)]
pub(super) enum Constraint {
    At(TextPosition),
    Look { is_behind: bool, is_negated: bool, inside: Alternation },
}

/// A parsed regular expression.
#[derive(Debug)]
pub(super) struct ParsedRegex {
    pub(super) alternation: Alternation,
    /// Number of capturing groups.
    pub(super) groups: usize,
    pub(super) is_caseless: bool,
}

/// Depth of groups within groups.
const DEPTH_MAX: usize = 50;

/// The largest number of a quantifier.
const REPETITIONS_MAX: u32 = 255;

/// Parses `pattern`.
pub(super) fn parse(pattern: &str, flags: RegexFlags) -> Result<ParsedRegex> {
    let (lexer, flags) = RegexLexer::new(pattern, flags)?;
    let mut parser =
        RegexParser { lexer, token: RegexToken::End, groups: 0, closed: Vec::new(), depth: 0, look_depth: 0 };
    parser.advance()?;
    let alternation = parser.alternation()?;
    if parser.token != RegexToken::End {
        return Err(invalid_regex_error("parentheses () not balanced"));
    }
    Ok(ParsedRegex { alternation, groups: parser.groups, is_caseless: flags.is_caseless })
}

struct RegexParser {
    lexer: RegexLexer,
    token: RegexToken,
    groups: usize,
    /// Numbers of the complete groups, to which back references can refer.
    closed: Vec<usize>,
    depth: usize,
    look_depth: usize,
}

impl RegexParser {
    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next(self.groups)?;
        Ok(())
    }

    fn alternation(&mut self) -> Result<Alternation> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(invalid_regex_error("regular expression is too complex"));
        }
        let mut branches = vec![self.branch()?];
        while self.token == RegexToken::Bar {
            self.advance()?;
            branches.push(self.branch()?);
        }
        self.depth -= 1;
        Ok(branches)
    }

    fn branch(&mut self) -> Result<Branch> {
        let mut atoms = Vec::new();
        while !matches!(self.token, RegexToken::Bar | RegexToken::Close | RegexToken::End) {
            let atom = self.atom()?;
            let quantified = match atom {
                Atom::Constraint(_) => QuantifiedAtom { atom, min: 1, max: Some(1), preference: 0 },
                atom => self.quantified(atom)?,
            };
            atoms.push(quantified);
        }
        Ok(atoms)
    }

    fn atom(&mut self) -> Result<Atom> {
        let atom = match &self.token {
            RegexToken::Set(set) => Atom::Set(set.clone()),
            RegexToken::At(position) => Atom::Constraint(Constraint::At(*position)),
            RegexToken::Backreference(number) => {
                if self.look_depth > 0 || !self.closed.contains(number) {
                    return Err(invalid_regex_error("invalid backreference number"));
                }
                Atom::Backreference(*number)
            }
            RegexToken::Open { captures } => {
                let captures = *captures && self.look_depth == 0;
                return self.group(captures);
            }
            RegexToken::OpenLook { is_behind, is_negated } => {
                let (is_behind, is_negated) = (*is_behind, *is_negated);
                self.look_depth += 1;
                let inside = self.enclosed()?;
                self.look_depth -= 1;
                return Ok(Atom::Constraint(Constraint::Look { is_behind, is_negated, inside }));
            }
            RegexToken::Repeat { .. } | RegexToken::OpenBound => {
                return Err(invalid_regex_error("quantifier operand invalid"));
            }
            _ => return Err(invalid_regex_error("parentheses () not balanced")),
        };
        self.advance()?;
        Ok(atom)
    }

    fn group(&mut self, captures: bool) -> Result<Atom> {
        let number = captures.then(|| {
            self.groups += 1;
            self.groups
        });
        let inside = self.enclosed()?;
        self.closed.extend(number);
        Ok(Atom::Group(number, inside))
    }

    /// Parses a group after its opening parenthesis.
    fn enclosed(&mut self) -> Result<Alternation> {
        self.advance()?;
        let inside = self.alternation()?;
        if self.token != RegexToken::Close {
            return Err(invalid_regex_error("parentheses () not balanced"));
        }
        self.advance()?;
        Ok(inside)
    }

    fn quantified(&mut self, atom: Atom) -> Result<QuantifiedAtom> {
        let preference = |is_greedy: bool| if is_greedy { LONGER } else { SHORTER };
        match self.token {
            RegexToken::Repeat { min, max, is_greedy } => {
                self.advance()?;
                Ok(QuantifiedAtom { atom, min, max, preference: preference(is_greedy) })
            }
            RegexToken::OpenBound => {
                let bound = self.lexer.bound()?;
                self.advance()?;
                if bound.min > REPETITIONS_MAX || bound.max.is_some_and(|max| max > REPETITIONS_MAX || max < bound.min)
                {
                    return Err(invalid_regex_error("invalid repetition count(s)"));
                }
                let preference = if bound.is_range { preference(bound.is_greedy) } else { 0 };
                Ok(QuantifiedAtom { atom, min: bound.min, max: bound.max, preference })
            }
            _ => Ok(QuantifiedAtom { atom, min: 1, max: Some(1), preference: 0 }),
        }
    }
}
