//! The methods of a SQL/JSON path: `.size()` and its siblings.

use std::borrow::Cow;

use super::super::value::JsonValue;
use super::budget::{Item, PathResult, ResultItems, suppressible_error};
use super::runner::PathRunner;
use super::syntax::{Accessor, Method};
use super::{decimal, object_id};

impl<'v> PathRunner<'v, '_> {
    /// Applies `method` to `item`, then the remaining steps to the result.
    pub(super) fn method(
        &mut self,
        method: Method,
        steps: &'v [Accessor],
        item: Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let name = method.name();
        let number = |value: String| -> Item<'v> { Cow::Owned(JsonValue::Number(value)) };
        let value = match (method, item.as_ref()) {
            (Method::Type, value) => Cow::Owned(JsonValue::Text(type_name(value).to_owned())),
            (Method::Size, JsonValue::Array(items)) => number(items.len().to_string()),
            (Method::Size, _) if self.is_lax => number("1".to_owned()),
            (Method::Size, _) => {
                return self
                    .missing_error(|| format!("jsonpath item method .{name}() can only be applied to an array"));
            }
            (Method::Abs, JsonValue::Number(value)) => number(value.trim_start_matches('-').to_owned()),
            (Method::Floor, JsonValue::Number(value)) => number(decimal::floor(value)?),
            (Method::Ceiling, JsonValue::Number(value)) => number(decimal::ceiling(value)?),
            (Method::Abs | Method::Floor | Method::Ceiling, _) => {
                return suppressible_error(format!(
                    "jsonpath item method .{name}() can only be applied to a numeric value"
                ));
            }
            (Method::Double, JsonValue::Number(value)) => {
                decimal::check_double(value)?;
                item
            }
            (Method::Double, JsonValue::Text(text)) => number(decimal::double(text)?),
            (Method::Double, _) => {
                return suppressible_error(format!(
                    "jsonpath item method .{name}() can only be applied to a string or numeric value"
                ));
            }
            (Method::KeyValue, JsonValue::Object(_)) => return self.key_values(steps, &item, results),
            (Method::KeyValue, _) => {
                return suppressible_error(format!("jsonpath item method .{name}() can only be applied to an object"));
            }
        };
        self.apply_steps(steps, value, results)
    }

    fn key_values(
        &mut self,
        steps: &'v [Accessor],
        item: &Item<'v>,
        results: &mut ResultItems<'v>,
    ) -> PathResult<bool> {
        let JsonValue::Object(pairs) = item.as_ref() else { return Ok(false) };
        let id = object_id::object_id(item, self.root, self.variables, self.budget)?;
        let mut is_found = false;
        for (key, value) in pairs {
            self.budget.charge(value)?;
            let members = vec![
                ("id".to_owned(), JsonValue::Number(id.to_string())),
                ("key".to_owned(), JsonValue::Text(key.clone())),
                ("value".to_owned(), value.clone()),
            ];
            is_found = self.apply_steps(steps, Cow::Owned(JsonValue::object(members)), results)?;
            if results.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }
}

fn type_name(value: &JsonValue) -> &'static str {
    match value {
        JsonValue::Null => "null",
        JsonValue::Bool(_) => "boolean",
        JsonValue::Number(_) => "number",
        JsonValue::Text(_) => "string",
        JsonValue::Array(_) => "array",
        JsonValue::Object(_) => "object",
    }
}
