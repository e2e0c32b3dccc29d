//! A declared tool: a request to an HTTP API.

use std::sync::Arc;

use tidegate_core::{Access, CallLimits, Error, ErrorKind};
use tidegate_runtime::{Tool, ToolAnnotations};

use super::http::{
    HttpArgument, HttpClient, HttpDefinition, HttpProblem, HttpRequestTemplate, HttpToolHandler, RESERVED_ARGUMENTS,
};
use super::input::{DeclaredInput, object_schema};
use super::sql_tool::{check_reserved_names, output_properties, parse_elicitation};
use super::{DeclarationProblem, TextTemplate, cache_metadata};
use crate::node_view::NodeView;

/// A declared tool: a request to an HTTP API.
#[derive(Clone)]
pub struct DeclaredHttpTool {
    /// 1 to 128 of letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// Annotations; the defaults follow from the method.
    pub annotations: ToolAnnotations,
    /// The request.
    pub request: HttpDefinition,
    /// The parameters.
    pub inputs: Vec<DeclaredInput>,
    /// The question that the person confirms before the request is sent; `{{name}}` is a parameter.
    pub confirm: Option<TextTemplate>,
    /// What a caller must hold.
    pub access: Access,
    /// Limits of its calls.
    pub limits: CallLimits,
    /// How long clients may cache an answer.
    pub cache: Option<tidegate_runtime::CacheHint>,
}

impl DeclaredHttpTool {
    /// Builds the tool, which sends its requests through `client`.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(self, node: &Arc<NodeView>, client: &HttpClient) -> Result<Tool, Vec<DeclarationProblem>> {
        let taken = check_reserved_names(&self.inputs, &RESERVED_ARGUMENTS);
        if !taken.is_empty() {
            return Err(taken);
        }
        let (elicited_parameters, confirmation) = parse_elicitation(&self.inputs, self.confirm)?;
        let arguments = self.inputs.iter().map(|input| HttpArgument {
            name: input.name.clone(),
            is_required: input.is_never_null(),
            default: input.default.clone(),
        });
        let arguments: Vec<HttpArgument> = arguments.collect();
        let template = HttpRequestTemplate::parse(&self.request, &arguments, client.allowed_hosts());
        let template =
            template.map_err(|problems| problems.into_iter().map(to_declaration_problem).collect::<Vec<_>>())?;
        let hints = template.annotations(self.annotations.destructive);
        let annotations = ToolAnnotations {
            read_only: self.annotations.read_only.or(hints.read_only),
            destructive: self.annotations.destructive.or(hints.destructive),
            idempotent: self.annotations.idempotent.or(hints.idempotent),
            open_world: self.annotations.open_world.or(hints.open_world),
        };
        let handler = HttpToolHandler::new(template, client.clone(), node.executor.clone())
            .with_elicitation(elicited_parameters, confirmation);
        let mut tool = Tool::new(self.name, self.description, Arc::new(handler))
            .with_annotations(annotations)
            .with_access(self.access)
            .with_limits(self.limits);
        tool.title = self.title;
        tool.meta.extend(self.cache.map(cache_metadata));
        tool.with_input_schema(object_schema(&self.inputs, output_properties())).map_err(|error| {
            vec![DeclarationProblem::new("input", Error::new(ErrorKind::InvalidArguments, error.to_string()))]
        })
    }
}

fn to_declaration_problem(problem: HttpProblem) -> DeclarationProblem {
    let error = Error::new(ErrorKind::InvalidArguments, problem.message).with_hint(problem.hint);
    DeclarationProblem::new(format!("http.{}", problem.field), error)
}
