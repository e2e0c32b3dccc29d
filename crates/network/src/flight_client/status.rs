//! Statuses of gRPC as errors for callers. A message names the node, and has no credentials.

use std::error::Error as _;

use arrow_flight::error::FlightError;
use tidegate_core::{Error, ErrorKind, shorten};
use tonic::{Code, Status};

use super::connection::MESSAGE_BYTES_MAX;
use crate::node_protocol::{ERROR_TRAILER, ErrorParts, PROTOCOL_VERSION};

/// Characters of a text of another program.
const TEXT_CHARS_MAX: usize = 2000;
/// The texts with which tonic begins what it finds out by itself, without an error of the connection: the server has not
/// sent the status.
const BROKEN_ANSWERS: [&str; 3] = ["protocol error", "Unexpected EOF", "grpc-status header missing"];
const CREDENTIAL_HINT: &str = "The owner of this server checks the credential for the node, that the node trusts it, and that \
    the clocks of both agree.";
const TIMEOUT_EXPIRED: &str = "Timeout expired";
const TOO_LARGE: &str = "Error, decoded message length too large";

/// The error for `status`, which a request to `node` ended with.
pub(super) fn to_error(node: &str, status: &Status) -> Error {
    if let Some(cause) = connection_failure(status) {
        return match cause.as_str() {
            TIMEOUT_EXPIRED => Error::new(ErrorKind::TimedOut, format!("node {node:?} did not answer in time")),
            cause => unavailable(node, cause),
        };
    }
    if status.code() == Code::OutOfRange && status.message().starts_with(TOO_LARGE) {
        let message = format!("node {node:?} sent a message of more than {} MiB", MESSAGE_BYTES_MAX / (1024 * 1024));
        let hint = "A single row is larger, or the server sends batches that are too large; select fewer columns.";
        return Error::new(ErrorKind::TooLarge, message).with_hint(hint);
    }
    let describe = |text: &str| describe(node, text);
    let parts = status.metadata().get_bin(ERROR_TRAILER).and_then(|value| value.to_bytes().ok());
    let error = match parts.and_then(|parts| ErrorParts::decode(&parts, describe)) {
        Some(error) => with_reportable_kind(error),
        None => Error::new(kind_of(status.code()), describe(status.message())),
    };
    with_credential_hint(error)
}

/// Whether the connection broke, so that it is unknown what the node has done.
pub(super) fn is_connection_failure(status: &Status) -> bool {
    connection_failure(status).is_some()
}

/// A node does not state why it refuses a credential.
fn with_credential_hint(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unauthenticated if error.hint().is_none() => error.with_hint(CREDENTIAL_HINT),
        _ => error,
    }
}

/// The error for `error`, which occurred while an answer of `node` was decoded.
pub(super) fn decoding_error(node: &str, error: &FlightError) -> Error {
    match error {
        FlightError::Tonic(status) => to_error(node, status),
        error => malformed(node, &error.to_string()),
    }
}

/// The error for an answer that does not follow the protocol.
pub(super) fn malformed(node: &str, problem: &str) -> Error {
    unavailable(node, &format!("its answer is malformed: {}", shorten(problem, TEXT_CHARS_MAX)))
}

/// Fails if the answers of a node of this `version` could be misread.
pub(super) fn check_protocol(node: &str, protocol: u32, version: &str) -> Result<(), Error> {
    if protocol == PROTOCOL_VERSION {
        return Ok(());
    }
    let cause = format!(
        "its version is {version}, with version {protocol} of the protocol between nodes; this server has version \
         {PROTOCOL_VERSION} of it"
    );
    Err(unavailable(node, &cause).with_hint("The owners of the servers upgrade the older one."))
}

/// The error for a node that does not answer, or whose connection broke.
pub(super) fn unavailable(node: &str, cause: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("node {node:?} is not available: {}", shorten(cause, TEXT_CHARS_MAX)))
}

pub(super) fn timed_out(node: &str, seconds: f64) -> Error {
    Error::new(ErrorKind::TimedOut, format!("node {node:?} did not answer within {seconds:.1} s"))
}

fn describe(node: &str, text: &str) -> String {
    match text {
        "" => format!("node {node:?} reported an error without a text"),
        text => format!("node {node:?}: {}", shorten(text, TEXT_CHARS_MAX)),
    }
}

/// What broke, if the server did not send the status itself.
fn connection_failure(status: &Status) -> Option<String> {
    let Some(mut cause) = status.source() else {
        return BROKEN_ANSWERS
            .iter()
            .any(|text| status.message().starts_with(text))
            .then(|| "it ended the answer before its end".to_owned());
    };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause.to_string())
}

fn kind_of(code: Code) -> ErrorKind {
    match code {
        Code::InvalidArgument => ErrorKind::InvalidArguments,
        Code::NotFound => ErrorKind::NotFound,
        Code::PermissionDenied => ErrorKind::Forbidden,
        Code::Unauthenticated => ErrorKind::Unauthenticated,
        Code::ResourceExhausted => ErrorKind::RateLimited,
        Code::DeadlineExceeded => ErrorKind::TimedOut,
        Code::Cancelled => ErrorKind::Cancelled,
        Code::Aborted | Code::AlreadyExists => ErrorKind::Conflict,
        Code::OutOfRange => ErrorKind::TooLarge,
        Code::Unavailable => ErrorKind::Unavailable,
        Code::Ok | Code::Unknown | Code::FailedPrecondition | Code::Unimplemented | Code::Internal | Code::DataLoss => {
            ErrorKind::Failed
        }
    }
}

/// A fault of the node is no fault of this process, and its questions cannot be answered here.
fn with_reportable_kind(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Internal | ErrorKind::InputRequired | ErrorKind::MissingClientCapability => {
            let replaced = Error::new(ErrorKind::Failed, error.message()).with_choices(error.choices().iter().cloned());
            match error.hint() {
                Some(hint) => replaced.with_hint(hint),
                None => replaced,
            }
        }
        _ => error,
    }
}
