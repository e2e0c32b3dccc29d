//! Parses conditions from JSON.

use serde_json::{Map, Value};
use tidegate_sql::Parameter;

use super::condition::{Arity, ComparisonOperator, Operand, QueryCondition};
use super::read::{SpecReader, child_path, parsed_text, shorten_value};

const CONDITIONS_MAX: usize = 100;
const DEPTH_MAX: usize = 20;
const VALUES_MAX: usize = 900;

impl SpecReader {
    pub(super) fn read_optional_condition(&mut self, path: &str, value: Option<&Value>) -> Option<QueryCondition> {
        match value? {
            // An empty condition matches everything.
            Value::Object(empty) if empty.is_empty() => None,
            Value::Array(empty) if empty.is_empty() => None,
            value => self.read_condition(path, value, DEPTH_MAX),
        }
    }

    fn read_condition(&mut self, path: &str, value: &Value, depth_left: usize) -> Option<QueryCondition> {
        self.conditions += 1;
        if self.conditions > CONDITIONS_MAX || depth_left == 0 {
            // Report this only once.
            if self.conditions <= CONDITIONS_MAX + 1 {
                let bounds = format!(
                    "too many conditions: the limits are {CONDITIONS_MAX} conditions and {DEPTH_MAX} levels; use in for lists"
                );
                self.add_violation(path, bounds);
                self.conditions = CONDITIONS_MAX + 1;
            }
            return None;
        }
        match value {
            Value::String(expression) if !expression.trim().is_empty() => match parsed_text(value) {
                Some(condition) => self.read_condition(path, &condition, depth_left - 1),
                // No expression begins so; a list may, as in `['a', 'b'] = tags`.
                None if expression.trim_start().starts_with('{') => {
                    self.expected(path, "{column, op, value} or a SQL expression, not a part of JSON", value)
                }
                None => Some(QueryCondition::Expression(expression.clone())),
            },
            Value::Array(items) => self.read_conditions(path, items, depth_left).map(QueryCondition::And),
            Value::Object(object) => self.read_condition_object(path, object, depth_left),
            other => self.expected(path, "{column, op, value} or a SQL expression", other),
        }
    }

    fn read_condition_object(
        &mut self,
        path: &str,
        object: &Map<String, Value>,
        depth_left: usize,
    ) -> Option<QueryCondition> {
        for key in ["and", "or", "not"] {
            let Some(inner) = object.get(key) else { continue };
            self.reject_unknown_keys(path, object, &[key]);
            let path = child_path(path, key);
            let list = parsed_text(inner).filter(|parsed| parsed.is_array() && key != "not");
            return match (key, list.as_ref().unwrap_or(inner)) {
                ("not", inner) => {
                    Some(QueryCondition::Not(Box::new(self.read_condition(&path, inner, depth_left - 1)?)))
                }
                ("and", Value::Array(items)) => self.read_conditions(&path, items, depth_left).map(QueryCondition::And),
                (_, Value::Array(items)) => self.read_conditions(&path, items, depth_left).map(QueryCondition::Or),
                (_, other) => self.expected(&path, "a list of conditions", other),
            };
        }
        if !object.contains_key("column") {
            let forms = "{column, op, value}, {and: […]}, {or: […]} or {not: …}";
            return self.expected(path, forms, &Value::Object(object.clone()));
        }
        self.reject_unknown_keys(path, object, &["column", "op", "value"]);
        let column = self.read_required_text(object, path, "column");
        let operator = match object.get("op") {
            None => Some(ComparisonOperator::Equal),
            Some(op) => op.as_str().and_then(ComparisonOperator::parse).or_else(|| {
                let choices = ComparisonOperator::ALL.map(ComparisonOperator::name).join(", ");
                self.expected(&child_path(path, "op"), &format!("one of {choices}"), op)
            }),
        }?;
        let operand = self.read_operand(&child_path(path, "value"), operator, object.get("value"))?;
        Some(QueryCondition::compare(column, operator, operand))
    }

    fn read_conditions(&mut self, path: &str, items: &[Value], depth_left: usize) -> Option<Vec<QueryCondition>> {
        if items.is_empty() {
            self.add_violation(path, "is empty; expected at least one condition");
            return None;
        }
        let mut read =
            |(index, item): (usize, &Value)| self.read_condition(&format!("{path}[{index}]"), item, depth_left - 1);
        Some(items.iter().enumerate().filter_map(&mut read).collect())
    }

    fn read_operand(&mut self, path: &str, operator: ComparisonOperator, value: Option<&Value>) -> Option<Operand> {
        let name = operator.name();
        let expected_list = format!("a list of 1 to {VALUES_MAX} values");
        let takes_list = matches!(operator.arity(), Arity::List | Arity::Range);
        let list = value.filter(|_| takes_list).and_then(parsed_text).filter(Value::is_array);
        let value = list.as_ref().or(value);
        let (expected, value) = match (operator.arity(), value) {
            (Arity::None, _) => return Some(Operand::None),
            (Arity::One, Some(Value::Null)) => ("a value; for null use is_null or is_not_null", value),
            (Arity::One, Some(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_)))) => {
                return self.read_parameter(path, value).map(Operand::One);
            }
            (Arity::One, _) => ("one value; for a list use in", value),
            (Arity::Text, Some(Value::String(text))) => return Some(Operand::One(Parameter::Text(text.clone()))),
            (Arity::Text, _) => ("a string", value),
            (Arity::List, Some(Value::Array(items))) if (1..=VALUES_MAX).contains(&items.len()) => {
                let read = items.iter().enumerate();
                return Some(Operand::List(
                    read.filter_map(|(index, item)| self.read_list_item(&format!("{path}[{index}]"), item)).collect(),
                ));
            }
            (Arity::List, _) => (expected_list.as_str(), value),
            (Arity::Range, Some(Value::Array(items))) if items.len() == 2 => {
                let low = self.read_list_item(&format!("{path}[0]"), &items[0]);
                let high = self.read_list_item(&format!("{path}[1]"), &items[1]);
                return Some(Operand::Range(low?, high?));
            }
            (Arity::Range, _) => ("a list of two values, from and to", value),
        };
        let actual = value.map_or("nothing".to_owned(), shorten_value);
        self.add_violation(path, format!("{name} expects {expected}; got {actual}"));
        None
    }

    fn read_list_item(&mut self, path: &str, value: &Value) -> Option<Parameter> {
        if value.is_null() {
            self.add_violation(path, "null cannot be compared; add a condition with is_null");
            return None;
        }
        self.read_parameter(path, value)
    }

    fn read_parameter(&mut self, path: &str, value: &Value) -> Option<Parameter> {
        Parameter::from_json_or_reason(value).map_err(|reason| self.add_violation(path, reason)).ok()
    }
}
