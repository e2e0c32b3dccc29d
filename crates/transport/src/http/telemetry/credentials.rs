//! The credentials of senders that cannot send a bearer token: the password of `Basic`, and the secret of `ApiKey`.
//!
//! Both are the key or token itself; the name before it has no meaning.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The headers with a bearer token in the place of the other forms. What has none of them is left as it is.
pub(super) fn with_bearer(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let bearer = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().and_then(bearer_of),
        _ => None,
    };
    if let Some(bearer) = bearer {
        headers.insert(header::AUTHORIZATION, bearer);
    }
    headers
}

fn bearer_of(value: &str) -> Option<HeaderValue> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") && !scheme.eq_ignore_ascii_case("apikey") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (_name, secret) = decoded.split_once(':')?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {secret}")).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_api_keys_are_bearer_tokens() {
        let with = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::try_from(value).unwrap())]);
            with_bearer(&headers).get(header::AUTHORIZATION).unwrap().to_str().unwrap().to_owned()
        };
        let encoded = STANDARD.encode("sender:tg_abc:d");
        assert_eq!(with(&format!("Basic {encoded}")), "Bearer tg_abc:d");
        assert_eq!(with(&format!("ApiKey {encoded}")), "Bearer tg_abc:d");
        for unchanged in ["Bearer abc", "Basic !", "Digest abc", "Basic YWJj"] {
            assert_eq!(with(unchanged), unchanged);
        }
    }
}
