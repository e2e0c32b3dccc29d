//! The format of an API key: `tg_`, its id, `_`, its secret.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The prefix of every key, so that people and secret scanners recognise it.
pub(crate) const PREFIX: &str = "tg_";
/// Five bits a character, without `_`, which ends the id.
const ID_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const ID_CHARS: usize = 8;
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 43;

/// A key, split into its parts.
pub(crate) struct ParsedKey<'a> {
    /// The lookup id, which is not secret.
    pub(crate) id: &'a str,
    /// The secret, known only to the holder.
    pub(crate) secret: &'a str,
}

impl<'a> ParsedKey<'a> {
    /// Splits `text`; `None` if it does not have the format of a key.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        (id.len() == ID_CHARS && secret.len() == SECRET_CHARS).then_some(Self { id, secret })
    }
}

/// Formats a whole key.
pub(crate) fn format_key(id: &str, secret: &str) -> String {
    format!("{PREFIX}{id}_{secret}")
}

/// Creates an id.
///
/// # Errors
/// When the system provides no random bytes.
pub(crate) fn random_id() -> Result<String, Unspecified> {
    let mut bytes = [0; ID_CHARS];
    rand::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(ID_ALPHABET[usize::from(byte % 32)])).collect())
}

/// Creates a secret.
///
/// # Errors
/// When the system provides no random bytes.
pub(crate) fn random_secret() -> Result<String, Unspecified> {
    let mut bytes = [0; SECRET_BYTES];
    rand::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
