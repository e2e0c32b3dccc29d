//! Tools, resources and prompts that a configuration declares.

mod caller_attribute;
mod confirmation;
mod declared_query;
mod elicitation_form;
mod elicited_parameters;
mod file_resource;
mod fixed_output;
mod http;
mod input;
mod insert_tool;
mod prompt;
mod resource;
mod rows_tool;
mod sql_tool;
mod template;
mod tool;
mod uri_variables;

pub use fixed_output::FixedOutput;
pub use http::{
    AllowedHosts, DnsResolver, HttpArgument, HttpClient, HttpDefinition, HttpProblem, HttpRequestTemplate,
    HttpToolHandler,
};
pub use input::{DeclaredInput, InputKind, ScalarType};
pub use insert_tool::DeclaredInsert;
pub use prompt::{DeclaredPrompt, PromptPart};
pub use resource::{DeclaredResource, PreparedResource, ResourceSource};
pub use rows_tool::{StatementSource, statement_tool_handler, with_row_arguments};
pub use sql_tool::DeclaredSql;
pub use template::{TemplateError, TextTemplate, escape_braces};
use tidegate_core::Error;
pub use tool::DeclaredTool;

/// An error in a declaration, and its location.
#[derive(Debug)]
pub struct DeclarationProblem {
    /// The path in the declaration: `sql`, `input.customer`, …
    pub path: String,
    /// What is wrong, and what would be right.
    pub error: Error,
}

impl DeclarationProblem {
    fn new(at: impl Into<String>, error: Error) -> Self {
        Self { path: at.into(), error }
    }
}
