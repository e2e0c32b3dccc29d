//! The transports through their public interfaces: pipes and sockets.
//!
//! - `host`, `garden`, `schema`: a registry whose tools behave as their arguments say, and the schema check of each
//!   received message; shared with the tests of the protocol.
//! - `scene`, `signer`: tokens, and authenticators that accept them; shared with the tests of authentication.
//! - `message_checker`: the open requests of a client on a shared connection.
//! - `stdio`: a client over an in-memory pipe.
//! - `bridge`: the same, with a server behind a connection that breaks.
//! - `http`: a client over real sockets, which sees every header and every chunk; `http::web_socket` and
//!   `http::http_sse` are further transports over such a connection.
//! - `scenario`: the same requests over every transport, with the same answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod http;
mod scenario;
mod stdio;
