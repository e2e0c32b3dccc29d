//! Resolves a condition with the attributes of a caller.

use chrono::{NaiveDate, NaiveDateTime};
use serde_json::Value;
use tidegate_core::Principal;

use super::binding::{BoundCondition, BoundTerm, Comparator, RowFilter, RowValue, ValueKind};

/// Maximum values of a claim that is a list.
const LIST_MAX: usize = 1_000;
/// Maximum bytes of a claim that is text.
const TEXT_BYTES_MAX: usize = 4_096;

/// An attribute of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallerAttribute {
    Subject,
    Tenant,
    /// The claim with that name; further names are members of nested objects.
    Claim(Vec<String>),
}

impl CallerAttribute {
    /// The value of the attribute for `principal`.
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

impl BoundCondition {
    /// The filter for `principal`; `None` if an attribute is missing, and then no row is visible.
    pub(super) fn resolve(&self, principal: &Principal) -> Option<RowFilter> {
        let all = |nodes: &[Self]| nodes.iter().map(|node| node.resolve(principal)).collect::<Option<Vec<_>>>();
        Some(match self {
            Self::All(nodes) => RowFilter::all(all(nodes)?),
            Self::Any(nodes) => RowFilter::any(all(nodes)?),
            Self::Not(node) => RowFilter::Not(Box::new(node.resolve(principal)?)),
            Self::Filter(filter) => filter.clone(),
            Self::Compare { column, comparator, term } => {
                RowFilter::Compare { column: *column, comparator: *comparator, value: term.single_value(principal)? }
            }
            Self::In { column, list, is_negated } => {
                let mut values = Vec::new();
                for term in list {
                    values.extend(term.list_values(principal)?);
                }
                match values.is_empty() {
                    true => RowFilter::Constant(*is_negated),
                    false => RowFilter::In { column: *column, values, is_negated: *is_negated },
                }
            }
            Self::CompareConstants { left, comparator, right } => {
                RowFilter::Constant(comparator.holds(&left.single_value(principal)?, &right.single_value(principal)?))
            }
            Self::InConstants { term, list, is_negated } => {
                let row_value = term.single_value(principal)?;
                let mut is_among = false;
                for term in list {
                    is_among |= term.list_values(principal)?.iter().any(|one| Comparator::Equal.holds(&row_value, one));
                }
                RowFilter::Constant(is_among != *is_negated)
            }
        })
    }
}

impl BoundTerm {
    fn single_value(&self, principal: &Principal) -> Option<RowValue> {
        match self {
            Self::Value(value) => Some(value.clone()),
            Self::CallerAttribute { attribute: caller_attribute, kind } => {
                convert_claim(&caller_attribute.value_for(principal)?, *kind)
            }
        }
    }

    fn list_values(&self, principal: &Principal) -> Option<Vec<RowValue>> {
        match self {
            Self::Value(value) => Some(vec![value.clone()]),
            Self::CallerAttribute { attribute: caller_attribute, kind } => {
                match caller_attribute.value_for(principal)? {
                    Value::Array(values) if values.len() <= LIST_MAX => {
                        values.iter().map(|value| convert_claim(value, *kind)).collect()
                    }
                    value => Some(vec![convert_claim(&value, *kind)?]),
                }
            }
        }
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
pub(super) fn parse_date(text: &str) -> Option<RowValue> {
    text.parse::<NaiveDate>().ok().map(RowValue::Date)
}

/// `2024-12-31`, `2024-12-31 23:59:59.5`, `2024-12-31T23:59:59`; in UTC where the column has a time zone.
pub(super) fn parse_timestamp(text: &str) -> Option<RowValue> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let of_date = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
    let read = |form: &str| NaiveDateTime::parse_from_str(text, form).ok();
    let moment = read("%Y-%m-%dT%H:%M:%S%.f").or_else(|| read("%Y-%m-%d %H:%M:%S%.f")).or_else(of_date)?;
    Some(RowValue::Timestamp(moment))
}
