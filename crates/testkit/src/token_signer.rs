//! Generated keys, and the tokens that they sign. The signing library is not the one that verifies.

use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tidegate_auth::TokenAlgorithm;

use crate::token_authenticator::{AUDIENCE, ISSUER, NOW};

pub static RSA: LazyLock<Signer> = LazyLock::new(|| rsa(KeySize::Rsa2048));
pub static OTHER_RSA: LazyLock<Signer> = LazyLock::new(|| rsa(KeySize::Rsa2048));
pub static P256: LazyLock<Signer> =
    LazyLock::new(|| Signer::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()));
pub static P384: LazyLock<Signer> =
    LazyLock::new(|| Signer::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()));
pub static ED25519: LazyLock<Signer> = LazyLock::new(|| Signer::Ed25519(Ed25519KeyPair::generate().unwrap()));
pub const SECRET: &str = "a secret of sixty-four bytes, which is long enough for each HS...";

/// A signer of tokens.
pub enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Secret(String),
}

fn rsa(size: KeySize) -> Signer {
    Signer::Rsa(RsaKeyPair::generate(size).unwrap())
}

/// The claims of a valid token.
pub fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": NOW + 300 })
}

/// The claims of a valid token with `changes`; null removes a claim.
pub fn claims_with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

/// The signed part of a token.
pub fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

impl Signer {
    /// A token with `header` and `claims`, signed with `algorithm`, even if the header names another one.
    pub fn token_with_header(&self, algorithm: TokenAlgorithm, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = URL_SAFE_NO_PAD.encode(self.sign(algorithm, message.as_bytes()));
        format!("{message}.{signature}")
    }

    pub fn token(&self, algorithm: TokenAlgorithm, claims: &Value) -> String {
        self.token_with_header(algorithm, &json!({ "alg": algorithm.name(), "typ": "JWT" }), claims)
    }

    fn sign(&self, algorithm: TokenAlgorithm, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let padding: &'static dyn aws_lc_rs::signature::RsaEncoding = match algorithm {
                    TokenAlgorithm::Rs256 => &RSA_PKCS1_SHA256,
                    TokenAlgorithm::Rs384 => &RSA_PKCS1_SHA384,
                    TokenAlgorithm::Rs512 => &RSA_PKCS1_SHA512,
                    TokenAlgorithm::Ps256 => &RSA_PSS_SHA256,
                    TokenAlgorithm::Ps384 => &RSA_PSS_SHA384,
                    TokenAlgorithm::Ps512 => &RSA_PSS_SHA512,
                    other => panic!("RSA does not sign {other}"),
                };
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
            Self::P256(key) | Self::P384(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::Secret(secret) => {
                let hash = match algorithm {
                    TokenAlgorithm::Hs384 => hmac::HMAC_SHA384,
                    TokenAlgorithm::Hs512 => hmac::HMAC_SHA512,
                    _ => hmac::HMAC_SHA256,
                };
                hmac::sign(&hmac::Key::new(hash, secret.as_bytes()), message).as_ref().to_vec()
            }
        }
    }

    /// The public key.
    pub fn pem(&self) -> String {
        let der: PublicKeyX509Der<'_> = match self {
            Self::Rsa(key) => key.public_key().as_der().unwrap(),
            Self::P256(key) | Self::P384(key) => key.public_key().as_der().unwrap(),
            Self::Ed25519(key) => key.public_key().as_der().unwrap(),
            Self::Secret(_) => panic!("a secret has no public key"),
        };
        pem("PUBLIC KEY", der.as_ref())
    }

    /// The public key as a JWK without an id.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(key) => {
                let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(key.public_key());
                json!({ "kty": "RSA", "n": text(&n), "e": text(&e) })
            }
            Self::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": text(x), "y": text(y) })
            }
            Self::P384(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(48);
                json!({ "kty": "EC", "crv": "P-384", "x": text(x), "y": text(y) })
            }
            Self::Ed25519(key) => json!({ "kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref()) }),
            Self::Secret(secret) => json!({ "kty": "oct", "k": text(secret.as_bytes()) }),
        }
    }

    /// The public key as a JWK with additional members.
    pub fn jwk_with(&self, members: Value) -> Value {
        let mut jwk = self.jwk();
        jwk.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        jwk
    }
}

/// `der` in PEM.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
