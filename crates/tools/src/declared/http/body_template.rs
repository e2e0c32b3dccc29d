//! Template of a JSON request body.

use serde_json::{Map, Value};
use tidegate_core::Violation;

use super::call_arguments::CallArguments;
use super::definition::HttpProblem;
use crate::declared::template::{TemplateError, TextTemplate};

/// Nesting levels at most; bodies are read and written recursively.
const DEPTH_MAX: usize = 64;

/// A JSON value with arguments. Parts with a missing argument are omitted.
#[derive(Debug, Clone)]
pub(super) enum BodyTemplate {
    Fixed(Value),
    /// The argument with its JSON type.
    Argument(String),
    Text(TextTemplate),
    Items(Vec<BodyTemplate>),
    Members(Vec<(String, BodyTemplate)>),
}

impl BodyTemplate {
    /// Parses `body`, the value of the field `field`; errors are added to `problems`.
    pub(super) fn parse(field: &str, body: &Value, problems: &mut Vec<HttpProblem>) -> Option<Self> {
        Self::parse_within(field, body, DEPTH_MAX, problems)
    }

    fn parse_within(field: &str, body: &Value, depth: usize, problems: &mut Vec<HttpProblem>) -> Option<Self> {
        if depth == 0 {
            problems.push(HttpProblem::new(field, "nests too deep", format!("at most {DEPTH_MAX} levels")));
            return None;
        }
        match body {
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(Self::Fixed(body.clone())),
            Value::String(text) => {
                let template = parse_template(field, text, problems)?;
                Some(match (template.only_argument(), template.fixed_text()) {
                    (Some(name), _) => Self::Argument(name.to_owned()),
                    (None, Some(fixed)) => Self::Fixed(Value::String(fixed)),
                    (None, None) => Self::Text(template),
                })
            }
            Value::Array(items) => {
                // All items are parsed first, so that all errors are reported.
                let items: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| Self::parse_within(&format!("{field}[{index}]"), item, depth - 1, problems))
                    .collect();
                Some(Self::Items(items.into_iter().collect::<Option<_>>()?))
            }
            Value::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, member)| {
                        let field = format!("{field}.{name}");
                        let member = Self::parse_within(&field, member, depth - 1, problems);
                        parse_name(&field, name, problems).zip(member)
                    })
                    .collect();
                Some(Self::Members(members.into_iter().collect::<Option<_>>()?))
            }
        }
    }

    pub(super) fn for_each_argument(&self, visit: &mut impl FnMut(&str)) {
        match self {
            Self::Fixed(_) => {}
            Self::Argument(name) => visit(name),
            Self::Text(template) => template.arguments().for_each(visit),
            Self::Items(items) => items.iter().for_each(|item| item.for_each_argument(visit)),
            Self::Members(members) => members.iter().for_each(|(_, member)| member.for_each_argument(visit)),
        }
    }

    /// Fills in the arguments; `None` if the value is to be omitted.
    pub(super) fn render(&self, call_arguments: CallArguments<'_>, violations: &mut Vec<Violation>) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Argument(name) => call_arguments.value(name).cloned(),
            Self::Text(template) => match template.render(|name| call_arguments.text(name)) {
                Ok(text) => text.map(Value::String),
                Err(violation) => {
                    violations.push(violation);
                    None
                }
            },
            Self::Items(items) => {
                Some(Value::Array(items.iter().filter_map(|item| item.render(call_arguments, violations)).collect()))
            }
            Self::Members(members) => {
                let members = members.iter().filter_map(|(name, member)| {
                    member.render(call_arguments, violations).map(|member| (name.clone(), member))
                });
                Some(Value::Object(members.collect::<Map<_, _>>()))
            }
        }
    }
}

pub(super) fn parse_template(field: &str, text: &str, problems: &mut Vec<HttpProblem>) -> Option<TextTemplate> {
    let problem = |error: TemplateError| HttpProblem::new(field, error.to_string(), TemplateError::HINT);
    TextTemplate::parse(text).map_err(|error| problems.push(problem(error))).ok()
}

/// Parses `text` as a name, which must not contain arguments.
pub(super) fn parse_name(field: &str, text: &str, problems: &mut Vec<HttpProblem>) -> Option<String> {
    let name = parse_template(field, text, problems)?.fixed_text();
    if name.is_none() {
        let hint = "put {{name}} into the value, or write {{\"{\"}} for a brace";
        problems.push(HttpProblem::new(field, "the name contains an argument", hint));
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn rendered(body: &Value, arguments: &Value) -> (Option<Value>, Vec<Violation>) {
        let mut problems = Vec::new();
        let template = BodyTemplate::parse("body", body, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let (mut violations, defaults) = (Vec::new(), BTreeMap::from([("size".to_owned(), json!(3))]));
        let call_arguments = CallArguments { arguments: arguments.as_object().unwrap(), defaults: &defaults };
        (template.unwrap().render(call_arguments, &mut violations), violations)
    }

    #[test]
    fn whole_arguments_keep_their_json_type() {
        let body = json!({"a": "{{a}}", "t": "a={{a}}, s={{size}}", "f": [1, null, "{x}"], "deep": {"l": "{{l}}"}});
        let (value, violations) = rendered(&body, &json!({"a": 7, "l": [1, {"x": null}]}));
        assert!(violations.is_empty());
        let expected = json!({"a": 7, "t": "a=7, s=3", "f": [1, null, "{x}"], "deep": {"l": [1, {"x": null}]}});
        assert_eq!(value, Some(expected));
    }

    #[test]
    fn missing_arguments_are_left_out() {
        let body = json!({"a": "{{a}}", "t": "is {{a}}", "list": ["{{a}}", "{{b}}"], "null": "{{n}}"});
        let (value, _) = rendered(&body, &json!({"b": true, "n": null}));
        assert_eq!(value, Some(json!({"list": [true], "null": null})));
        assert_eq!(rendered(&json!("{{a}}"), &json!({})).0, None);
    }

    #[test]
    fn values_cannot_add_members() {
        let (value, _) = rendered(&json!({"t": "say {{a}}"}), &json!({"a": "\", \"admin\": true, \"x\": \"{{b}}"}));
        assert_eq!(value, Some(json!({"t": "say \", \"admin\": true, \"x\": \"{{b}}"})));
    }

    #[test]
    fn arrays_within_text_are_refused() {
        let (_, violations) = rendered(&json!({"t": "say {{a}}"}), &json!({"a": [1]}));
        assert_eq!(violations[0].path, "a");
    }

    #[test]
    fn reports_all_body_problems() {
        let mut problems = Vec::new();
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let body = json!({"a": "{{", "b": ["{{}}"], "{{c}}": 1, "deep": deep});
        assert!(BodyTemplate::parse("body", &body, &mut problems).is_none());
        let fields: Vec<String> = problems.iter().map(|problem| problem.field.chars().take(10).collect()).collect();
        assert_eq!(fields, ["body.a", "body.b[0]", "body.{{c}}", "body.deep["]);
    }
}
