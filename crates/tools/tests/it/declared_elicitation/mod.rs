//! Declared tools with `confirm` and `ask`: confirmation, and missing parameters.
//!
//! - `conversation`: a call with a person behind it, in both ways of requesting input.
//! - `recording_database`: a database that records its statements.
//! - `consent`, `parameters`: the questions, and the effect of the answers.
//! - `http`: the same before a request is sent.

mod changed_rows;
mod confirmation;
mod conversation;
mod http;
mod parameters;
mod recording_database;
