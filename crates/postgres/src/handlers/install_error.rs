//! Errors of the server for the owner of the schema of handlers, who may read all details.

use tidegate_core::{Error, ErrorKind};

/// The message and hint of the server, with its location.
pub(super) fn from_driver(error: tokio_postgres::Error) -> Error {
    let Some(db_error) = error.as_db_error() else {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        return Error::new(ErrorKind::Unavailable, format!("the connection to the server was lost: {error}{source}"));
    };
    let (kind, advice) = match db_error.code().code() {
        "42501" => (ErrorKind::Forbidden, None),
        "55P03" => (ErrorKind::Unavailable, Some("Another transaction uses the same objects; try again later.")),
        "25006" | "0A000" => (ErrorKind::Unavailable, Some("A standby is read-only; connect to its primary server.")),
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
