//! From a call to the code that answers it: look up, authorize, check arguments.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::call::{Call, Target, Variables};
use crate::completion::{Completer, CompletionRequest, Reference};
use crate::error::{Error, Violation};
use crate::handler::Handler;
use crate::limits::CallLimits;
use crate::prompt::Prompt;
use crate::schema::Schema;
use crate::snapshot::{Readable, Snapshot, not_found};

/// What a call's target turned out to be.
pub(crate) struct Route {
    pub(crate) code: Code,
    pub(crate) variables: Variables,
    pub(crate) limits: CallLimits,
    pub(crate) output_schema: Option<Arc<Schema>>,
}

/// What is run.
pub(crate) enum Code {
    Handler(Arc<dyn Handler>),
    Completer(Option<Arc<dyn Completer>>, CompletionRequest),
}

/// Finds the code behind `call` for its caller and checks the arguments.
pub(crate) fn route(snapshot: &Snapshot, call: &Call) -> Result<Route, Error> {
    let caller = &call.caller;
    match &call.target {
        Target::Tool(name) => {
            let tool = snapshot.tool(name, caller)?;
            let arguments = Value::Object(call.arguments.clone());
            tool.input_schema.check(&arguments).map_err(|violations| wrong_arguments("tool", name, violations))?;
            Ok(Route {
                code: Code::Handler(tool.handler.clone()),
                variables: Variables::new(),
                limits: tool.limits,
                output_schema: tool.output_schema.clone(),
            })
        }
        Target::Prompt(name) => {
            let prompt = snapshot.prompt(name, caller)?;
            check_prompt_arguments(prompt, call)?;
            Ok(Route::handler(&prompt.handler, prompt.limits, Variables::new()))
        }
        Target::Resource(uri) => match snapshot.resource(uri, caller)? {
            Readable::Resource(resource) => Ok(Route::handler(&resource.handler, resource.limits, Variables::new())),
            Readable::Template(template, variables) => {
                Ok(Route::handler(&template.handler, template.limits, variables))
            }
        },
        Target::Completion(request) => {
            let (completer, limits) = match &request.reference {
                Reference::Prompt(name) => {
                    let prompt = snapshot.prompt(name, caller)?;
                    (prompt.completer.clone(), prompt.limits)
                }
                Reference::Resource(text) => {
                    let template = snapshot
                        .template(text, caller)
                        .ok_or_else(|| not_found("resource template", text, Vec::new()))?;
                    (template.completer.clone(), template.limits)
                }
            };
            Ok(Route {
                code: Code::Completer(completer, request.clone()),
                variables: Variables::new(),
                limits,
                output_schema: None,
            })
        }
    }
}

impl Route {
    fn handler(handler: &Arc<dyn Handler>, limits: CallLimits, variables: Variables) -> Self {
        Self { code: Code::Handler(handler.clone()), variables, limits, output_schema: None }
    }
}

fn wrong_arguments(kind: &str, name: &str, violations: Vec<Violation>) -> Error {
    Error::invalid_arguments(format!("the arguments of {kind} {name:?} are wrong:"), violations)
}

fn check_prompt_arguments(prompt: &Prompt, call: &Call) -> Result<(), Error> {
    let known: BTreeSet<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let violation = |path: &str, message: &str| Violation { path: path.to_owned(), message: message.to_owned() };
    let unknown = call.arguments.keys().filter(|name| !known.contains(name.as_str()));
    let missing = prompt.arguments.iter().filter(|a| a.required && !call.arguments.contains_key(&a.name));
    let mistyped = call.arguments.iter().filter(|(_, value)| !value.is_string());
    let violations: Vec<Violation> = missing
        .map(|argument| violation(&argument.name, "is required"))
        .chain(unknown.map(|name| violation(name, "is no argument of this prompt")))
        .chain(mistyped.map(|(name, _)| violation(name, "must be a string")))
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(wrong_arguments("prompt", &prompt.name, violations)) }
}
