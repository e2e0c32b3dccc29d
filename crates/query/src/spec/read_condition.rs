//! Reads conditions from JSON.

use serde_json::{Map, Value};

use super::condition::{Arity, Comparison, Condition, Operand, Operator};
use super::read::{Reader, below, shown};
use crate::parameter::Parameter;

/// Conditions of one question, all levels together.
const CONDITIONS_MAX: usize = 100;
/// Levels of conditions.
const DEPTH_MAX: usize = 20;
/// Values of one `in`.
const VALUES_MAX: usize = 900;

impl Reader {
    pub(super) fn optional_condition(&mut self, object: &Map<String, Value>, key: &str) -> Option<Condition> {
        match object.get(key)? {
            Value::Null => None,
            // What matches everything.
            Value::Object(empty) if empty.is_empty() => None,
            Value::Array(empty) if empty.is_empty() => None,
            value => self.condition(key, value, DEPTH_MAX),
        }
    }

    fn condition(&mut self, path: &str, value: &Value, depth_left: usize) -> Option<Condition> {
        self.conditions += 1;
        if self.conditions > CONDITIONS_MAX || depth_left == 0 {
            // Once is enough.
            if self.conditions <= CONDITIONS_MAX + 1 {
                let bounds =
                    format!("at most {CONDITIONS_MAX} conditions in {DEPTH_MAX} levels are taken; use in for lists");
                self.wrong(path, bounds);
                self.conditions = CONDITIONS_MAX + 1;
            }
            return None;
        }
        match value {
            Value::String(expression) if !expression.trim().is_empty() => {
                Some(Condition::Expression(expression.clone()))
            }
            Value::Array(items) => self.conditions(path, items, depth_left).map(Condition::And),
            Value::Object(object) => self.condition_object(path, object, depth_left),
            other => {
                self.wrong(path, format!("{} came; wanted {{column, op, value}} or a SQL expression", shown(other)));
                None
            }
        }
    }

    fn condition_object(&mut self, path: &str, object: &Map<String, Value>, depth_left: usize) -> Option<Condition> {
        for key in ["and", "or", "not"] {
            let Some(inner) = object.get(key) else { continue };
            self.only_keys(path, object, &[key]);
            let path = below(path, key);
            return match (key, inner) {
                ("not", inner) => Some(Condition::Not(Box::new(self.condition(&path, inner, depth_left - 1)?))),
                ("and", Value::Array(items)) => self.conditions(&path, items, depth_left).map(Condition::And),
                (_, Value::Array(items)) => self.conditions(&path, items, depth_left).map(Condition::Or),
                (_, other) => {
                    self.wrong(&path, format!("{} came; wanted a list of conditions", shown(other)));
                    None
                }
            };
        }
        if !object.contains_key("column") {
            let came = shown(&Value::Object(object.clone()));
            self.wrong(
                path,
                format!("{came} came; wanted {{column, op, value}}, {{and: […]}}, {{or: […]}} or {{not: …}}"),
            );
            return None;
        }
        self.only_keys(path, object, &["column", "op", "value"]);
        let column = self.text(object, path, "column");
        let operator = match object.get("op") {
            None => Some(Operator::Equal),
            Some(op) => {
                let operator = op.as_str().and_then(Operator::parse);
                if operator.is_none() {
                    let choices = Operator::ALL.map(Operator::name).join(", ");
                    self.wrong(&below(path, "op"), format!("{} came; wanted one of {choices}", shown(op)));
                }
                operator
            }
        }?;
        let operand = self.operand(&below(path, "value"), operator, object.get("value"))?;
        Some(Condition::Comparison(Comparison { column, operator, operand }))
    }

    fn conditions(&mut self, path: &str, items: &[Value], depth_left: usize) -> Option<Vec<Condition>> {
        if items.is_empty() {
            self.wrong(path, "is empty; wanted at least one condition");
            return None;
        }
        let read = items.iter().enumerate();
        Some(
            read.filter_map(|(index, item)| self.condition(&format!("{path}[{index}]"), item, depth_left - 1))
                .collect(),
        )
    }

    fn operand(&mut self, path: &str, operator: Operator, value: Option<&Value>) -> Option<Operand> {
        let name = operator.name();
        let wanted_list = format!("a list of 1 to {VALUES_MAX} values");
        let (wanted, value) = match (operator.arity(), value) {
            (Arity::None, _) => return Some(Operand::None),
            (Arity::One, Some(Value::Null)) => ("a value; for null use is_null or is_not_null", value),
            (Arity::One, Some(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_)))) => {
                return self.parameter(path, value).map(Operand::One);
            }
            (Arity::One, _) => ("one value; for a list use in", value),
            (Arity::Text, Some(Value::String(text))) => return Some(Operand::One(Parameter::Text(text.clone()))),
            (Arity::Text, _) => ("a string", value),
            (Arity::List, Some(Value::Array(items))) if (1..=VALUES_MAX).contains(&items.len()) => {
                let read = items.iter().enumerate();
                return Some(Operand::List(
                    read.filter_map(|(index, item)| self.item(&format!("{path}[{index}]"), item)).collect(),
                ));
            }
            (Arity::List, _) => (wanted_list.as_str(), value),
            (Arity::Range, Some(Value::Array(items))) if items.len() == 2 => {
                let low = self.item(&format!("{path}[0]"), &items[0]);
                let high = self.item(&format!("{path}[1]"), &items[1]);
                return Some(Operand::Range(low?, high?));
            }
            (Arity::Range, _) => ("a list of two values, from and to", value),
        };
        let came = value.map_or("nothing".to_owned(), shown);
        self.wrong(path, format!("{came} came; {name} wants {wanted}"));
        None
    }

    fn item(&mut self, path: &str, value: &Value) -> Option<Parameter> {
        if value.is_null() {
            self.wrong(path, "null cannot be compared; use is_null beside it");
            return None;
        }
        self.parameter(path, value)
    }

    fn parameter(&mut self, path: &str, value: &Value) -> Option<Parameter> {
        Parameter::of(value).map_err(|reason| self.wrong(path, reason)).ok()
    }
}
