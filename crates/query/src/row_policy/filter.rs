//! Filters of rows, and the columns and values that they compare.

use chrono::{NaiveDate, NaiveDateTime};

/// A column that a policy is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyColumn<'a> {
    /// The name, unquoted.
    pub name: &'a str,
    /// The kind of its values.
    pub kind: ValueKind,
}

impl<'a> From<(&'a str, ValueKind)> for PolicyColumn<'a> {
    fn from((name, kind): (&'a str, ValueKind)) -> Self {
        Self { name, kind }
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

/// How two values are compared. Text is compared byte by byte, whatever the column's collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
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

impl Comparator {
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether the comparison is true for two values of one kind.
    pub(super) fn holds(self, left: &RowValue, right: &RowValue) -> bool {
        let order = match (left, right) {
            (RowValue::Boolean(left), RowValue::Boolean(right)) => left.partial_cmp(right),
            (RowValue::Integer(left), RowValue::Integer(right)) => left.partial_cmp(right),
            (RowValue::Number(left), RowValue::Number(right)) => left.partial_cmp(right),
            (RowValue::Integer(left), RowValue::Number(right)) => (*left as f64).partial_cmp(right),
            (RowValue::Number(left), RowValue::Integer(right)) => left.partial_cmp(&(*right as f64)),
            (RowValue::Text(left), RowValue::Text(right)) => left.partial_cmp(right),
            _ => None,
        };
        order.is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        })
    }
}
