//! Keys that an issuer shows over the network: rotation, outage, slowness, and one gate after another.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_auth::{Doorkeeper, Gate, GateOptions, TokenAlgorithm, TokenKey, TokenOptions};
use tidegate_core::{Authenticator, Credentials, Principal, Unauthenticated};

use crate::provider::Provider;
use crate::scene::{MovedClock, NOW, token_options};
use crate::signer::{OTHER_RSA, P256, RSA, Signer, claims, claims_with, message};

use TokenAlgorithm::{Es256, Hs256, Rs256};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

pub(crate) async fn shown(door: &dyn Authenticator, bearer: &str) -> Result<Arc<Principal>, Unauthenticated> {
    door.authenticate(Credentials { bearer: Some(bearer), ..Credentials::default() }).await
}

fn options(provider: &Provider) -> TokenOptions {
    token_options(TokenKey::JwksUrl(provider.at("/keys")), &[Rs256, Es256])
}

fn gate(tokens: TokenOptions, clock: &MovedClock) -> Gate {
    Gate::new(GateOptions { tokens: Some(tokens), clock: clock.clock(), ..GateOptions::default() }).unwrap()
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

/// Shows new tokens of `signer` until one is refused.
async fn until_refused(gate: &dyn Authenticator, token: &str) {
    while shown(gate, token).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_first_token_waits_for_the_keys_and_the_next_ones_do_not() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    assert_eq!(shown(&gate, &token(&RSA, "one", &clock)).await.unwrap().subject, "ada");
    provider.hold();
    assert!(crate::scene::show(&gate, Some(&token(&RSA, "one", &clock))).is_ok());
    let other =
        RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims_with(json!({"sub": "bob"})));
    assert_eq!(crate::scene::show(&gate, Some(&other)).unwrap().subject, "bob", "nobody waits for keys that are there");
    assert_eq!(provider.asked("/keys").len(), 1);
    provider.go_on();
}

#[tokio::test]
async fn all_who_wait_wait_for_one_fetch() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    provider.hold();
    let gate = gate(options(&provider), &clock);
    let token = token(&RSA, "one", &clock);
    let all = futures::future::join_all((0..50).map(|_| shown(&gate, &token)));
    let (found, ()) = tokio::join!(all, async {
        provider.until_asked("/keys", 1).await;
        provider.go_on();
    });
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(provider.asked("/keys").len(), 1);
}

#[tokio::test]
async fn a_new_key_is_found_with_the_first_token_that_names_it_but_not_more_often_than_every_ten_seconds() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
    provider.show_keys(&[named(&RSA, "one"), named(&P256, "two")]);
    let new = token(&P256, "two", &clock);
    for _ in 0..5 {
        assert_eq!(shown(&gate, &new).await, Err(Unauthenticated::Invalid), "it was asked a moment ago");
    }
    assert_eq!(provider.asked("/keys").len(), 1);
    clock.pass(10);
    assert!(shown(&gate, &new).await.is_ok());
    assert!(shown(&gate, &token(&RSA, "one", &clock)).await.is_ok());
    for id in ["three", "four", "five"] {
        assert_eq!(shown(&gate, &token(&P256, id, &clock)).await, Err(Unauthenticated::Invalid));
    }
    assert_eq!(provider.asked("/keys").len(), 2);
}

#[tokio::test]
async fn only_a_token_that_a_key_could_make_good_is_worth_a_question() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
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
        assert_eq!(shown(&gate, &token).await, Err(Unauthenticated::Invalid), "{case}");
    }
    assert_eq!(provider.asked("/keys").len(), 1);
    assert_eq!(shown(&gate, &token(&OTHER_RSA, "new", &clock)).await, Err(Unauthenticated::Invalid));
    assert_eq!(provider.asked("/keys").len(), 2, "this one was");
}

#[tokio::test]
async fn a_key_that_was_rotated_away_ends_with_the_next_fetch_remembered_tokens_included() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    let old = token(&RSA, "one", &clock);
    shown(&gate, &old).await.unwrap();
    provider.show_keys(&[named(&P256, "two")]);
    clock.pass(20);
    assert!(shown(&gate, &old).await.is_ok(), "nobody knows yet");
    assert!(shown(&gate, &token(&P256, "two", &clock)).await.is_ok());
    assert_eq!(shown(&gate, &old).await, Err(Unauthenticated::Invalid));
}

#[tokio::test]
async fn keys_are_fetched_again_when_their_time_is_over() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
    // All keys are taken away, and nobody shows a token that asks for a new one.
    provider.show_keys(&[]);
    clock.pass(10 * MINUTE - 1);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
    assert_eq!(provider.asked("/keys").len(), 1);
    clock.pass(1);
    until_refused(&gate, &token(&RSA, "one", &clock)).await;
    assert_eq!(provider.asked("/keys").len(), 2);
}

#[tokio::test]
async fn how_long_keys_are_kept_has_bounds() {
    for (says, seconds) in [
        ("", 5 * MINUTE),
        ("cache-control: no-store\r\n", MINUTE),
        ("cache-control: max-age=1\r\n", MINUTE),
        ("cache-control: max-age=nonsense\r\n", 5 * MINUTE),
        ("cache-control: public, Max-Age=120\r\n", 2 * MINUTE),
        ("cache-control: max-age=99999999\r\n", HOUR),
    ] {
        let (provider, clock) = (Provider::start().await, MovedClock::new());
        provider.answer("/keys", 200, says, json!({ "keys": [named(&RSA, "one")] }));
        let gate = gate(options(&provider), &clock);
        shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
        clock.pass(seconds - 1);
        shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(provider.asked("/keys").len(), 1, "{says}");
        clock.pass(1);
        shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
        provider.until_asked("/keys", 2).await;
    }
}

#[tokio::test]
async fn while_the_issuer_is_down_its_keys_count_for_an_hour_more() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
    provider.answer("/keys", 503, "", "");
    clock.pass(10 * MINUTE + HOUR - 1);
    assert!(shown(&gate, &token(&RSA, "one", &clock)).await.is_ok());
    provider.until_asked("/keys", 2).await;
    clock.pass(1);
    assert_eq!(shown(&gate, &token(&RSA, "one", &clock)).await, Err(Unauthenticated::Invalid));
    // It is back.
    provider.show_keys(&[named(&RSA, "one")]);
    clock.pass(10);
    assert!(shown(&gate, &token(&RSA, "one", &clock)).await.is_ok());
}

#[tokio::test]
async fn what_is_no_key_set_changes_nothing() {
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
        let (provider, clock) = (Provider::start().await, MovedClock::new());
        provider.show_keys(&[named(&RSA, "one")]);
        let gate = gate(options(&provider), &clock);
        shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
        provider.answer("/keys", status, headers, body);
        clock.pass(10);
        assert_eq!(shown(&gate, &token(&P256, "two", &clock)).await, Err(Unauthenticated::Invalid));
        assert_eq!(provider.asked("/keys").len(), 2);
        assert!(shown(&gate, &token(&RSA, "one", &clock)).await.is_ok());
    }
}

#[tokio::test]
async fn a_redirect_is_followed_at_the_same_place_only() {
    let (provider, elsewhere, clock) = (Provider::start().await, Provider::start().await, MovedClock::new());
    provider.answer("/keys", 302, "location: /moved\r\n", "");
    provider.answer("/moved", 200, "", json!({ "keys": [named(&RSA, "one")] }));
    let here = gate(options(&provider), &clock);
    assert!(shown(&here, &token(&RSA, "one", &clock)).await.is_ok());
    elsewhere.answer("/keys", 302, &format!("location: {}\r\n", provider.at("/moved")), "");
    let there = gate(options(&elsewhere), &clock);
    assert_eq!(shown(&there, &token(&RSA, "one", &clock)).await, Err(Unauthenticated::Invalid));
    assert_eq!(provider.asked("/moved").len(), 1);
}

#[tokio::test]
async fn a_gate_is_made_though_the_issuer_is_down_and_takes_tokens_when_it_is_up() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.answer("/keys", 503, "", "");
    let door = Doorkeeper::new(gate(options(&provider), &clock));
    provider.until_asked("/keys", 1).await;
    assert_eq!(shown(&door, &token(&RSA, "one", &clock)).await, Err(Unauthenticated::Invalid));
    provider.show_keys(&[named(&RSA, "one")]);
    clock.pass(10);
    assert!(shown(&door, &token(&RSA, "one", &clock)).await.is_ok());
    let nobody = token_options(TokenKey::JwksUrl("http://127.0.0.1:1/keys".to_owned()), &[Rs256]);
    assert_eq!(shown(&gate(nobody, &clock), &token(&RSA, "one", &clock)).await, Err(Unauthenticated::Invalid));
}

#[tokio::test]
async fn a_slow_issuer_holds_up_those_who_need_it_for_five_seconds_and_nobody_else() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
    provider.hold();
    clock.pass(20);
    let new = token(&P256, "two", &clock);
    let waiting = shown(&gate, &new);
    tokio::pin!(waiting);
    tokio::select! {
        _ = &mut waiting => panic!("it does not wait"),
        () = provider.until_asked("/keys", 2) => {}
    }
    assert!(crate::scene::show(&gate, Some(&token(&RSA, "one", &clock))).is_ok());
    // Nobody does anything but wait: the time passes at once.
    tokio::time::pause();
    assert_eq!(waiting.await, Err(Unauthenticated::Invalid));
}

#[tokio::test]
async fn what_goes_on_in_the_background_ends_with_the_gate() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.hold();
    let door = Doorkeeper::new(gate(options(&provider), &clock));
    provider.until_asked("/keys", 1).await;
    drop(door);
    provider.until_left().await;
}

#[tokio::test]
async fn keys_are_handed_on_to_the_next_gate_of_the_same_place() {
    let (provider, other, clock) = (Provider::start().await, Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    other.show_keys(&[named(&P256, "two")]);
    let door = Doorkeeper::new(gate(options(&provider), &clock));
    let (one, two) = (token(&RSA, "one", &clock), token(&P256, "two", &clock));
    shown(&door, &one).await.unwrap();
    provider.hold();
    door.swap(gate(options(&provider), &clock));
    assert!(crate::scene::show(&door, Some(&one)).is_ok(), "nobody waits");
    assert_eq!(provider.asked("/keys").len(), 1);
    // What else the next gate demands counts, though the keys are the same.
    door.swap(gate(TokenOptions { issuer: "https://other.example".to_owned(), ..options(&provider) }, &clock));
    assert_eq!(crate::scene::show(&door, Some(&one)), Err(Unauthenticated::Invalid));
    door.swap(gate(options(&other), &clock));
    assert_eq!(shown(&door, &one).await, Err(Unauthenticated::Invalid), "those of another place do not count");
    assert!(shown(&door, &two).await.is_ok());
    provider.go_on();
}

#[tokio::test]
async fn a_clock_that_goes_back_locks_nobody_out() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let gate = gate(options(&provider), &clock);
    shown(&gate, &token(&RSA, "one", &clock)).await.unwrap();
    clock.pass(-HOUR);
    assert!(shown(&gate, &token(&RSA, "one", &clock)).await.is_ok());
    provider.until_asked("/keys", 2).await;
}

#[tokio::test]
async fn the_issuer_says_where_its_keys_are() {
    for place in [
        "/.well-known/oauth-authorization-server/one",
        "/.well-known/openid-configuration/one",
        "/one/.well-known/openid-configuration",
    ] {
        let (provider, clock) = (Provider::start().await, MovedClock::new());
        let issuer = provider.at("/one");
        provider.show_keys(&[named(&RSA, "one")]);
        provider.answer(place, 200, "", json!({ "issuer": issuer, "jwks_uri": provider.at("/keys") }));
        let gate =
            gate(TokenOptions { issuer: issuer.clone(), ..token_options(TokenKey::Discovery, &[Rs256]) }, &clock);
        let claims = claims_with(json!({ "iss": issuer }));
        let good = RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims);
        assert!(shown(&gate, &good).await.is_ok(), "{place}");
        assert_eq!(shown(&gate, &token(&RSA, "one", &clock)).await, Err(Unauthenticated::Invalid), "of another issuer");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_do_not_count() {
    let (provider, clock) = (Provider::start().await, MovedClock::new());
    provider.show_keys(&[named(&RSA, "one")]);
    let metadata = json!({ "issuer": "https://other.example", "jwks_uri": provider.at("/keys") });
    provider.answer("/.well-known/oauth-authorization-server", 200, "", metadata);
    let options = TokenOptions { issuer: provider.url.clone(), ..token_options(TokenKey::Discovery, &[Rs256]) };
    let gate = gate(options, &clock);
    let claims = claims_with(json!({ "iss": provider.url }));
    let token = RSA.token_with_header(Rs256, &json!({ "alg": "RS256", "kid": "one" }), &claims);
    assert_eq!(shown(&gate, &token).await, Err(Unauthenticated::Invalid));
    assert!(provider.asked("/keys").is_empty());
}
