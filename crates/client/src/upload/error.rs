//! Errors of an upload.

use std::io;

use thiserror::Error;

use crate::refusal::{ServerMessage, ServerRefusal};

/// Why rows were not stored. No message contains a token.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum UploadError {
    #[error("{subject}: {refusal}")]
    Denied { subject: String, refusal: ServerRefusal },
    /// The table does not exist, or takes no rows from this caller.
    #[error("{subject} takes no rows ({status}){message}")]
    NoTable { subject: String, status: u16, message: ServerMessage },
    /// The rows do not fit.
    #[error("{message}")]
    Refused { message: String, reasons: Vec<RowReason>, hint: Option<String> },
    #[error("{subject}: {reason}; given up after {attempts} attempts")]
    Unreachable { subject: String, attempts: u32, reason: String },
    #[error("{subject}: {reason}")]
    Tls { subject: String, reason: String },
    #[error("{subject}: this is not a valid response of a server that takes rows: {what}")]
    InvalidResponse { subject: String, what: String },
    #[error("the file cannot be read: {0}")]
    File(io::Error),
    #[error("stopped")]
    Interrupted,
    #[error("a part of this program failed: {0}")]
    Internal(String),
}

/// Why a row does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowReason {
    /// Where: `line 7, column "value"`, with the line of the body.
    pub path: String,
    /// What does not fit.
    pub message: String,
}
