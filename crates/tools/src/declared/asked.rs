//! Parameters that the person behind a call is asked for when the call leaves them out.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind, InputAnswer, InputRequest, Job, ReplySender, Schema, Violation};

use super::input::{Input, InputKind};
use super::{Problem, form};

/// How often a person is asked for the same, where the answers do not fit.
const ATTEMPTS_MAX: usize = 3;
/// Names the form among the questions of a call.
const KEY: &str = "parameters";

/// The parameters of one tool that are asked for.
#[derive(Debug, Default)]
pub(super) struct AskedParameters(Vec<AskedParameter>);

#[derive(Debug)]
struct AskedParameter {
    input: Input,
    question: String,
    schema: Schema,
}

impl AskedParameters {
    /// Those of `inputs` that are asked for.
    ///
    /// # Errors
    /// For parameters that cannot be asked for.
    pub(super) fn of(inputs: &[Input]) -> Result<Self, Vec<Problem>> {
        let (mut asked, mut problems) = (Vec::new(), Vec::new());
        for input in inputs {
            let Some(question) = &input.ask else { continue };
            match AskedParameter::new(input, question) {
                Ok(parameter) => asked.push(parameter),
                Err(wrong) => {
                    let error = Error::new(ErrorKind::InvalidArguments, wrong);
                    problems.push(Problem::at(format!("input.{}.ask", input.name), error));
                }
            }
        }
        if problems.is_empty() { Ok(Self(asked)) } else { Err(problems) }
    }

    /// The arguments of `job`, and what the person gave for those that are left out.
    ///
    /// # Errors
    /// `InvalidArguments` when there is no way to ask, and when the answers do not fit; `Forbidden` when the person
    /// gives none; those of [`ReplySender::ask`].
    pub(super) async fn complete<'a>(
        &self,
        job: &'a Job,
        reply: &ReplySender,
    ) -> Result<Cow<'a, Map<String, Value>>, Error> {
        let is_missing = |parameter: &&AskedParameter| !job.arguments().contains_key(&parameter.input.name);
        let missing: Vec<&AskedParameter> = self.0.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(Cow::Borrowed(job.arguments()));
        }
        let mut arguments = job.arguments().clone();
        arguments.extend(ask(&missing, reply).await?);
        Ok(Cow::Owned(arguments))
    }
}

impl AskedParameter {
    fn new(input: &Input, question: &str) -> Result<Self, String> {
        if question.trim().is_empty() {
            return Err("asks nothing; write the question, such as \"Which year?\"".to_owned());
        }
        if matches!(input.kind, InputKind::List(_)) {
            return Err("a list cannot be asked for: a form takes one value a field; give it a default".to_owned());
        }
        if input.default.is_some() {
            return Err("is never asked, since there is a default; take one of the two away".to_owned());
        }
        if !input.required {
            return Err("is never asked, since required is false; take one of the two away".to_owned());
        }
        let schema = Schema::new(input.schema()).map_err(|error| error.to_string())?;
        Ok(Self { input: input.clone(), question: question.to_owned(), schema })
    }

    /// The value that was filled in for it.
    fn read(&self, filled: &Map<String, Value>) -> Result<Value, Vec<Violation>> {
        let name = &self.input.name;
        let value = filled.get(name).map(|filled| form::value(&self.input, filled)).unwrap_or_default();
        let named = |violation| Violation { path: name.clone(), ..violation };
        self.schema.check(&value).map_err(|violations| violations.into_iter().map(named).collect::<Vec<_>>())?;
        Ok(value)
    }
}

/// Asks for all of `missing` in one form, again when what comes does not fit.
///
/// Each attempt has a key of its own: a handler that is run again finds the answers of all of them in their order.
async fn ask(missing: &[&AskedParameter], reply: &ReplySender) -> Result<Map<String, Value>, Error> {
    let mut wrong: Vec<Violation> = Vec::new();
    for attempt in 1..=ATTEMPTS_MAX {
        let key = if attempt == 1 { KEY.to_owned() } else { format!("{KEY}.{attempt}") };
        let request = InputRequest::form(message(missing, &wrong), schema(missing));
        let filled = match reply.ask_for(&key, request).await {
            Ok(InputAnswer::Accepted(filled)) => filled,
            Ok(_) => return Err(withheld(missing)),
            Err(error) if error.kind() == ErrorKind::Incapable => return Err(unasked(missing)),
            Err(error) => return Err(error),
        };
        let mut values = Map::new();
        wrong.clear();
        for parameter in missing {
            match parameter.read(&filled) {
                Ok(value) => drop(values.insert(parameter.input.name.clone(), value)),
                Err(violations) => wrong.extend(violations),
            }
        }
        if wrong.is_empty() {
            return Ok(values);
        }
    }
    Err(Error::invalid_arguments("nothing was done: what the person answered does not fit:", wrong))
}

fn message(missing: &[&AskedParameter], wrong: &[Violation]) -> String {
    let questions = missing.iter().map(|parameter| parameter.question.clone());
    let mends =
        wrong.iter().map(|Violation { path, message }| format!("(The last answer did not fit: {path}: {message})"));
    questions.chain(mends).collect::<Vec<_>>().join("\n")
}

fn schema(missing: &[&AskedParameter]) -> Value {
    let field = |parameter: &&AskedParameter| {
        (parameter.input.name.clone(), form::field(&parameter.input, &parameter.question))
    };
    let properties: Map<String, Value> = missing.iter().map(field).collect();
    json!({"type": "object", "properties": properties, "required": names(missing)})
}

fn names(missing: &[&AskedParameter]) -> Vec<String> {
    missing.iter().map(|parameter| parameter.input.name.clone()).collect()
}

fn withheld(missing: &[&AskedParameter]) -> Error {
    let message =
        format!("nothing was done: the person who was asked for {} gave no answer", names(missing).join(", "));
    Error::new(ErrorKind::Forbidden, message)
}

/// The caller can mend it without another client, so it is told as an argument that is missing.
fn unasked(missing: &[&AskedParameter]) -> Error {
    let violation = |parameter: &&AskedParameter| Violation {
        path: parameter.input.name.clone(),
        message: format!("is missing, and your client cannot ask a person for it: {}", parameter.question),
    };
    let violations = missing.iter().map(violation).collect();
    Error::invalid_arguments("the arguments do not suffice:", violations)
        .with_hint("Give what is missing as arguments, or call from a client that shows forms (elicitation).")
}
