//! The audit log: one line for each call, chained by hash, in a rotated file, and its verification.
//!
//! [`AuditLog`] is the [`crate::Auditor`] of a node. A call reserves its line before it begins and hands the
//! line over when it ends; a separate thread writes. A written line is in the operating system's cache at once, so the
//! end of the process loses none. It is on the disk within a second, which is what a power failure may lose.
//!
//! [`verify()`] detects every changed byte, every removed, added or moved line, and truncation before the last line
//! that the head file (`.head`) or the verifier has a hash of. Without a key it cannot detect that somebody with write
//! access replaced the whole log and its head. With a key (HMAC) that takes the key; what remains is to restore an
//! earlier state of both files, which a hash of a later line, kept elsewhere, reveals.

mod chain;
mod line;
mod log;
mod sink;
mod verify;
mod writer;

pub use chain::{AuditKey, AuditOptions, ChainLink, WhenFull};
pub use log::{AuditLog, OpenError};
pub use sink::{AuditSink, LogHead};
pub use verify::{BrokenLog, VerifiedLog, VerifyError, VerifyNotice, VerifyOptions, verify};
