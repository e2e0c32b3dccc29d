//! The parsed condition of a row policy, and its resolution for the columns of a table and the attributes of a caller.

use std::fmt;

use chrono::{NaiveDate, NaiveDateTime};
use serde_json::Value;
use tidegate_core::{Principal, nearest_names};
use tidegate_sql::Comparator;

use super::filter::{PolicyColumn, RowFilter, RowValue, ValueKind};

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

const LIST_MAX: usize = 1_000;
const TEXT_BYTES_MAX: usize = 4_096;

/// Returns the value of an attribute of the caller; `None` if it is missing.
type Attributes<'a> = &'a dyn Fn(&CallerAttribute) -> Option<Value>;

impl RowCondition {
    /// The filter over `columns` for a caller with `attributes`; `None` if an attribute is missing, and then no row is
    /// visible. The error says why the condition does not match the columns, whatever the attributes are.
    pub(super) fn resolve(
        &self,
        columns: &[PolicyColumn<'_>],
        attributes: Attributes<'_>,
    ) -> Result<Option<RowFilter>, String> {
        self.tree.resolve(columns, attributes)
    }
}

impl ConditionNode {
    fn resolve(&self, columns: &[PolicyColumn<'_>], attributes: Attributes<'_>) -> Result<Option<RowFilter>, String> {
        // All parts are checked, even after a missing attribute.
        let all = |nodes: &[Self]| -> Result<Option<Vec<RowFilter>>, String> {
            let filters = nodes.iter().map(|node| node.resolve(columns, attributes)).collect::<Result<Vec<_>, _>>()?;
            Ok(filters.into_iter().collect())
        };
        let filter = match self {
            Self::All(nodes) => return Ok(all(nodes)?.map(RowFilter::all)),
            Self::Any(nodes) => return Ok(all(nodes)?.map(RowFilter::any)),
            Self::Not(node) => {
                let filter = node.resolve(columns, attributes)?;
                return Ok(filter.map(|filter| RowFilter::Not(Box::new(filter))));
            }
            Self::Constant(value) => RowFilter::Constant(*value),
            Self::IsNull { column, is_negated } => {
                RowFilter::IsNull { column: column.position(columns)?, is_negated: *is_negated }
            }
            Self::Like { column, pattern, is_negated } => {
                let column = find_column_of_kind(column, columns, &[ValueKind::Text, ValueKind::Any])?;
                RowFilter::Like { column, pattern: pattern.clone(), is_negated: *is_negated }
            }
            Self::Column(column) => {
                RowFilter::IsTrue(find_column_of_kind(column, columns, &[ValueKind::Boolean, ValueKind::Any])?)
            }
            Self::Compare { left: ConditionTerm::Column(left), comparator, right: ConditionTerm::Column(right) } => {
                let (left, right) = (left.position(columns)?, right.position(columns)?);
                check_comparable(&columns[left], &columns[right])?;
                RowFilter::CompareColumns { left, comparator: *comparator, right }
            }
            Self::Compare { left: ConditionTerm::Column(name), comparator, right } => {
                return compare_column(name, *comparator, right, columns, attributes);
            }
            Self::Compare { left, comparator, right: ConditionTerm::Column(name) } => {
                return compare_column(name, comparator.flipped(), left, columns, attributes);
            }
            Self::Compare { left, comparator, right } => {
                let kind = left.literal_kind().or_else(|| right.literal_kind()).unwrap_or(ValueKind::Text);
                let left = left.value(kind, "the other", attributes)?;
                let right = right.value(kind, "the other", attributes)?;
                return Ok(left
                    .zip(right)
                    .map(|(left, right)| RowFilter::Constant(left.compares(*comparator, &right))));
            }
            Self::In { term: ConditionTerm::Column(name), list, is_negated } => {
                let column = name.position(columns)?;
                let values = collect_values(list, columns[column].kind, columns[column].name, attributes)?;
                let is_negated = *is_negated;
                return Ok(values.map(|values| match values.is_empty() {
                    true => RowFilter::Constant(is_negated),
                    false => RowFilter::In { column, values, is_negated },
                }));
            }
            Self::In { term, list, is_negated } => {
                let kinds = std::iter::once(term).chain(list).find_map(ConditionTerm::literal_kind);
                let kind = kinds.unwrap_or(ValueKind::Text);
                let values = collect_values(list, kind, "the list", attributes)?;
                let is_among = |(values, value): (Vec<RowValue>, RowValue)| {
                    let is_among = values.iter().any(|one| value.compares(Comparator::Equal, one));
                    RowFilter::Constant(is_among != *is_negated)
                };
                return Ok(values.zip(term.value(kind, "the list", attributes)?).map(is_among));
            }
        };
        Ok(Some(filter))
    }
}

fn compare_column(
    name: &ColumnName,
    comparator: Comparator,
    term: &ConditionTerm,
    columns: &[PolicyColumn<'_>],
    attributes: Attributes<'_>,
) -> Result<Option<RowFilter>, String> {
    let column = name.position(columns)?;
    let value = term.value(columns[column].kind, columns[column].name, attributes)?;
    Ok(value.map(|value| RowFilter::Compare { column, comparator, value }))
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

/// The values of `list`; `None` if an attribute is missing.
fn collect_values(
    list: &[ConditionTerm],
    kind: ValueKind,
    with: &str,
    attributes: Attributes<'_>,
) -> Result<Option<Vec<RowValue>>, String> {
    let values = list.iter().map(|term| term.values(kind, with, attributes)).collect::<Result<Vec<_>, _>>()?;
    Ok(values.into_iter().collect::<Option<Vec<_>>>().map(|values| values.concat()))
}

impl ConditionTerm {
    fn literal_kind(&self) -> Option<ValueKind> {
        match self {
            Self::Text(_) => Some(ValueKind::Text),
            Self::Integer(_) => Some(ValueKind::Integer),
            Self::Number(_) => Some(ValueKind::Number),
            Self::Boolean(_) => Some(ValueKind::Boolean),
            Self::CallerAttribute(_) | Self::Column(_) => None,
        }
    }

    fn value(&self, kind: ValueKind, with: &str, attributes: Attributes<'_>) -> Result<Option<RowValue>, String> {
        match self {
            Self::CallerAttribute(attribute) if kind != ValueKind::Other => {
                Ok(attributes(attribute).and_then(|value| convert_claim(&value, kind)))
            }
            _ => self.literal(kind, with).map(Some),
        }
    }

    /// Like [`ConditionTerm::value`]; an attribute may be a list.
    fn values(&self, kind: ValueKind, with: &str, attributes: Attributes<'_>) -> Result<Option<Vec<RowValue>>, String> {
        match self {
            Self::CallerAttribute(attribute) if kind != ValueKind::Other => {
                Ok(attributes(attribute).and_then(|value| match value {
                    Value::Array(values) if values.len() <= LIST_MAX => {
                        values.iter().map(|value| convert_claim(value, kind)).collect()
                    }
                    value => Some(vec![convert_claim(&value, kind)?]),
                }))
            }
            _ => self.literal(kind, with).map(|value| Some(vec![value])),
        }
    }

    /// Converts the literal to `kind`, the kind of `with`.
    fn literal(&self, kind: ValueKind, with: &str) -> Result<RowValue, String> {
        let value = match (self, kind) {
            (Self::Text(text), ValueKind::Text | ValueKind::Any) => Some(RowValue::Text(text.clone())),
            (Self::Text(text), ValueKind::Date) => parse_date(text),
            (Self::Text(text), ValueKind::Timestamp) => parse_timestamp(text),
            (Self::Integer(value), ValueKind::Integer | ValueKind::Number | ValueKind::Any) => {
                Some(RowValue::Integer(*value))
            }
            (Self::Number(value), ValueKind::Number | ValueKind::Integer | ValueKind::Any) => {
                Some(RowValue::Number(*value))
            }
            (Self::Boolean(value), ValueKind::Boolean) => Some(RowValue::Boolean(*value)),
            _ => None,
        };
        value.ok_or_else(|| {
            let written = match self {
                Self::Text(text) => format!("{text:?}"),
                Self::Integer(value) => value.to_string(),
                Self::Number(value) => value.to_string(),
                Self::Boolean(value) => value.to_string(),
                Self::Column(name) => name.text.clone(),
                Self::CallerAttribute(_) => "an attribute of the caller".to_owned(),
            };
            format!("{written} cannot be compared with {with:?}")
        })
    }
}

/// Converts `value` to `kind`, if it is exactly such a value.
fn convert_claim(value: &Value, kind: ValueKind) -> Option<RowValue> {
    match (value, kind) {
        (Value::String(text), _) if text.len() > TEXT_BYTES_MAX => None,
        (Value::String(text), ValueKind::Text | ValueKind::Any) => Some(RowValue::Text(text.clone())),
        (Value::String(text), ValueKind::Integer) => {
            let integer: i64 = text.parse().ok()?;
            // Not ` 7`, `+7` or `007`, which may identify another principal.
            (integer.to_string() == *text).then_some(RowValue::Integer(integer))
        }
        (Value::String(text), ValueKind::Date) => parse_date(text),
        (Value::String(text), ValueKind::Timestamp) => parse_timestamp(text),
        // Also where the column has other numbers: as a float it could become a neighbouring value.
        (Value::Number(number), ValueKind::Integer | ValueKind::Number | ValueKind::Any) if number.is_i64() => {
            number.as_i64().map(RowValue::Integer)
        }
        (Value::Number(number), ValueKind::Number | ValueKind::Any) => {
            number.as_f64().filter(|number| number.is_finite()).map(RowValue::Number)
        }
        (Value::Number(number), ValueKind::Text) if number.is_i64() || number.is_u64() => {
            Some(RowValue::Text(number.to_string()))
        }
        (Value::Bool(value), ValueKind::Boolean) => Some(RowValue::Boolean(*value)),
        _ => None,
    }
}

/// `2024-12-31`.
fn parse_date(text: &str) -> Option<RowValue> {
    text.parse::<NaiveDate>().ok().map(RowValue::Date)
}

/// `2024-12-31`, `2024-12-31 23:59:59.5`, `2024-12-31T23:59:59`; in UTC where the column has a time zone.
fn parse_timestamp(text: &str) -> Option<RowValue> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let of_date = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
    let read = |form: &str| NaiveDateTime::parse_from_str(text, form).ok();
    let moment = read("%Y-%m-%dT%H:%M:%S%.f").or_else(|| read("%Y-%m-%d %H:%M:%S%.f")).or_else(of_date)?;
    Some(RowValue::Timestamp(moment))
}
