//! Tools, resources and prompts that a configuration declares.

mod confirmation;
mod declared_query;
mod elicitation_form;
mod elicited_parameters;
mod file_resource;
mod file_watcher;
mod http;
mod http_tool;
mod input;
mod prompt;
mod resource;
mod rows_tool;
mod sql_tool;
mod text_template;
mod uri_variables;

use serde_json::{Value, json};

pub use http::{
    AllowedHosts, DnsResolver, HttpArgument, HttpClient, HttpDefinition, HttpProblem, HttpRequestTemplate,
    HttpToolHandler, RESERVED_ARGUMENTS, escape_braces,
};
pub use http_tool::DeclaredHttpTool;
pub use input::{DeclaredInput, InputKind, ScalarType};
pub use prompt::{DeclaredPrompt, PromptPart};
pub use resource::{DeclaredResource, PreparedResource, ResourceSource};
pub use rows_tool::{RowsSource, rows_handler, with_row_arguments};
pub use sql_tool::DeclaredSqlTool;
pub use text_template::TextTemplate;
use tidegate_core::Error;
use tidegate_runtime::CacheHint;

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

/// The metadata of a tool that limit how long clients may cache its answers.
fn cache_metadata(cache: CacheHint) -> (String, Value) {
    let milliseconds = u64::try_from(cache.time_to_live.as_millis()).unwrap_or(u64::MAX);
    ("dev.tidegate/cache".to_owned(), json!({"ttlMs": milliseconds, "public": cache.public}))
}
