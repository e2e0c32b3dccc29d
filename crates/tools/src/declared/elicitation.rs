//! What the person behind a call supplies: parameters that the call omits, and the confirmation which a declared tool
//! with `confirm` requires before it runs. A form supports fewer constraints than the schema of a parameter.
//!
//! [MCP 2026-07-28, Elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation)

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use tidegate_core::{ClientCapabilities, Error, ErrorKind, InputAnswer, InputRequest, JsonSchema, Violation};
use tidegate_runtime::RunningCall;

use super::input::{DeclaredInput, InputKind, ScalarType};
use super::{DeclarationProblem, TextTemplate};

const ATTEMPTS_MAX: usize = 3;
const FORM_KEY: &str = "parameters";

#[derive(Debug, Default)]
pub(super) struct ElicitedParameters(Vec<ElicitedParameter>);

#[derive(Debug)]
struct ElicitedParameter {
    input: DeclaredInput,
    question: String,
    schema: JsonSchema,
}

impl ElicitedParameters {
    /// Those of `inputs` with `ask`.
    pub(super) fn from_inputs(inputs: &[DeclaredInput]) -> Result<Self, Vec<DeclarationProblem>> {
        let (mut elicited_parameters, mut problems) = (Vec::new(), Vec::new());
        for input in inputs {
            let Some(question) = &input.ask else { continue };
            match ElicitedParameter::new(input, question) {
                Ok(parameter) => elicited_parameters.push(parameter),
                Err(invalid) => {
                    let error = Error::new(ErrorKind::InvalidArguments, invalid);
                    problems.push(DeclarationProblem::new(format!("input.{}.ask", input.name), error));
                }
            }
        }
        if problems.is_empty() { Ok(Self(elicited_parameters)) } else { Err(problems) }
    }

    /// The arguments of `call`, with the person's values for missing ones; `Forbidden` if the person gives no answer.
    pub(super) async fn complete<'a>(&self, call: &'a RunningCall) -> Result<Cow<'a, Map<String, Value>>, Error> {
        let is_missing = |parameter: &&ElicitedParameter| !call.arguments().contains_key(&parameter.input.name);
        let missing: Vec<&ElicitedParameter> = self.0.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(Cow::Borrowed(call.arguments()));
        }
        let mut arguments = call.arguments().clone();
        arguments.extend(elicit(&missing, call).await?);
        Ok(Cow::Owned(arguments))
    }
}

impl ElicitedParameter {
    fn new(input: &DeclaredInput, question: &str) -> Result<Self, String> {
        if question.trim().is_empty() {
            return Err("is empty; write the question, such as \"Which year?\"".to_owned());
        }
        if matches!(input.kind, InputKind::List(_)) {
            return Err("a form cannot prompt for a list: a field takes one value; give it a default".to_owned());
        }
        if input.default.is_some() {
            return Err("has no effect together with default; remove one of them".to_owned());
        }
        if !input.required {
            return Err("has no effect when required is false; remove one of them".to_owned());
        }
        let schema = JsonSchema::new(input.schema()).map_err(|error| error.to_string())?;
        Ok(Self { input: input.clone(), question: question.to_owned(), schema })
    }

    fn read(&self, filled: &Map<String, Value>) -> Result<Value, Vec<Violation>> {
        let name = &self.input.name;
        let value = filled.get(name).map(|filled| parse_field_value(&self.input, filled)).unwrap_or_default();
        let named = |violation| Violation { path: name.clone(), ..violation };
        self.schema.check(&value).map_err(|violations| violations.into_iter().map(named).collect::<Vec<_>>())?;
        Ok(value)
    }
}

/// Each attempt has its own key, so that a repeated run of the handler finds all earlier answers in order.
async fn elicit(missing: &[&ElicitedParameter], call: &RunningCall) -> Result<Map<String, Value>, Error> {
    let mut invalid: Vec<Violation> = Vec::new();
    for attempt in 1..=ATTEMPTS_MAX {
        let key = if attempt == 1 { FORM_KEY.to_owned() } else { format!("{FORM_KEY}.{attempt}") };
        let request = InputRequest::form(form_message(missing, &invalid), form_schema(missing));
        let filled = match call.ask(&key, request).await {
            Ok(InputAnswer::Accepted(filled)) => filled,
            Ok(_) => return Err(declined_error(missing)),
            Err(error) if error.kind() == ErrorKind::MissingClientCapability => {
                return Err(elicitation_unsupported_error(missing));
            }
            Err(error) => return Err(error),
        };
        let mut values = Map::new();
        invalid.clear();
        for parameter in missing {
            match parameter.read(&filled) {
                Ok(value) => drop(values.insert(parameter.input.name.clone(), value)),
                Err(violations) => invalid.extend(violations),
            }
        }
        if invalid.is_empty() {
            return Ok(values);
        }
    }
    Err(Error::invalid_arguments("nothing was done: the person's answers are invalid:", invalid))
}

fn form_message(missing: &[&ElicitedParameter], invalid: &[Violation]) -> String {
    let questions = missing.iter().map(|parameter| parameter.question.clone());
    let remarks =
        invalid.iter().map(|Violation { path, message }| format!("(The last answer did not fit: {path}: {message})"));
    questions.chain(remarks).collect::<Vec<_>>().join("\n")
}

fn form_schema(missing: &[&ElicitedParameter]) -> Value {
    let field = |parameter: &&ElicitedParameter| {
        (parameter.input.name.clone(), form_field(&parameter.input, &parameter.question))
    };
    let properties: Map<String, Value> = missing.iter().map(field).collect();
    json!({"type": "object", "properties": properties, "required": parameter_names(missing)})
}

fn parameter_names(missing: &[&ElicitedParameter]) -> Vec<String> {
    missing.iter().map(|parameter| parameter.input.name.clone()).collect()
}

fn declined_error(missing: &[&ElicitedParameter]) -> Error {
    let message = format!(
        "nothing was done: the person was asked for {} and gave no answer",
        parameter_names(missing).join(", ")
    );
    Error::new(ErrorKind::Forbidden, message)
}

/// Reported as a missing argument, because the caller can supply it without another client.
fn elicitation_unsupported_error(missing: &[&ElicitedParameter]) -> Error {
    let violation = |parameter: &&ElicitedParameter| Violation {
        path: parameter.input.name.clone(),
        message: format!("is missing, and your client does not support elicitation: {}", parameter.question),
    };
    let violations = missing.iter().map(violation).collect();
    Error::invalid_arguments("arguments are missing:", violations)
        .with_hint("Pass them, or call from a client that supports elicitation.")
}

const TEXT_CONSTRAINTS: [&str; 2] = ["minLength", "maxLength"];
const NUMBER_CONSTRAINTS: [&str; 2] = ["minimum", "maximum"];

fn form_field(input: &DeclaredInput, question: &str) -> Value {
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
fn parse_field_value(input: &DeclaredInput, filled: &Value) -> Value {
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
            Ok(InputAnswer::Accepted(_) | InputAnswer::Declined) => Err(unconfirmed_error("declined")),
            Ok(_) => Err(unconfirmed_error("closed the question")),
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

fn unconfirmed_error(subject: &str) -> Error {
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
