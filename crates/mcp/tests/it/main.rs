//! The protocol through its public interface: the bytes of a message in, the bytes of its answer out.
//!
//! - `client`: a client of one revision, which checks each message against the schema of that revision.
//! - `decode`: valid and invalid messages; `arbitrary_input`: the same for random bytes; `stored_corpus`: inputs that
//!   fuzzing found.
//! - `handshake`, `modern_meta`: how client and server agree on a revision; `methods`: the methods of each revision.
//! - `lists`, `pagination`: the fields of list entries in each revision, and pages.
//! - `call_tool`: results that are written while they are produced; `structured`: structured results.
//! - `notifications`: progress and log messages; `cancellation`: cancelled requests, and requests in flight.
//! - `input_rounds`: calls that ask their client for input and are repeated; `input_answers`: the answers of the client;
//!   `server_requests`: requests of the server to legacy clients.
//! - `tasks`: calls that become tasks, and what a restart keeps; `task_limits`: their access rights, duration and size.
//! - `subscriptions`: streams of notifications.
//! - `limits`: rate limits; lists contain what their caller may use.
//! - `batches`, `resources`, `prompts`, `completion`: the other methods.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod arbitrary_input;
mod batches;
mod call_tool;
mod cancellation;
mod client;
mod completion;
mod decode;
mod handshake;
mod input_answers;
mod input_rounds;
mod limits;
mod lists;
mod methods;
mod modern_meta;
mod notifications;
mod pagination;
mod prompts;
mod resources;
mod server_requests;
mod stored_corpus;
mod structured;
mod subscriptions;
mod task_limits;
mod tasks;
