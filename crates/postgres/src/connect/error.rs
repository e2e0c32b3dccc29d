//! Why a target could not be connected to, in two texts: one for the caller, one for the owner.

use std::fmt;

use tidegate_core::ErrorKind;

use super::password::PasswordSource;
use super::problem::{CertificateFlaw, Problem};
use super::tls_settings::TlsMode;

/// Why a target could not be connected to. Its `Display` is the owner's text, which names host and user.
#[derive(Debug)]
pub struct ConnectError {
    target: String,
    user: String,
    attempts: Vec<Failure>,
}

/// Why one attempt at one address failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// The host and, where it is another, its address.
    pub(super) place: String,
    pub(super) problem: Problem,
    /// What the server said, for the owner.
    pub(super) said: Option<String>,
    pub(super) password_source: PasswordSource,
    pub(super) tls_mode: TlsMode,
    /// Whether the server spoke over TLS.
    pub(super) encrypted: bool,
}

impl ConnectError {
    pub(super) fn new(target: String, user: String, attempts: Vec<Failure>) -> Self {
        Self { target, user, attempts }
    }

    /// The problem of the attempt that came furthest.
    pub fn problem(&self) -> &Problem {
        // There always is an attempt; if there were none, no host would have been found.
        self.attempts
            .iter()
            .map(|attempt| &attempt.problem)
            .max_by_key(|problem| problem.progress())
            .unwrap_or(&Problem::HostNotFound)
    }

    /// Whether it may go away by itself, so that another try makes sense.
    pub fn is_passing(&self) -> bool {
        self.problem().is_passing()
    }

    /// What a caller may read of it, who knows the database by `name`: no host, no user, nothing that the server said.
    pub fn for_caller(&self, name: &str) -> String {
        format!("the database {name} cannot be reached: {}", self.problem())
    }

    /// What the owner needs to mend it: host, user, what the server said, where the password came from, what to do.
    pub fn for_owner(&self) -> String {
        self.to_string()
    }

    /// As an error of the kind `Unavailable`; the owner's text is its detail.
    pub fn into_error(self, name: &str) -> tidegate_core::Error {
        tidegate_core::Error::new(ErrorKind::Unavailable, self.for_caller(name)).with_detail(self.for_owner())
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to {}", self.target)?;
        match self.attempts.as_slice() {
            [attempt] => write!(f, ": {}", attempt.text(&self.user)),
            attempts => {
                attempts.iter().try_for_each(|attempt| write!(f, "\n- {}: {}", attempt.place, attempt.text(&self.user)))
            }
        }
    }
}

impl std::error::Error for ConnectError {}

impl Failure {
    fn text(&self, user: &str) -> String {
        let mut text = self.problem.to_string();
        match &self.problem {
            Problem::ConnectionFailed(detail)
            | Problem::TlsFailed(detail)
            | Problem::TlsFiles(detail)
            | Problem::AuthenticationFailed(detail) => text += &format!(": {detail}"),
            _ => {}
        }
        if let Some(said) = &self.said {
            text += &format!(" (the server says: {said})");
        }
        if let Some(hint) = self.hint(user) {
            text += &format!("; {hint}");
        }
        text
    }

    fn hint(&self, user: &str) -> Option<String> {
        Some(match &self.problem {
            Problem::PasswordWrong => format!("the user is {user}, and {}", self.password_source),
            Problem::PasswordMissing => {
                format!(
                    "the user is {user}; put the password into a password file, PGPASSWORD or the connection string"
                )
            }
            Problem::RefusedByRules => {
                let tls = if self.encrypted { "with TLS" } else { "without TLS" };
                format!("it came {tls}; pg_hba.conf needs a line for this user, database and address")
            }
            Problem::UnknownRole => format!("the user is {user}"),
            Problem::IdentityRefused => {
                format!("the user is {user}; the system's user or the certificate that came must be for that name")
            }
            Problem::TlsNotOffered => {
                format!("sslmode is {}; set ssl = on in the server, or a weaker sslmode", self.tls_mode.name())
            }
            Problem::Certificate(CertificateFlaw::UnknownIssuer) => {
                "name the certificate of the authority that signed it in sslrootcert".to_owned()
            }
            Problem::Certificate(CertificateFlaw::OtherName) => {
                "connect by a name that the certificate lists as a subject alternative name, or say sslmode=verify-ca"
                    .to_owned()
            }
            Problem::Certificate(CertificateFlaw::Unacceptable) => {
                "it must be of X.509 version 3 and meant for servers".to_owned()
            }
            Problem::NotPostgres => "is the port right?".to_owned(),
            Problem::AuthenticationUnsupported => {
                "supported are scram-sha-256, md5, password, certificates, and trust".to_owned()
            }
            _ => return None,
        })
    }
}
