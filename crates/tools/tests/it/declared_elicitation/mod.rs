//! Declared tools that ask the person behind a call: for consent, and for parameters that were left out.
//!
//! - `talk`: a call together with the person behind it, in both ways of asking.
//! - `recording_database`: a database that remembers what was run.
//! - `consent`, `parameters`: what is asked, and what becomes of the answers.
//! - `http`: the same before a request is sent.

mod consent;
mod conversation;
mod http;
mod parameters;
mod recording_database;
