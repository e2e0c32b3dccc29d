//! The methods of a SQL/JSON path: `.size()` and its siblings.

use std::borrow::Cow;

use super::super::value::Value;
use super::budget::Found;
use super::run::{Item, Run, Runner, suppressible};
use super::syntax::{Method, Step};
use super::{decimal, layout};

impl<'v> Runner<'v, '_> {
    /// Goes on from what `method` makes of `item`.
    pub(super) fn method(
        &mut self,
        method: Method,
        steps: &'v [Step],
        item: Item<'v>,
        found: &mut Found<'v>,
    ) -> Run<bool> {
        let name = method.name();
        let number = |value: String| -> Item<'v> { Cow::Owned(Value::Number(value)) };
        let result = match (method, item.as_ref()) {
            (Method::Type, value) => Cow::Owned(Value::Text(type_name(value).to_owned())),
            (Method::Size, Value::Array(items)) => number(items.len().to_string()),
            (Method::Size, _) if self.is_lax => number("1".to_owned()),
            (Method::Size, _) => {
                return self.missing(|| format!("jsonpath item method .{name}() can only be applied to an array"));
            }
            (Method::Abs, Value::Number(value)) => number(value.trim_start_matches('-').to_owned()),
            (Method::Floor, Value::Number(value)) => number(decimal::floor(value)?),
            (Method::Ceiling, Value::Number(value)) => number(decimal::ceiling(value)?),
            (Method::Abs | Method::Floor | Method::Ceiling, _) => {
                return suppressible(format!("jsonpath item method .{name}() can only be applied to a numeric value"));
            }
            (Method::Double, Value::Number(value)) => {
                decimal::check_double(value)?;
                item
            }
            (Method::Double, Value::Text(text)) => number(decimal::double(text)?),
            (Method::Double, _) => {
                return suppressible(format!(
                    "jsonpath item method .{name}() can only be applied to a string or numeric value"
                ));
            }
            (Method::KeyValue, Value::Object(_)) => return self.key_values(steps, &item, found),
            (Method::KeyValue, _) => {
                return suppressible(format!("jsonpath item method .{name}() can only be applied to an object"));
            }
        };
        self.next(steps, result, found)
    }

    fn key_values(&mut self, steps: &'v [Step], item: &Item<'v>, found: &mut Found<'v>) -> Run<bool> {
        let Value::Object(pairs) = item.as_ref() else { return Ok(false) };
        let id = layout::object_id(item, self.root, self.variables, self.budget)?;
        let mut is_found = false;
        for (key, value) in pairs {
            self.budget.charge(value)?;
            let members = vec![
                ("id".to_owned(), Value::Number(id.to_string())),
                ("key".to_owned(), Value::Text(key.clone())),
                ("value".to_owned(), value.clone()),
            ];
            is_found = self.next(steps, Cow::Owned(Value::object(members)), found)?;
            if found.is_satisfied(is_found) {
                return Ok(true);
            }
        }
        Ok(is_found)
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::Text(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
