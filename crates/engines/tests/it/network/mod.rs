//! Networks of nodes: the answers are those of one node that holds all rows, and nodes that fail are named.

mod answers;
mod changed_columns;
mod failures;
mod generated;
mod key_joins;
mod local_node;
mod postgres_node;
mod pushed_down;
mod statistics;
