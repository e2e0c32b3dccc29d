//! Networks of nodes: tables of the same name on several nodes are one table.
//!
//! Each node is a member, as in a federated database: a leaf of the plan is a statement that the node plans and runs with
//! its own protections. A table of the network is the union of the tables of the nodes, each with the name of its node in
//! the column `_node`. Before the leaves become statements, the plan is rewritten so that as little as possible travels:
//! nodes without matching rows receive no statement, and aggregates and sorts with a limit are computed on the nodes first.
//! Rows for a network go to the nodes that they belong to.

mod branches;
mod ingest;
mod key_joins;
mod network_database;
mod options;
mod plan;
mod tables;

pub use ingest::NetworkIngest;
pub use network_database::NetworkDatabase;
pub use options::{HeldRows, HeldValues, NetworkNode, NetworkOptions, PartialAnswers};
