//! Verification keys, and the choice of the key for a token.

use std::ops::RangeInclusive;

use aws_lc_rs::rsa::RsaParameters;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey, VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::aws_lc;
use serde_json::{Map, Value};

use super::algorithm::{KeyKind, TokenAlgorithm};
use super::options::{TokenKey, TokenOptionsError};
use crate::secret::Secret;

const JWKS_KEYS_MAX: usize = 256;
/// Bits of an RSA modulus; the library verifies nothing with other sizes.
const RSA_BITS: RangeInclusive<usize> = 2048..=8192;

pub(super) enum KeyRing {
    /// The only key. It has no id, so the `kid` of a token is ignored.
    Single(VerificationKey),
    /// The keys of a JWKS.
    Set(Vec<VerificationKey>),
}

pub(super) struct VerificationKey {
    kind: KeyKind,
    id: Option<String>,
    /// The only algorithm for this key, if its JWK names one.
    algorithm: Option<TokenAlgorithm>,
    key: DecodingKey,
}

impl KeyRing {
    pub(super) fn from_configured(key: &TokenKey, algorithms: &[TokenAlgorithm]) -> Result<Self, TokenOptionsError> {
        install_provider();
        let ring = match key {
            TokenKey::Secret(secret) => Self::Single(secret_key(secret)),
            TokenKey::PublicKeyPem(pem) => Self::Single(pem_key(pem)?),
            TokenKey::Jwks(jwks) => match jwks_keys(jwks.as_bytes())? {
                keys if keys.is_empty() => return Err(TokenOptionsError::no_usable_key()),
                keys => Self::Set(keys),
            },
            // Fetched keys and introspection need no configured key.
            TokenKey::JwksUrl(_) | TokenKey::Discovery | TokenKey::Introspection(_) => {
                return Err(TokenOptionsError::no_usable_key());
            }
        };
        for algorithm in algorithms.iter().copied() {
            if !ring.keys().iter().any(|key| key.supports(algorithm)) {
                return Err(TokenOptionsError::unsupported(algorithm, &ring.kinds()));
            }
            if let TokenKey::Secret(secret) = key
                && secret.expose().len() < algorithm.secret_bytes_min()
            {
                let bytes_min = algorithm.secret_bytes_min();
                let problem =
                    format!("the secret is too short for {algorithm}, which needs at least {bytes_min} bytes");
                return Err(TokenOptionsError::new(problem));
            }
        }
        Ok(ring)
    }

    /// Reads a JWKS that an issuer publishes. A set without usable keys is valid: the issuer has withdrawn its keys.
    pub(super) fn from_jwks(jwks: &[u8]) -> Result<Self, TokenOptionsError> {
        install_provider();
        jwks_keys(jwks).map(Self::Set)
    }

    pub(super) fn len(&self) -> usize {
        self.keys().len()
    }

    pub(super) fn unsupported_algorithms(&self, algorithms: &[TokenAlgorithm]) -> Vec<TokenAlgorithm> {
        let is_unsupported = |algorithm: &TokenAlgorithm| !self.keys().iter().any(|key| key.supports(*algorithm));
        algorithms.iter().copied().filter(is_unsupported).collect()
    }

    /// The key for a token: of the keys that support `algorithm`, the one with that id; without an id, the only one.
    pub(super) fn find(&self, algorithm: TokenAlgorithm, id: Option<&str>) -> Option<&DecodingKey> {
        let mut candidates = self.keys().iter().filter(|key| {
            let is_named = match (self, id) {
                (Self::Single(_), _) | (_, None) => true,
                (Self::Set(_), Some(id)) => key.id.as_deref() == Some(id),
            };
            is_named && key.supports(algorithm)
        });
        let key = candidates.next()?;
        // Trying several keys would make a set as weak as its weakest key.
        candidates.next().is_none().then_some(&key.key)
    }

    fn keys(&self) -> &[VerificationKey] {
        match self {
            Self::Single(key) => std::slice::from_ref(key),
            Self::Set(keys) => keys,
        }
    }

    fn kinds(&self) -> String {
        let mut kinds: Vec<&str> = self.keys().iter().map(|key| key.kind.name()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.join(" or ")
    }
}

impl VerificationKey {
    fn new(kind: KeyKind, key: DecodingKey) -> Self {
        Self { kind, id: None, algorithm: None, key }
    }

    fn supports(&self, algorithm: TokenAlgorithm) -> bool {
        algorithm.key_kind() == self.kind
            && self.algorithm.is_none_or(|only| only.to_jsonwebtoken() == algorithm.to_jsonwebtoken())
    }
}

fn secret_key(secret: &Secret) -> VerificationKey {
    VerificationKey::new(KeyKind::Secret, DecodingKey::from_secret(secret.expose().as_bytes()))
}

fn pem_key(pem: &str) -> Result<VerificationKey, TokenOptionsError> {
    if pem.contains("PRIVATE KEY-----") {
        return Err(TokenOptionsError::private_key());
    }
    // The library would also search certificates and other blocks for a key.
    if pem.matches("-----BEGIN ").count() != 1 || !pem.contains("PUBLIC KEY-----") {
        return Err(TokenOptionsError::no_public_key());
    }
    let pem = pem.as_bytes();
    let candidates = [
        (KeyKind::Rsa, DecodingKey::from_rsa_pem(pem)),
        (KeyKind::P256, DecodingKey::from_ec_pem(pem)),
        (KeyKind::P384, DecodingKey::from_ec_pem(pem)),
        (KeyKind::Ed25519, DecodingKey::from_ed_pem(pem)),
    ];
    let mut usable =
        candidates.into_iter().filter_map(|(kind, key)| key.ok().map(|key| VerificationKey::new(kind, key)));
    usable.find(is_valid).ok_or_else(TokenOptionsError::no_public_key)
}

/// The library panics if two providers are compiled in and none is chosen; another crate may add a second one.
pub(crate) fn install_provider() {
    let _ = aws_lc::DEFAULT_PROVIDER.install_default();
}

fn jwks_keys(jwks: &[u8]) -> Result<Vec<VerificationKey>, TokenOptionsError> {
    let jwks: Map<String, Value> = serde_json::from_slice(jwks).map_err(|_| TokenOptionsError::no_jwks())?;
    let keys = jwks.get("keys").and_then(Value::as_array).ok_or_else(TokenOptionsError::no_jwks)?;
    if keys.len() > JWKS_KEYS_MAX {
        let problem = format!("the JWKS has {} keys; at most {JWKS_KEYS_MAX} are allowed", keys.len());
        return Err(TokenOptionsError::new(problem));
    }
    if keys.iter().any(|key| key.get("d").is_some()) {
        return Err(TokenOptionsError::private_key());
    }
    // Sets contain keys for other purposes too, so unusable keys are skipped.
    Ok(keys.iter().filter_map(jwk_key).collect())
}

/// The verification key of a JWK ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517#section-4)), if it is usable.
fn jwk_key(jwk: &Value) -> Option<VerificationKey> {
    let field = |name: &str| jwk.get(name).and_then(Value::as_str);
    let checks_signatures = jwk.get("use").is_none_or(|purpose| purpose == "sig")
        && jwk.get("key_ops").is_none_or(|may| may.as_array().is_some_and(|may| may.iter().any(|it| it == "verify")));
    // An unknown algorithm must not turn into "any algorithm".
    let algorithm = match jwk.get("alg") {
        Some(name) => Some(name.as_str()?.parse().ok()?),
        None => None,
    };
    let (kind, key) = match (field("kty")?, field("crv")) {
        ("RSA", _) => (KeyKind::Rsa, rsa_key(field("n")?, field("e")?)),
        ("EC", Some("P-256")) => (KeyKind::P256, DecodingKey::from_ec_components(field("x")?, field("y")?).ok()),
        ("EC", Some("P-384")) => (KeyKind::P384, DecodingKey::from_ec_components(field("x")?, field("y")?).ok()),
        ("OKP", Some("Ed25519")) => (KeyKind::Ed25519, DecodingKey::from_ed_components(field("x")?).ok()),
        _ => return None,
    };
    let key = VerificationKey { id: field("kid").map(str::to_owned), algorithm, ..VerificationKey::new(kind, key?) };
    (checks_signatures && (kind == KeyKind::Rsa || is_valid(&key))).then_some(key)
}

fn rsa_key(modulus: &str, exponent: &str) -> Option<DecodingKey> {
    let bytes = URL_SAFE_NO_PAD.decode(modulus).ok()?;
    let zero_bits: usize = match bytes.iter().position(|byte| *byte != 0) {
        Some(zeros) => 8 * zeros + bytes[zeros].leading_zeros() as usize,
        None => return None,
    };
    if !RSA_BITS.contains(&(8 * bytes.len() - zero_bits)) {
        return None;
    }
    DecodingKey::from_rsa_components(modulus, exponent).ok()
}

/// Whether the bytes of `key` are a valid key of its kind. The library would detect that only with the first token.
fn is_valid(key: &VerificationKey) -> bool {
    let Ok(bytes) = key.key.try_get_as_bytes() else { return false };
    let is_a_key_of = |algorithm: &'static dyn VerificationAlgorithm| ParsedPublicKey::new(algorithm, bytes).is_ok();
    match key.kind {
        KeyKind::Rsa => RsaParameters::public_modulus_len(bytes).is_ok_and(|bits| RSA_BITS.contains(&(bits as usize))),
        KeyKind::P256 => is_a_key_of(&ECDSA_P256_SHA256_FIXED),
        KeyKind::P384 => is_a_key_of(&ECDSA_P384_SHA384_FIXED),
        KeyKind::Ed25519 => is_a_key_of(&ED25519),
        KeyKind::Secret => true,
    }
}
