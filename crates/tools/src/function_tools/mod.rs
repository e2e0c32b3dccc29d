//! Live system tables as functions, for agents that think in functions: `list_functions` and `execute_function`.
//!
//! The tools exist only on a node with such tables, and only for callers that may query their database.

pub(crate) mod execute_function;
pub(crate) mod list_functions;
mod oversized;
mod request;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Access, AllowedNames, Error, Principal, PrincipalRule};
use tidegate_query::Database;
use tidegate_runtime::SnapshotBuilder;
use tidegate_system::{SystemTableDescription, SystemValue};

use crate::tool_context::ToolContext;
use crate::tool_definition::add_tools;

/// The tables that are offered as functions.
pub trait FunctionSource: Send + Sync + 'static {
    /// The name of the database with the tables. Callers that may not query it have no functions.
    fn database(&self) -> &str;

    /// The descriptions of the functions that `principal` may call, by name.
    fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription>;

    /// Whether sensitive columns have their values for `principal`.
    fn grants_sensitive(&self, principal: &Principal) -> bool;

    /// The database whose table `name` is read with `parameters`, which fit it.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether the function is hidden or absent; `Forbidden` if a row policy
    /// restricts the table.
    fn with_parameters(
        &self,
        name: &str,
        parameters: BTreeMap<String, SystemValue>,
        principal: &Principal,
    ) -> Result<Arc<dyn Database>, Error>;
}

/// Adds the tools that `allowed` includes to `builder`, if `node` has functions.
pub(crate) fn register(builder: SnapshotBuilder, node: &Arc<ToolContext>, allowed: &AllowedNames) -> SnapshotBuilder {
    let Some(functions) = &node.functions else { return builder };
    let (databases, name) = (node.databases.clone(), functions.database().to_owned());
    let may_query =
        move |principal: &Principal| databases.visible_to(principal).any(|database| database.name() == name);
    let access = Access { principal_rule: Some(PrincipalRule::new(may_query)), ..Access::default() };
    let tools = [list_functions::tool(node, functions), execute_function::tool(node, functions)];
    add_tools(builder, tools, &access, allowed)
}
