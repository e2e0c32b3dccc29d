//! Options of token verification.

use std::fmt;
use std::sync::Arc;

use tidegate_core::ImpliedScopes;

use crate::secret::Secret;
use crate::token::algorithm::TokenAlgorithm;

/// Seconds since 1970, whole or fractional, as in token claims.
pub(crate) type Seconds = f64;

/// Default leeway for the clock of the signer, in seconds.
const LEEWAY_SECONDS: u32 = 30;

/// The key, or key source, that verifies tokens.
#[derive(Clone)]
pub enum TokenKey {
    /// The content of a JSON Web Key Set. Only its public keys are used.
    Jwks(String),
    /// A public key in PEM: RSA, EC on P-256 or P-384, or Ed25519.
    PublicKeyPem(String),
    /// A secret shared with the signer, for the algorithms that begin with `HS`. The bytes of the text are the secret.
    Secret(Secret),
    /// The URL of a JSON Web Key Set, which is fetched and refreshed. `https`, except for this machine.
    JwksUrl(String),
    /// The keys are found through the issuer's metadata and refreshed ([RFC
    /// 8414](https://www.rfc-editor.org/rfc/rfc8414), or OpenID Connect Discovery).
    Discovery,
    /// Tokens are opaque; each is verified by introspection at the issuer.
    Introspection(IntrospectionOptions),
}

/// The introspection endpoint and this node's credentials there ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).
#[derive(Debug, Clone)]
pub struct IntrospectionOptions {
    /// The introspection endpoint. `https`, except for this machine.
    pub url: String,
    /// The client id of this node at the issuer.
    pub client_id: String,
    /// The client secret of this node at the issuer.
    pub client_secret: Secret,
    /// Whether the answer must name this node as audience, as MCP requires. If false, answers without an audience are
    /// accepted.
    pub needs_audience: bool,
}

impl fmt::Debug for TokenKey {
    /// Prints only the variant: the value may be a private key that was configured by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jwks(_) => "Jwks(***)",
            Self::PublicKeyPem(_) => "PublicKeyPem(***)",
            Self::Secret(_) => "Secret(***)",
            Self::JwksUrl(_) => "JwksUrl(***)",
            Self::Discovery => "Discovery",
            Self::Introspection(_) => "Introspection(***)",
        })
    }
}

/// Options of token verification. In addition, a token must have `sub` and `exp`; `nbf` is checked if present. An
/// introspection answer may omit `exp`, `iss` and `aud` (see [`IntrospectionOptions::needs_audience`]), and `sub` if it
/// has `client_id`; claims that are present must be valid.
#[derive(Debug, Clone)]
pub struct TokenOptions {
    /// The key that verifies tokens.
    pub key: TokenKey,
    /// The required `iss`.
    pub issuer: String,
    /// Accepted audiences; the `aud` of a token must contain one of them.
    pub audiences: Vec<String>,
    /// The accepted signature algorithms. Ignored for introspection.
    pub algorithms: Vec<TokenAlgorithm>,
    /// Leeway for the clock of the signer, in seconds.
    pub leeway_seconds: u32,
    /// The claim that names the tenant. A token without it has no tenant.
    pub tenant_claim: Option<String>,
    /// Which scopes imply which others.
    pub implied_scopes: Arc<ImpliedScopes>,
}

impl TokenOptions {
    /// Options for tokens from `issuer` for `audiences`, signed with one of `algorithms` and verified with `key`.
    pub fn new(
        key: TokenKey,
        issuer: impl Into<String>,
        audiences: Vec<String>,
        algorithms: Vec<TokenAlgorithm>,
    ) -> Self {
        let issuer = issuer.into();
        let (leeway_seconds, tenant_claim, implied_scopes) = (LEEWAY_SECONDS, None, Arc::default());
        Self { key, issuer, audiences, algorithms, leeway_seconds, tenant_claim, implied_scopes }
    }
}

/// Why token options are invalid. The message reveals nothing about a key but its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenOptionsError(String);

impl TokenOptionsError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(super) fn private_key() -> Self {
        Self::new("this is a private key, which only the signer may have; give the public key")
    }

    pub(super) fn no_public_key() -> Self {
        Self::new(
            "this is not a usable public key in PEM (BEGIN PUBLIC KEY); use RSA with 2048 to 8192 bits, EC on P-256 or \
             P-384, or Ed25519",
        )
    }

    pub(super) fn no_jwks() -> Self {
        Self::new("this is not a JWKS: it must be a JSON object with a list named keys")
    }

    /// The JWKS contains only keys for other purposes or of unsupported types.
    pub(super) fn no_usable_key() -> Self {
        Self::new(
            "the JWKS has no usable key; that would be a public key that checks signatures: RSA with 2048 to 8192 \
             bits, EC on P-256 or P-384, or Ed25519",
        )
    }

    /// No key of these kinds supports the algorithm.
    pub(super) fn unsupported(algorithm: TokenAlgorithm, keys: &str) -> Self {
        Self::new(format!("the algorithm {algorithm} does not fit the key, which is {keys}"))
    }

    pub(super) fn no_client() -> Self {
        Self::new("introspection needs a client_id and a client_secret, which identify this node to the issuer")
    }
}
