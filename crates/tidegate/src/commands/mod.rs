//! The verbs, one a file.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fetch;
pub(crate) mod key;
pub(crate) mod pg;
pub(crate) mod query;
pub(crate) mod serve;
pub(crate) mod stdio;
pub(crate) mod token;
pub(crate) mod tools;
