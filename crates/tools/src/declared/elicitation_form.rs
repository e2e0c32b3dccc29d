//! Elicitation forms for parameters. A form supports fewer constraints than the schema of a parameter.
//!
//! [MCP 2026-07-28, Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation)

use serde_json::{Map, Value, json};

use super::input::{DeclaredInput, InputKind, ScalarType};

const TEXT_CONSTRAINTS: [&str; 2] = ["minLength", "maxLength"];
const NUMBER_CONSTRAINTS: [&str; 2] = ["minimum", "maximum"];

pub(super) fn form_field(input: &DeclaredInput, question: &str) -> Value {
    let mut field = match (choices(input), &input.kind) {
        (Some(choices), _) => json!({"type": "string", "enum": choices.iter().map(choice_text).collect::<Vec<_>>()}),
        (None, InputKind::Scalar(scalar)) => scalar_field(*scalar, &input.constraints),
        // Both kinds always have choices here.
        (None, InputKind::List(_) | InputKind::Identifier(_)) => json!({"type": "string"}),
    };
    field["title"] = question.into();
    if let Some(description) = &input.description {
        field["description"] = description.as_str().into();
    }
    field
}

/// The value that `filled` in the field of `input` stands for. Forms carry all choices as text.
pub(super) fn parse_field_value(input: &DeclaredInput, filled: &Value) -> Value {
    let chosen =
        filled.as_str().and_then(|text| choices(input)?.into_iter().find(|choice| choice_text(choice) == text));
    chosen.unwrap_or_else(|| filled.clone())
}

fn scalar_field(scalar: ScalarType, constraints: &Map<String, Value>) -> Value {
    let (mut field, kept): (Value, &[&str]) = match scalar {
        ScalarType::String => (json!({"type": "string"}), &TEXT_CONSTRAINTS),
        ScalarType::Integer => (json!({"type": "integer"}), &NUMBER_CONSTRAINTS),
        ScalarType::Number => (json!({"type": "number"}), &NUMBER_CONSTRAINTS),
        ScalarType::Boolean => (json!({"type": "boolean"}), &[]),
        ScalarType::Date => (json!({"type": "string", "format": "date"}), &[]),
        ScalarType::Timestamp => (json!({"type": "string", "format": "date-time"}), &[]),
    };
    for name in kept {
        if let Some(constraint) = constraints.get(*name) {
            field[*name] = constraint.clone();
        }
    }
    field
}

fn choices(input: &DeclaredInput) -> Option<Vec<Value>> {
    match &input.kind {
        InputKind::Identifier(allowed) => Some(allowed.iter().map(|name| name.as_str().into()).collect()),
        InputKind::Scalar(_) | InputKind::List(_) => input.constraints.get("enum")?.as_array().cloned(),
    }
}

fn choice_text(choice: &Value) -> String {
    match choice {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constrained(scalar: ScalarType, constraints: Value) -> DeclaredInput {
        let Value::Object(constraints) = constraints else { panic!("constraints are an object") };
        DeclaredInput { constraints, ..DeclaredInput::new("x", InputKind::Scalar(scalar)) }
    }

    #[test]
    fn form_fields_keep_only_allowed_constraints() {
        let field = |scalar, constraints| form_field(&constrained(scalar, constraints), "Which?").to_string();
        let wide = json!({"minimum": 1, "maximum": 9, "minLength": 2, "maxLength": 3, "pattern": "^a"});
        let all = [
            ScalarType::String,
            ScalarType::Integer,
            ScalarType::Number,
            ScalarType::Boolean,
            ScalarType::Date,
            ScalarType::Timestamp,
        ];
        let fields = all.map(|scalar| field(scalar, wide.clone())).join("\n");
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
    fn choices_round_trip_as_text() {
        let input = constrained(ScalarType::Integer, json!({"enum": [2013, 2014]}));
        insta::assert_snapshot!(form_field(&input, "Which year?"), @r#"{"type":"string","enum":["2013","2014"],"title":"Which year?"}"#);
        assert_eq!(parse_field_value(&input, &json!("2014")), json!(2014));
        assert_eq!(parse_field_value(&input, &json!("2015")), json!("2015"), "its schema refuses it");
        let column = DeclaredInput::new("column", InputKind::Identifier(vec!["a".to_owned(), "b c".to_owned()]));
        insta::assert_snapshot!(form_field(&column, "Which column?"), @r#"{"type":"string","enum":["a","b c"],"title":"Which column?"}"#);
        assert_eq!(parse_field_value(&column, &json!("b c")), json!("b c"));
    }
}
