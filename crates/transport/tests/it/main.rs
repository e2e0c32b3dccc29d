//! The adapters through their public faces: pipes and sockets.
//!
//! - `host`, `garden`, `schema`: a registry whose tools do what their arguments say, and the check of every message heard;
//!   shared with the tests of the language.
//! - `scene`, `signer`: tokens, and gates that take them; shared with the tests of gates.
//! - `ledger`: what a client has asked on a connection that many requests share.
//! - `stdio`: a client over a pipe in memory.
//! - `bridge`: the same, with a server at the far end of a connection that breaks.
//! - `http`: a client over real sockets, which sees every header and every chunk; `http::web_socket` and
//!   `http::http_sse` are what else such a connection may become.
//! - `scenario`: the same questions over every transport, and the same answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod bridge;
#[path = "../../../mcp/tests/it/garden.rs"]
mod garden;
#[path = "../../../mcp/tests/it/host.rs"]
#[allow(dead_code, reason = "the tests of the language need more of it")]
mod host;
mod http;
mod message_checker;
mod scenario;
#[path = "../../../auth/tests/it/scene.rs"]
#[allow(dead_code, reason = "the tests of gates need more of it")]
mod scene;
#[path = "../../../mcp/tests/it/schema.rs"]
mod schema;
#[path = "../../../auth/tests/it/signer.rs"]
#[allow(dead_code, reason = "the tests of gates need more of it")]
mod signer;
mod stdio;
