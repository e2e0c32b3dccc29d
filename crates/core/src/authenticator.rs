//! Authentication: from credentials to a principal.
//!
//! A node of a network identifies its callers to other nodes by tokens. Values that the node gives to clients and verifies when
//! they return are signed: cursors, links, request states.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::sync::watch;
use uuid::Uuid;

use crate::error::Error;
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
    /// Whether the peer itself sent the request, as far as its headers say: it names no machine but this one, and has no
    /// header of a proxy ([`FORWARDING_HEADERS`]).
    pub is_direct: bool,
}

/// The headers by which proxies say that they send on the request of another client, in lower case.
pub const FORWARDING_HEADERS: [&str; 7] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-server", "x-real-ip"];

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

/// The claim of such a token that counts the nodes which the call has passed.
pub const HOPS_CLAIM: &str = "tidegate_hops";

/// A source of short-lived bearer tokens that name a caller to another node.
pub trait CallerTokens: Send + Sync + 'static {
    /// A token that identifies `principal` to `node`, and to no other node. It is valid for at least some seconds; an
    /// earlier token of the same caller is returned as long as it is.
    ///
    /// # Errors
    /// When the claims of the caller do not fit into a token, or signing fails.
    fn token_for(&self, principal: &Principal, node: &str) -> Result<String, Error>;
}

/// The length of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 16;

/// Signs and verifies with one key: [RFC 2104](https://www.rfc-editor.org/rfc/rfc2104), with SHA-256, truncated to 128
/// bits.
#[derive(Clone)]
pub struct HmacSigner(Hmac<Sha256>);

impl HmacSigner {
    /// A signer with the key `key`, of any length.
    pub fn new(key: &[u8]) -> Self {
        // HMAC accepts keys of any length; the error of the trait is for other algorithms.
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
        Self(mac.unwrap_or_else(|_| <Hmac<Sha256> as KeyInit>::new(&Default::default())))
    }

    /// A signer with a random key, which lives as long as the process.
    pub fn with_random_key() -> Self {
        Self::new(&[*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat())
    }

    /// The signature of `parts`, in their order, for `purpose`. A signature for one purpose is not valid for another.
    pub fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.0.clone();
        for part in [purpose.as_bytes()].into_iter().chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(&mac.finalize().into_bytes()[..SIGNATURE_BYTES]);
        signature
    }

    /// Whether `signature` is the signature of `parts`. The run time does not reveal where they differ.
    pub fn verify(&self, purpose: &str, parts: &[&[u8]], signature: &[u8]) -> bool {
        let expected = self.sign(purpose, parts);
        let differences = signature.iter().zip(expected).fold(0, |differences, (a, b)| differences | (a ^ b));
        signature.len() == expected.len() && differences == 0
    }
}

crate::impl_debug!(HmacSigner, "HmacSigner");
