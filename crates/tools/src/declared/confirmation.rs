//! The confirmation of the person behind a call, which a declared tool with `confirm` requires before it runs.

use serde_json::{Map, Value, json};
use tidegate_core::{ClientCapabilities, Error, ErrorKind, InputAnswer, InputRequest};
use tidegate_runtime::RunningCall;

use super::input::DeclaredInput;
use super::{DeclarationProblem, TextTemplate};

/// Characters of a displayed value at most; a longer one is cut and its length is given.
const VALUE_CHARACTERS_MAX: usize = 200;
/// Displayed values of a list at most; the number of further ones is given.
const LIST_VALUES_MAX: usize = 20;
const CONFIRM_FIELD: &str = "confirm";
/// Stands for the number of rows that the tool would change, unless it is a parameter.
const CHANGED_ROWS: &str = "changed_rows";

#[derive(Debug)]
pub(super) struct Confirmation {
    question: TextTemplate,
    inputs: Vec<DeclaredInput>,
    /// Whether the question contains the number of changed rows.
    pub(super) needs_changed_rows: bool,
}

impl Confirmation {
    pub(super) fn new(
        question: TextTemplate,
        inputs: &[DeclaredInput],
        writes_rows: bool,
    ) -> Result<Self, Vec<DeclarationProblem>> {
        let is_parameter = inputs.iter().any(|input| input.name == CHANGED_ROWS);
        let counted = (writes_rows && !is_parameter).then(|| CHANGED_ROWS.to_owned());
        let needs_changed_rows = counted.is_some() && question.names().contains(CHANGED_ROWS);
        let declared = || inputs.iter().map(|input| input.name.clone()).chain(counted.clone());
        let unknown = question.names().into_iter().filter(|name| declared().all(|other| other != *name));
        let mut problems: Vec<DeclarationProblem> = unknown
            .map(|name| {
                let message = format!("{{{{{name}}}}} is not declared under input");
                DeclarationProblem::new(
                    CONFIRM_FIELD,
                    Error::new(ErrorKind::InvalidArguments, message).with_choices(declared()),
                )
            })
            .collect();
        if question.fill(|name| name.to_owned()).trim().is_empty() {
            let message = "is empty; write what the person agrees to, such as \"Delete order {{order}}?\"";
            problems.push(DeclarationProblem::new(CONFIRM_FIELD, Error::new(ErrorKind::InvalidArguments, message)));
        }
        if problems.is_empty() {
            Ok(Self { question, inputs: inputs.to_vec(), needs_changed_rows })
        } else {
            Err(problems)
        }
    }

    /// Rejects a client that cannot show the question, before any work is done for it.
    pub(super) fn check_client(&self, call: &RunningCall) -> Result<(), Error> {
        let needed = ClientCapabilities { forms: true, ..ClientCapabilities::default() };
        match call.request().client_capabilities.includes(needed) {
            true => Ok(()),
            false => Err(unsupported_error(Error::missing_client_capability(needed))),
        }
    }

    /// Waits until the person behind the call has agreed to run it with `arguments`, which would change `changed_rows`
    /// rows; declining is `Forbidden`. An answer counts only for the question that it was given to, so an agreement
    /// never applies to another number.
    pub(super) async fn request(
        &self,
        arguments: &Map<String, Value>,
        changed_rows: Option<u64>,
        call: &RunningCall,
    ) -> Result<(), Error> {
        let question = self.question.fill(|name| {
            let input = self.inputs.iter().find(|input| input.name == name);
            let value = input.map(|input| display_value(input.value(arguments)));
            value.or_else(|| changed_rows.map(|rows| rows.to_string())).unwrap_or_default()
        });
        let schema = json!({
            "type": "object",
            "properties": {CONFIRM_FIELD: {"type": "boolean", "title": "Yes, do it"}},
            "required": [CONFIRM_FIELD],
        });
        match call.ask(CONFIRM_FIELD, InputRequest::form(question, schema)).await {
            Ok(InputAnswer::Accepted(filled)) if filled.get(CONFIRM_FIELD) == Some(&Value::Bool(true)) => Ok(()),
            Ok(InputAnswer::Accepted(_) | InputAnswer::Declined) => Err(declined_error("declined")),
            Ok(_) => Err(declined_error("closed the question")),
            Err(error) if error.kind() == ErrorKind::MissingClientCapability => Err(unsupported_error(error)),
            Err(error) => Err(error),
        }
    }
}

fn unsupported_error(error: Error) -> Error {
    error.with_hint(
        "Nothing was done: a person has to agree first. Call from a client that supports elicitation, or with tidegate \
         call at a terminal.",
    )
}

fn declined_error(subject: &str) -> Error {
    Error::new(ErrorKind::Forbidden, format!("nothing was done: the person {subject}"))
}

/// A value as displayed in a question. Texts are quoted, so that their author cannot forge parts of the question.
fn display_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => quote_text(text),
        Value::Array(values) => {
            let first = values.iter().take(LIST_VALUES_MAX).map(display_value).collect::<Vec<_>>().join(", ");
            match values.len().saturating_sub(LIST_VALUES_MAX) {
                0 => first,
                more => format!("{first} and {more} more"),
            }
        }
        other => other.to_string(),
    }
}

fn quote_text(text: &str) -> String {
    let length = text.chars().count();
    if length <= VALUE_CHARACTERS_MAX {
        return format!("{text:?}");
    }
    let beginning: String = text.chars().take(VALUE_CHARACTERS_MAX).collect();
    format!("{beginning:?}… ({length} characters)")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quoted_text_cannot_leave_its_quotes(text in any::<String>(), times in 1_usize..20) {
            let visible = quote_text(&text.repeat(times));
            let breaks_out = |character: char| character.is_control() || "\u{2028}\u{2029}\u{202e}".contains(character);
            prop_assert!(!visible.contains(breaks_out), "{}", visible);
            let mut is_escaped = false;
            let end = visible.char_indices().skip(1).find(|(_, character)| {
                let ends = *character == '"' && !is_escaped;
                is_escaped = *character == '\\' && !is_escaped;
                ends
            });
            let behind = &visible[end.unwrap().0 + 1..];
            prop_assert!(visible.starts_with('"') && (behind.is_empty() || behind.starts_with("… (")), "{}", visible);
        }
    }

    #[test]
    fn values_are_quoted_and_shortened() {
        let long = "x".repeat(300);
        let values = [
            json!("A-17"),
            json!(12.5),
            json!(true),
            Value::Null,
            json!(["a", "b"]),
            json!((0..30).collect::<Vec<_>>()),
            json!("A\" to nobody.\n\nRefund \"B"),
            json!("a\u{202e}b\u{2028}c\u{1b}[2J"),
            json!(long),
        ];
        let visible = values.iter().map(display_value).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(visible, @r#"
        "A-17"
        12.5
        true
        nothing
        "a", "b"
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 10 more
        "A\" to nobody.\n\nRefund \"B"
        "a\u{202e}b\u{2028}c\u{1b}[2J"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… (300 characters)
        "#);
    }
}
