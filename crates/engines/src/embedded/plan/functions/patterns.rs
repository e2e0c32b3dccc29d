//! What a pattern may cost: of `LIKE`, and of regular expressions.
//!
//! A search goes through the text once, but at each letter it may be in as many places of the pattern as that has, a part
//! that is repeated counted as often as it may be: `(?:[ab]?){20000}` has 40,000 in twenty letters. And a pattern is
//! compiled before it is sought.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ColumnarValue, Operator, ScalarFunctionArgs};
use regex_syntax::Parser;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::sizes::{rows, texts_of};

/// Steps of compiling one place of a pattern.
const COMPILE_STEPS: f64 = 1e3;
/// Places of the largest class of letters, and of a range of letters.
const CLASS_PLACES: f64 = 600.0;
const RANGE_PLACES: f64 = 4.0;
/// Places of `%` and of `_`, which are any letter.
const WILDCARD_PLACES: f64 = 20.0;

/// What a pattern costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cost {
    /// Places to compile.
    places: f64,
    /// Places that a search may be in at once.
    at_once: f64,
}

impl Cost {
    /// Of a pattern of `op`.
    pub(super) fn of(op: Operator, pattern: &str) -> Self {
        match op {
            Operator::LikeMatch | Operator::ILikeMatch | Operator::NotLikeMatch | Operator::NotILikeMatch => {
                Self::of_like(pattern)
            }
            _ => Self::of_regex(pattern),
        }
    }

    fn of_like(pattern: &str) -> Self {
        let wildcards = pattern.matches(['%', '_']).count() as f64;
        Self { places: pattern.len() as f64 + wildcards * WILDCARD_PLACES, at_once: pattern.len() as f64 }
    }

    /// One that is none costs nothing: it is refused where it is compiled.
    fn of_regex(pattern: &str) -> Self {
        Parser::new().parse(pattern).map_or_else(|_| Self::default(), |parsed| Self::of_parsed(&parsed))
    }

    fn of_parsed(part: &Hir) -> Self {
        let one = Self { places: 1.0, at_once: 1.0 };
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => one,
            HirKind::Literal(literal) => one.times(literal.0.len() as f64),
            HirKind::Class(class) => {
                let ranges = match class {
                    Class::Unicode(class) => class.ranges().len(),
                    Class::Bytes(class) => class.ranges().len(),
                };
                Self { places: (ranges as f64 * RANGE_PLACES).min(CLASS_PLACES), at_once: RANGE_PLACES }
            }
            HirKind::Repetition(repetition) => {
                let times = repetition.max.unwrap_or_else(|| repetition.min.saturating_add(1));
                one.and(Self::of_parsed(&repetition.sub).times(f64::from(times.max(1))))
            }
            HirKind::Capture(capture) => one.and(Self::of_parsed(&capture.sub)),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().fold(one, |sum, part| sum.and(Self::of_parsed(part)))
            }
        }
    }

    fn and(self, other: Self) -> Self {
        Self { places: self.places + other.places, at_once: self.at_once + other.at_once }
    }

    fn times(self, times: f64) -> Self {
        Self { places: self.places * times, at_once: self.at_once * times }
    }

    /// Whether it needs no bound of its own: its time is that of going through the text.
    pub(super) fn is_small(self) -> bool {
        self.places <= 1_000.0 && self.at_once <= 100.0
    }

    fn steps(self, text_bytes: f64) -> f64 {
        self.places * COMPILE_STEPS + self.at_once * text_bytes
    }
}

/// `regexp_like(text, pattern, flags)` and those like it, whose first arguments are the same.
pub(super) fn of_regex(args: &ScalarFunctionArgs) -> Option<Vec<f64>> {
    sought(args, Operator::RegexMatch)
}

/// `text op pattern`.
pub(super) fn sought(args: &ScalarFunctionArgs, op: Operator) -> Option<Vec<f64>> {
    let (text, pattern) = (args.args.first()?, args.args.get(1)?);
    let lengths = texts_of(text)?;
    if let ColumnarValue::Scalar(scalar) = pattern {
        let cost = scalar.try_as_str()?.map_or_else(Cost::default, |pattern| Cost::of(op, pattern));
        let compiled = cost.places * COMPILE_STEPS;
        let mut steps: Vec<f64> = (0..rows(args)).map(|row| cost.steps(lengths.at(row)) - compiled).collect();
        // Compiled once, with the first of them.
        *steps.first_mut()? += compiled;
        return Some(steps);
    }
    let patterns: ArrayRef = cast(&pattern.to_array(rows(args)).ok()?, &DataType::Utf8).ok()?;
    let patterns = patterns.as_string::<i32>();
    let mut last = ("", Cost::default());
    let mut step = |row: usize| {
        if patterns.is_null(row) {
            return 0.0;
        }
        if patterns.value(row) != last.0 {
            last = (patterns.value(row), Cost::of(op, patterns.value(row)));
        }
        last.1.steps(lengths.at(row))
    };
    Some((0..patterns.len()).map(&mut step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_costs_as_much_as_it_is_repeated() {
        let cost = |pattern| Cost::of(Operator::RegexMatch, pattern);
        assert!(cost("^error: [a-z]+ (timeout|refused)").is_small());
        assert!(!cost(r"\w+@\w+\.(com|org)").is_small());
        assert!(cost("(?:[ab]?){20000}[cd]").at_once > 20_000.0);
        assert!(cost("((a{100}){100}){100}").places >= 1e6);
        assert!(cost("((a{1000}){1000}){1000}").steps(1.0) > 1e9);
        assert_eq!(cost("("), Cost::default());
        let like = |pattern| Cost::of(Operator::NotILikeMatch, pattern);
        assert!(like("%flight_number%").is_small());
        assert!(!like(&"%a".repeat(100)).is_small());
    }
}
