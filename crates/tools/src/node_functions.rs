//! Functions of other nodes: the system tables that nodes of a network serve.
//!
//! A node decides what its callers may read, as for all of its tables. A table is a function if it has the name and the
//! columns of one, so that a table of other data with such a name is none.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{Database, NodeDatabase, NodeTable};
use tidegate_system::{SystemTable, SystemTableDescription};

use crate::function_tools::TableFunctions;
use crate::tool_services::ToolServices;

/// A database of a node that a caller may query, and the functions in it.
pub(crate) struct NodeFunctions<'a> {
    /// The network that the node belongs to.
    pub(crate) network: Arc<dyn Database>,
    pub(crate) database: Arc<dyn NodeDatabase>,
    pub(crate) functions: Vec<&'a SystemTableDescription>,
}

impl<'a> NodeFunctions<'a> {
    /// The functions of the node `name`, for `principal`. `known` are those of this server.
    ///
    /// # Errors
    /// `NotFound` with the nearest names if no network that the caller may query has such a node; those of the node.
    pub(crate) async fn load(
        services: &ToolServices,
        known: &'a Arc<dyn TableFunctions>,
        name: &str,
        principal: &Principal,
    ) -> Result<Self, Error> {
        let named = nodes_named(services, name, principal)?;
        // Several networks may have nodes with the name, each with another database there.
        let mut failure = None;
        let known = known.functions(principal);
        for NetworkNode { network, database } in named {
            match database.tables(principal).await {
                Ok(tables) => {
                    let functions: Vec<_> = descriptions(&known)
                        .into_iter()
                        .filter(|function| tables.tables.iter().any(|table| is_function(table, function)))
                        .collect();
                    if !functions.is_empty() {
                        return Ok(Self { network, database, functions });
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the node {name:?} has no functions for you")).with_hint(
                "The node needs system tables (the key system), and a network over their database needs database: system.",
            )
        }))
    }
}

/// A node of a network.
struct NetworkNode {
    network: Arc<dyn Database>,
    database: Arc<dyn NodeDatabase>,
}

/// The nodes with this name, of all networks that `principal` may query.
fn nodes_named(services: &ToolServices, name: &str, principal: &Principal) -> Result<Vec<NetworkNode>, Error> {
    let mut nodes = Vec::new();
    for network in services.databases.visible_to(principal) {
        let of_network = network.network().map(|known| known.nodes()).unwrap_or_default();
        nodes.extend(of_network.iter().map(|node| NetworkNode { network: network.clone(), database: node.clone() }));
    }
    let (named, others): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| node.database.name() == name);
    if !named.is_empty() {
        return Ok(named);
    }
    let names = || others.iter().map(|node| node.database.name());
    let near = nearest_names(name, names());
    let choices = if near.is_empty() { names().map(str::to_owned).collect() } else { near };
    let message = format!("there is no node {name:?} in a network that you may query");
    let error = Error::new(ErrorKind::NotFound, message).with_choices(choices);
    Err(error.with_hint("Without node, the function is one of this server."))
}

/// The descriptions of `known`, and of tables that this server does not have.
fn descriptions<'a>(known: &[&'a SystemTableDescription]) -> Vec<&'a SystemTableDescription> {
    let others = SystemTable::ALL.iter().map(|table| -> &'a SystemTableDescription { table.description() });
    let others = others.filter(|other| known.iter().all(|function| function.name != other.name));
    known.iter().copied().chain(others).collect()
}

fn is_function(table: &NodeTable, function: &SystemTableDescription) -> bool {
    let has = |column: &str| table.schema.field_with_name(column).is_ok();
    table.name == function.name
        && table.unreadable.is_none()
        && function.columns.iter().filter(|column| !column.is_sensitive).all(|column| has(&column.name))
}
