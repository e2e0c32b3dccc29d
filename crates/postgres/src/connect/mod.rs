//! Connecting: from a connection string to an open, protected and authenticated connection, and its cancellation.
//!
//! Connection strings have the syntax and meaning of libpq: a string that works for `psql` works for Tidegate. Where
//! libpq would ignore an unsupported request, this module returns an error.

mod attempt;
mod cancel;
mod certificate_verifier;
mod effective_settings;
mod environment;
mod error;
mod host;
mod key_value;
mod keyword;
mod no_shutdown;
mod open;
mod open_connection;
mod password;
mod password_file;
mod problem;
mod service_file;
mod settings;
mod startup;
mod target;
mod target_error;
mod tls;
mod tls_settings;
mod uri;

pub use cancel::{CancelError, Canceller};
pub use environment::ConnectEnvironment;
pub use error::ConnectError;
pub use open_connection::{OpenConnection, ServerVersion};
pub use password::{Password, PasswordSource};
pub use problem::{CertificateFlaw, ConnectProblem};
pub use startup::StartupParameters;
pub use target::{ConnectTarget, SessionRole};
pub use target_error::{SettingOrigin, TargetError};
pub use tls_settings::TlsMode;
