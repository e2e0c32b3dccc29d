//! Asking: a question from parts, SQL, and the plan of either.

pub(crate) mod explain;
pub(crate) mod query;
pub(crate) mod sql;
