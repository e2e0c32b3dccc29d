//! An issuer with a key made for the test. What signs here is not the library that checks.

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A signer of tokens with RS256.
pub(super) struct Signer(RsaKeyPair);

impl Signer {
    pub(super) fn new() -> Self {
        Self(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    /// A token with `claims`.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.token_with_header(&json!({"alg": "RS256", "typ": "JWT", "kid": "first"}), claims)
    }

    /// A token with `header`, signed with RS256 whatever it says.
    pub(super) fn token_with_header(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The public key as PEM.
    pub(super) fn pem(&self) -> String {
        let der: PublicKeyX509Der<'_> = self.0.public_key().as_der().unwrap();
        let text = STANDARD.encode(der.as_ref());
        let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
    }

    /// The public key as a set of keys.
    pub(super) fn jwks(&self) -> String {
        let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(self.0.public_key());
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"keys": [{"kty": "RSA", "kid": "first", "alg": "RS256", "n": text(&n), "e": text(&e)}]}).to_string()
    }
}

/// What is signed of a token.
pub(in super::super) fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// A token signed with HS256, as somebody makes it who takes `secret` for the key.
pub(super) fn signed_with_secret(secret: &str, claims: &Value) -> String {
    let message = message(&json!({"alg": "HS256", "typ": "JWT", "kid": "first"}), claims);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes())))
}
