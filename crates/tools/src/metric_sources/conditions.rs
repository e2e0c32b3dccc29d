//! Conditions of the statement that reads the samples of a table.

use tidegate_query::{ComparisonOperator, Operand, QueryCondition};
use tidegate_sql::Parameter;
use tidegate_telemetry::metrics::LabelCondition;

use crate::source_columns::FieldKind;

/// The values of a condition that become a part of the statement.
const PUSHED_VALUES_MAX: usize = 200;

/// The condition as a part of the statement, if it selects values that a label of this type has.
pub(super) fn push_down(label: &str, condition: &LabelCondition, kind: FieldKind) -> Option<QueryCondition> {
    let values = match condition {
        LabelCondition::Equals(value) => std::slice::from_ref(value),
        LabelCondition::OneOf(values) => values,
        _ => return None,
    };
    // A missing label has the empty value.
    if values.len() > PUSHED_VALUES_MAX || values.iter().any(String::is_empty) {
        return None;
    }
    let list = values.iter().map(|value| typed(value, kind)).collect::<Option<Vec<Parameter>>>()?;
    Some(QueryCondition::compare(label, ComparisonOperator::In, Operand::List(list)))
}

/// A value as the database compares it. `None` where numbers have several texts, and so several series.
fn typed(value: &str, kind: FieldKind) -> Option<Parameter> {
    match kind {
        FieldKind::Text => Some(Parameter::Text(value.to_owned())),
        FieldKind::Integer => value.parse().ok().map(Parameter::Integer),
        _ => None,
    }
}
