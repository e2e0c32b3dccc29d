//! Why a target could not be connected to, in two texts: one for the caller, one for the owner.

use std::fmt;

use tidegate_core::ErrorKind;

use super::password::PasswordSource;
use super::problem::{CertificateFlaw, ConnectProblem};
use super::tls_settings::TlsMode;

/// Why a target could not be connected to. Its `Display` is the owner's text, which names host and user.
#[derive(Debug)]
pub struct ConnectError {
    target: String,
    user: String,
    attempts: Vec<AttemptFailure>,
}

/// Why one attempt at one address failed.
#[derive(Debug)]
pub(super) struct AttemptFailure {
    /// The host and, where it is another, its address.
    pub(super) location: String,
    pub(super) problem: ConnectProblem,
    /// What the server said, for the owner.
    pub(super) server_message: Option<String>,
    pub(super) password_source: PasswordSource,
    pub(super) tls_mode: TlsMode,
    /// Whether the server spoke over TLS.
    pub(super) encrypted: bool,
}

impl ConnectError {
    pub(super) fn new(target: String, user: String, attempts: Vec<AttemptFailure>) -> Self {
        Self { target, user, attempts }
    }

    /// The problem of the attempt that came furthest.
    pub fn problem(&self) -> &ConnectProblem {
        // There always is an attempt; if there were none, no host would have been found.
        self.attempts
            .iter()
            .map(|attempt| &attempt.problem)
            .max_by_key(|problem| problem.depth_reached())
            .unwrap_or(&ConnectProblem::HostNotFound)
    }

    /// Whether it may go away by itself, so that another try makes sense.
    pub fn is_transient(&self) -> bool {
        self.problem().is_transient()
    }

    /// What a caller may read of it, who knows the database by `name`: no host, no user, nothing that the server said.
    pub fn client_message(&self, name: &str) -> String {
        format!("the database {name} cannot be reached: {}", self.problem())
    }

    /// What the owner needs to mend it: host, user, what the server said, where the password came from, what to do.
    pub fn log_message(&self) -> String {
        self.to_string()
    }

    /// As an error of the kind `Unavailable`; the owner's text is its detail.
    pub fn into_error(self, name: &str) -> tidegate_core::Error {
        tidegate_core::Error::new(ErrorKind::Unavailable, self.client_message(name)).with_detail(self.log_message())
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to {}", self.target)?;
        match self.attempts.as_slice() {
            [attempt] => write!(f, ": {}", attempt.render(&self.user)),
            attempts => attempts
                .iter()
                .try_for_each(|attempt| write!(f, "\n- {}: {}", attempt.location, attempt.render(&self.user))),
        }
    }
}

impl std::error::Error for ConnectError {}

impl AttemptFailure {
    fn render(&self, user: &str) -> String {
        let mut text = self.problem.to_string();
        match &self.problem {
            ConnectProblem::ConnectionFailed(detail)
            | ConnectProblem::TlsFailed(detail)
            | ConnectProblem::TlsFiles(detail)
            | ConnectProblem::AuthenticationFailed(detail) => text += &format!(": {detail}"),
            _ => {}
        }
        if let Some(output) = &self.server_message {
            text += &format!(" (the server says: {output})");
        }
        if let Some(hint) = self.hint(user) {
            text += &format!("; {hint}");
        }
        text
    }

    fn hint(&self, user: &str) -> Option<String> {
        Some(match &self.problem {
            ConnectProblem::PasswordWrong => format!("the user is {user}, and {}", self.password_source),
            ConnectProblem::PasswordMissing => {
                format!(
                    "the user is {user}; put the password into a password file, PGPASSWORD or the connection string"
                )
            }
            ConnectProblem::RefusedByRules => {
                let tls = if self.encrypted { "with TLS" } else { "without TLS" };
                format!("it came {tls}; pg_hba.conf needs a line for this user, database and address")
            }
            ConnectProblem::UnknownRole => format!("the user is {user}"),
            ConnectProblem::IdentityRefused => {
                format!("the user is {user}; the system's user or the certificate that came must be for that name")
            }
            ConnectProblem::TlsNotOffered => {
                format!("sslmode is {}; set ssl = on in the server, or a weaker sslmode", self.tls_mode.name())
            }
            ConnectProblem::Certificate(CertificateFlaw::UnknownIssuer) => {
                "name the certificate of the authority that signed it in sslrootcert".to_owned()
            }
            ConnectProblem::Certificate(CertificateFlaw::NameMismatch) => {
                "connect by a name that the certificate lists as a subject alternative name, or say sslmode=verify-ca"
                    .to_owned()
            }
            ConnectProblem::Certificate(CertificateFlaw::Unacceptable) => {
                "it must be of X.509 version 3 and meant for servers".to_owned()
            }
            ConnectProblem::NotPostgres => "is the port right?".to_owned(),
            ConnectProblem::AuthenticationUnsupported => {
                "supported are scram-sha-256, md5, password, certificates, and trust".to_owned()
            }
            _ => return None,
        })
    }
}
