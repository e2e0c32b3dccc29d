//! Errors of calls as gRPC statuses, with the texts that all transports send.

use tidegate_core::{Error, ErrorKind};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::node_protocol::{ERROR_TRAILER, ErrorParts};

/// Bytes of a message. It is sent in a trailer, percent-encoded, and clients bound the size of trailers.
const MESSAGE_BYTES_MAX: usize = 2048;

/// The status for `error`: its kind as a code, and its complete text for the caller.
pub(super) fn to_status(error: &Error) -> Status {
    let mut message = error.to_string();
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
    }
    let mut status = Status::new(code_of(error.kind()), message);
    // Other nodes show the parts as those of an error of their own.
    if let Some(parts) = ErrorParts::encode(error) {
        status.metadata_mut().insert_bin(ERROR_TRAILER, MetadataValue::from_bytes(&parts));
    }
    status
}

fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidArguments => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Forbidden => Code::PermissionDenied,
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::RateLimited => Code::ResourceExhausted,
        ErrorKind::TimedOut => Code::DeadlineExceeded,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::TooLarge => Code::OutOfRange,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::InputRequired | ErrorKind::MissingClientCapability => Code::FailedPrecondition,
        ErrorKind::Failed => Code::Unknown,
        ErrorKind::Internal => Code::Internal,
    }
}

/// The status for a fault of the server. The log gets `detail` under the id that the client receives.
pub(super) fn internal(events: &tidegate_runtime::event::EventDispatcher, detail: impl Into<String>) -> Status {
    let error = Error::internal(detail);
    if let Some(id) = error.id() {
        events.emit_error_detail(&error, id);
    }
    to_status(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let status = to_status(&Error::new(ErrorKind::NotFound, "é".repeat(MESSAGE_BYTES_MAX)));
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message().len(), MESSAGE_BYTES_MAX + '…'.len_utf8());
    }
}
