//! What the crate promises, against a real server.
//!
//! - `server`: the connection that the tests share
//! - `shown`: record batches as callers read them
//! - `values`: types as they are stated, and what is refused
//! - `parameters`: what the server makes of bound parameters
//! - `round_trips`: random values of each type

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod parameters;
mod round_trips;
mod server;
mod shown;
mod values;
