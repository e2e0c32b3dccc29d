//! The client and the server of Flight SQL over loopback, through the public API of the crate.
//!
//! - `node`: a server over a registry, with a database that tests control; `tables`: that database.
//! - `proxy`: a proxy that cuts connections.
//! - `statements`: answers, errors, cancellation, deadlines and large messages.
//! - `replicas`: nodes that are away, return, or are replaced.
//! - `listings`: tables as last known, and checks.
//! - `identity`: the callers of a node as another one knows them, and TLS.
//! - `other_servers`: servers of other programs; `other_program` is one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod identity;
mod listings;
mod node;
mod other_program;
mod other_servers;
mod proxy;
mod replicas;
mod statements;
mod tables;
