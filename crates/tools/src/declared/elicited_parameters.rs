//! Parameters that a call may omit and the person behind it then supplies.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, InputAnswer, InputRequest, JsonSchema, Violation};
use tidegate_runtime::RunningCall;

use super::input::{DeclaredInput, InputKind};
use super::{DeclarationProblem, elicitation_form};

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
        let value =
            filled.get(name).map(|filled| elicitation_form::parse_field_value(&self.input, filled)).unwrap_or_default();
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
        (parameter.input.name.clone(), elicitation_form::form_field(&parameter.input, &parameter.question))
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
