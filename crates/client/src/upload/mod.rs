//! Client of tables that take rows: sends files, whole or in parts.
//!
//! Each request has a key, so that the server stores its rows once however often it is sent. A large file of lines is
//! sent in parts, so that an interruption costs one part. Memory is bounded: a file is read while it is sent.

mod file_part;
mod sender;

use std::io;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use thiserror::Error;
use tidegate_core::escape_control_characters;

use crate::server::{BearerToken, ServerMessage, ServerRefusal, TrustedAuthorities, sanitize};

pub use file_part::{FilePart, PartCutter, RowSyntax};
pub use sender::{UploadRequest, UploadTarget, Uploader};

/// A file of lines that is larger is sent in parts of about so many bytes.
pub const PART_BYTES: u64 = 64 << 20;

/// Options of an upload.
#[derive(Debug, Clone)]
pub struct UploadOptions {
    /// Bearer token of the caller.
    pub bearer: Option<BearerToken>,
    /// The authorities that may sign the certificate of the server; `None` for those of the system.
    pub authorities: Option<TrustedAuthorities>,
    /// Attempts after which the upload of a part fails. A server that has never responded gets fewer.
    pub attempts_max: u32,
    /// Delay after the first failed attempt; later delays double.
    pub initial_delay: Duration,
    /// Longest delay between attempts.
    pub max_delay: Duration,
    /// Timeout for establishing a connection.
    pub connect_timeout: Duration,
    /// How long a server may neither take bytes nor respond.
    pub stall_timeout: Duration,
}

impl Default for UploadOptions {
    /// No credential, ten attempts, and five minutes without progress.
    fn default() -> Self {
        Self {
            bearer: None,
            authorities: None,
            attempts_max: 10,
            initial_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(5 * 60),
        }
    }
}

/// A scope of keys that no other run has.
pub fn random_scope() -> String {
    uuid::Uuid::new_v4().to_string()
}

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

/// What a request stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadReceipt {
    /// Rows in the table.
    pub rows: u64,
    /// Rows that were rejected and kept in the table of rejected rows.
    pub rejected: u64,
    /// The first of these.
    pub rejections: Vec<Rejection>,
    /// Whether the table was created.
    pub is_created: bool,
    /// Whether an earlier request with the same key had stored the rows.
    pub is_repeated: bool,
}

/// A row that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The line of the body, from 1.
    pub line: Option<u64>,
    /// The number of the row, from 0, in formats without lines.
    pub row: Option<u64>,
    /// The column, if it is a single one.
    pub column: Option<String>,
    /// What does not fit.
    pub reason: String,
}

impl UploadReceipt {
    /// Reads an answer; `None` if it is not one.
    pub fn from_json(answer: &Value) -> Option<Self> {
        let flag = |name: &str| answer[name].as_bool().unwrap_or_default();
        let rejections = answer["rejections"].as_array().into_iter().flatten();
        Some(Self {
            rows: answer["rows"].as_u64()?,
            rejected: answer["rejected"].as_u64()?,
            rejections: rejections.map(Rejection::from_json).collect(),
            is_created: flag("created"),
            is_repeated: flag("repeated"),
        })
    }
}

impl Rejection {
    fn from_json(rejection: &Value) -> Self {
        Self {
            line: rejection["line"].as_u64(),
            row: rejection["row"].as_u64(),
            column: rejection["column"].as_str().map(sanitize),
            reason: rejection["reason"].as_str().map(sanitize).unwrap_or_default(),
        }
    }
}

const DRAWN_PER_SECOND_MAX: u8 = 10;
const TEMPLATE: &str = "{bar:24} {binary_bytes} of {binary_total_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";

/// A progress bar on standard error. Hidden if that is not a terminal, and removed on drop.
#[derive(Debug, Clone)]
pub struct UploadProgressBar(ProgressBar);

impl UploadProgressBar {
    /// A bar for `bytes` bytes of a file; `is_quiet` hides it.
    pub fn new(file: &str, bytes: u64, is_quiet: bool) -> Self {
        let target = match is_quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND_MAX),
        };
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(bytes), target).with_style(style.progress_chars("=> "));
        bar.set_message(escape_control_characters(file).into_owned());
        Self(bar)
    }

    /// Whether the bar is hidden.
    pub fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Displays that the file was read up to `position`.
    pub fn set_position(&self, position: u64) {
        self.0.set_position(position);
    }

    /// Prints a line above the bar.
    pub fn println(&self, line: &str) {
        self.0.println(escape_control_characters(line));
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
