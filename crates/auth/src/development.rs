//! Tokens for development, signed with a key in a file. Anyone holding this file can impersonate any principal.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use tidegate_core::private_file::{is_open_to_others, set_owner_only};

use crate::secret::{Clock, Secret};
use crate::token::TokenAlgorithm;

/// The maximum length of a key file in bytes; those of this program have about two hundred.
const FILE_BYTES_MAX: u64 = 16 * 1024;
/// The number of Base64 characters in a line of PEM.
const PEM_LINE_CHARS: usize = 64;
const NO_RANDOM_BYTES: &str = "the system provides no random bytes for a key or a signature";
const PRIVATE_LABEL: &str = "PRIVATE KEY";
/// Claims that have their own fields in [`DevelopmentToken`].
const RESERVED_CLAIMS: [&str; 6] = ["iss", "aud", "sub", "exp", "iat", "nbf"];

/// A key that signs tokens for development.
pub struct DevelopmentKey {
    pair: EcdsaKeyPair,
}

/// The content of a development token.
#[derive(Debug, Clone, PartialEq)]
pub struct DevelopmentToken {
    /// `iss`.
    pub issuer: String,
    /// `aud`.
    pub audience: String,
    /// `sub`.
    pub subject: String,
    /// Further claims.
    pub claims: Map<String, Value>,
    /// Lifetime, from now on.
    pub expires_in: Duration,
}

impl DevelopmentKey {
    /// The signature algorithm of its tokens.
    pub const ALGORITHM: TokenAlgorithm = TokenAlgorithm::Es256;
    /// The default issuer of its tokens. No real issuer has this name.
    pub const ISSUER: &str = "tidegate-development";
    /// The default audience of its tokens.
    pub const AUDIENCE: &str = "tidegate";

    /// Creates a key and writes it to a new file at `path`, which only its owner can read.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| match error.kind() {
            // Tokens of the old key may be in use.
            ErrorKind::AlreadyExists => format!("{} exists already; name another file, or delete it", path.display()),
            _ => format!("cannot write {}: {error}", path.display()),
        };
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        let pair = pair.map_err(|_| NO_RANDOM_BYTES)?;
        let der = pair.to_pkcs8v1().map_err(|_| NO_RANDOM_BYTES)?;
        let mut file = set_owner_only(OpenOptions::new().create_new(true).write(true)).open(path).map_err(failed)?;
        file.write_all(encode_pem(PRIVATE_LABEL, der.as_ref()).as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        Ok(Self { pair })
    }

    /// Reads the key in the file at `path`.
    ///
    /// # Errors
    /// When the file contains no key, other users can read it, or reading fails.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot read {}: {error}", path.display());
        let file = File::open(path).map_err(failed)?;
        if is_open_to_others(&file).map_err(failed)? {
            // They could impersonate any principal.
            let path = path.display();
            return Err(format!(
                "{path} can be read by users other than its owner; make it private first: chmod 600 {path}"
            ));
        }
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        let der = std::str::from_utf8(&text).ok().and_then(|text| decode_pem(PRIVATE_LABEL, text));
        let pair = der.and_then(|der| EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).ok());
        pair.map(|pair| Self { pair }).ok_or_else(|| {
            let path = path.display();
            format!("{path} is not a key file of tidegate token key: expected a private EC key on P-256 in PEM (BEGIN PRIVATE KEY)")
        })
    }

    /// The public key that verifies its tokens, in PEM.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn public_key_pem(&self) -> Result<String, String> {
        let public: Result<PublicKeyX509Der<'_>, _> = self.pair.public_key().as_der();
        public.map(|der| encode_pem("PUBLIC KEY", der.as_ref())).map_err(|_| NO_RANDOM_BYTES.to_owned())
    }

    /// Signs `token`, issued at the time of `clock`.
    ///
    /// # Errors
    /// When a required claim is empty, or a further claim is reserved.
    pub fn sign(&self, token: &DevelopmentToken, clock: &Clock) -> Result<Secret, String> {
        if [&token.subject, &token.issuer, &token.audience].iter().any(|text| text.trim().is_empty()) {
            return Err("a token needs a subject, an issuer and an audience that are not empty".to_owned());
        }
        if let Some(name) = RESERVED_CLAIMS.iter().find(|name| token.claims.contains_key(**name)) {
            return Err(format!("the claim {name:?} is reserved; set it with its own option"));
        }
        let now = clock.now().timestamp();
        let expires = now.saturating_add(i64::try_from(token.expires_in.as_secs()).unwrap_or(i64::MAX));
        let mut claims = token.claims.clone();
        let output = json!({
            "iss": token.issuer, "aud": token.audience, "sub": token.subject, "iat": now, "exp": expires,
        });
        claims.extend(output.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        let header = json!({ "alg": Self::ALGORITHM.name(), "typ": "JWT" });
        let part = |part: String| URL_SAFE_NO_PAD.encode(part);
        let message = format!("{}.{}", part(header.to_string()), part(Value::Object(claims).to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = signature.map_err(|_| NO_RANDOM_BYTES)?;
        Ok(Secret::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

fn encode_pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for (position, character) in STANDARD.encode(der).chars().enumerate() {
        if position > 0 && position % PEM_LINE_CHARS == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text + &format!("\n-----END {label}-----\n")
}

fn decode_pem(label: &str, pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let text: String = inside.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}
