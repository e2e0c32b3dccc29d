//! Forms that a call requests from the person at its terminal, filled in line by line.

use std::io::{self, BufRead, IsTerminal as _, Write};

use serde_json::{Map, Value};
use tidegate_core::{ClientCapabilities, InputAnswer, InputRequest, InputRequestKind, JsonSchema};
use tokio::sync::oneshot;

use crate::standard_stream::standard_error;

/// The capabilities of this process as a client: forms, if it has a terminal.
pub(crate) fn terminal_capabilities() -> ClientCapabilities {
    let has_terminal = io::stdin().is_terminal() && standard_error().is_terminal();
    ClientCapabilities { forms: has_terminal, ..ClientCapabilities::default() }
}

/// Asks on standard error and reads the answer from standard input; `None` if the request is not a form.
pub(crate) async fn prompt_form(request: InputRequest) -> Option<InputAnswer> {
    let InputRequestKind::Form { message, schema } = request.kind else { return None };
    let (answer, answered) = oneshot::channel();
    // A read of standard input cannot be cancelled. On its own thread, it does not delay the end of the process.
    std::thread::spawn(move || {
        let filled = fill_form(&message, &schema, &mut io::stdin().lock(), &mut standard_error());
        // The call may have ended.
        let _ = answer.send(filled);
    });
    answered.await.ok()?.ok()
}

/// Asks for each field until its value is valid. The end of the input cancels the form.
fn fill_form(
    message: &str,
    schema: &Value,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<InputAnswer> {
    writeln!(output, "{message}")?;
    let mut filled = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let schema = JsonSchema::new(field.clone()).map_err(io::Error::other)?;
        let title = field["title"].as_str().unwrap_or(name);
        let value = loop {
            write!(output, "{title} {}: ", expected_input(field))?;
            output.flush()?;
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                writeln!(output)?;
                return Ok(InputAnswer::Cancelled);
            }
            let value = parse_field(field, line.trim());
            match schema.check(&value) {
                Ok(()) => break value,
                Err(violations) => {
                    violations.iter().try_for_each(|violation| writeln!(output, "{}", violation.message))?
                }
            }
        };
        filled.insert(name.clone(), value);
    }
    Ok(InputAnswer::Accepted(filled))
}

fn expected_input(field: &Value) -> String {
    let choices = field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    match (field["type"].as_str(), field["format"].as_str()) {
        _ if !choices.is_empty() => format!("({})", choices.join(", ")),
        (Some("boolean"), _) => "[y/N]".to_owned(),
        (Some("integer"), _) => "(a whole number)".to_owned(),
        (Some("number"), _) => "(a number)".to_owned(),
        (_, Some("date")) => "(a day, such as 2013-01-31)".to_owned(),
        (_, Some("date-time")) => "(a moment, such as 2013-01-31T12:00:00Z)".to_owned(),
        _ => "(text)".to_owned(),
    }
}

/// The value of `line` for `field`; text if it does not have the field's type. Only an explicit yes is true.
fn parse_field(field: &Value, line: &str) -> Value {
    let number = match field["type"].as_str() {
        Some("boolean") => return Value::Bool(["y", "yes"].contains(&line.to_ascii_lowercase().as_str())),
        Some("integer") => line.parse::<i64>().ok().map(Value::from),
        Some("number") => line.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        _ => None,
    };
    number.unwrap_or_else(|| line.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The prompts and the answer for the input `lines`.
    fn check(schema: &Value, lines: &str) -> String {
        let mut printed = Vec::new();
        let answer = fill_form("Refund 40?", schema, &mut lines.as_bytes(), &mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        format!("{}\n{answer:?}", printed.trim_end())
    }

    #[test]
    fn only_an_explicit_yes_confirms() {
        let schema = json!({"type": "object", "properties": {"confirm": {"type": "boolean", "title": "Yes, do it"}}});
        insta::assert_snapshot!(check(&schema, "y\n"), @r#"
        Refund 40?
        Yes, do it [y/N]:
        Accepted({"confirm": Bool(true)})
        "#);
        for line in ["\n", "n\n", "no\n", "true\n", "yess\n", "\u{1b}[A\n"] {
            assert!(check(&schema, line).ends_with(r#"Accepted({"confirm": Bool(false)})"#), "{line}");
        }
        assert!(check(&schema, "").ends_with("Cancelled"));
    }

    #[test]
    fn field_is_prompted_until_valid() {
        let schema = json!({"type": "object", "properties": {
            "year": {"type": "integer", "minimum": 2000},
            "rate": {"type": "number", "title": "Which rate?"},
            "column": {"type": "string", "enum": ["a", "b"]},
            "day": {"type": "string", "format": "date"},
        }});
        insta::assert_snapshot!(check(&schema, "twelve\n12\n2013\n1.5\nc\nb\n2013-01-31\n"), @r#"
        Refund 40?
        year (a whole number): "twelve" is not of type "integer"
        year (a whole number): 12 is less than the minimum of 2000
        year (a whole number): Which rate? (a number): column (a, b): "c" is not one of "a" or "b"
        column (a, b): day (a day, such as 2013-01-31):
        Accepted({"year": Number(2013), "rate": Number(1.5), "column": String("b"), "day": String("2013-01-31")})
        "#);
    }
}
