//! What a query means over columns, free of any database. Conditions are evaluated over batches, and rendered as SQL.

use super::parse::{QueryNode, QueryTerm, TextQuery};
use super::text_pattern::TextPattern;
use crate::logs::value::MISSING;

/// A condition over named columns. It is true or false for every row, never unknown: a comparison with a missing value is
/// false, and its negation is true. Values compare in their display form, in which a missing value is `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogCondition {
    /// The value contains the pattern.
    Contains {
        /// The column.
        column: String,
        /// What the value contains.
        pattern: TextPattern,
        /// Whether upper and lower case are different.
        is_case_sensitive: bool,
    },
    /// The whole value matches the pattern.
    Equals {
        /// The column.
        column: String,
        /// The pattern of the whole value.
        pattern: TextPattern,
        /// Whether upper and lower case are different.
        is_case_sensitive: bool,
    },
    /// The value is null or `-`, or the column does not exist.
    Missing {
        /// The column.
        column: String,
    },
    /// The negation.
    Not(Box<LogCondition>),
    /// All conditions hold; without conditions, it is true.
    And(Vec<LogCondition>),
    /// At least one condition holds; without conditions, it is false.
    Or(Vec<LogCondition>),
}

/// Where a query searches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchColumns {
    /// The columns with the text of an entry. Words and phrases are searched here, and `field:value` on one of these
    /// columns is true if the text contains the value.
    pub message: Vec<String>,
    /// Further columns in which words and phrases are searched: all fields, on demand.
    pub further: Vec<String>,
    /// Whether upper and lower case are different.
    pub is_case_sensitive: bool,
}

impl TextQuery {
    /// The condition that this query is over the given columns.
    pub fn to_condition(&self, columns: &SearchColumns) -> LogCondition {
        node_condition(self.root(), columns)
    }
}

impl LogCondition {
    /// Whether the condition is true for every row.
    pub fn is_always_true(&self) -> bool {
        matches!(self, Self::And(parts) if parts.iter().all(Self::is_always_true))
    }
}

fn node_condition(node: &QueryNode, columns: &SearchColumns) -> LogCondition {
    let all = |parts: &[QueryNode]| parts.iter().map(|part| node_condition(part, columns)).collect();
    match node {
        QueryNode::Term(term) => term_condition(term, columns),
        QueryNode::Not(inner) => LogCondition::Not(Box::new(node_condition(inner, columns))),
        QueryNode::And(parts) => LogCondition::And(all(parts)),
        QueryNode::Or(parts) => LogCondition::Or(all(parts)),
    }
}

fn term_condition(term: &QueryTerm, columns: &SearchColumns) -> LogCondition {
    let is_case_sensitive = columns.is_case_sensitive;
    let contains = |column: &String| {
        let (column, pattern) = (column.clone(), term.pattern.clone());
        LogCondition::Contains { column, pattern, is_case_sensitive }
    };
    let Some(column) = term.field.clone() else {
        let mut searched = columns.message.iter().chain(&columns.further).map(contains);
        return match (searched.next(), searched.next()) {
            (Some(only), None) => only,
            (first, second) => LogCondition::Or(first.into_iter().chain(second).chain(searched).collect()),
        };
    };
    if !term.is_quoted && term.pattern.as_literal() == Some(MISSING) {
        return LogCondition::Missing { column };
    }
    if columns.message.contains(&column) {
        return contains(&column);
    }
    LogCondition::Equals { column, pattern: term.pattern.clone(), is_case_sensitive }
}
