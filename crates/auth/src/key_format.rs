//! How an API key is written: `tg_`, its id, `_`, its secret.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What every key begins with, so that people and scanners of secrets recognise it.
pub(crate) const PREFIX: &str = "tg_";
/// Five bits a character; none of them is `_`, which ends the id.
const ID_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const ID_CHARS: usize = 8;
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 43;

/// A key as it was shown, taken apart.
pub(crate) struct ParsedKey<'a> {
    /// By which it is looked up; no secret.
    pub(crate) id: &'a str,
    /// What only the holder knows.
    pub(crate) secret: &'a str,
}

impl<'a> ParsedKey<'a> {
    /// Takes `text` apart; none if it has not the form of a key.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        (id.len() == ID_CHARS && secret.len() == SECRET_CHARS).then_some(Self { id, secret })
    }
}

/// The whole key.
pub(crate) fn format_key(id: &str, secret: &str) -> String {
    format!("{PREFIX}{id}_{secret}")
}

/// A new id.
///
/// # Errors
/// When the system gives no random bytes.
pub(crate) fn random_id() -> Result<String, Unspecified> {
    let mut bytes = [0; ID_CHARS];
    rand::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(ID_ALPHABET[usize::from(byte % 32)])).collect())
}

/// A new secret.
///
/// # Errors
/// When the system gives no random bytes.
pub(crate) fn random_secret() -> Result<String, Unspecified> {
    let mut bytes = [0; SECRET_BYTES];
    rand::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
