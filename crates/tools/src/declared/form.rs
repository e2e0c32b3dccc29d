//! Forms that ask a person for parameters: what they may hold is less than a parameter's own schema says.
//!
//! [MCP 2026-07-28, Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation)

use serde_json::{Map, Value, json};

use super::input::{Input, InputKind, Scalar};

/// Constraints that forms have for texts, and for numbers.
const OF_TEXTS: [&str; 2] = ["minLength", "maxLength"];
const OF_NUMBERS: [&str; 2] = ["minimum", "maximum"];

/// The field that asks `question` to fill in `input`.
pub(super) fn field(input: &Input, question: &str) -> Value {
    let mut field = match (choices(input), &input.kind) {
        (Some(choices), _) => json!({"type": "string", "enum": choices.iter().map(text_of).collect::<Vec<_>>()}),
        (None, InputKind::Scalar(scalar)) => field_of(*scalar, &input.constraints),
        // Neither is asked for without choices.
        (None, InputKind::List(_) | InputKind::Identifier(_)) => json!({"type": "string"}),
    };
    field["title"] = question.into();
    if let Some(description) = &input.description {
        field["description"] = description.as_str().into();
    }
    field
}

/// The value that `filled`, which came in the field of `input`, stands for. Choices travel as text whatever they are.
pub(super) fn value(input: &Input, filled: &Value) -> Value {
    let chosen = filled.as_str().and_then(|text| choices(input)?.into_iter().find(|choice| text_of(choice) == text));
    chosen.unwrap_or_else(|| filled.clone())
}

fn field_of(scalar: Scalar, constraints: &Map<String, Value>) -> Value {
    let (mut field, kept): (Value, &[&str]) = match scalar {
        Scalar::String => (json!({"type": "string"}), &OF_TEXTS),
        Scalar::Integer => (json!({"type": "integer"}), &OF_NUMBERS),
        Scalar::Number => (json!({"type": "number"}), &OF_NUMBERS),
        Scalar::Boolean => (json!({"type": "boolean"}), &[]),
        Scalar::Date => (json!({"type": "string", "format": "date"}), &[]),
        Scalar::Timestamp => (json!({"type": "string", "format": "date-time"}), &[]),
    };
    for name in kept {
        if let Some(constraint) = constraints.get(*name) {
            field[*name] = constraint.clone();
        }
    }
    field
}

/// The values that `input` may have, where they are told one by one.
fn choices(input: &Input) -> Option<Vec<Value>> {
    match &input.kind {
        InputKind::Identifier(allowed) => Some(allowed.iter().map(|name| name.as_str().into()).collect()),
        InputKind::Scalar(_) | InputKind::List(_) => input.constraints.get("enum")?.as_array().cloned(),
    }
}

fn text_of(choice: &Value) -> String {
    match choice {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constrained(scalar: Scalar, constraints: Value) -> Input {
        let Value::Object(constraints) = constraints else { panic!("constraints are an object") };
        Input { constraints, ..Input::new("x", InputKind::Scalar(scalar)) }
    }

    #[test]
    fn a_field_holds_what_forms_may_hold() {
        let field = |scalar, constraints| field(&constrained(scalar, constraints), "Which?").to_string();
        let wide = json!({"minimum": 1, "maximum": 9, "minLength": 2, "maxLength": 3, "pattern": "^a"});
        let fields = Scalar::ALL.map(|scalar| field(scalar, wide.clone())).join("\n");
        insta::assert_snapshot!(fields, @r#"
        {"type":"string","minLength":2,"maxLength":3,"title":"Which?"}
        {"type":"integer","minimum":1,"maximum":9,"title":"Which?"}
        {"type":"number","minimum":1,"maximum":9,"title":"Which?"}
        {"type":"boolean","title":"Which?"}
        {"type":"string","format":"date","title":"Which?"}
        {"type":"string","format":"date-time","title":"Which?"}
        "#);
    }

    #[test]
    fn choices_travel_as_text_and_come_back_as_what_they_are() {
        let input = constrained(Scalar::Integer, json!({"enum": [2013, 2014]}));
        insta::assert_snapshot!(field(&input, "Which year?"), @r#"{"type":"string","enum":["2013","2014"],"title":"Which year?"}"#);
        assert_eq!(value(&input, &json!("2014")), json!(2014));
        assert_eq!(value(&input, &json!("2015")), json!("2015"), "its schema refuses it");
        let column = Input::new("column", InputKind::Identifier(vec!["a".to_owned(), "b c".to_owned()]));
        insta::assert_snapshot!(field(&column, "Which column?"), @r#"{"type":"string","enum":["a","b c"],"title":"Which column?"}"#);
        assert_eq!(value(&column, &json!("b c")), json!("b c"));
    }
}
