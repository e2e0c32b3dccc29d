//! The language through its public face: bytes of a message in, bytes of its answer out.
//!
//! - `schema`: every message that any test here receives is valid in its revision.
//! - `host`: a registry whose tools do what their arguments say.
//! - `client`: a client of one revision, which checks what it hears.
//! - `decode`: what bytes are what message, and what the rest is told; `arbitrary_input`: the same for whatever bytes.
//! - `stored_corpus`: what fuzzing found worth keeping.
//! - `handshake`, `modern_meta`: how a revision is agreed on, in both eras.
//! - `methods`: which revision has which.
//! - `lists`, `pages`: what the lists say of an entry in each revision, and page by page.
//! - `call_tool`: results written while they are produced; `structured`: data beside them.
//! - `notifications`: progress and log messages, and when they are silent.
//! - `cancellation`: silence after it, and ids in flight.
//! - `input_rounds`: calls that ask their client and come again; `answers`: what they bring; `questions`: requests of ours
//!   to legacy clients.
//! - `tasks`: calls that become tasks, and what a restart leaves of them; `task_limits`: their rights, time and room.
//! - `subscriptions`: streams of notifications; `garden`: resources that change when a test says so.
//! - `limits`: requests are counted, and lists are those of who asks.
//! - `batches`, `resources`, `prompts`, `completion`: the rest of the language.

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
