//! How tokens are checked.

use std::fmt;
use std::sync::Arc;

use tidegate_core::ImpliedScopes;

use super::algorithm::TokenAlgorithm;
use crate::secret::Secret;

/// Seconds by which a signer's clock may differ from ours, unless said otherwise.
const LEEWAY_SECONDS: u32 = 30;

/// With what a token is checked.
#[derive(Clone)]
pub enum TokenKey {
    /// The content of a JSON Web Key Set. Its public keys count; secrets in it do not.
    Jwks(String),
    /// A public key in PEM: RSA, EC on P-256 or P-384, or Ed25519.
    PublicKeyPem(String),
    /// A secret that the signer has too, for the algorithms that begin with `HS`. Its bytes are those of the text.
    Secret(Secret),
    /// The address of a JSON Web Key Set, from which it is fetched again and again. `https`, but for this machine.
    JwksUrl(String),
    /// The issuer's own metadata say where its keys are, which are fetched again and again
    /// ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414), or OpenID Connect Discovery).
    Discovery,
    /// Nothing: tokens may be any text, and the issuer is asked about each.
    Introspection(IntrospectionOptions),
}

/// Where tokens are asked about, and as whom ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).
#[derive(Debug, Clone)]
pub struct IntrospectionOptions {
    /// The introspection endpoint. `https`, but for this machine.
    pub url: String,
    /// Under which name the issuer knows this node.
    pub client_id: String,
    /// What proves it.
    pub client_secret: Secret,
    /// Whether the answer must say that the token is for this node, as MCP asks. Without it any token of the issuer is
    /// taken of which nothing is said.
    pub needs_audience: bool,
}

impl fmt::Debug for TokenKey {
    /// Says of what sort it is: somebody may have put a private key where a public one belongs.
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

/// How tokens are checked. Beside what stands here, a token must carry `sub` and `exp`; `nbf` is heeded if it is there.
/// An issuer that is asked about a token need not tell `exp` and `iss`, nor `sub` if it tells `client_id`; what it tells
/// must fit.
#[derive(Debug, Clone)]
pub struct TokenOptions {
    /// With what they are checked.
    pub key: TokenKey,
    /// The `iss` that a token must carry.
    pub issuer: String,
    /// Of these, a token must carry one in its `aud`.
    pub audiences: Vec<String>,
    /// The only algorithms that may have signed it; of no matter where the issuer is asked about each token.
    pub algorithms: Vec<TokenAlgorithm>,
    /// Seconds by which the signer's clock may differ from ours.
    pub leeway_seconds: u32,
    /// The claim that names the tenant. A token without it belongs to none.
    pub tenant_claim: Option<String>,
    /// Which scopes of a token imply which others.
    pub implied_scopes: Arc<ImpliedScopes>,
}

impl TokenOptions {
    /// Tokens that `key` checks, from `issuer`, for `audiences`, signed with one of `algorithms`.
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
