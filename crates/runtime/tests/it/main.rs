//! The one door, through the public face of the crate.
//!
//! - `host`: a host program in miniature, and what a reply says, as text.
//! - `access`: who may see and call what, and from where.
//! - `arguments`: what is checked before a handler runs, and how a caller is helped.
//! - `admission`: how many calls run, wait and are refused, and what the list of jobs shows.
//! - `asking`: what a handler asks, while it runs or by being run again.
//! - `auditing`: nothing runs of which nothing can be written down.
//! - `back_pressure`: a slow reader slows the handler.
//! - `background`: work that goes on when its answer has ended.
//! - `cancellation`: who may end a call, and when it ends by itself.
//! - `completion`: values that an argument may take, within their bound.
//! - `daily_limits`: what calls take in a day.
//! - `drain`: the end of all calls at shutdown.
//! - `events`: what log and metrics hear, in order.
//! - `faults`: panics, internal errors, broken output schemas.
//! - `redaction`: secrets are masked in whatever a handler says, and fences cannot be forged.
//! - `concurrency_limits`: how many calls of a principal, a tenant and a tool run at once, and who waits for whom.
//! - `notifications`: progress and log messages only for those who asked.
//! - `on_behalf`: calls that are made for others, and their questions.
//! - `prompts`, `resources`: how they are found and checked.
//! - `rate_limits`: how often somebody may ask.
//! - `scopes`: which scopes imply which.
//! - `swap`: a new state while calls run.
//! - `tenants`: what one tenant sees of another.
//! - `watches`: who listens hears of what has changed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod access;
mod admission;
mod arguments;
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
mod notifications;
mod on_behalf;
mod prompts;
mod rate_limits;
mod redaction;
mod resources;
mod scopes;
mod swap;
mod tenants;
mod watches;
