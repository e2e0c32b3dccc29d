//! Filters of rows, and the columns and values that they compare.

use chrono::{NaiveDate, NaiveDateTime};
use tidegate_sql::Comparator;

/// A column that a policy is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyColumn<'a> {
    /// The name, unquoted.
    pub name: &'a str,
    /// The kind of its values.
    pub kind: ValueKind,
    /// The positions of the other columns whose values, or parts of them, can be read from this one. A policy that
    /// masks one of them masks this column too.
    pub reveals: &'a [usize],
}

impl<'a> From<(&'a str, ValueKind)> for PolicyColumn<'a> {
    fn from((name, kind): (&'a str, ValueKind)) -> Self {
        Self { name, kind, reveals: &[] }
    }
}

/// The kind of values of a column, for comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Text.
    Text,
    /// Whole numbers.
    Integer,
    /// Other numbers.
    Number,
    /// TRUE and FALSE.
    Boolean,
    /// Dates.
    Date,
    /// Timestamps.
    Timestamp,
    /// Each value has its own type: text and numbers are compared as they are written.
    Any,
    /// Bytes, lists and structures: only tested for NULL.
    Other,
}

/// A literal of the kind of the column that it is compared with.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RowValue {
    Boolean(bool),
    Integer(i64),
    /// Finite.
    Number(f64),
    Text(String),
    Date(NaiveDate),
    /// In UTC where the column has a time zone.
    Timestamp(NaiveDateTime),
}

/// The filter of visible rows: those for which it is true. A comparison with NULL is unknown, as in SQL. Columns are
/// referenced by position.
#[derive(Debug, Clone, PartialEq)]
pub enum RowFilter {
    /// All of them.
    All(Vec<RowFilter>),
    /// At least one of them.
    Any(Vec<RowFilter>),
    /// The negation.
    Not(Box<RowFilter>),
    /// Compares a column with a literal.
    #[allow(missing_docs, reason = "the names say it")]
    Compare { column: usize, comparator: Comparator, value: RowValue },
    /// Compares two columns of the same kind, or two numeric columns.
    #[allow(missing_docs, reason = "the names say it")]
    CompareColumns { left: usize, comparator: Comparator, right: usize },
    /// Whether the value of a column is in a list, which is not empty.
    #[allow(missing_docs, reason = "the names say it")]
    In { column: usize, values: Vec<RowValue>, is_negated: bool },
    /// Whether a column is NULL.
    #[allow(missing_docs, reason = "the names say it")]
    IsNull { column: usize, is_negated: bool },
    /// Whether text matches a pattern of `%` and `_`, escaped by a backslash. Case-sensitive.
    #[allow(missing_docs, reason = "the names say it")]
    Like { column: usize, pattern: String, is_negated: bool },
    /// A boolean column.
    IsTrue(usize),
    /// All rows or no rows.
    Constant(bool),
}

impl RowFilter {
    /// All of `filters`.
    pub fn all(filters: Vec<Self>) -> Self {
        Self::combine(filters, false, Self::All)
    }

    pub(super) fn any(filters: Vec<Self>) -> Self {
        Self::combine(filters, true, Self::Any)
    }

    /// Combines `filters` by an operator for which one filter that is always `decisive` decides.
    fn combine(mut filters: Vec<Self>, decisive: bool, operator: fn(Vec<Self>) -> Self) -> Self {
        if filters.contains(&Self::Constant(decisive)) {
            return Self::Constant(decisive);
        }
        filters.retain(|filter| *filter != Self::Constant(!decisive));
        match filters.len() {
            0 => Self::Constant(!decisive),
            1 => filters.remove(0),
            _ => operator(filters),
        }
    }
}

impl RowValue {
    /// Whether this value compares with `other`, of the same kind, as `comparator` says.
    pub(super) fn compares(&self, comparator: Comparator, other: &Self) -> bool {
        let order = match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.partial_cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.partial_cmp(right),
            (Self::Number(left), Self::Number(right)) => left.partial_cmp(right),
            (Self::Integer(left), Self::Number(right)) => (*left as f64).partial_cmp(right),
            (Self::Number(left), Self::Integer(right)) => left.partial_cmp(&(*right as f64)),
            (Self::Text(left), Self::Text(right)) => left.partial_cmp(right),
            _ => None,
        };
        order.is_some_and(|order| comparator.holds(order))
    }
}
