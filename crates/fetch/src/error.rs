//! Why a result could not be fetched, in words for whoever wanted it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::address::ResultAddressError;
use crate::server_message::ServerMessage;

/// Why a result could not be fetched. No message holds a token.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FetchError {
    #[error(transparent)]
    Address(#[from] ResultAddressError),
    #[error("{}: a result can be written as arrow, ndjson, csv, json or parquet; name one with --format", .path.display())]
    UnknownFormat { path: PathBuf },
    #[error("the result holds a file, which is no table to be written as {}; without --format it is written as it is", .format.name())]
    ResultIsFile { format: tidegate_core::AnswerFormat },
    #[error("{} exists; --force overwrites it", .path.display())]
    DestinationExists { path: PathBuf },
    #[error("{}: {what}", .path.display())]
    InvalidDestination { path: PathBuf, what: &'static str },
    #[error("{} is being written by another run", .path.display())]
    DestinationBusy { path: PathBuf },
    #[error("the disk is full: {} could not be written", .path.display())]
    DiskFull { path: PathBuf },
    #[error("{} could not be {doing}: {source}", .path.display())]
    Disk { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("{subject}: there is no such result; it may have expired, or belong to somebody else{words}")]
    ResultNotFound { subject: String, words: ServerMessage },
    #[error(
        "{subject}: the server wants to know who calls (401); give a token with --bearer or TIDEGATE_BEARER{words}"
    )]
    TokenRequired { subject: String, words: ServerMessage },
    #[error("{subject}: the server does not accept the bearer token (401); check --bearer or TIDEGATE_BEARER{words}")]
    TokenRejected { subject: String, words: ServerMessage },
    #[error(
        "{subject}: the link is no longer good (401), as links are for a few minutes; whoever has a key takes a fresh one from the manifest{words}"
    )]
    LinkExpired { subject: String, words: ServerMessage },
    #[error("{subject}: the server refuses this caller (403){words}")]
    Forbidden { subject: String, words: ServerMessage },
    #[error("{subject}: the server redirects ({status}), which is not followed; give the address that it redirects to")]
    Redirected { subject: String, status: u16 },
    #[error("{subject}: there is no REST at this server ({status}), which takes SQL at /rest/sql{words}")]
    RestNotFound { subject: String, status: u16, words: ServerMessage },
    #[error("{subject}: the server refuses the request ({status}){words}")]
    RequestRejected { subject: String, status: u16, words: ServerMessage },
    #[error("{subject} could not be reached: {reason}; given up after {attempts} attempts")]
    Unreachable { subject: String, attempts: u32, reason: String },
    #[error("{subject}: {reason}; the question may be running, and is not asked again by itself")]
    ResponseLost { subject: String, reason: String },
    #[error("{subject}: this is no answer of a server that keeps results: {what}")]
    InvalidResponse { subject: String, what: String },
    #[error("the server's block {block} is damaged: {what}")]
    Damaged { block: u64, what: String },
    #[error("the server's file has {wanted} bytes, and {bytes} came")]
    LengthMismatch { wanted: u64, bytes: u64 },
    #[error("the result changed while it was fetched; fetch it again")]
    ResultChanged,
    #[error("the result has not grown for {minutes} minutes; its query may hang")]
    ResultStalled { minutes: u64 },
    #[error("the result ended incomplete after {rows} rows: {reason}; --partial takes what is there")]
    Incomplete { rows: u64, reason: String },
    // It is this process that writes, so that the detail is for its reader.
    #[error("the rows cannot be written in this format: {}", .0.detail().unwrap_or(.0.message()))]
    Format(tidegate_core::Error),
    #[error("stopped")]
    Interrupted,
    #[error("a part of this program failed: {0}")]
    Internal(String),
    /// What was fetched before it failed is kept.
    #[error("{error}\n{kept}")]
    Resumable { error: Box<FetchError>, kept: ResumeInfo },
}

impl FetchError {
    /// Whether the command asked for something that cannot be, so that nothing was tried.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Address(_)
                | Self::UnknownFormat { .. }
                | Self::DestinationExists { .. }
                | Self::InvalidDestination { .. }
        )
    }

    /// The error itself, without what is said of the blocks that are kept.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Resumable { error, .. } => error.cause(),
            error => error,
        }
    }

    /// The error of a file or folder that could not be `doing` (written, read, …).
    pub(crate) fn disk_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Disk { path, doing, source },
        }
    }

    /// The error of work on another thread that did not come to an end.
    pub(crate) fn from_join_error(error: &tokio::task::JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// What is kept of a download that failed, and how to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeInfo {
    /// Blocks that need not be fetched again.
    pub blocks: usize,
    /// Where they are.
    pub folder: PathBuf,
    /// The command that goes on.
    pub command: String,
}

impl fmt::Display for ResumeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, folder, command } = self;
        let (noun, verb) = if *blocks == 1 { ("block", "is") } else { ("blocks", "are") };
        write!(f, "{blocks} {noun} {verb} kept in {}; to go on from there: {command}", folder.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_has_its_own_error() {
        let error =
            |kind: io::ErrorKind| FetchError::disk_error(Path::new("out.csv"), "written")(kind.into()).to_string();
        assert_eq!(error(io::ErrorKind::StorageFull), "the disk is full: out.csv could not be written");
        assert_eq!(error(io::ErrorKind::PermissionDenied), "out.csv could not be written: permission denied");
    }

    #[test]
    fn errors_stay_small() {
        assert!(size_of::<FetchError>() <= 120, "{}", size_of::<FetchError>());
    }
}
