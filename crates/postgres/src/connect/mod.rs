//! Connecting: from a connection string to an open, protected and authenticated connection, and its cancellation.
//!
//! Connection strings have the syntax and meaning of libpq: a string that works for `psql` works for Tidegate. Where
//! libpq would ignore an unsupported request, this module returns an error.

mod attempt;
mod cancel;
mod certificate_verifier;
mod connection_string;
mod environment;
mod error;
mod host;
mod keyword;
mod message_bound;
mod open;
mod open_connection;
mod password_file;
mod settings;
mod socket;
mod target;
mod tls;
mod tls_settings;

pub use cancel::Canceller;
pub use connection_string::{is_connection_string, without_password};
pub use environment::ConnectEnvironment;
pub use error::{CertificateFlaw, ConnectError, ConnectErrorKind};
pub use keyword::ConnectionStringError;
pub use message_bound::MESSAGE_BYTES_MAX;
pub use open_connection::OpenConnection;
pub use target::{ConnectTarget, SessionRole};
pub use tls_settings::TlsMode;
