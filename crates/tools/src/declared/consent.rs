//! The consent of the person behind a call, which a declared tool has before it does anything.

use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, InputAnswer, InputRequest, ReplySender};

use super::input::Input;
use super::{Problem, TextTemplate};

/// Characters of a value that are shown; of a longer one it is told how long it is.
const VALUE_CHARACTERS_MAX: usize = 200;
/// Values of a list that are shown; of a longer one it is told how many more there are.
const LIST_VALUES_SHOWN: usize = 20;
/// What is asked for, and the field of the form.
const FIELD: &str = "confirm";

/// What a person is asked to agree to.
#[derive(Debug)]
pub(super) struct Consent {
    question: TextTemplate,
    inputs: Vec<Input>,
}

impl Consent {
    /// The consent that `question` asks for, in which names of `inputs` may stand.
    ///
    /// # Errors
    /// For other names, and for a question without a word.
    pub(super) fn new(question: TextTemplate, inputs: &[Input]) -> Result<Self, Vec<Problem>> {
        let declared = || inputs.iter().map(|input| input.name.clone());
        let unknown = question.names().into_iter().filter(|name| declared().all(|other| other != *name));
        let mut problems: Vec<Problem> = unknown
            .map(|name| {
                let message = format!("{{{{{name}}}}} is not declared under input");
                Problem::at(FIELD, Error::new(ErrorKind::InvalidArguments, message).with_choices(declared()))
            })
            .collect();
        if question.fill(|name| name.to_owned()).trim().is_empty() {
            let message = "asks nothing; write what the person agrees to, such as \"Delete order {{order}}?\"";
            problems.push(Problem::at(FIELD, Error::new(ErrorKind::InvalidArguments, message)));
        }
        if problems.is_empty() { Ok(Self { question, inputs: inputs.to_vec() }) } else { Err(problems) }
    }

    /// Waits until the person behind the call has agreed to run it with `arguments`.
    ///
    /// # Errors
    /// `Forbidden` when the person does not agree, `Incapable` when nobody can be asked; those of [`ReplySender::ask`].
    pub(super) async fn get(&self, arguments: &Map<String, Value>, reply: &ReplySender) -> Result<(), Error> {
        let question = self.question.fill(|name| {
            let input = self.inputs.iter().find(|input| input.name == name);
            input.map(|input| shown(input.value(arguments))).unwrap_or_default()
        });
        let schema = json!({
            "type": "object",
            "properties": {FIELD: {"type": "boolean", "title": "Yes, do it"}},
            "required": [FIELD],
        });
        match reply.ask_for(FIELD, InputRequest::form(question, schema)).await {
            Ok(InputAnswer::Accepted(filled)) if filled.get(FIELD) == Some(&Value::Bool(true)) => Ok(()),
            Ok(InputAnswer::Accepted(_) | InputAnswer::Declined) => Err(withheld("did not agree")),
            Ok(_) => Err(withheld("did not choose")),
            Err(error) if error.kind() == ErrorKind::Incapable => Err(error.with_hint(
                "Nothing was done: a person has to agree first. Call from a client that shows forms (elicitation), or \
                 with tidegate call at a terminal.",
            )),
            Err(error) => Err(error),
        }
    }
}

fn withheld(what: &str) -> Error {
    Error::new(ErrorKind::Forbidden, format!("nothing was done: the person who was asked {what}"))
}

/// A value within a question. Texts are quoted, so that whoever chose them cannot write the question.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(values) => {
            let first = values.iter().take(LIST_VALUES_SHOWN).map(shown).collect::<Vec<_>>().join(", ");
            match values.len().saturating_sub(LIST_VALUES_SHOWN) {
                0 => first,
                more => format!("{first} and {more} more"),
            }
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
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
        fn a_text_stays_within_its_quotes(text in any::<String>(), times in 1_usize..20) {
            let shown = quoted(&text.repeat(times));
            let breaks_out = |letter: char| letter.is_control() || "\u{2028}\u{2029}\u{202e}".contains(letter);
            prop_assert!(!shown.contains(breaks_out), "{}", shown);
            let mut is_escaped = false;
            let end = shown.char_indices().skip(1).find(|(_, letter)| {
                let ends = *letter == '"' && !is_escaped;
                is_escaped = *letter == '\\' && !is_escaped;
                ends
            });
            let behind = &shown[end.unwrap().0 + 1..];
            prop_assert!(shown.starts_with('"') && (behind.is_empty() || behind.starts_with("… (")), "{}", shown);
        }
    }

    #[test]
    fn a_value_cannot_write_the_question() {
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
        let shown = values.iter().map(shown).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(shown, @r#"
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
