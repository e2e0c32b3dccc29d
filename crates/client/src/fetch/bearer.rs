//! The bearer token of the caller. It is sent, but never printed.

use std::fmt;

use reqwest::header::HeaderValue;
use thiserror::Error;
use tidegate_core::is_bearer_token;

/// A bearer token. [`fmt::Debug`] and error messages do not contain it.
#[derive(Clone)]
pub struct BearerToken(HeaderValue);

/// A text is not a bearer token. The text is not repeated.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a bearer token is one word of letters, digits and -._~+/, without \"Bearer\" before it")]
pub struct BearerTokenError;

impl BearerToken {
    /// Parses the token in `text`, without surrounding white space.
    ///
    /// # Errors
    /// Fails if the text is empty, or contains characters that a token cannot have.
    pub fn parse(text: &str) -> Result<Self, BearerTokenError> {
        let token = text.trim();
        if !is_bearer_token(token) {
            return Err(BearerTokenError);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| BearerTokenError)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// The token without `Bearer`.
    pub(crate) fn token(&self) -> &str {
        self.0.to_str().ok().and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_sent_but_not_printed() {
        let bearer = BearerToken::parse(" tide_abc \n").unwrap();
        assert_eq!(bearer.header().as_bytes(), b"Bearer tide_abc");
        assert_eq!(bearer.token(), "tide_abc");
        assert!(!format!("{bearer:?} {:?}", bearer.header()).contains("abc"));
        for wrong in ["", " ", "two words", "Bearer abc", "abc\u{fc}", "a\"b", "a,b", "{abc}", "=abc"] {
            assert_eq!(BearerToken::parse(wrong).unwrap_err(), BearerTokenError);
        }
    }
}
