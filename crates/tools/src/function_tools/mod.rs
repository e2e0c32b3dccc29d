//! Live system tables as functions, for agents that think in functions: `list_functions` and `execute_function`.
//!
//! The tools exist only on a node with such tables, and only for callers that may query their database.

pub(crate) mod execute_function;
pub(crate) mod list_functions;

use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Access, Error, Principal, PrincipalRule};
use tidegate_runtime::{Job, Tool};
use tidegate_system::{FunctionRequest, RequestViolations, SelectedRows, SystemTableDescription};

use crate::tool_context::ToolContext;

/// The rows that a function produced.
#[derive(Debug)]
pub struct FunctionRows {
    /// The rows, as they are sent.
    pub batch: RecordBatch,
    /// The rows with the numbers of rows that match and that were checked.
    pub selected: SelectedRows,
    /// Whether not all rows could be checked.
    pub is_truncated: bool,
}

/// The tables that are offered as functions.
#[async_trait]
pub trait FunctionSource: Send + Sync + 'static {
    /// The name of the database with the tables. Callers that may not query it have no functions.
    fn database(&self) -> &str;

    /// The descriptions of the functions that `principal` may call, by name.
    fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription>;

    /// Checks the arguments of the function `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the function is hidden or absent. The inner error has all
    /// violations.
    fn validate(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        principal: &Principal,
    ) -> Result<Result<FunctionRequest, RequestViolations>, Error>;

    /// Runs a request that was checked for the caller of `job`.
    ///
    /// # Errors
    /// As [`Self::validate`]; when the rows cannot be read.
    async fn run(&self, name: &str, request: FunctionRequest, job: &Arc<Job>) -> Result<FunctionRows, Error>;
}

/// The tools, if `node` has functions.
pub(crate) fn tools(node: &Arc<ToolContext>) -> Vec<Tool> {
    let Some(functions) = &node.functions else { return Vec::new() };
    let (databases, name) = (node.databases.clone(), functions.database().to_owned());
    let may_query =
        move |principal: &Principal| databases.visible_to(principal).any(|database| database.name() == name);
    let access = Access { principal_rule: Some(PrincipalRule::new(may_query)), ..Access::default() };
    let tools = [list_functions::tool(node, functions), execute_function::tool(node, functions)];
    tools.into_iter().map(|tool| tool.with_access(access.clone())).collect()
}
