//! Tools, resources and prompts that a configuration declares.

mod declared_query;
mod elicitation;
mod http;
mod input;
mod preset;
mod prompt;
mod resource;
mod template;
mod tool;

pub use self::http::{
    AllowedHosts, DnsResolver, HttpArgument, HttpClient, HttpDefinition, HttpProblem, HttpRequestTemplate,
    HttpToolHandler,
};
pub use self::input::{DeclaredInput, InputKind, ScalarType};
pub use self::preset::{CACHE_OF_WRITER, DeclaredPreset};
pub use self::prompt::{DeclaredPrompt, PromptPart};
pub use self::resource::{DeclaredResource, PreparedResource, ResourceContent};
pub(crate) use self::resource::{is_safe_path_component, media_type_from_extension};
pub use self::template::{TemplateError, TextTemplate, escape_braces};
pub use self::tool::{
    DeclaredInsert, DeclaredSql, DeclaredTool, FixedOutput, StatementProvider, statement_tool_handler,
    with_row_arguments,
};
use tidegate_core::Error;

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
