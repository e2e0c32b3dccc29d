//! Tools for networks of nodes: the nodes, where the rows of a table are, and a test of each node.
//!
//! The tools exist only on a server with a network database, and only for callers that may query one.

pub(crate) mod list_nodes;
pub(crate) mod locate;
pub(crate) mod test_network;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tidegate_core::{Access, AllowedNames, Error, ErrorKind, Principal, PrincipalRule};
use tidegate_query::{Database, Databases, Network, NodeDatabase};
use tidegate_runtime::SnapshotBuilder;

use crate::tool_context::ToolContext;
use crate::tool_definition::add_tools;

/// Adds the tools that `allowed` includes to `builder`, if `node` has a network.
pub(crate) fn register(builder: SnapshotBuilder, node: &Arc<ToolContext>, allowed: &AllowedNames) -> SnapshotBuilder {
    let names = node.databases.names().filter_map(|name| node.databases.get_unrestricted(name));
    if !names.into_iter().any(is_network) {
        return builder;
    }
    let databases = node.databases.clone();
    let may_query = move |principal: &Principal| networks(&databases, principal).next().is_some();
    let access = Access { principal_rule: Some(PrincipalRule::new(may_query)), ..Access::default() };
    add_tools(builder, [list_nodes::tool(node), locate::tool(node), test_network::tool(node)], &access, allowed)
}

fn is_network(database: &Arc<dyn Database>) -> bool {
    database.network().is_some()
}

/// The network databases that `principal` may query, ordered by name.
fn networks<'a>(databases: &'a Databases, principal: &'a Principal) -> impl Iterator<Item = &'a Arc<dyn Database>> {
    databases.visible_to(principal).filter(|database| is_network(database))
}

/// The network of that name, or all networks that `principal` may query.
///
/// # Errors
/// As [`Databases::get`]; `InvalidArguments` with the networks if the database is no network.
fn chosen_networks(
    databases: &Databases,
    name: Option<&str>,
    principal: &Principal,
) -> Result<Vec<Arc<dyn Database>>, Error> {
    let Some(name) = name else { return Ok(networks(databases, principal).cloned().collect()) };
    let database = databases.get(Some(name), principal)?;
    if !is_network(database) {
        let message = format!("the database {name:?} is no network of nodes");
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(network_names(databases, principal)));
    }
    Ok(vec![database.clone()])
}

fn network_names(databases: &Databases, principal: &Principal) -> Vec<String> {
    networks(databases, principal).map(|database| database.name().to_owned()).collect()
}

/// The network of `database`.
///
/// # Errors
/// Never for a database of [`chosen_networks`].
fn network_of(database: &Arc<dyn Database>) -> Result<&dyn Network, Error> {
    database.network().ok_or_else(|| Error::internal(format!("{} is no network any more", database.name())))
}

/// A node, and the name of its network.
struct NetworkNode {
    network: String,
    node: Arc<dyn NodeDatabase>,
}

/// The nodes of `networks`, in the order of the configuration.
fn nodes_of(networks: &[Arc<dyn Database>]) -> Result<Vec<NetworkNode>, Error> {
    let mut nodes = Vec::new();
    for database in networks {
        let of_network = network_of(database)?.nodes().iter();
        nodes.extend(of_network.map(|node| NetworkNode { network: database.name().to_owned(), node: node.clone() }));
    }
    Ok(nodes)
}

/// The values that `describe` has of all `nodes` at once.
async fn each_node<T, Fut: Future<Output = T>>(
    nodes: &[NetworkNode],
    describe: impl Fn(Arc<dyn NodeDatabase>) -> Fut,
) -> Vec<T> {
    join_all(nodes.iter().map(|node| describe(node.node.clone()))).await
}

/// The value of `request`, or `TimedOut` after `timeout`.
async fn within<T>(timeout: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late =
        |_| Error::new(ErrorKind::TimedOut, format!("no answer within {} seconds", timeout.as_secs_f32().round()));
    tokio::time::timeout(timeout, request).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// What `result` says about a node.
fn state_name<T>(result: &Result<T, Error>) -> &'static str {
    match result.as_ref().map_err(Error::kind) {
        Ok(_) => "ok",
        Err(ErrorKind::Unavailable) => "unreachable",
        Err(ErrorKind::TimedOut) => "slow",
        Err(ErrorKind::Unauthenticated | ErrorKind::Forbidden) => "refused",
        Err(_) => "failed",
    }
}

fn milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

/// `error` on one line.
fn one_line(error: &Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('.')).collect();
    lines.join(". ")
}
