//! Networks of nodes: tables of the same name on several nodes are one table.
//!
//! Each node is a member, as in a federated database: a leaf of the plan is a statement that the node plans and runs with
//! its own protections. A table of the network is the union of the tables of the nodes, each with the name of its node in
//! the column `_node`. Before the leaves become statements, the plan is rewritten so that as little as possible travels:
//! nodes without matching rows receive no statement, and aggregates and sorts with a limit are computed on the nodes first.
//! Rows for a network go to the nodes that they belong to.

mod approximate_percentile;
mod branch;
mod database;
mod exact_variance;
mod held_rows;
mod ingest;
mod key_condition;
mod key_joins;
mod locate;
mod nodes;
mod options;
mod part_reader;
mod partial_aggregates;
mod plan;
mod planner;
mod pruned_nodes;
mod scalar_values;
mod tables;
mod top_rows;
mod united_table;

pub use database::NetworkDatabase;
pub(crate) use exact_variance::{LOW_BITS, LOW_MASK};
pub use ingest::NetworkIngest;
pub use options::{HeldRows, HeldValues, NetworkNode, NetworkOptions, PartialAnswers};
