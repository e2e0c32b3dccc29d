//! Tokens that name a caller of this node to another node, which verifies them as those of any issuer.
//!
//! They are valid for a minute and for one node. They have the roles of the caller here, and the claims with which it
//! came, so that row policies of the other node can use them.

use std::num::NonZeroUsize;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::EncodingKey;
use jsonwebtoken::crypto::sign;
use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tidegate_core::{AuthMethod, CallerTokens, Error, ErrorKind, HOPS_CLAIM, Principal};

use crate::secret::{self, Clock, Digest, Secret, sha256_of};
use crate::token::{KeyKind, TOKEN_BYTES_MAX, TokenAlgorithm, TokenOptionsError, install_provider};

/// The lifetime of a token in seconds, and the rest of it with which it is not used any more.
const LIFETIME_SECONDS: i64 = 60;
const UNUSED_SECONDS: i64 = 15;
/// Tokens that are kept; the one that was not used for the longest time is forgotten.
const TOKENS_MAX: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The claims that only the signer sets. `cnf` binds the caller's own token to a key that this node does not have.
const RESERVED_CLAIMS: [&str; 9] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "cnf", HOPS_CLAIM];
/// Nodes that a call passes, so that networks that contain each other come to an end.
const HOPS_MAX: u64 = 4;

/// The options of a [`CallerTokenSigner`].
#[derive(Debug, Clone)]
pub struct CallerTokenOptions {
    /// `iss`: the name of this node, which other nodes trust.
    pub issuer: String,
    /// The private key in PEM (PKCS #8; RSA also PKCS #1), or the secret of the algorithms that begin with `HS`.
    pub key: Secret,
    /// The signature algorithm.
    pub algorithm: TokenAlgorithm,
    /// The id of the key, for verifiers with several.
    pub key_id: Option<String>,
    /// The claim with the tenant of the caller.
    pub tenant_claim: String,
    /// The claim with the roles of the caller.
    pub roles_claim: String,
    /// The source of the current time.
    pub clock: Clock,
}

impl CallerTokenOptions {
    /// Tokens from `issuer`, with the claims `tenant` and `roles`.
    pub fn new(issuer: impl Into<String>, key: Secret, algorithm: TokenAlgorithm) -> Self {
        Self {
            issuer: issuer.into(),
            key,
            algorithm,
            key_id: None,
            tenant_claim: "tenant".to_owned(),
            roles_claim: "roles".to_owned(),
            clock: Clock::default(),
        }
    }
}

/// Signs tokens that name a caller to another node.
pub struct CallerTokenSigner {
    options: CallerTokenOptions,
    key: EncodingKey,
    /// By caller and node, with their expiry.
    tokens: Mutex<LruCache<Digest, (String, i64)>>,
}

impl CallerTokenSigner {
    /// Creates a signer.
    ///
    /// # Errors
    /// When the key does not fit the algorithm, or a name is empty or reserved.
    pub fn new(options: CallerTokenOptions) -> Result<Self, TokenOptionsError> {
        let CallerTokenOptions { issuer, tenant_claim, roles_claim, .. } = &options;
        if issuer.trim().is_empty() {
            return Err(TokenOptionsError::new("an issuer is missing: the name of this node, which other nodes trust"));
        }
        for claim in [tenant_claim, roles_claim] {
            if claim.is_empty() || RESERVED_CLAIMS.contains(&claim.as_str()) || tenant_claim == roles_claim {
                let message = format!("tenant and roles cannot be in the claim {claim:?}; give each a name of its own");
                return Err(TokenOptionsError::new(message));
            }
        }
        install_provider();
        let key = signing_key(&options.key, options.algorithm)?;
        // A key of another curve or size is found out here, and not with the first call.
        sign(b"test", &key, options.algorithm.to_jsonwebtoken()).map_err(|_| unfit_key(options.algorithm))?;
        Ok(Self { options, key, tokens: Mutex::new(LruCache::new(TOKENS_MAX)) })
    }

    fn sign(&self, principal: &Principal, node: &str, now: i64, expires: i64) -> Result<String, Error> {
        let CallerTokenOptions { issuer, algorithm, key_id, tenant_claim, roles_claim, .. } = &self.options;
        let mut claims = principal.claims.clone();
        for name in RESERVED_CLAIMS.iter().copied().chain([tenant_claim.as_str(), roles_claim.as_str()]) {
            claims.remove(name);
        }
        let hops = principal.claims.get(HOPS_CLAIM).and_then(Value::as_u64).unwrap_or_default();
        if hops >= HOPS_MAX {
            let message = format!("the call has passed {HOPS_MAX} nodes already; do networks contain each other?");
            return Err(Error::new(ErrorKind::Forbidden, message));
        }
        let unavailable = |_| Error::internal("the system provides no random bytes for the id of a token");
        let id = secret::random_secret().map_err(unavailable)?;
        let own = json!({
            "iss": issuer, "sub": principal.subject, "aud": node, "iat": now, "nbf": now, "exp": expires,
            "jti": id, HOPS_CLAIM: hops + 1, roles_claim: principal.roles,
        });
        claims.extend(own.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(tenant) = &principal.tenant {
            claims.insert(tenant_claim.clone(), tenant.clone().into());
        }
        let mut header = Map::new();
        header.insert("alg".to_owned(), algorithm.name().into());
        header.insert("typ".to_owned(), "JWT".into());
        if let Some(id) = key_id {
            header.insert("kid".to_owned(), id.clone().into());
        }
        let part = |part: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(part).to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = sign(message.as_bytes(), &self.key, algorithm.to_jsonwebtoken())
            .map_err(|error| Error::internal(format!("a token for another node cannot be signed: {error}")))?;
        let token = format!("{message}.{signature}");
        if token.len() > TOKEN_BYTES_MAX {
            let message = "your claims are too long for a token with which another node would know you";
            return Err(Error::new(ErrorKind::Forbidden, message));
        }
        Ok(token)
    }
}

impl CallerTokens for CallerTokenSigner {
    fn token_for(&self, principal: &Principal, node: &str) -> Result<String, Error> {
        if principal.auth_method == AuthMethod::Development {
            // Other nodes trust this one to name callers that it has verified.
            let message = "other nodes do not accept the identity of auth.development, because nothing proves it";
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint("Call with a key or a token."));
        }
        let now = self.options.clock.now().timestamp();
        let own_expiry = principal.expires_at.map_or(i64::MAX, seconds_of);
        if own_expiry <= now {
            return Err(Error::new(ErrorKind::Unauthenticated, "your token has expired"));
        }
        let key = digest_of(principal, node);
        let is_usable =
            |expires: i64| now < expires.saturating_sub(UNUSED_SECONDS) && expires - now <= LIFETIME_SECONDS;
        if let Some((token, expires)) = self.tokens.lock().get(&key)
            && is_usable(*expires)
            && *expires <= own_expiry
        {
            return Ok(token.clone());
        }
        let expires = now.saturating_add(LIFETIME_SECONDS).min(own_expiry);
        let token = self.sign(principal, node, now, expires)?;
        self.tokens.lock().put(key, (token.clone(), expires));
        Ok(token)
    }
}

fn signing_key(key: &Secret, algorithm: TokenAlgorithm) -> Result<EncodingKey, TokenOptionsError> {
    let bytes = key.expose().as_bytes();
    let read = match algorithm.key_kind() {
        KeyKind::Secret if bytes.len() < algorithm.secret_bytes_min() => {
            let bytes_min = algorithm.secret_bytes_min();
            let message = format!("the secret is too short for {algorithm}, which needs at least {bytes_min} bytes");
            return Err(TokenOptionsError::new(message));
        }
        KeyKind::Secret => return Ok(EncodingKey::from_secret(bytes)),
        KeyKind::Rsa => EncodingKey::from_rsa_pem(bytes),
        KeyKind::P256 | KeyKind::P384 => EncodingKey::from_ec_pem(bytes),
        KeyKind::Ed25519 => EncodingKey::from_ed_pem(bytes),
    };
    read.map_err(|_| unfit_key(algorithm))
}

fn unfit_key(algorithm: TokenAlgorithm) -> TokenOptionsError {
    TokenOptionsError::new(format!(
        "this is not a private key in PEM (BEGIN PRIVATE KEY) for {algorithm}, which needs {}",
        algorithm.key_kind().name()
    ))
}

/// A digest of everything in a token but its times and its id.
fn digest_of(principal: &Principal, node: &str) -> Digest {
    let Principal { subject, tenant, roles, claims, .. } = principal;
    sha256_of(json!([node, subject, tenant, roles, claims]).to_string().as_bytes())
}

fn seconds_of(time: SystemTime) -> i64 {
    let elapsed = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
}
