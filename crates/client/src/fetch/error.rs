//! Errors of a download.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use thiserror::Error;

use super::destination::format_names;
use crate::server::{AddressError, ServerMessage, ServerRefusal};

/// Why a result could not be fetched. No message contains a token.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum FetchError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("{}: a result can be written as {}; set one with --format", .path.display(), format_names())]
    UnknownFormat { path: PathBuf },
    #[error("the result is a file and cannot be written as {}; leave out --format to write the file itself", .format.name())]
    ResultIsFile { format: tidegate_core::Format },
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
    #[error(
        "{subject}: the result does not exist; it may have expired, or belong to another caller, or no toolset of your \
         roles contains stored_result*{message}"
    )]
    ResultNotFound { subject: String, message: ServerMessage },
    #[error("{subject}: {refusal}")]
    Refused { subject: String, refusal: ServerRefusal },
    #[error(
        "{subject}: the link has expired (401); links are valid for five minutes; request a new one from the manifest with an API key{message}"
    )]
    LinkExpired { subject: String, message: ServerMessage },
    #[error("{subject}: this server has no REST endpoint at /rest/sql ({status}){message}")]
    RestNotFound { subject: String, status: u16, message: ServerMessage },
    #[error("{subject}: the server refuses the request ({status}){message}")]
    RequestRejected { subject: String, status: u16, message: ServerMessage },
    #[error("{subject} could not be reached: {reason}; given up after {attempts} attempts")]
    Unreachable { subject: String, attempts: u32, reason: String },
    #[error("{subject}: {reason}")]
    Tls { subject: String, reason: String },
    #[error("{subject}: {reason}; the query may still be running on the server and was not sent again")]
    ResponseLost { subject: String, reason: String },
    #[error("{subject}: this is not a valid response of a server with stored results: {what}")]
    InvalidResponse { subject: String, what: String },
    #[error("the server's block {block} is damaged: {what}")]
    Damaged { block: u64, what: String },
    #[error("the server's file has {expected} bytes, but {bytes} arrived")]
    LengthMismatch { expected: u64, bytes: u64 },
    #[error("the result changed while it was fetched; fetch it again")]
    ResultChanged,
    #[error("the result has not grown for {minutes} minutes; its query may be blocked")]
    ResultStalled { minutes: u64 },
    #[error("the stored result is incomplete after {rows} rows: {reason}; --partial accepts these rows")]
    Incomplete { rows: u64, reason: String },
    // This process writes the format, so the detail is for its own user.
    #[error("the rows cannot be written in this format: {}", .0.detail().unwrap_or(.0.message()))]
    Format(tidegate_core::Error),
    #[error("stopped")]
    Interrupted,
    #[error("a part of this program failed: {0}")]
    Internal(String),
    /// The download failed, and its blocks are kept.
    #[error("{error}\n{kept}")]
    Resumable { error: Box<FetchError>, kept: ResumeInfo },
}

impl FetchError {
    /// Whether the arguments were invalid, so that nothing was requested.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Address(_)
                | Self::UnknownFormat { .. }
                | Self::DestinationExists { .. }
                | Self::InvalidDestination { .. }
        )
    }

    /// The error itself, without the information about kept blocks.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Resumable { error, .. } => error.cause(),
            error => error,
        }
    }

    /// The error for the status 404 of a path of REST: the server has no REST, or what the call names is not there.
    pub(crate) fn path_not_found(subject: String, message: ServerMessage) -> Self {
        let status = 404;
        match message.is_refused_call() {
            true => Self::RequestRejected { subject, status, message },
            false => Self::RestNotFound { subject, status, message },
        }
    }

    pub(crate) fn disk_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Disk { path, doing, source },
        }
    }

    pub(crate) fn from_join_error(error: &tokio::task::JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// The kept blocks of a failed download, and the command that continues it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeInfo {
    /// Number of blocks that need not be fetched again.
    pub blocks: usize,
    /// Folder of the blocks.
    pub folder: PathBuf,
    /// Command that continues the download.
    pub command: String,
}

impl fmt::Display for ResumeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, folder, command } = self;
        let (noun, verb) = if *blocks == 1 { ("block", "is") } else { ("blocks", "are") };
        write!(f, "{blocks} {noun} {verb} kept in {}; to continue: {command}", folder.display())
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
