//! The registry as REST.
//!
//! - `scene`: a server whose tools tell what they were asked, and requests to it.
//! - `calls`: which request becomes which call, and in which form it is answered.
//! - `content`: answers that are no table.
//! - `streams`: answers that are written while they are produced, that break off, that nobody reads.
//! - `refusals`: what is refused, with which problem, and that nothing stays open.
//! - `documents`: lists, schemas, OpenAPI and the page.
//! - `identity`: who calls, and what is hidden from whom.
//! - `limits`: requests are counted.

mod calls;
mod content;
mod documents;
pub(in crate::http) mod fixture;
mod identity;
mod limits;
mod refusals;
mod streams;
