//! Authentication: from credentials to a principal.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::principal::Principal;

/// The credentials of a request.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The token of `Authorization: Bearer …`, in the form that [`is_bearer_token`] accepts.
    pub bearer: Option<&'a str>,
    /// The peer's address; `None` without a network.
    pub peer: Option<IpAddr>,
    /// The certificate of the TLS client, if it sent one.
    pub certificate: Option<&'a ClientCertificate>,
    /// The request headers that [`Authenticator::identity_headers`] names, as received. Any client can write them, so
    /// they count only from a trusted peer.
    pub identity_headers: &'a [(String, String)],
}

/// The certificate of a TLS client. Its chain was verified against a configured authority when the connection was
/// opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject's name in the form of [RFC 4514](https://www.rfc-editor.org/rfc/rfc4514), `CN=ann,O=Example`.
    pub subject: String,
    /// The subject's alternative names, each with its type: `dns:host`, `email:address`, `uri:spiffe://…`,
    /// `ip:address`.
    pub alternative_names: Vec<String>,
    /// The SHA-256 of the whole certificate, in lower-case hexadecimal.
    pub sha256: String,
    /// The end of its validity.
    pub expires: SystemTime,
}

/// Why a caller was rejected. The caller receives no more detail than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    /// There are no credentials, and they are required.
    #[error("authentication is required: send Authorization: Bearer with an API key or a token")]
    Missing,
    /// The key or token is unknown, expired or revoked.
    #[error("the key or token is not valid")]
    Invalid,
    /// The credentials do not have the form of a key or token.
    #[error(
        "the Authorization header is malformed: send one header with the word Bearer, a space, and an API key or a token"
    )]
    Malformed,
}

/// Whether `text` has the form of a key or token ([RFC 6750, 2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1)).
pub fn is_bearer_token(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// Authenticates callers. Transports call it before they process a request.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The principal that `credentials` prove.
    ///
    /// # Errors
    /// If the credentials prove no principal.
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError>;

    /// The principal of the user who started the process: stdio and the command line.
    fn local_principal(&self) -> Arc<Principal>;

    /// The names of the headers that can carry an identity, in lower case; `None` if no header can.
    fn identity_headers(&self) -> Option<Arc<[String]>> {
        None
    }

    /// Whether `principal` was authenticated after the last reload of keys, certificates and other credentials. If not,
    /// its credential may have been revoked. What acts for it without credentials, such as a signed link, is then no
    /// longer valid.
    fn is_still_valid(&self, _principal: &Principal) -> bool {
        true
    }

    /// A receiver that changes after each reload of keys, certificates and other credentials, so that callers are
    /// authenticated again. It never changes if the time of reloads is not known.
    fn credential_reloads(&self) -> watch::Receiver<u64> {
        static NO_RELOADS: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);
        NO_RELOADS.subscribe()
    }

    /// Whether any caller is ever rejected. If not, the server may listen on loopback addresses only.
    fn enforces_authentication(&self) -> bool;
}

/// Admits every caller: network callers are anonymous, and the user of the process has all rights.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

#[async_trait]
impl Authenticator for AllowAll {
    async fn authenticate(&self, _credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        Ok(Principal::anonymous())
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn enforces_authentication(&self) -> bool {
        false
    }
}
