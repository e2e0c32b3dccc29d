//! The transports through their public interfaces: pipes and sockets.
//!
//! - `stdio`: a client over an in-memory pipe.
//! - `http`: a client over real sockets, which sees every header and every chunk; `http::web_socket` and
//!   `http::http_sse` are further transports over such a connection.
//! - `scenario`: the same requests over every transport, with the same answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod http;
mod scenario;
mod stdio;
