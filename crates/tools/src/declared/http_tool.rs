//! A declared tool: a request to an HTTP API.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{Tool, ToolAnnotations};

use super::http::{
    HttpArgument, HttpClient, HttpDefinition, HttpProblem, HttpRequestTemplate, HttpToolHandler, RESERVED_ARGUMENTS,
};
use super::sql_tool::output_properties;
use super::{DeclarationProblem, DeclaredTool};
use crate::node_view::NodeView;

impl DeclaredTool<HttpDefinition> {
    /// Builds the tool, which sends its requests through `client`. The default annotations follow from the method.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(self, node: &Arc<NodeView>, client: &HttpClient) -> Result<Tool, Vec<DeclarationProblem>> {
        self.check_reserved_names(&RESERVED_ARGUMENTS)?;
        let (elicited_parameters, consent) = self.elicitation()?;
        let arguments = self.inputs.iter().map(|input| HttpArgument {
            name: input.name.clone(),
            is_required: input.is_never_null(),
            default: input.default.clone(),
        });
        let arguments: Vec<HttpArgument> = arguments.collect();
        let template = HttpRequestTemplate::parse(&self.action, &arguments, client.allowed_hosts());
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
            .with_elicitation(elicited_parameters, consent);
        self.into_tool(Arc::new(handler), annotations, output_properties())
    }
}

fn to_declaration_problem(problem: HttpProblem) -> DeclarationProblem {
    let error = Error::new(ErrorKind::InvalidArguments, problem.message).with_hint(problem.hint);
    DeclarationProblem::new(format!("http.{}", problem.field), error)
}
