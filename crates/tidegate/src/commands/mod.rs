//! The verbs, one a file.

pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod query;
pub(crate) mod serve;
pub(crate) mod stdio;
pub(crate) mod tools;
