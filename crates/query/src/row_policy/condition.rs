//! The parsed condition of a row policy.

use std::fmt;

use serde_json::Value;
use tidegate_core::{Principal, nearest_names};
use tidegate_sql::Comparator;

use super::filter::PolicyColumn;

/// Selects the visible rows of a table: comparisons of its columns with each other, with literals and with attributes
/// of the caller (`:subject`, `:tenant`, `:claims.NAME`), combined with AND, OR and NOT.
///
/// Comparisons are `=`, `<>`, `<`, `<=`, `>`, `>=`, `IN`, `BETWEEN`, `LIKE` with a literal pattern (case-sensitive; a
/// backslash escapes a wildcard), `IS NULL`, and a boolean column by itself. A claim in the parentheses of `IN` may be
/// a list.
#[derive(Clone, PartialEq)]
pub struct RowCondition {
    pub(super) text: String,
    pub(super) tree: ConditionNode,
}

impl fmt::Debug for RowCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowCondition({})", self.text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConditionNode {
    All(Vec<ConditionNode>),
    Any(Vec<ConditionNode>),
    Not(Box<ConditionNode>),
    Compare { left: ConditionTerm, comparator: Comparator, right: ConditionTerm },
    In { term: ConditionTerm, list: Vec<ConditionTerm>, is_negated: bool },
    IsNull { column: ColumnName, is_negated: bool },
    Like { column: ColumnName, pattern: String, is_negated: bool },
    Column(ColumnName),
    Constant(bool),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConditionTerm {
    Column(ColumnName),
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    CallerAttribute(CallerAttribute),
}

/// The name of a column; case-insensitive without quotation marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnName {
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallerAttribute {
    Subject,
    Tenant,
    /// The claim with that name; further names are members of nested objects.
    Claim(Vec<String>),
}

impl CallerAttribute {
    pub(super) fn value_for(&self, principal: &Principal) -> Option<Value> {
        match self {
            Self::Subject => Some(Value::String(principal.subject.clone())),
            Self::Tenant => principal.tenant.clone().map(Value::String),
            Self::Claim(path) => {
                let (first, further) = path.split_first()?;
                let found = further.iter().try_fold(principal.claims.get(first)?, |value, name| value.get(name));
                found.cloned()
            }
        }
    }
}

impl RowCondition {
    pub(super) fn caller_attributes(&self) -> Vec<&CallerAttribute> {
        let mut requested = Vec::new();
        self.tree.collect_caller_attributes(&mut requested);
        requested
    }
}

impl ConditionNode {
    fn collect_caller_attributes<'a>(&'a self, caller_attributes: &mut Vec<&'a CallerAttribute>) {
        let mut add = |term: &'a ConditionTerm| {
            if let ConditionTerm::CallerAttribute(one) = term {
                caller_attributes.push(one);
            }
        };
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes.iter().for_each(|node| node.collect_caller_attributes(caller_attributes))
            }
            Self::Not(node) => node.collect_caller_attributes(caller_attributes),
            Self::Compare { left, right, .. } => [left, right].into_iter().for_each(add),
            Self::In { term, list, .. } => {
                add(term);
                list.iter().for_each(add);
            }
            Self::IsNull { .. } | Self::Like { .. } | Self::Column(_) | Self::Constant(_) => {}
        }
    }
}

impl ColumnName {
    pub(super) fn position(&self, columns: &[PolicyColumn<'_>]) -> Result<usize, String> {
        if let Some(position) = columns.iter().position(|column| column.name == self.text) {
            return Ok(position);
        }
        let folded = self.text.to_lowercase();
        let mut alike = columns.iter().enumerate().filter(|(_, column)| column.name.to_lowercase() == folded);
        match (alike.next(), alike.next()) {
            (Some((position, _)), None) if !self.is_quoted => Ok(position),
            _ => Err(unknown_column_message(&self.text, columns)),
        }
    }
}

/// The message for the administrator, who may see the columns.
pub(super) fn unknown_column_message(name: &str, columns: &[PolicyColumn<'_>]) -> String {
    let near = nearest_names(name, columns.iter().map(|column| column.name));
    let names =
        if near.is_empty() { columns.iter().take(20).map(|column| column.name.to_owned()).collect() } else { near };
    format!("there is no column {name:?}; it has {}", names.join(", "))
}
