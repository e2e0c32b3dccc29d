//! Connection errors with two texts: one for the caller, one for the owner.

use std::error::Error as _;
use std::time::Duration;
use std::{fmt, io};

use rustls::CertificateError;
use tidegate_core::ErrorKind;
use tokio_postgres::error::{DbError, SqlState};

use super::tls::TlsMode;
use super::{ConnectTarget, Host, SessionRole};

/// Why a connection to a target failed. Its `Display` is the text for the owner: host, user, message of the server,
/// source of the password, advice.
#[derive(Debug)]
pub struct ConnectError {
    target: String,
    user: String,
    attempts: Vec<AttemptError>,
}

#[derive(Debug)]
pub(super) struct AttemptError {
    /// The host and, if it differs, its address.
    pub(super) location: String,
    pub(super) kind: ConnectErrorKind,
    pub(super) server_message: Option<String>,
    pub(super) password_source: String,
    pub(super) tls_mode: TlsMode,
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
        let error = tidegate_core::Error::new(ErrorKind::Unavailable, self.client_message(name));
        let error = error.with_detail(self.to_string());
        if self.kind().is_configuration_fault() { error.mark_configuration_fault() } else { error }
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

/// Why a connection could not be opened. Its text contains only the reason: no host, user or password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The host name has no address.
    #[error("the host was not found")]
    HostNotFound,
    /// Nothing listens at the address.
    #[error("connection refused")]
    ConnectionRefused,
    /// The socket does not exist.
    #[error("the server's socket does not exist")]
    NoSocket,
    /// The process has no permission to open the socket.
    #[error("no permission to open the server's socket")]
    SocketForbidden,
    /// The address is not reachable, or the connection broke. Contains the error of the operating system.
    #[error("the connection failed")]
    ConnectionFailed(String),
    /// The server did not answer in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The server closed the connection without an error message.
    #[error("the server closed the connection")]
    Closed,
    /// The server at the address does not use the PostgreSQL protocol.
    #[error("the server at this address is not PostgreSQL")]
    NotPostgres,
    /// The server requires a password and none was given.
    #[error("the server requires a password, and none was given")]
    PasswordMissing,
    /// The server did not accept the password, or the role does not exist: the server does not distinguish these.
    #[error("the password was not accepted")]
    PasswordWrong,
    /// The access rules of the server (`pg_hba.conf`) reject the connection.
    #[error("the server's access rules refuse the connection")]
    RefusedByRules,
    /// The server rejected the identity, by system user or certificate.
    #[error("the server did not accept the identity")]
    IdentityRefused,
    /// The role may not log in or does not exist.
    #[error("the role does not exist or may not log in")]
    UnknownRole,
    /// The database does not exist.
    #[error("the server has no such database")]
    UnknownDatabase,
    /// The role may not connect to the database.
    #[error("the role may not connect to the database")]
    DatabaseForbidden,
    /// All connections of the server are in use.
    #[error("the server has too many connections")]
    TooManyConnections,
    /// The server is starting up, shutting down or recovering.
    #[error("the server is not ready: it is starting up or shutting down")]
    NotReady,
    /// The server refuses for another reason, with this SQLSTATE.
    #[error("the server refused the connection (SQLSTATE {0})")]
    RefusedByServer(String),
    /// TLS is required and the server does not offer it.
    #[error("TLS is required and the server does not offer it")]
    TlsNotOffered,
    /// The certificate of the server is not trusted.
    #[error("the server's certificate is not trusted: {0}")]
    Certificate(CertificateFlaw),
    /// The TLS handshake failed; contains the message.
    #[error("the TLS handshake failed")]
    TlsFailed(String),
    /// The local TLS files cannot be used; contains the file and the reason.
    #[error("the TLS settings cannot be used")]
    TlsFiles(String),
    /// The server requires an unsupported authentication method, such as Kerberos.
    #[error("the server requires an authentication method that is not supported")]
    AuthenticationUnsupported,
    /// Channel binding is required and the server does not offer it.
    #[error("channel binding is required and the server does not offer it")]
    NoChannelBinding,
    /// The server did not prove that it knows the password; contains the message.
    #[error("the authentication failed")]
    AuthenticationFailed(String),
    /// The server is reachable, but does not offer the requested kind of session.
    #[error("the server is not suitable for target_session_attrs={}", .0.name())]
    WrongSession(SessionRole),
}

/// The problem of a server certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateFlaw {
    /// It has no trusted issuer.
    #[error("no trusted authority signed it")]
    UnknownIssuer,
    /// It is for another name.
    #[error("it is for another name")]
    NameMismatch,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is not valid yet")]
    NotYetValid,
    /// Another problem.
    #[error("it is not acceptable")]
    Unacceptable,
}

impl ConnectErrorKind {
    pub(super) fn from_driver(error: &tokio_postgres::Error) -> Self {
        if let Some(refusal) = error.as_db_error() {
            return Self::from_db_error(refusal);
        }
        if let Some(error) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
            return Self::from_io(error);
        }
        // The driver does not expose its kinds of errors; only their texts are available.
        let source = error.source().map(ToString::to_string).unwrap_or_default();
        match (error.to_string().as_str(), source.as_str()) {
            (_, "password missing") => Self::PasswordMissing,
            (_, "server does not support TLS") => Self::TlsNotOffered,
            (_, "unsupported authentication method" | "unsupported SASL mechanism") => Self::AuthenticationUnsupported,
            (_, "server did not use channel binding") => Self::NoChannelBinding,
            ("authentication error", _) => Self::AuthenticationFailed(source),
            ("error performing TLS handshake", _) => Self::TlsFailed(source),
            ("connection closed", _) => Self::Closed,
            ("unexpected message from server" | "error parsing response from server", _) => Self::NotPostgres,
            (kind, source) => Self::ConnectionFailed(format!("{kind}: {source}")),
        }
    }

    pub(super) fn from_io(error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::from_tls(error);
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::NotFound => Self::NoSocket,
            io::ErrorKind::PermissionDenied => Self::SocketForbidden,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            // The driver's error for bytes that are not a message, or for an incomplete message.
            io::ErrorKind::InvalidData => Self::NotPostgres,
            io::ErrorKind::Other if inner.is_some_and(|inner| inner.to_string().contains("bytes remaining")) => {
                Self::NotPostgres
            }
            _ => Self::ConnectionFailed(error.to_string()),
        }
    }

    fn from_tls(error: &rustls::Error) -> Self {
        Self::Certificate(match error {
            // A plain-text answer after the agreement on TLS means that another protocol sent an S by chance.
            rustls::Error::InvalidMessage(_) => return Self::NotPostgres,
            rustls::Error::InvalidCertificate(flaw) => match flaw {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => CertificateFlaw::UnknownIssuer,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    CertificateFlaw::NameMismatch
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateFlaw::Expired,
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    CertificateFlaw::NotYetValid
                }
                _ => CertificateFlaw::Unacceptable,
            },
            error => return Self::TlsFailed(error.to_string()),
        })
    }

    fn from_db_error(refusal: &DbError) -> Self {
        match refusal.code() {
            &SqlState::INVALID_PASSWORD => Self::PasswordWrong,
            // One SQLSTATE for several reasons, and a message in the language of the server. Only the source routine
            // distinguishes them.
            &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => match refusal.routine() {
                Some("InitializeSessionUserId") => Self::UnknownRole,
                Some("auth_failed") => Self::IdentityRefused,
                _ => Self::RefusedByRules,
            },
            &SqlState::INVALID_CATALOG_NAME => Self::UnknownDatabase,
            &SqlState::INSUFFICIENT_PRIVILEGE => Self::DatabaseForbidden,
            &SqlState::TOO_MANY_CONNECTIONS => Self::TooManyConnections,
            &SqlState::CANNOT_CONNECT_NOW | &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN => Self::NotReady,
            code => Self::RefusedByServer(code.code().to_owned()),
        }
    }

    /// Whether the error applies to all hosts, so that no other one is tried, as in libpq.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::PasswordMissing
                | Self::PasswordWrong
                | Self::RefusedByRules
                | Self::IdentityRefused
                | Self::UnknownRole
                | Self::UnknownDatabase
                | Self::DatabaseForbidden
                | Self::TooManyConnections
                | Self::RefusedByServer(_)
                | Self::TlsFiles(_)
        )
    }

    /// Whether the server answers, and refuses what the connection string and the environment say. A server that is away,
    /// busy or starting up may answer later.
    fn is_configuration_fault(&self) -> bool {
        matches!(
            self,
            Self::PasswordMissing
                | Self::PasswordWrong
                | Self::RefusedByRules
                | Self::IdentityRefused
                | Self::UnknownRole
                | Self::UnknownDatabase
                | Self::DatabaseForbidden
                | Self::TlsNotOffered
                | Self::Certificate(_)
                | Self::TlsFiles(_)
                | Self::AuthenticationUnsupported
                | Self::NoChannelBinding
                | Self::AuthenticationFailed(_)
        )
    }

    /// Whether TLS itself failed.
    pub(super) fn is_about_tls(&self) -> bool {
        matches!(self, Self::TlsNotOffered | Self::Certificate(_) | Self::TlsFailed(_))
    }

    /// How far the attempt got. Among several attempts, the one that got furthest has the most useful error.
    pub(super) fn depth_reached(&self) -> u8 {
        match self {
            Self::HostNotFound | Self::NoSocket => 0,
            Self::ConnectionRefused | Self::ConnectionFailed(_) | Self::SocketForbidden => 1,
            Self::TimedOut(_) | Self::Closed | Self::NotPostgres => 2,
            Self::WrongSession(_) | Self::NotReady => 3,
            _ => 4,
        }
    }
}
