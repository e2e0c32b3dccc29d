//! What was done: one line a call, each chained to the one before, kept in a file that is rotated, and verified.
//!
//! [`AuditLog`] is the [`tidegate_core::Auditor`] of a node. A call has room for its line before it begins and hands it
//! over when it ends; a thread of its own writes. A line is with the system as soon as it is written, so that the end
//! of the process loses none of them; it is on the disk within a second, which is what a loss of power may take.
//!
//! What [`verify()`] finds: any byte that was changed, any line that was taken out, put in or moved, and lines that were
//! cut off at the end up to the last one that the file beside the log (`.head`) or the verifier knows of. What nobody
//! can find without a key: a log that was written anew as a whole, its head too, by somebody who may write both. With a
//! key (HMAC) that takes the key; then what remains is to put both back to what they were at an earlier moment, which
//! is found by whoever keeps a hash of a later line elsewhere.

mod chain;
mod files;
mod head;
mod key;
mod line;
mod log;
mod open;
mod options;
mod record;
mod redaction;
mod refusals;
mod sink;
mod snapshot;
mod verify;
mod writer;

pub use chain::ChainLink;
pub use head::LogHead;
pub use key::AuditKey;
pub use log::AuditLog;
pub use open::OpenError;
pub use options::{AuditOptions, WhenFull};
pub use redaction::Redaction;
pub use sink::AuditSink;
pub use verify::{BrokenLog, VerifiedLog, VerifyError, VerifyNotice, VerifyOptions, verify};
