//! Query tools: `query`, `sql`, and the plan of either.

pub(crate) mod explain;
pub(crate) mod query;
pub(crate) mod sql;
