//! Calls through the registry, as a host program makes them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod access;
mod admission;
mod answers;
mod arguments;
mod audit;
mod auditing;
mod back_pressure;
mod background;
mod cancellation;
mod client_input;
mod completion;
mod concurrency_limits;
mod daily_limits;
mod drain;
mod events;
mod faults;
mod host;
mod loading_cache;
mod missing_nodes;
mod notifications;
mod on_behalf;
mod prompts;
mod rate_limits;
mod redaction;
mod request_body;
mod resources;
mod scopes;
mod swap;
mod tenants;
mod watches;
