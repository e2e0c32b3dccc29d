//! Connection errors with two texts: one for the caller, one for the owner.

use std::fmt;

use tidegate_core::ErrorKind;

use super::error_kind::{CertificateFlaw, ConnectErrorKind};
use super::host::Host;
use super::password_file::PasswordSource;
use super::target::ConnectTarget;
use super::tls_settings::TlsMode;

/// Why a connection to a target failed. Its `Display` is the text for the owner: host, user, message of the server,
/// source of the password, advice.
#[derive(Debug)]
pub struct ConnectError {
    target: String,
    user: String,
    attempts: Vec<AttemptError>,
}

/// Why one attempt at one address failed.
#[derive(Debug)]
pub(super) struct AttemptError {
    /// The host and, if it differs, its address.
    pub(super) location: String,
    pub(super) kind: ConnectErrorKind,
    /// The message of the server, for the owner.
    pub(super) server_message: Option<String>,
    pub(super) password_source: PasswordSource,
    pub(super) tls_mode: TlsMode,
    /// Whether the connection used TLS.
    pub(super) encrypted: bool,
}

impl ConnectError {
    pub(super) fn new(target: &ConnectTarget, attempts: Vec<AttemptError>) -> Self {
        Self { target: target.describe(), user: target.user().to_owned(), attempts }
    }

    /// The kind of error of the attempt that got furthest.
    pub fn kind(&self) -> &ConnectErrorKind {
        let kinds = self.attempts.iter().map(|attempt| &attempt.kind);
        // There is always an attempt: without a host, the error would be different.
        kinds.max_by_key(|kind| kind.depth_reached()).unwrap_or(&ConnectErrorKind::HostNotFound)
    }

    /// The text for a caller, with the `name` of the database: without host, user and messages of the server.
    pub fn client_message(&self, name: &str) -> String {
        format!("the database {name} cannot be reached: {}", self.kind())
    }

    /// Converts to an error of the kind `Unavailable`, with the text for the owner as its detail.
    pub fn into_error(self, name: &str) -> tidegate_core::Error {
        tidegate_core::Error::new(ErrorKind::Unavailable, self.client_message(name)).with_detail(self.to_string())
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

impl AttemptError {
    pub(super) fn new(target: &ConnectTarget, host: &Host, kind: ConnectErrorKind) -> Self {
        Self {
            location: host.to_string(),
            kind,
            server_message: None,
            password_source: host.password_source.clone(),
            tls_mode: target.tls.mode,
            encrypted: false,
        }
    }

    fn render(&self, user: &str) -> String {
        let mut text = self.kind.to_string();
        if let ConnectErrorKind::ConnectionFailed(detail)
        | ConnectErrorKind::TlsFailed(detail)
        | ConnectErrorKind::TlsFiles(detail)
        | ConnectErrorKind::AuthenticationFailed(detail) = &self.kind
        {
            text += &format!(": {detail}");
        }
        if let Some(message) = &self.server_message {
            text += &format!(" (message of the server: {message})");
        }
        if let Some(hint) = self.hint(user) {
            text += &format!("; {hint}");
        }
        text
    }

    fn hint(&self, user: &str) -> Option<String> {
        Some(match &self.kind {
            ConnectErrorKind::PasswordWrong => format!("the user is {user}, and {}", self.password_source),
            ConnectErrorKind::PasswordMissing => format!(
                "the user is {user}; put the password into a password file, PGPASSWORD or the connection string"
            ),
            ConnectErrorKind::RefusedByRules => {
                let tls = if self.encrypted { "with TLS" } else { "without TLS" };
                format!("the connection was {tls}; pg_hba.conf needs a line for this user, database and address")
            }
            ConnectErrorKind::UnknownRole => format!("the user is {user}"),
            ConnectErrorKind::IdentityRefused => {
                format!("the user is {user}; the system user or the client certificate must have that name")
            }
            ConnectErrorKind::TlsNotOffered => {
                format!("sslmode is {}; set ssl = on in the server, or use a weaker sslmode", self.tls_mode.name())
            }
            ConnectErrorKind::Certificate(CertificateFlaw::UnknownIssuer) => {
                "name the certificate of the authority that signed it in sslrootcert".to_owned()
            }
            ConnectErrorKind::Certificate(CertificateFlaw::NameMismatch) => {
                "connect by a name that the certificate lists as a subject alternative name, or set sslmode=verify-ca"
                    .to_owned()
            }
            ConnectErrorKind::Certificate(CertificateFlaw::Unacceptable) => {
                "it must be an X.509 version 3 certificate for server authentication".to_owned()
            }
            ConnectErrorKind::NotPostgres => "check the port".to_owned(),
            ConnectErrorKind::AuthenticationUnsupported => {
                "supported methods are scram-sha-256, md5, password, certificates, and trust".to_owned()
            }
            _ => return None,
        })
    }
}
