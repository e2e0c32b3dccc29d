//! Connecting: from a connection string to an open, protected, authenticated connection and its cancel path.
//!
//! What is said about a connection is libpq's language, so that whatever connects `psql` connects
//! Tidegate too. Where libpq would go on without what was asked for, this refuses.

mod attempt;
mod cancel;
mod connected;
mod error;
mod host;
mod key_value;
mod keyword;
mod members;
mod open;
mod password;
mod password_file;
mod problem;
mod service_file;
mod settings;
mod startup;
mod surroundings;
mod target;
mod target_error;
mod tls;
mod tls_settings;
mod trust;
mod unended;
mod uri;

pub use cancel::{CancelError, Canceller};
pub use connected::{Connected, ServerVersion};
pub use error::ConnectError;
pub use password::{Password, PasswordSource};
pub use problem::{CertificateFlaw, Problem};
pub use startup::Startup;
pub use surroundings::Surroundings;
pub use target::{SessionRole, Target};
pub use target_error::{Origin, TargetError};
pub use tls_settings::TlsMode;
