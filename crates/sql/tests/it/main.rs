//! Which SQL is accepted, which is refused, and with which message.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod corpus;
mod statements;
mod stored_corpus;
