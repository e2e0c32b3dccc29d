//! Parses the credentials of a request: the `Authorization` header, or a subprotocol of a WebSocket. Whether the key or
//! token is valid is checked elsewhere.
//!
//! [RFC 6750, 2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1) and
//! [3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1), [RFC 9110, 11](https://www.rfc-editor.org/rfc/rfc9110#section-11)

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_core::{AuthenticationError, is_bearer_token};

#[derive(Clone)]
pub(super) enum Authorization {
    Absent,
    Bearer(Arc<str>),
    /// Credentials of another scheme, which are not supported. The challenge then does not report an invalid token.
    OtherScheme,
    /// A header that no client may send.
    Malformed,
}

impl Authorization {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Self::Absent };
        if values.next().is_some() {
            // A proxy in front of the server may have checked the other value.
            return Self::Malformed;
        }
        value.to_str().map_or(Self::Malformed, Self::parse)
    }

    /// The same for the handshake of a WebSocket. Web pages cannot set its headers, but they can offer subprotocols:
    /// one that contains the token counts like the `Authorization` header. It is never selected, so the response does
    /// not contain it.
    pub(super) fn from_web_socket_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
        let offers = values.flat_map(|value| value.split(',')).map(str::trim);
        let mut bearers = offers.filter_map(parse_bearer_subprotocol);
        match (bearers.next(), bearers.next()) {
            (None, _) => Self::from_headers(headers),
            (Some(bearer), None) if !headers.contains_key(header::AUTHORIZATION) => bearer,
            // It is not clear which of them authenticates the caller.
            _ => Self::Malformed,
        }
    }

    /// The scheme is case-insensitive.
    fn parse(value: &str) -> Self {
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return if is_scheme(scheme) { Self::OtherScheme } else { Self::Malformed };
        }
        let token = rest.trim_matches(' ');
        if is_bearer_token(token) { Self::Bearer(token.into()) } else { Self::Malformed }
    }

    /// The key or token, if there is one; an error for any other content, which does not authenticate a caller.
    pub(super) fn bearer(&self) -> Result<Option<&str>, AuthenticationError> {
        match self {
            Self::Absent => Ok(None),
            Self::Bearer(bearer) => Ok(Some(bearer)),
            Self::OtherScheme => Err(AuthenticationError::Missing),
            Self::Malformed => Err(AuthenticationError::Malformed),
        }
    }
}

/// The token in the subprotocol `bearer.TOKEN`, or in `base64url.bearer.TOKEN-AS-BASE64URL`, because subprotocols must
/// not contain `/` and `=`; `None` for another subprotocol.
fn parse_bearer_subprotocol(offer: &str) -> Option<Authorization> {
    let token = if let Some(encoded) = offer.strip_prefix("base64url.bearer.") {
        URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    } else {
        offer.strip_prefix("bearer.")?.to_owned()
    };
    Some(if is_bearer_token(&token) { Authorization::Bearer(token.into()) } else { Authorization::Malformed })
}

fn is_scheme(text: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn parses_authorization_headers() {
        let visible: [&[&[u8]]; 22] = [
            &[],
            &[b"Bearer abc"],
            &[b"bEARER   a-b.c_d~e+f/g=="],
            &[b"Bearer"],
            &[b"Bearer "],
            &[b"Bearer ="],
            &[b"Bearer a b"],
            &[b"Bearer a,b"],
            &[b"Bearer a, Bearer b"],
            &[b"Bearer a=b"],
            &[b"Bearer \"a\""],
            &[b"Bearer a:b"],
            &[b"Bearer\ta"],
            &[b"Bearer \xc3\xa4"],
            &[b"\xc3\xa4 a"],
            &[b""],
            &[b"(a) b"],
            &[b"Basic Zm9v"],
            &[b"Digest username=\"a\", realm=\"b\""],
            &[b"tg_abcdefgh_c2VjcmV0"],
            &[b"Bearer a", b"Bearer a"],
            &[b"Basic a", b"Bearer a"],
        ];
        let message = visible.map(|values| {
            let value = |bytes: &&[u8]| (header::AUTHORIZATION, HeaderValue::from_bytes(bytes).unwrap());
            let mut headers = HeaderMap::new();
            for (name, value) in values.iter().map(value) {
                headers.append(name, value);
            }
            let message = match Authorization::from_headers(&headers) {
                Authorization::Absent => "absent".to_owned(),
                Authorization::Bearer(token) => format!("bearer {token}"),
                Authorization::OtherScheme => "other scheme".to_owned(),
                Authorization::Malformed => "malformed".to_owned(),
            };
            let values: Vec<_> =
                values.iter().map(|value| String::from_utf8_lossy(value).escape_debug().to_string()).collect();
            format!("{:32} {message}", if values.is_empty() { "no field".to_owned() } else { values.join(" | ") })
        });
        insta::assert_snapshot!(message.join("\n"), @r#"
        no field                         absent
        Bearer abc                       bearer abc
        bEARER   a-b.c_d~e+f/g==         bearer a-b.c_d~e+f/g==
        Bearer                           malformed
        Bearer                           malformed
        Bearer =                         malformed
        Bearer a b                       malformed
        Bearer a,b                       malformed
        Bearer a, Bearer b               malformed
        Bearer a=b                       malformed
        Bearer \"a\"                     malformed
        Bearer a:b                       malformed
        Bearer\ta                        malformed
        Bearer ä                         malformed
        ä a                              malformed
                                         malformed
        (a) b                            malformed
        Basic Zm9v                       other scheme
        Digest username=\"a\", realm=\"b\" other scheme
        tg_abcdefgh_c2VjcmV0             other scheme
        Bearer a | Bearer a              malformed
        Basic a | Bearer a               malformed
        "#);
    }
}
