//! Routes a call to its handler: look up, authorize, check arguments.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tidegate_core::{
    CallLimits, CallTarget, CompletionReference, CompletionRequest, Error, ErrorKind, JsonSchema, Violation,
};

use crate::handler::Completer;
use crate::handler::Handler;
use crate::job::Call;
use crate::prompt::Prompt;
use crate::snapshot::{ResourceMatch, Snapshot, not_found};
use crate::tool::Tool;

pub(crate) struct Route {
    pub(crate) handler: RouteHandler,
    pub(crate) limits: CallLimits,
    pub(crate) output_schema: Option<Arc<JsonSchema>>,
}

pub(crate) enum RouteHandler {
    Handler(Arc<dyn Handler>),
    Completer(Option<Arc<dyn Completer>>, CompletionRequest),
}

/// Finds the entry of `call`. Gives its arguments the types of the entry's schema, and its variables their values.
pub(crate) fn route(snapshot: &Snapshot, call: &mut Call) -> Result<Route, Error> {
    let caller = &call.caller;
    match &call.target {
        CallTarget::Tool(name) => {
            let tool = snapshot.tool(name, caller)?;
            Route::to_tool(tool, call)
        }
        CallTarget::Prompt(name) => {
            let prompt = snapshot.prompt(name, caller)?;
            // Texts are never null, so null counts as absent, as for tools.
            call.arguments.retain(|_, value| !value.is_null());
            check_prompt_arguments(prompt, call)?;
            Ok(Route::to_handler(&prompt.handler, prompt.limits))
        }
        CallTarget::Resource(uri) => match snapshot.resource(uri, caller)? {
            ResourceMatch::Exact(resource) => Ok(Route::to_handler(&resource.handler, resource.limits)),
            ResourceMatch::Template(template, variables) => {
                call.variables = variables;
                Ok(Route::to_handler(&template.handler, template.limits))
            }
        },
        CallTarget::Completion(request) => {
            let (completer, limits) = match &request.reference {
                CompletionReference::Prompt(name) => {
                    let prompt = snapshot.prompt(name, caller)?;
                    (prompt.completer.clone(), prompt.limits)
                }
                CompletionReference::Resource(text) => {
                    let template = snapshot
                        .template(text, caller)
                        .ok_or_else(|| not_found("resource template", text, Vec::new()))?;
                    (template.completer.clone(), template.limits)
                }
            };
            Ok(Route { handler: RouteHandler::Completer(completer, request.clone()), limits, output_schema: None })
        }
    }
}

impl Route {
    /// The route to a tool that the caller of `call` may call.
    pub(crate) fn to_tool(tool: &Tool, call: &mut Call) -> Result<Self, Error> {
        let name = &tool.name;
        if call.request_body.is_some() && tool.request_body.is_none() {
            let message = format!("the tool {name:?} takes no body, only arguments");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let mut arguments = Value::Object(std::mem::take(&mut call.arguments));
        tool.call_schema()
            .coerce_and_check(&mut arguments)
            .map_err(|violations| invalid_arguments_error("tool", name, violations))?;
        if let Value::Object(checked) = arguments {
            call.arguments = checked;
        }
        Ok(Self { output_schema: tool.output_schema.clone(), ..Self::to_handler(&tool.handler, tool.limits) })
    }

    fn to_handler(handler: &Arc<dyn Handler>, limits: CallLimits) -> Self {
        Self { handler: RouteHandler::Handler(handler.clone()), limits, output_schema: None }
    }
}

fn invalid_arguments_error(kind: &str, name: &str, violations: Vec<Violation>) -> Error {
    Error::invalid_arguments(format!("the arguments of {kind} {name:?} are wrong:"), violations)
}

fn check_prompt_arguments(prompt: &Prompt, call: &Call) -> Result<(), Error> {
    let declared: BTreeSet<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let violation = |path: &str, message: &str| Violation { path: path.to_owned(), message: message.to_owned() };
    let unknown = call.arguments.keys().filter(|name| !declared.contains(name.as_str()));
    let missing = prompt.arguments.iter().filter(|a| a.required && !call.arguments.contains_key(&a.name));
    let mistyped = call.arguments.iter().filter(|(_, value)| !value.is_string());
    let violations: Vec<Violation> = missing
        .map(|argument| violation(&argument.name, "is required"))
        .chain(unknown.map(|name| violation(name, "is no argument of this prompt")))
        .chain(mistyped.map(|(name, _)| violation(name, "must be a string")))
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(invalid_arguments_error("prompt", &prompt.name, violations)) }
}
