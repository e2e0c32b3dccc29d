//! The registry as REST.
//!
//! - `fixture`: a server whose tools return their input, and requests to it.
//! - `calls`: the call that results from each request, and the format of its answer.
//! - `content`: answers that are not tables.
//! - `streams`: answers that are written while they are produced, that fail, or that are not read.
//! - `refusals`: rejected requests and their problems; nothing stays open.
//! - `documents`: lists, schemas, OpenAPI and the page.
//! - `identity`: authentication and hidden tools.
//! - `limits`: requests are counted.

mod calls;
mod content;
mod documents;
pub(in crate::http) mod fixture;
mod identity;
mod limits;
mod missing_nodes;
mod refusals;
mod streams;
