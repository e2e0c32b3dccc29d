//! From what a caller shows to who it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::principal::Principal;

/// What a caller showed.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The token of `Authorization: Bearer …`, of the form that [`is_bearer_token`] knows.
    pub bearer: Option<&'a str>,
    /// The peer's address; none where there is no network.
    pub peer: Option<IpAddr>,
    /// The certificate of a TLS client, if it showed one.
    pub certificate: Option<&'a ClientCertificate>,
    /// Of the request's headers those that [`Authenticator::identity_headers`] names, as they came. Anybody may have
    /// written them: they count only from a peer that is trusted to write them.
    pub identity_headers: &'a [(String, String)],
}

/// The certificate of a TLS client. Its chain led to an authority of ours when the connection was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject's name in the form of [RFC 4514](https://www.rfc-editor.org/rfc/rfc4514), `CN=ann,O=Example`.
    pub subject: String,
    /// The subject's alternative names, each with its sort: `dns:host`, `email:address`, `uri:spiffe://…`, `ip:address`.
    pub alternative_names: Vec<String>,
    /// The SHA-256 of the whole certificate, in lower-case hexadecimal.
    pub sha256: String,
    /// Until when it is good.
    pub expires: SystemTime,
}

/// Why a caller is not let in. It learns no more than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    /// Nothing was shown, and nobody is let in without.
    #[error("authentication is required: send Authorization: Bearer with an API key or a token")]
    Missing,
    /// What was shown is no key and no token of ours, or one that has expired or was revoked.
    #[error("the key or token is not valid")]
    Invalid,
    /// What should show a key or token has not the form of one.
    #[error("the Authorization header is malformed: send one header with the word Bearer, a space, and an API key or a token")]
    Malformed,
}

/// Whether `text` has the form of a key or token ([RFC 6750, 2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1)).
pub fn is_bearer_token(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// Finds out who calls. Doors ask before anything else happens to a request.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The principal that `credentials` prove.
    ///
    /// # Errors
    /// When they prove nobody.
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError>;

    /// The principal of the process's own user: stdio and the command line.
    fn local_principal(&self) -> Arc<Principal>;

    /// The names of the headers that may say who calls, in lower case, if any may.
    fn identity_headers(&self) -> Option<Arc<[String]>> {
        None
    }

    /// Whether `principal` was let in since keys, certificates and all else that proves somebody were looked at last. What
    /// speaks for it though nothing is shown, as a link does, ends when it was not: it may be the one that was revoked.
    fn is_still_valid(&self, _principal: &Principal) -> bool {
        true
    }

    /// Tells when keys, certificates and all else that proves somebody were looked at again, so that whoever was let in may
    /// be let in no longer; never, where that happens at no time that is known.
    fn credential_reloads(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// Whether anybody is ever refused; if not, only loopback may be listened on.
    fn enforces_authentication(&self) -> bool;
}

/// Lets everybody in: who calls over a network is anonymous, who started the process is its owner.
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
