//! The bearer token that authenticates the caller. It is sent, but never displayed.

use reqwest::header::HeaderValue;
use thiserror::Error;
use tidegate_core::is_bearer_token;

/// A bearer token. Neither [`Debug`](std::fmt::Debug) nor any message contains it.
#[derive(Clone)]
pub struct BearerToken(HeaderValue);

/// The text is not a valid bearer token. The error does not repeat it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a bearer token is one word of letters, digits and -._~+/, without \"Bearer\" before it")]
pub struct BearerTokenError;

impl BearerToken {
    /// Parses the token in `text`, ignoring surrounding white space.
    ///
    /// # Errors
    /// When it is empty, or contains a character that is not allowed.
    pub fn parse(text: &str) -> Result<Self, BearerTokenError> {
        let token = text.trim();
        if !is_bearer_token(token) {
            return Err(BearerTokenError);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| BearerTokenError)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }

    pub(crate) fn token(&self) -> &str {
        self.0.to_str().ok().and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }
}

tidegate_core::impl_debug!(BearerToken, "Bearer(…)");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_redacts_the_token() {
        let bearer = BearerToken::parse(" tide_abc \n").unwrap();
        assert_eq!(bearer.header().as_bytes(), b"Bearer tide_abc");
        assert!(!format!("{bearer:?} {:?}", bearer.header()).contains("abc"));
        assert_eq!(bearer.token(), "tide_abc");
        for invalid in ["", " ", "two words", "Bearer abc", "abc\u{fc}", "a\"b", "a,b", "{abc}", "=abc"] {
            assert_eq!(BearerToken::parse(invalid).unwrap_err(), BearerTokenError);
        }
    }
}
