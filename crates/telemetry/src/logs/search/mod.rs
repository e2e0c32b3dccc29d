//! Full-text queries: parsing, the conditions that they become, and their evaluation over record batches.

mod case_folding;
mod condition;
mod condition_mask;
mod parse;
mod text_matcher;
mod text_pattern;

pub use condition::{LogCondition, SearchColumns};
pub use condition_mask::ConditionMatcher;
pub use parse::{QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QUERY_TERMS_MAX, QueryNode, QueryTerm, TextQuery, TextQueryError};
pub use text_pattern::TextPattern;
