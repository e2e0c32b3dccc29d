//! What the server says to somebody who works on the schema of handlers: its owner, who may read all of it.

use tidegate_core::{Error, ErrorKind};

/// The server's own words, message and hint, and where in the work it was.
pub(super) fn from_driver(error: tokio_postgres::Error) -> Error {
    let Some(db_error) = error.as_db_error() else {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        return Error::new(ErrorKind::Unavailable, format!("the connection to the server was lost: {error}{source}"));
    };
    let (kind, advice) = match db_error.code().code() {
        "42501" => (ErrorKind::Forbidden, None),
        "55P03" => {
            (ErrorKind::Unavailable, Some("Somebody else works on the same objects; try again when they are done."))
        }
        "25006" | "0A000" => {
            (ErrorKind::Unavailable, Some("A standby cannot be written to; connect to the server that it follows."))
        }
        code if code.starts_with("53") || code.starts_with("57") => (ErrorKind::Unavailable, None),
        _ => (ErrorKind::InvalidArguments, None),
    };
    let detail = db_error.detail().map(|detail| format!("\n{detail}")).unwrap_or_default();
    let refused = Error::new(kind, format!("{}{detail}", db_error.message()));
    match db_error.hint().or(advice) {
        Some(hint) => refused.with_hint(hint),
        None => refused,
    }
}
