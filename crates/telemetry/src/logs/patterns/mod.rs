//! Messages grouped by their pattern: the text with placeholders for what varies.

mod collector;
mod comparison;
mod merge;
mod template;

pub use collector::{LogPattern, LogPatterns, PATTERNS_MAX};
pub use comparison::{PatternChange, compare_patterns};

pub(super) use collector::PatternCollector;
