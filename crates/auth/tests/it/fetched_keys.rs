//! Keys that an issuer publishes: rotation, outage, slowness, and replaced authenticators.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_auth::{
    AuthenticatorOptions, CredentialAuthenticator, ReloadableAuthenticator, TokenAlgorithm, TokenKey, TokenOptions,
};

use crate::provider::Provider;
use tidegate_testkit::token_authenticator::{MovedClock, NOW, token_options};
use tidegate_testkit::token_signer::{OTHER_RSA, P256, RSA, Signer, claims, claims_with, message};

use TokenAlgorithm::{Es256, Hs256, Rs256};
use tidegate_core::{AuthenticationError, Authenticator, Credentials, Principal};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

pub(crate) async fn authenticate(
    authenticator: &dyn Authenticator,
    bearer: &str,
) -> Result<Arc<Principal>, AuthenticationError> {
    authenticator.authenticate(Credentials { bearer: Some(bearer), ..Credentials::default() }).await
}

fn options(provider: &Provider) -> TokenOptions {
    token_options(TokenKey::JwksUrl(provider.at("/keys")), &[Rs256, Es256])
}

fn authenticator(tokens: TokenOptions, clock: &MovedClock) -> CredentialAuthenticator {
    CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        clock: clock.clock(),
        ..AuthenticatorOptions::default()
    })
    .unwrap()
}

fn named(signer: &Signer, id: &str) -> Value {
    signer.jwk_with(json!({ "kid": id }))
}

/// A good token of `signer` at the time of `clock`, whose key it calls `id`.
fn token(signer: &Signer, id: &str, clock: &MovedClock) -> String {
    let algorithm = if matches!(signer, Signer::P256(_)) { Es256 } else { Rs256 };
    let claims = claims_with(json!({ "exp": clock.seconds() + 300 }));
    signer.token_with_header(algorithm, &json!({ "alg": algorithm.name(), "kid": id }), &claims)
}

/// Sends new tokens of `signer` until one is rejected.
async fn until_refused(authenticator: &dyn Authenticator, token: &str) {
    while authenticate(authenticator, token).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn only_the_first_token_waits_for_keys() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    assert_eq!(authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap().subject, "ada");
    provider.hold();
    assert!(
        tidegate_testkit::token_authenticator::authenticate_bearer_now(
            &credential_authenticator,
            Some(&token(&RSA, "one", &clock))
        )
        .is_ok()
    );
    let other =
        RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims_with(json!({"sub": "bob"})));
    assert_eq!(
        tidegate_testkit::token_authenticator::authenticate_bearer_now(&credential_authenticator, Some(&other))
            .unwrap()
            .subject,
        "bob",
        "available keys cause no wait"
    );
    assert_eq!(provider.requests("/keys").len(), 1);
    provider.go_on();
}

#[tokio::test]
async fn coalesces_concurrent_fetches() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    provider.hold();
    let credential_authenticator = authenticator(options(&provider), &clock);
    let token = token(&RSA, "one", &clock);
    let all = futures::future::join_all((0..50).map(|_| authenticate(&credential_authenticator, &token)));
    let (found, ()) = tokio::join!(all, async {
        provider.wait_for_requests("/keys", 1).await;
        provider.go_on();
    });
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(provider.requests("/keys").len(), 1);
}

#[tokio::test]
async fn unknown_kid_refetches_at_most_every_ten_seconds() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    provider.show_keys(&[named(&RSA, "one"), named(&P256, "two")]);
    let new = token(&P256, "two", &clock);
    for _ in 0..5 {
        assert_eq!(
            authenticate(&credential_authenticator, &new).await,
            Err(AuthenticationError::Invalid),
            "it was asked a moment ago"
        );
    }
    assert_eq!(provider.requests("/keys").len(), 1);
    clock.pass(10);
    assert!(authenticate(&credential_authenticator, &new).await.is_ok());
    assert!(authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.is_ok());
    for id in ["three", "four", "five"] {
        assert_eq!(
            authenticate(&credential_authenticator, &token(&P256, id, &clock)).await,
            Err(AuthenticationError::Invalid)
        );
    }
    assert_eq!(provider.requests("/keys").len(), 2);
}

#[tokio::test]
async fn invalid_claims_never_trigger_a_fetch() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    clock.pass(20);
    let header = json!({ "alg": "RS256", "kid": "new" });
    let bad = |changes| OTHER_RSA.token_with_header(Rs256, &header, &claims_with(changes));
    let secret = Signer::Secret(RSA.pem());
    let bad = [
        ("expired", bad(json!({ "exp": NOW - 300 }))),
        ("not yet valid", bad(json!({ "nbf": NOW + 300 }))),
        ("another issuer", bad(json!({ "iss": "https://other.example" }))),
        ("another audience", bad(json!({ "aud": "https://other.example" }))),
        ("nobody's", bad(json!({ "sub": null }))),
        ("none", format!("{}.", message(&json!({ "alg": "none", "kid": "new" }), &claims()))),
        ("a secret", secret.token_with_header(Hs256, &json!({ "alg": "HS256", "kid": "new" }), &claims())),
        ("garbage", "a.b.c".to_owned()),
        ("signed by another", OTHER_RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims())),
        (
            "signed with the public key",
            secret.token_with_header(Hs256, &json!({ "alg": "RS256", "kid": "one" }), &claims()),
        ),
    ];
    for (case, token) in bad {
        assert_eq!(authenticate(&credential_authenticator, &token).await, Err(AuthenticationError::Invalid), "{case}");
    }
    assert_eq!(provider.requests("/keys").len(), 1);
    assert_eq!(
        authenticate(&credential_authenticator, &token(&OTHER_RSA, "new", &clock)).await,
        Err(AuthenticationError::Invalid)
    );
    assert_eq!(provider.requests("/keys").len(), 2, "this one was");
}

#[tokio::test]
async fn rotated_key_invalidates_cached_tokens() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    let old = token(&RSA, "one", &clock);
    authenticate(&credential_authenticator, &old).await.unwrap();
    provider.show_keys(&[named(&P256, "two")]);
    clock.pass(20);
    assert!(authenticate(&credential_authenticator, &old).await.is_ok(), "the change is not fetched yet");
    assert!(authenticate(&credential_authenticator, &token(&P256, "two", &clock)).await.is_ok());
    assert_eq!(authenticate(&credential_authenticator, &old).await, Err(AuthenticationError::Invalid));
}

#[tokio::test]
async fn refetches_stale_keys() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    // All keys are withdrawn, and no token requests a new one.
    provider.show_keys(&[]);
    clock.pass(10 * MINUTE - 1);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    assert_eq!(provider.requests("/keys").len(), 1);
    clock.pass(1);
    until_refused(&credential_authenticator, &token(&RSA, "one", &clock)).await;
    assert_eq!(provider.requests("/keys").len(), 2);
}

#[tokio::test]
async fn cache_lifetime_is_bounded() {
    for (says, seconds) in [
        ("", 5 * MINUTE),
        ("cache-control: no-store\r\n", MINUTE),
        ("cache-control: max-age=1\r\n", MINUTE),
        ("cache-control: max-age=nonsense\r\n", 5 * MINUTE),
        ("cache-control: public, Max-Age=120\r\n", 2 * MINUTE),
        ("cache-control: max-age=99999999\r\n", HOUR),
    ] {
        let (provider, clock) = (Provider::start().await, MovedClock::default());
        provider.answer("/keys", 200, says, json!({ "keys": [named(&RSA, "one")] }));
        let credential_authenticator = authenticator(options(&provider), &clock);
        authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
        clock.pass(seconds - 1);
        authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(provider.requests("/keys").len(), 1, "{says}");
        clock.pass(1);
        authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
        provider.wait_for_requests("/keys", 2).await;
    }
}

#[tokio::test]
async fn uses_stale_keys_for_an_hour() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    provider.answer("/keys", 503, "", "");
    clock.pass(10 * MINUTE + HOUR - 1);
    assert!(authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.is_ok());
    provider.wait_for_requests("/keys", 2).await;
    clock.pass(1);
    assert_eq!(
        authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await,
        Err(AuthenticationError::Invalid)
    );
    // The issuer is available again.
    provider.show_keys(&[named(&RSA, "one")]);
    clock.pass(10);
    assert!(authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.is_ok());
}

#[tokio::test]
async fn invalid_key_set_keeps_the_previous_keys() {
    let private = json!({ "keys": [RSA.jwk_with(json!({ "kid": "one", "d": "hunter2" }))] }).to_string();
    let huge = json!({ "keys": [named(&P256, "two")], "x": "x".repeat(300 * 1024) }).to_string();
    let good = json!({ "keys": [named(&P256, "two")] }).to_string();
    for (status, headers, body) in [
        (200, "", "<html>".to_owned()),
        (200, "", "{}".to_owned()),
        (200, "", private),
        (200, "", huge),
        (404, "", good.clone()),
        (500, "", good.clone()),
        (302, "location: http://localhost:1/keys\r\n", good.clone()),
        (302, "location: /nowhere\r\n", good),
    ] {
        let (provider, clock) = (Provider::start().await, MovedClock::default());
        provider.show_keys(&[named(&RSA, "one")]);
        let credential_authenticator = authenticator(options(&provider), &clock);
        authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
        provider.answer("/keys", status, headers, body);
        clock.pass(10);
        assert_eq!(
            authenticate(&credential_authenticator, &token(&P256, "two", &clock)).await,
            Err(AuthenticationError::Invalid)
        );
        assert_eq!(provider.requests("/keys").len(), 2);
        assert!(authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.is_ok());
    }
}

#[tokio::test]
async fn follows_same_origin_redirects_only() {
    let (provider, elsewhere, clock) = (Provider::start().await, Provider::start().await, MovedClock::default());
    provider.answer("/keys", 302, "location: /moved\r\n", "");
    provider.answer("/moved", 200, "", json!({ "keys": [named(&RSA, "one")] }));
    let here = authenticator(options(&provider), &clock);
    assert!(authenticate(&here, &token(&RSA, "one", &clock)).await.is_ok());
    elsewhere.answer("/keys", 302, &format!("location: {}\r\n", provider.at("/moved")), "");
    let there = authenticator(options(&elsewhere), &clock);
    assert_eq!(authenticate(&there, &token(&RSA, "one", &clock)).await, Err(AuthenticationError::Invalid));
    assert_eq!(provider.requests("/moved").len(), 1);
}

#[tokio::test]
async fn starts_without_issuer_and_recovers() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.answer("/keys", 503, "", "");
    let reloadable_authenticator = ReloadableAuthenticator::new(authenticator(options(&provider), &clock));
    provider.wait_for_requests("/keys", 1).await;
    assert_eq!(
        authenticate(&reloadable_authenticator, &token(&RSA, "one", &clock)).await,
        Err(AuthenticationError::Invalid)
    );
    provider.show_keys(&[named(&RSA, "one")]);
    clock.pass(10);
    assert!(authenticate(&reloadable_authenticator, &token(&RSA, "one", &clock)).await.is_ok());
    let nobody = token_options(TokenKey::JwksUrl("http://127.0.0.1:1/keys".to_owned()), &[Rs256]);
    assert_eq!(
        authenticate(&authenticator(nobody, &clock), &token(&RSA, "one", &clock)).await,
        Err(AuthenticationError::Invalid)
    );
}

#[tokio::test]
async fn slow_issuer_delays_only_its_own_tokens() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    provider.hold();
    clock.pass(20);
    let new = token(&P256, "two", &clock);
    let waiting = authenticate(&credential_authenticator, &new);
    tokio::pin!(waiting);
    tokio::select! {
        _ = &mut waiting => panic!("it does not wait"),
        () = provider.wait_for_requests("/keys", 2) => {}
    }
    assert!(
        tidegate_testkit::token_authenticator::authenticate_bearer_now(
            &credential_authenticator,
            Some(&token(&RSA, "one", &clock))
        )
        .is_ok()
    );
    // All tasks are waiting, so the paused clock advances at once.
    tokio::time::pause();
    assert_eq!(waiting.await, Err(AuthenticationError::Invalid));
}

#[tokio::test]
async fn background_fetch_ends_on_drop() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.hold();
    let reloadable_authenticator = ReloadableAuthenticator::new(authenticator(options(&provider), &clock));
    provider.wait_for_requests("/keys", 1).await;
    drop(reloadable_authenticator);
    provider.wait_until_disconnected().await;
}

#[tokio::test]
async fn swap_reuses_fetched_keys() {
    let (provider, other, clock) = (Provider::start().await, Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    other.show_keys(&[named(&P256, "two")]);
    let reloadable_authenticator = ReloadableAuthenticator::new(authenticator(options(&provider), &clock));
    let (one, two) = (token(&RSA, "one", &clock), token(&P256, "two", &clock));
    authenticate(&reloadable_authenticator, &one).await.unwrap();
    provider.hold();
    reloadable_authenticator.swap(authenticator(options(&provider), &clock));
    assert!(
        tidegate_testkit::token_authenticator::authenticate_bearer_now(&reloadable_authenticator, Some(&one)).is_ok(),
        "the keys are taken over"
    );
    assert_eq!(provider.requests("/keys").len(), 1);
    // Other options of the next authenticator apply, although the keys are the same.
    reloadable_authenticator
        .swap(authenticator(TokenOptions { issuer: "https://other.example".to_owned(), ..options(&provider) }, &clock));
    assert_eq!(
        tidegate_testkit::token_authenticator::authenticate_bearer_now(&reloadable_authenticator, Some(&one)),
        Err(AuthenticationError::Invalid)
    );
    reloadable_authenticator.swap(authenticator(options(&other), &clock));
    assert_eq!(
        authenticate(&reloadable_authenticator, &one).await,
        Err(AuthenticationError::Invalid),
        "those of another place do not count"
    );
    assert!(authenticate(&reloadable_authenticator, &two).await.is_ok());
    provider.go_on();
}

#[tokio::test]
async fn tolerates_clock_going_back() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let credential_authenticator = authenticator(options(&provider), &clock);
    authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.unwrap();
    clock.pass(-HOUR);
    assert!(authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await.is_ok());
    provider.wait_for_requests("/keys", 2).await;
}

#[tokio::test]
async fn discovers_the_key_set() {
    for place in [
        "/.well-known/oauth-authorization-server/one",
        "/.well-known/openid-configuration/one",
        "/one/.well-known/openid-configuration",
    ] {
        let (provider, clock) = (Provider::start().await, MovedClock::default());
        let issuer = provider.at("/one");
        provider.show_keys(&[named(&RSA, "one")]);
        provider.answer(place, 200, "", json!({ "issuer": issuer, "jwks_uri": provider.at("/keys") }));
        let credential_authenticator = authenticator(
            TokenOptions { issuer: issuer.clone(), ..token_options(TokenKey::Discovery, &[Rs256]) },
            &clock,
        );
        let claims = claims_with(json!({ "iss": issuer }));
        let good = RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims);
        assert!(authenticate(&credential_authenticator, &good).await.is_ok(), "{place}");
        assert_eq!(
            authenticate(&credential_authenticator, &token(&RSA, "one", &clock)).await,
            Err(AuthenticationError::Invalid),
            "of another issuer"
        );
    }
}

#[tokio::test]
async fn rejects_metadata_of_another_issuer() {
    let (provider, clock) = (Provider::start().await, MovedClock::default());
    provider.show_keys(&[named(&RSA, "one")]);
    let metadata = json!({ "issuer": "https://other.example", "jwks_uri": provider.at("/keys") });
    provider.answer("/.well-known/oauth-authorization-server", 200, "", metadata);
    let options = TokenOptions { issuer: provider.url.clone(), ..token_options(TokenKey::Discovery, &[Rs256]) };
    let credential_authenticator = authenticator(options, &clock);
    let claims = claims_with(json!({ "iss": provider.url }));
    let token = RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims);
    assert_eq!(authenticate(&credential_authenticator, &token).await, Err(AuthenticationError::Invalid));
    assert!(provider.requests("/keys").is_empty());
}
