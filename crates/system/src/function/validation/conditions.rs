//! The conditions of a request.

use serde_json::Value;

use super::{Validator, describe, nearest, parse_time, quoted_text, value_rule};
use crate::description::{SystemColumn, SystemColumnType};
use crate::function::nearest::alternatives;
use crate::function::pattern::SimplePattern;
use crate::function::request::{ConditionOperand, ConditionOperator, FunctionCondition};
use crate::value::SystemValue;

/// Bytes of a pattern, or of a compared text, at most.
const OPERAND_BYTES_MAX: usize = 4_096;

impl Validator<'_> {
    pub(super) fn conditions(&mut self, value: Option<&Value>) -> Vec<FunctionCondition> {
        let items = self.items("conditions", value, r#"[["name", "=", "value"]]"#);
        let mut conditions = Vec::new();
        for (index, item) in items.iter().enumerate() {
            conditions.extend(self.condition(&format!("conditions[{index}]"), item));
        }
        conditions
    }

    /// Checks the column, the operator and the value each, also if another one is wrong.
    fn condition(&mut self, path: &str, item: &Value) -> Option<FunctionCondition> {
        let Some([column, operator, operand]) = item.as_array().map(Vec::as_slice) else {
            self.add(path, "must be a list of three: [column, operator, value]", Vec::new());
            return None;
        };
        let column = self.usable_column(&format!("{path}[0]"), column);
        let is_pattern =
            operator.as_str().and_then(ConditionOperator::parse).is_some_and(ConditionOperator::has_pattern);
        let operator = self.operator(&format!("{path}[1]"), operator, column.map(|(_, column)| column));
        let (position, column) = column?;
        if operator.is_none() && is_pattern {
            // Another operator needs another value anyway.
            return None;
        }
        let operand = self.operand(&format!("{path}[2]"), operand, column, operator);
        Some(FunctionCondition { column: position, operator: operator?, operand: operand? })
    }

    fn operator(&mut self, path: &str, value: &Value, column: Option<&SystemColumn>) -> Option<ConditionOperator> {
        let names = column.map_or_else(all_operators, |column| operators(column.column_type));
        let choices = || names.iter().map(|name| (*name).to_owned()).collect();
        let Value::String(name) = value else {
            self.add(path, format!("must be an operator, not {}", describe(value)), choices());
            return None;
        };
        let Some(operator) = ConditionOperator::parse(name) else {
            let near = nearest(name, names.iter().copied());
            let message = format!("unknown operator {}; valid are {}", quoted_text(name, true), alternatives(&names));
            self.add(path, message, if near.is_empty() { choices() } else { near });
            return None;
        };
        if let Some(column) = column.filter(|_| !names.contains(&operator.name())) {
            let column_type = column.column_type.name();
            let message = format!(
                "operator {name:?} does not fit column {:?} of type {column_type}; valid are {}",
                column.name,
                alternatives(&names)
            );
            self.add(path, message, choices());
            return None;
        }
        Some(operator)
    }

    /// Without a valid operator, the value must fit the column at least.
    fn operand(
        &mut self,
        path: &str,
        value: &Value,
        column: &SystemColumn,
        operator: Option<ConditionOperator>,
    ) -> Option<ConditionOperand> {
        if value.is_null() {
            let is_equality = matches!(operator, None | Some(ConditionOperator::Equal | ConditionOperator::NotEqual));
            if !is_equality {
                self.add(path, "null can only be compared with = and !=", Vec::new());
            }
            return is_equality.then_some(ConditionOperand::Null);
        }
        if operator.is_some_and(ConditionOperator::has_pattern) {
            let text = value.as_str().filter(|text| text.len() <= OPERAND_BYTES_MAX);
            let pattern = text.and_then(SimplePattern::parse);
            if pattern.is_none() {
                let message = format!(r#"must be a pattern such as "post*|*sql", not {}"#, describe(value));
                self.add(path, message, Vec::new());
            }
            return pattern.map(ConditionOperand::Pattern);
        }
        let typed = comparable_value(column.column_type, value);
        if typed.is_none() {
            let rule = if column.column_type.is_number() { "a number" } else { value_rule(column.column_type) };
            let message = format!(
                "must be {rule}, as column {:?} has the type {}, not {}",
                column.name,
                column.column_type.name(),
                describe(value)
            );
            self.add(path, message, Vec::new());
        }
        typed.map(ConditionOperand::Value)
    }
}

/// A value that can be compared with the column. Any number can be compared with a column of numbers.
fn comparable_value(column_type: SystemColumnType, value: &Value) -> Option<SystemValue> {
    match column_type {
        SystemColumnType::Text => value.as_str().filter(|text| text.len() <= OPERAND_BYTES_MAX).map(SystemValue::from),
        SystemColumnType::Boolean => value.as_bool().map(SystemValue::from),
        SystemColumnType::Timestamp => parse_time(value.as_str()?).map(SystemValue::Timestamp),
        SystemColumnType::Integer
        | SystemColumnType::Unsigned
        | SystemColumnType::Float
        | SystemColumnType::Duration => {
            let whole = || value.as_u64().map(SystemValue::from).or_else(|| value.as_i64().map(SystemValue::from));
            whole().or_else(|| value.as_f64().map(SystemValue::from))
        }
    }
}

fn all_operators() -> Vec<&'static str> {
    ConditionOperator::NAMES.iter().map(|(_, operator)| operator.name()).fold(Vec::new(), |mut names, name| {
        if !names.contains(&name) {
            names.push(name);
        }
        names
    })
}

/// The operators for a column of this type.
pub(in crate::function) fn operators(column_type: SystemColumnType) -> Vec<&'static str> {
    match column_type {
        SystemColumnType::Text => vec!["=", "!=", "match", "not match"],
        SystemColumnType::Boolean => vec!["=", "!="],
        _ => vec!["=", "!=", "<", "<=", ">", ">="],
    }
}
