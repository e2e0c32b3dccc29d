//! Signature algorithms of tokens, and the kind of key of each.

use std::fmt;
use std::str::FromStr;

use jsonwebtoken::Algorithm;
use strum::VariantArray;

/// A signature algorithm ([RFC 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3.1), [RFC
/// 9864](https://www.rfc-editor.org/rfc/rfc9864#section-2)). `none` is not supported.
///
/// `EdDSA` and `Ed25519` are two names of one algorithm. A token must use a configured name; a key with either name
/// verifies both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
#[allow(missing_docs, reason = "their names are the specification's")]
pub enum TokenAlgorithm {
    Hs256,
    Hs384,
    Hs512,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
    Ed25519,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// A secret that is shared with the signer.
    Secret,
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl KeyKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Secret => "a secret",
            Self::Rsa => "an RSA key",
            Self::P256 => "an EC key on P-256",
            Self::P384 => "an EC key on P-384",
            Self::Ed25519 => "an Ed25519 key",
        }
    }
}

impl TokenAlgorithm {
    /// Every algorithm.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The only kind of key for this algorithm, so that a public key is never used as a secret.
    pub(crate) fn key_kind(self) -> KeyKind {
        self.row().1
    }

    /// The algorithm in `jsonwebtoken`, which has one name for EdDSA.
    pub(crate) fn to_jsonwebtoken(self) -> Algorithm {
        self.row().2
    }

    fn row(self) -> (&'static str, KeyKind, Algorithm) {
        match self {
            Self::Hs256 => ("HS256", KeyKind::Secret, Algorithm::HS256),
            Self::Hs384 => ("HS384", KeyKind::Secret, Algorithm::HS384),
            Self::Hs512 => ("HS512", KeyKind::Secret, Algorithm::HS512),
            Self::Rs256 => ("RS256", KeyKind::Rsa, Algorithm::RS256),
            Self::Rs384 => ("RS384", KeyKind::Rsa, Algorithm::RS384),
            Self::Rs512 => ("RS512", KeyKind::Rsa, Algorithm::RS512),
            Self::Ps256 => ("PS256", KeyKind::Rsa, Algorithm::PS256),
            Self::Ps384 => ("PS384", KeyKind::Rsa, Algorithm::PS384),
            Self::Ps512 => ("PS512", KeyKind::Rsa, Algorithm::PS512),
            Self::Es256 => ("ES256", KeyKind::P256, Algorithm::ES256),
            Self::Es384 => ("ES384", KeyKind::P384, Algorithm::ES384),
            Self::EdDsa => ("EdDSA", KeyKind::Ed25519, Algorithm::EdDSA),
            Self::Ed25519 => ("Ed25519", KeyKind::Ed25519, Algorithm::EdDSA),
        }
    }

    /// Bytes of a secret at least: the length of the hash ([RFC
    /// 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3.2)).
    pub(crate) fn secret_bytes_min(self) -> usize {
        match self {
            Self::Hs256 => 32,
            Self::Hs384 => 48,
            Self::Hs512 => 64,
            _ => 0,
        }
    }
}

impl FromStr for TokenAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let algorithm = Self::ALL.iter().find(|algorithm| algorithm.name() == name);
        algorithm
            .copied()
            .ok_or_else(|| format!("{name:?} is not a token algorithm; use one of: {}", join_names(Self::ALL)))
    }
}

impl fmt::Display for TokenAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(super) fn join_names(algorithms: &[TokenAlgorithm]) -> String {
    algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}
