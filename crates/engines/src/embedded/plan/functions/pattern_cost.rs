//! Estimates the cost of patterns of `LIKE` and of regular expressions.
//!
//! A search reads the text once, but at each letter it may be in as many states as the pattern has places. A repeated
//! part counts once for each repetition: `(?:[ab]?){20000}` has 40,000 places in twenty letters. And a pattern is
//! compiled before the search.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{Ast, RepetitionKind, RepetitionRange};

use super::argument_sizes::{row_count, text_sizes_of_argument};

/// Steps for compiling one place of a pattern.
const COMPILE_STEPS: f64 = 1e3;
/// Places of the largest character class.
const CLASS_PLACES: f64 = 600.0;
/// Places of a wildcard: `%`, `_` and `.`.
const WILDCARD_PLACES: f64 = 20.0;
/// Bytes of a letter. A search may be within a character class at each of them.
const LETTER_BYTES: f64 = 4.0;
/// An upper limit of costs that is still safe for arithmetic.
const COST_MAX: f64 = 1e100;
const PATTERN_BYTES_MAX: usize = 256 << 10;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PatternCost {
    /// Number of places to compile.
    places: f64,
    /// Number of places that a search may be in at the same time.
    at_once: f64,
}

impl PatternCost {
    fn from_like(pattern: &str) -> Self {
        let inner = pattern.trim_start_matches('%').trim_end_matches('%');
        if !inner.contains(['%', '_', '\\']) {
            // Equivalent to a search for a text.
            return Self { places: 1.0, at_once: 1.0 };
        }
        let wildcards = pattern.matches(['%', '_']).count() as f64;
        Self { places: pattern.len() as f64 + wildcards * WILDCARD_PLACES, at_once: pattern.len() as f64 }
    }

    /// The maximum cost, whatever the flags: with `x`, white space and comments are not part of the pattern. An invalid
    /// pattern costs nothing, since compiling it fails.
    fn from_regex(pattern: &str) -> Self {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Self { places: COST_MAX, at_once: COST_MAX };
        }
        let read = |has_comments: bool| {
            let parser = ParserBuilder::new().ignore_whitespace(has_comments).build().parse(pattern);
            parser.map_or_else(|_| Self::default(), |parsed| Self::from_ast(&parsed, pattern))
        };
        read(false).or(read(true))
    }

    fn from_ast(part: &Ast, pattern: &str) -> Self {
        let one = Self { places: 1.0, at_once: 1.0 };
        match part {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Literal(_) | Ast::Assertion(_) => one,
            Ast::Dot(_) => Self { places: WILDCARD_PLACES, at_once: LETTER_BYTES },
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => Self { places: CLASS_PLACES, at_once: LETTER_BYTES },
            Ast::ClassBracketed(class) => {
                let written = &pattern[class.span.start.offset..class.span.end.offset];
                let is_class = |escape: &str| escape.starts_with(|letter: char| letter.is_ascii_alphabetic());
                let names_others = written.contains("[:") || written.split('\\').skip(1).any(is_class);
                let own = WILDCARD_PLACES + written.len() as f64 * LETTER_BYTES;
                let positions = if names_others { CLASS_PLACES } else { own.min(CLASS_PLACES) };
                Self { places: positions, at_once: LETTER_BYTES }
            }
            Ast::Repetition(repetition) => {
                let times = match &repetition.op.kind {
                    RepetitionKind::ZeroOrOne => 1,
                    RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 2,
                    RepetitionKind::Range(RepetitionRange::Exactly(times) | RepetitionRange::Bounded(_, times)) => {
                        *times
                    }
                    RepetitionKind::Range(RepetitionRange::AtLeast(times)) => times.saturating_add(1),
                };
                one.and(Self::from_ast(&repetition.ast, pattern).times(f64::from(times.max(1))))
            }
            Ast::Group(group) => one.and(Self::from_ast(&group.ast, pattern)),
            Ast::Alternation(alternation) => Self::from_parts(&alternation.asts, pattern),
            Ast::Concat(concat) => Self::from_parts(&concat.asts, pattern),
        }
    }

    fn from_parts(parts: &[Ast], pattern: &str) -> Self {
        parts.iter().fold(Self::default(), |sum, part| sum.and(Self::from_ast(part, pattern)))
    }

    fn or(self, other: Self) -> Self {
        Self { places: self.places.max(other.places), at_once: self.at_once.max(other.at_once) }
    }

    fn and(self, other: Self) -> Self {
        Self { places: self.places + other.places, at_once: self.at_once + other.at_once }
    }

    fn times(self, times: f64) -> Self {
        Self { places: (self.places * times).min(COST_MAX), at_once: (self.at_once * times).min(COST_MAX) }
    }

    /// Whether it needs no limit: the time is proportional to the length of the text.
    fn is_small(self) -> bool {
        self.places <= 1_000.0 && self.at_once <= 100.0
    }

    fn steps(self, text_bytes: f64) -> f64 {
        self.places * COMPILE_STEPS + self.at_once * text_bytes
    }
}

/// Whether `expr` is `LIKE` or `~` with a pattern that is not small.
pub(super) fn has_costly_pattern(expr: &Expr) -> bool {
    let (pattern, cost): (&Expr, fn(&str) -> PatternCost) = match expr {
        Expr::Like(like) => (&like.pattern, PatternCost::from_like),
        Expr::BinaryExpr(BinaryExpr { op: Operator::RegexMatch, right, .. }) => (right, PatternCost::from_regex),
        _ => return false,
    };
    let Expr::Literal(value, _) = pattern else { return true };
    value.try_as_str().flatten().is_some_and(|pattern| !cost(pattern).is_small())
}

pub(super) fn regex_steps(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    let (text, pattern) = (args.args.first()?, args.args.get(1)?);
    let lengths = text_sizes_of_argument(text)?;
    if let ColumnarValue::Scalar(scalar) = pattern {
        let cost = scalar.try_as_str()?.map_or_else(PatternCost::default, PatternCost::from_regex);
        let compiled = cost.places * COMPILE_STEPS;
        let mut steps: Vec<f64> = (0..row_count(args)).map(|row| cost.steps(lengths.at(row)) - compiled).collect();
        // The pattern is compiled once, for the first row.
        *steps.first_mut()? += compiled;
        return Some(steps);
    }
    let patterns: ArrayRef = cast(&pattern.to_array(row_count(args)).ok()?, &DataType::Utf8).ok()?;
    let patterns = patterns.as_string::<i32>();
    let mut last = ("", PatternCost::default());
    let mut step = |row: usize| {
        if patterns.is_null(row) {
            return 0.0;
        }
        if patterns.value(row) != last.0 {
            last = (patterns.value(row), PatternCost::from_regex(patterns.value(row)));
        }
        last.1.steps(lengths.at(row))
    };
    Some((0..patterns.len()).map(&mut step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_multiplies_pattern_cost() {
        let cost = PatternCost::from_regex;
        assert!(cost("^error: [a-z]+ (timeout|refused)").is_small());
        assert!(!cost(r"\w+@\w+\.(com|org)").is_small());
        assert!(cost("(?:[ab]?){20000}[cd]").at_once > 20_000.0);
        assert!(cost("((a{100}){100}){100}").places >= 1e6);
        assert!(cost("((a{1000}){1000}){1000}").steps(1.0) > 1e9);
        assert!(cost(r"(\w{1000}) {1000}").places > 1e8, "with the flag x it is the group that is repeated");
        assert!(cost("(?:[ab]?){20000}#(").at_once > 20_000.0);
        assert!(cost(&r"\w".repeat(100_000)).places >= 6e7);
        assert_eq!(cost(&"a".repeat(PATTERN_BYTES_MAX + 1)).places, COST_MAX);
        assert!(cost("^https://[a-z.]+/").is_small());
        assert_eq!(cost("("), PatternCost::default());
        let like = PatternCost::from_like;
        assert!(like("%flight_number%").is_small());
        assert!(like(&format!("{}%", "https://example.org/".repeat(100))).is_small());
        assert!(!like(&"%a".repeat(100)).is_small());
    }
}
