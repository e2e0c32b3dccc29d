//! Why a connection could not be opened, derived from the errors of the driver and the server.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::time::Duration;

use rustls::CertificateError;
use tokio_postgres::error::{DbError, SqlState};

use super::target::SessionRole;

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
    /// Derives the problem from the driver's `error`.
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

    /// Derives the problem from an `error` of the operating system.
    pub(super) fn from_io(error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::from_tls(error);
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            ErrorKind::NotFound => Self::NoSocket,
            ErrorKind::PermissionDenied => Self::SocketForbidden,
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::Closed,
            // The driver's error for bytes that are not a message, or for an incomplete message.
            ErrorKind::InvalidData => Self::NotPostgres,
            ErrorKind::Other if inner.is_some_and(|inner| inner.to_string().contains("bytes remaining")) => {
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
