//! The tables of all nodes, as one caller sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{MissingNode, NodeTables};

use super::options::{NetworkNode, NetworkOptions, PartialAnswers};
use super::united_table::{NodePart, UnitedTable};
use crate::federated::Member;

/// What is known of the tables of the nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownTables {
    pub(super) tables: BTreeMap<String, UnitedTable>,
    /// By the name of the node.
    pub(super) known: BTreeMap<String, Arc<NodeTables>>,
    /// The nodes whose tables were never known, and why.
    pub(super) unknown: Vec<MissingNode>,
    /// The nodes that cannot read a table, by its name.
    pub(super) unreadable: BTreeMap<String, Vec<MissingNode>>,
}

impl KnownTables {
    /// Asks each node, which answers from memory if it can; with `are_newer` only if its list is new.
    ///
    /// # Errors
    /// `Cancelled`.
    pub(super) async fn load(
        nodes: &[NetworkNode],
        options: &NetworkOptions,
        principal: &Principal,
        are_newer: bool,
    ) -> Result<Self, Error> {
        let asking = nodes.iter().map(|node| {
            let node = &node.database;
            tokio::time::timeout(
                options.timeout,
                if are_newer { node.newer_tables(principal) } else { node.tables(principal) },
            )
        });
        let mut found = Self::default();
        let mut parts: BTreeMap<String, Vec<NodePart>> = BTreeMap::new();
        for (node, answer) in nodes.iter().zip(join_all(asking).await) {
            let name = node.database.name().to_owned();
            let tables = match answer {
                Ok(Ok(tables)) => tables,
                // A list of tables has nothing of a statement: every error is about the node, or the caller there.
                Ok(Err(error)) if error.kind() != ErrorKind::Cancelled => {
                    found.unknown.push(MissingNode { name, reason: error.message().to_owned(), rows: None });
                    continue;
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let reason = format!("it did not answer within {} ms", options.timeout.as_millis());
                    found.unknown.push(MissingNode { name, reason, rows: None });
                    continue;
                }
            };
            for table in &tables.tables {
                if let Some(reason) = &table.unreadable {
                    let reason = format!("it cannot read the table {:?}: {reason}", table.name);
                    let missing = MissingNode { name: name.clone(), reason, rows: table.rows };
                    found.unreadable.entry(table.name.clone()).or_default().push(missing);
                    continue;
                }
                let part = NodePart {
                    node: Member::Node(node.database.clone()),
                    table: table.clone(),
                    holds: node.holds.clone(),
                };
                parts.entry(table.name.clone()).or_default().push(part);
            }
            found.known.insert(name, tables);
        }
        found.tables = parts.into_iter().map(|(name, parts)| (name, UnitedTable::new(parts))).collect();
        Ok(found)
    }

    /// The table that a statement calls `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; if a node may have it, the error names this node.
    pub(super) fn table(&self, name: &str, network: &str) -> Result<&UnitedTable, Error> {
        let found = self.tables.get(name).or_else(|| self.tables.get(without_network(name, network)));
        found.ok_or_else(|| {
            let unreadable = self.unreadable_on(name, network);
            if !unreadable.is_empty() {
                return nodes_failed_error(network, unreadable);
            }
            let names: BTreeSet<&str> = self.tables.keys().map(String::as_str).collect();
            let near = nearest_names(name, names.iter().copied());
            let choices: Vec<String> =
                if near.is_empty() { names.iter().take(20).map(|name| (*name).to_owned()).collect() } else { near };
            let mut message = format!("there is no table {name:?} on the nodes of {network}");
            if !self.unknown.is_empty() {
                message.push_str("; these nodes did not answer: ");
                message.push_str(&describe_failures(&self.unknown));
            }
            Error::new(ErrorKind::NotFound, message).with_choices(choices)
        })
    }

    /// Whether no node has the table that a statement calls `name`, as far as is known.
    pub(super) fn lacks(&self, name: &str, network: &str) -> bool {
        self.table(name, network).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The nodes that cannot read the table that a statement calls `name`.
    pub(super) fn unreadable_on(&self, name: &str, network: &str) -> &[MissingNode] {
        let found = self.unreadable.get(name).or_else(|| self.unreadable.get(without_network(name, network)));
        found.map_or(&[], Vec::as_slice)
    }

    /// Fails if nodes did not answer, unless answers may be partial.
    pub(super) fn check_complete(&self, partial: PartialAnswers, network: &str) -> Result<(), Error> {
        if self.unknown.is_empty() || partial == PartialAnswers::Allow && !self.known.is_empty() {
            return Ok(());
        }
        Err(nodes_failed_error(network, &self.unknown))
    }
}

/// `name` without the name of the network before it.
fn without_network<'a>(name: &'a str, network: &str) -> &'a str {
    name.strip_prefix(network).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name)
}

/// The error of a statement that needs nodes that did not answer.
pub(super) fn nodes_failed_error(network: &str, failed: &[MissingNode]) -> Error {
    let count = if failed.len() == 1 { "a node" } else { "nodes" };
    let message = format!("{count} of {network} did not answer: {}", describe_failures(failed));
    Error::new(ErrorKind::Unavailable, message)
}

fn describe_failures(failed: &[MissingNode]) -> String {
    let described: Vec<String> = failed.iter().map(|node| format!("{} ({})", node.name, node.reason)).collect();
    described.join(", ")
}
