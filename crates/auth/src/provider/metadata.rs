//! What an issuer says of itself ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-3) and
//! [OpenID Connect Discovery](https://openid.net/specs/openid-connect-discovery-1_0.html)), of which we want to know
//! where its keys are.

use reqwest::Url;
use serde_json::{Map, Value};

use super::{Failure, Http, is_loopback, parse};

/// Where the keys of `issuer` are. `url` is the same issuer as an address.
///
/// # Errors
/// When it does not say so, or is not who it should be.
pub(crate) async fn key_set_address(http: &Http, issuer: &str, url: &Url) -> Result<Url, Failure> {
    let mut last = Failure::NoKeySet;
    for place in places(url) {
        match http.get(&place).await {
            // An issuer that does not know one of the places may know another, and some show a page for people there.
            Ok(page) => match read(&page.body, issuer, url) {
                Err(failure @ Failure::NotJson) => last = failure,
                found => return found,
            },
            Err(failure @ Failure::Status(_)) => last = failure,
            Err(failure) => return Err(failure),
        }
    }
    Err(last)
}

/// The places at which metadata may lie, in the order of the MCP specification: inserted before the path, as RFC 8414
/// has it, for both names; then after it, as OpenID has it.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place.set_query(None);
        place
    };
    paths.into_iter().map(at).collect()
}

fn read(body: &[u8], issuer: &str, url: &Url) -> Result<Url, Failure> {
    let metadata: Map<String, Value> = serde_json::from_slice(body).map_err(|_| Failure::NotJson)?;
    let named = metadata.get("issuer").and_then(Value::as_str).unwrap_or_default();
    if named != issuer {
        return Err(Failure::WrongIssuer(named.chars().take(200).collect()));
    }
    let keys = metadata.get("jwks_uri").and_then(Value::as_str).ok_or(Failure::NoKeySet)?;
    let keys = parse(keys).map_err(Failure::KeySetAddress)?;
    // An issuer elsewhere has no business with what listens on this machine.
    if is_loopback(&keys) && !is_loopback(url) {
        return Err(Failure::KeySetAddress(super::AddressError::NotPrivate));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_lie_where_the_specifications_say() {
        let places = |issuer: &str| -> Vec<String> {
            super::places(&Url::parse(issuer).unwrap()).into_iter().map(String::from).collect()
        };
        let bare = [
            "https://login.example/.well-known/oauth-authorization-server",
            "https://login.example/.well-known/openid-configuration",
        ];
        assert_eq!(places("https://login.example"), bare);
        assert_eq!(places("https://login.example/"), bare);
        assert_eq!(
            places("https://login.example:8443/realms/one/"),
            [
                "https://login.example:8443/.well-known/oauth-authorization-server/realms/one",
                "https://login.example:8443/.well-known/openid-configuration/realms/one",
                "https://login.example:8443/realms/one/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn metadata_of_another_issuer_and_keys_at_odd_places_do_not_count() {
        let of = |metadata: &str| {
            let url = Url::parse("https://login.example").unwrap();
            read(metadata.as_bytes(), "https://login.example", &url).map(String::from)
        };
        let keys = r#"{"issuer": "https://login.example", "jwks_uri": "https://keys.example/set"}"#;
        assert_eq!(of(keys), Ok("https://keys.example/set".to_owned()));
        assert_eq!(of("[]"), Err(Failure::NotJson));
        let other = r#"{"issuer": "https://login.example/", "jwks_uri": "https://keys.example/set"}"#;
        assert_eq!(of(other), Err(Failure::WrongIssuer("https://login.example/".to_owned())));
        assert_eq!(of(r#"{"issuer": "https://login.example"}"#), Err(Failure::NoKeySet));
        for odd in ["http://keys.example", "file:///etc/passwd", "http://127.0.0.1:1/set", "https://[::1]/set"] {
            let metadata = format!(r#"{{"issuer": "https://login.example", "jwks_uri": "{odd}"}}"#);
            assert!(matches!(of(&metadata), Err(Failure::KeySetAddress(_))), "{odd}");
        }
    }
}
