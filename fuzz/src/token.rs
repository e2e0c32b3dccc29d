//! What must hold of whatever a caller shows: it is refused, or a token that was signed and says what it must.
//!
//! Bytes are shown as they are; and, as no fuzzer guesses a signature, a header and claims that they hold are signed and
//! shown too, so that what comes behind the signature is reached. Run by the fuzz target `token`, and by a test of
//! `tidegate-auth` over the stored corpus.

use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use serde_json::Value;
use tidegate_auth::{
    AuthenticatorOptions, Clock, CredentialAuthenticator, Secret, TokenAlgorithm, TokenKey, TokenOptions,
};
use tidegate_core::{AuthenticationError, Authenticator, Credentials, Principal};

/// When tokens are shown, in seconds since 1970.
const NOW: i64 = 2_000_000_000;
const LEEWAY_SECONDS: f64 = 30.0;
const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://tidegate.example/mcp";
const SECRET: &str = "a secret of sixty-four bytes, which is long enough for each HS...";

static AUTHENTICATOR: LazyLock<CredentialAuthenticator> = LazyLock::new(|| {
    let key = TokenKey::Secret(Secret::new(SECRET));
    let tokens = TokenOptions::new(key, ISSUER, vec![AUDIENCE.to_owned()], vec![TokenAlgorithm::Hs256]);
    let tokens = TokenOptions { tenant_claim: Some("tenant".to_owned()), ..tokens };
    let clock = Clock::new(|| DateTime::from_timestamp(NOW, 0).expect("the time is one"));
    CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        clock,
        ..AuthenticatorOptions::default()
    })
    .expect("the gate is made")
});

/// Panics when `bytes` let somebody in who must not be.
pub(crate) fn check(bytes: &[u8]) {
    if let Ok(bearer) = std::str::from_utf8(bytes) {
        // Nobody who does not know the secret is let in, so it is what the corpus holds or nothing.
        check_credential(bearer);
    }
    // A header and claims, apart by the first zero byte.
    let Some(at) = bytes.iter().position(|byte| *byte == 0) else { return };
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(&bytes[..at]), URL_SAFE_NO_PAD.encode(&bytes[at + 1..]));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), message.as_bytes());
    check_credential(&format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)));
}

fn check_credential(bearer: &str) {
    let Ok(principal) = show(bearer) else { return };
    let parts: Vec<&str> = bearer.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("let in without three parts: {bearer}") };
    let read = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("a part that was let in is Base64");
    let json = |part: &str| serde_json::from_slice::<Value>(&read(part)).expect("a part that was let in is JSON");
    let (header, claims) = (json(header), json(claims));
    let message = &bearer[..bearer.len() - signature.len() - 1];
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    hmac::verify(&key, message.as_bytes(), &read(signature)).expect("what was let in was signed");
    assert_eq!(header["alg"], "HS256", "{header}");
    assert!(header.get("crit").is_none(), "{header}");
    assert_eq!(claims["iss"], ISSUER, "{claims}");
    let is_for_us = match &claims["aud"] {
        Value::Array(audiences) => audiences.iter().any(|audience| audience == AUDIENCE),
        audience => audience == AUDIENCE,
    };
    assert!(is_for_us, "{claims}");
    assert!(claims["exp"].as_f64().is_some_and(|until| until + LEEWAY_SECONDS > NOW as f64), "{claims}");
    if let Some(from) = claims.get("nbf") {
        assert!(from.as_f64().is_some_and(|from| from - LEEWAY_SECONDS <= NOW as f64), "{claims}");
    }
    assert_eq!(claims["sub"].as_str(), Some(&*principal.subject), "{claims}");
    assert!(!principal.subject.trim().is_empty(), "{claims}");
    let tenant = claims.get("tenant").filter(|tenant| !tenant.is_null());
    assert_eq!(principal.tenant.as_deref(), tenant.map(|tenant| tenant.as_str().expect("a tenant is a text")));
}

/// No token that is signed with a secret has anything to wait for.
fn show(bearer: &str) -> Result<Arc<Principal>, AuthenticationError> {
    let mut answer = AUTHENTICATOR.authenticate(Credentials { bearer: Some(bearer), ..Credentials::default() });
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the gate waits"),
    }
}
