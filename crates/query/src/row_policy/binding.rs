//! Binds a condition to the columns of a table, and resolves it to the filter that engines run.

use chrono::{NaiveDate, NaiveDateTime};

use super::PolicyColumn;
use super::condition::{ColumnName, ConditionNode, ConditionTerm, RowCondition};
use super::resolve::{self, CallerAttribute};

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

/// A condition that is bound to columns, before a caller is known.
pub(super) enum BoundCondition {
    All(Vec<BoundCondition>),
    Any(Vec<BoundCondition>),
    Not(Box<BoundCondition>),
    Filter(RowFilter),
    Compare { column: usize, comparator: Comparator, term: BoundTerm },
    In { column: usize, list: Vec<BoundTerm>, is_negated: bool },
    CompareConstants { left: BoundTerm, comparator: Comparator, right: BoundTerm },
    InConstants { term: BoundTerm, list: Vec<BoundTerm>, is_negated: bool },
}

pub(super) enum BoundTerm {
    Value(RowValue),
    CallerAttribute { attribute: CallerAttribute, kind: ValueKind },
}

impl RowFilter {
    /// All of `filters`.
    pub fn all(filters: Vec<Self>) -> Self {
        if filters.contains(&Self::Constant(false)) {
            return Self::Constant(false);
        }
        let mut filters: Vec<Self> = filters.into_iter().filter(|one| *one != Self::Constant(true)).collect();
        match filters.pop() {
            None => Self::Constant(true),
            Some(only) if filters.is_empty() => only,
            Some(last) => Self::All([filters, vec![last]].concat()),
        }
    }

    /// At least one of `filters`.
    pub(super) fn any(filters: Vec<Self>) -> Self {
        if filters.contains(&Self::Constant(true)) {
            return Self::Constant(true);
        }
        let mut filters: Vec<Self> = filters.into_iter().filter(|one| *one != Self::Constant(false)).collect();
        match filters.pop() {
            None => Self::Constant(false),
            Some(only) if filters.is_empty() => only,
            Some(last) => Self::Any([filters, vec![last]].concat()),
        }
    }
}

impl Comparator {
    /// The comparator with both sides swapped.
    fn flipped(self) -> Self {
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

impl RowCondition {
    /// Binds the condition to `columns`, or returns why that fails.
    pub(super) fn bind(&self, columns: &[PolicyColumn<'_>]) -> Result<BoundCondition, String> {
        self.tree.bind(columns)
    }
}

impl ConditionNode {
    fn bind(&self, columns: &[PolicyColumn<'_>]) -> Result<BoundCondition, String> {
        let all = |nodes: &[Self]| nodes.iter().map(|node| node.bind(columns)).collect::<Result<Vec<_>, String>>();
        Ok(match self {
            Self::All(nodes) => BoundCondition::All(all(nodes)?),
            Self::Any(nodes) => BoundCondition::Any(all(nodes)?),
            Self::Not(node) => BoundCondition::Not(Box::new(node.bind(columns)?)),
            Self::Constant(value) => BoundCondition::Filter(RowFilter::Constant(*value)),
            Self::IsNull { column, is_negated } => {
                BoundCondition::Filter(RowFilter::IsNull { column: column.position(columns)?, is_negated: *is_negated })
            }
            Self::Like { column, pattern, is_negated } => {
                let position = find_column_of_kind(column, columns, &[ValueKind::Text, ValueKind::Any])?;
                let (pattern, is_negated) = (pattern.clone(), *is_negated);
                BoundCondition::Filter(RowFilter::Like { column: position, pattern, is_negated })
            }
            Self::Column(column) => BoundCondition::Filter(RowFilter::IsTrue(find_column_of_kind(
                column,
                columns,
                &[ValueKind::Boolean, ValueKind::Any],
            )?)),
            Self::Compare { left: ConditionTerm::Column(left), comparator, right: ConditionTerm::Column(right) } => {
                let (left, right) = (left.position(columns)?, right.position(columns)?);
                check_comparable(&columns[left], &columns[right])?;
                BoundCondition::Filter(RowFilter::CompareColumns { left, comparator: *comparator, right })
            }
            Self::Compare { left: ConditionTerm::Column(name), comparator, right } => {
                bind_comparison(name, *comparator, right, columns)?
            }
            Self::Compare { left, comparator, right: ConditionTerm::Column(name) } => {
                bind_comparison(name, comparator.flipped(), left, columns)?
            }
            Self::Compare { left, comparator, right } => {
                let kind = left.literal_kind().or_else(|| right.literal_kind()).unwrap_or(ValueKind::Text);
                let (left, right) = (left.bind(kind, "the other")?, right.bind(kind, "the other")?);
                BoundCondition::CompareConstants { left, comparator: *comparator, right }
            }
            Self::In { term: ConditionTerm::Column(name), list, is_negated } => {
                let column = name.position(columns)?;
                let kind = columns[column].kind;
                let list = list.iter().map(|term| term.bind(kind, columns[column].name)).collect::<Result<_, _>>()?;
                BoundCondition::In { column, list, is_negated: *is_negated }
            }
            Self::In { term, list, is_negated } => {
                let kind = term
                    .literal_kind()
                    .or_else(|| list.iter().find_map(ConditionTerm::literal_kind))
                    .unwrap_or(ValueKind::Text);
                let list = list.iter().map(|item| item.bind(kind, "the list")).collect::<Result<_, _>>()?;
                BoundCondition::InConstants { term: term.bind(kind, "the list")?, list, is_negated: *is_negated }
            }
        })
    }
}

fn bind_comparison(
    name: &ColumnName,
    comparator: Comparator,
    term: &ConditionTerm,
    columns: &[PolicyColumn<'_>],
) -> Result<BoundCondition, String> {
    let column = name.position(columns)?;
    Ok(BoundCondition::Compare { column, comparator, term: term.bind(columns[column].kind, columns[column].name)? })
}

fn find_column_of_kind(name: &ColumnName, columns: &[PolicyColumn<'_>], kinds: &[ValueKind]) -> Result<usize, String> {
    let position = name.position(columns)?;
    let column = &columns[position];
    if kinds.contains(&column.kind) {
        return Ok(position);
    }
    let expected = if kinds.contains(&ValueKind::Text) { "not text" } else { "not boolean" };
    Err(format!("the values of {:?} are {expected}", column.name))
}

fn check_comparable(left: &PolicyColumn<'_>, right: &PolicyColumn<'_>) -> Result<(), String> {
    let is_number = |column: &PolicyColumn<'_>| matches!(column.kind, ValueKind::Integer | ValueKind::Number);
    let are_alike = left.kind == right.kind && left.kind != ValueKind::Other || is_number(left) && is_number(right);
    if are_alike { Ok(()) } else { Err(format!("{:?} and {:?} have different types", left.name, right.name)) }
}

impl ConditionTerm {
    /// The kind of the literal.
    fn literal_kind(&self) -> Option<ValueKind> {
        match self {
            Self::Text(_) => Some(ValueKind::Text),
            Self::Integer(_) => Some(ValueKind::Integer),
            Self::Number(_) => Some(ValueKind::Number),
            Self::Boolean(_) => Some(ValueKind::Boolean),
            Self::CallerAttribute(_) | Self::Column(_) => None,
        }
    }

    /// Converts the term to `kind`, the kind of `with`.
    fn bind(&self, kind: ValueKind, with: &str) -> Result<BoundTerm, String> {
        let value = match (self, kind) {
            (Self::CallerAttribute(caller_attribute), kind) if kind != ValueKind::Other => {
                return Ok(BoundTerm::CallerAttribute { attribute: caller_attribute.clone(), kind });
            }
            (Self::Text(text), ValueKind::Text | ValueKind::Any) => Some(RowValue::Text(text.clone())),
            (Self::Text(text), ValueKind::Date) => resolve::parse_date(text),
            (Self::Text(text), ValueKind::Timestamp) => resolve::parse_timestamp(text),
            (Self::Integer(value), ValueKind::Integer | ValueKind::Number | ValueKind::Any) => {
                Some(RowValue::Integer(*value))
            }
            (Self::Number(value), ValueKind::Number | ValueKind::Integer | ValueKind::Any) => {
                Some(RowValue::Number(*value))
            }
            (Self::Boolean(value), ValueKind::Boolean) => Some(RowValue::Boolean(*value)),
            _ => None,
        };
        let message = || match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Column(name) => name.text.clone(),
            Self::CallerAttribute(_) => "an attribute of the caller".to_owned(),
        };
        value.map(BoundTerm::Value).ok_or_else(|| format!("{} cannot be compared with {with:?}", message()))
    }
}
