//! Token introspection.

use serde_json::{Value, json};
use tidegate_auth::{
    AuthenticatorOptions, CredentialAuthenticator, IntrospectionOptions, Secret, TokenKey, TokenOptions,
};
use tidegate_core::{AuthMethod, AuthenticationError, Authenticator, Credentials};

use crate::fetched_keys::authenticate;
use crate::provider::Provider;
use tidegate_testkit::token_authenticator::{
    AUDIENCE, ISSUER, MovedClock, NOW, authenticate_bearer_now, role, token_options,
};

const INVALID: AuthenticationError = AuthenticationError::Invalid;

struct IntrospectionFixture {
    provider: Provider,
    clock: MovedClock,
    authenticator: CredentialAuthenticator,
}

impl IntrospectionFixture {
    async fn new() -> Self {
        Self::with(true).await
    }

    async fn with(needs_audience: bool) -> Self {
        let (provider, clock) = (Provider::start().await, MovedClock::default());
        let introspection_options = IntrospectionOptions {
            url: provider.at("/introspect"),
            client_id: "tide gate".to_owned(),
            client_secret: Secret::new("hunter/2"),
            needs_audience,
        };
        let tokens = token_options(TokenKey::Introspection(introspection_options), &[]);
        let tokens = TokenOptions { tenant_claim: Some("tenant".to_owned()), ..tokens };
        let roles = vec![role("reader", json!({ "scope": "read" }))];
        let options = AuthenticatorOptions {
            tokens: Some(tokens),
            roles,
            clock: clock.clock(),
            ..AuthenticatorOptions::default()
        };
        Self { provider, clock, authenticator: CredentialAuthenticator::new(options).unwrap() }
    }

    /// From now on the answer about each token is `message`, by default with our audience.
    fn answer_with(&self, mut message: Value) {
        if let Some(message) = message.as_object_mut() {
            message.entry("aud").or_insert_with(|| AUDIENCE.into());
        }
        self.provider.answer("/introspect", 200, "", message);
    }

    fn questions(&self) -> usize {
        self.provider.requests("/introspect").len()
    }
}

#[tokio::test]
async fn introspects_once_a_minute() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(
        json!({ "active": true, "sub": "ada", "scope": "write read", "tenant": "north", "username": null }),
    );
    let ada = authenticate(&scene.authenticator, "opaque-token/1+2==").await.unwrap();
    assert_eq!(
        (ada.subject.as_str(), ada.tenant.as_deref(), ada.auth_method),
        ("ada", Some("north"), AuthMethod::Token)
    );
    assert!(ada.roles.contains("reader") && ada.claims.get("active").is_none() && ada.claims.get("username").is_none());
    let received_request = &scene.provider.requests("/introspect")[0];
    assert!(received_request.head.starts_with("POST /introspect HTTP/1.1\r\n"));
    assert_eq!(received_request.body, "token=opaque-token%2F1%2B2%3D%3D&token_type_hint=access_token");
    // Of "tide%20gate:hunter%2F2".
    assert!(
        received_request.head.contains("authorization: Basic dGlkZSUyMGdhdGU6aHVudGVyJTJGMg==\r\n"),
        "{}",
        received_request.head
    );
    scene.clock.pass(59);
    assert!(authenticate_bearer_now(&scene.authenticator, Some("opaque-token/1+2==")).is_ok(), "the result is cached");
    assert_eq!(scene.questions(), 1);
    scene.answer_with(json!({ "active": false }));
    scene.clock.pass(1);
    assert_eq!(authenticate(&scene.authenticator, "opaque-token/1+2==").await, Err(INVALID));
}

#[tokio::test]
async fn rejects_mismatched_introspection_claims() {
    for (message, is_good) in [
        (json!({ "active": true, "sub": "ada" }), true),
        (json!({ "active": true, "sub": "ada", "iss": ISSUER, "aud": ["x", AUDIENCE], "exp": NOW + 60 }), true),
        (json!({ "active": true, "sub": "ada", "iss": "https://other.example" }), false),
        (json!({ "active": true, "sub": "ada", "aud": "https://other.example" }), false),
        (json!({ "active": true, "sub": "ada", "aud": [] }), false),
        (json!({ "active": true, "sub": "ada", "aud": null }), false),
        (json!({ "active": true, "sub": "ada", "exp": NOW - 31 }), false),
        (json!({ "active": true, "sub": "ada", "exp": "soon" }), false),
        (json!({ "active": true, "sub": "ada", "nbf": NOW + 31 }), false),
        (json!({ "active": true, "sub": "ada", "tenant": 7 }), false),
        (json!({ "active": true, "client_id": "importer" }), true),
        (json!({ "active": true, "client_id": "importer", "sub": "" }), false),
        (json!({ "active": true, "client_id": 7 }), false),
        (json!({ "active": true }), false),
        (json!({ "active": "true", "sub": "ada" }), false),
        (json!({ "sub": "ada" }), false),
        (json!({ "active": false, "sub": "ada" }), false),
        (json!([]), false),
    ] {
        let scene = IntrospectionFixture::new().await;
        scene.answer_with(message.clone());
        assert_eq!(authenticate(&scene.authenticator, "token").await.is_ok(), is_good, "{message}");
    }
}

#[tokio::test]
async fn audience_is_optional_when_configured() {
    let scene = IntrospectionFixture::with(false).await;
    for (aud, is_good) in [(Value::Null, true), (json!(AUDIENCE), true), (json!("https://other.example"), false)] {
        scene.answer_with(json!({ "active": true, "sub": "ada", "aud": aud }));
        assert_eq!(
            authenticate(&scene.authenticator, &format!("token-{is_good}-{}", scene.questions())).await.is_ok(),
            is_good
        );
    }
}

#[tokio::test]
async fn caches_rejected_tokens() {
    let scene = IntrospectionFixture::new().await;
    scene.provider.answer("/introspect", 400, "", json!({ "error": "unsupported_token_type" }));
    for _ in 0..3 {
        assert_eq!(authenticate(&scene.authenticator, "token").await, Err(INVALID));
    }
    assert_eq!(scene.questions(), 1);
}

#[tokio::test]
async fn client_id_is_the_subject_without_sub() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": true, "client_id": "importer", "sub": null }));
    assert_eq!(authenticate(&scene.authenticator, "token").await.unwrap().subject, "importer");
    scene.answer_with(json!({ "active": true, "client_id": "importer", "sub": "ada" }));
    assert_eq!(authenticate(&scene.authenticator, "another").await.unwrap().subject, "ada");
}

#[tokio::test]
async fn caches_until_exp() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": true, "sub": "ada", "exp": NOW + 5 }));
    authenticate(&scene.authenticator, "token").await.unwrap();
    scene.clock.pass(34);
    assert!(authenticate_bearer_now(&scene.authenticator, Some("token")).is_ok(), "within the leeway");
    scene.clock.pass(1);
    assert_eq!(authenticate(&scene.authenticator, "token").await, Err(INVALID));
    assert_eq!(scene.questions(), 2);
}

#[tokio::test]
async fn retries_rejected_tokens_every_five_seconds() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": false }));
    assert_eq!(authenticate(&scene.authenticator, "token").await, Err(INVALID));
    scene.answer_with(json!({ "active": true, "sub": "ada" }));
    scene.clock.pass(4);
    assert_eq!(authenticate_bearer_now(&scene.authenticator, Some("token")), Err(INVALID));
    scene.clock.pass(1);
    assert!(authenticate(&scene.authenticator, "token").await.is_ok());
    assert_eq!(scene.questions(), 2);
}

#[tokio::test]
async fn coalesces_concurrent_queries_per_token() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": true, "sub": "ada" }));
    authenticate(&scene.authenticator, "known").await.unwrap();
    scene.provider.hold();
    leave_in_the_middle(&scene, 2).await;
    let all = futures::future::join_all((0..50).map(|_| authenticate(&scene.authenticator, "token")));
    let (found, ()) = tokio::join!(all, async {
        assert!(authenticate_bearer_now(&scene.authenticator, Some("known")).is_ok());
        scene.provider.go_on();
    });
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(scene.questions(), 2);
}

/// Drops a request with the token `token` when the issuer has received so many requests.
async fn leave_in_the_middle(scene: &IntrospectionFixture, requests: usize) {
    let first = authenticate(&scene.authenticator, "token");
    tokio::pin!(first);
    tokio::select! {
        _ = &mut first => panic!("it does not wait"),
        () = scene.provider.wait_for_requests("/introspect", requests) => {}
    }
}

#[tokio::test]
async fn introspection_goes_on_when_its_requests_are_gone() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": true, "sub": "ada" }));
    scene.provider.hold();
    leave_in_the_middle(&scene, 1).await;
    scene.provider.go_on();
    assert!(authenticate(&scene.authenticator, "token").await.is_ok());
    assert_eq!(scene.questions(), 1);
    // Without an authenticator, nobody needs the result of another one.
    scene.provider.hold();
    let IntrospectionFixture { provider, authenticator, .. } = scene;
    {
        let other = authenticate(&authenticator, "other");
        tokio::pin!(other);
        tokio::select! {
            _ = &mut other => panic!("it does not wait"),
            () = provider.wait_for_requests("/introspect", 2) => {}
        }
    }
    drop(authenticator);
    provider.wait_until_disconnected().await;
}

#[tokio::test]
async fn issuer_outage_is_not_cached() {
    let scene = IntrospectionFixture::new().await;
    for (status, body) in [(500, "{}"), (401, "{}"), (200, "<html>"), (302, "")] {
        scene.provider.answer("/introspect", status, "location: http://localhost:1/\r\n", body);
        assert_eq!(authenticate(&scene.authenticator, "token").await, Err(INVALID));
    }
    scene.answer_with(json!({ "active": true, "sub": "ada" }));
    assert!(authenticate(&scene.authenticator, "token").await.is_ok());
}

#[tokio::test]
async fn times_out_on_slow_issuer() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": true, "sub": "ada" }));
    scene.provider.hold();
    // More than the permits of one network, and of all.
    let visible = |(bearer, peer): (String, [u8; 4])| {
        let credential_authenticator = &scene.authenticator;
        async move {
            let credentials = Credentials { bearer: Some(&bearer), peer: Some(peer.into()), ..Credentials::default() };
            credential_authenticator.authenticate(credentials).await
        }
    };
    let of_one = (0..40).map(|number| (format!("greedy{number}"), [192, 0, 2, 1]));
    let of_others = (2..42).map(|number: u8| (format!("other{number}"), [192, 0, 2, number]));
    let all = futures::future::join_all(of_one.chain(of_others).map(visible));
    let (found, ()) = tokio::join!(all, async {
        scene.provider.wait_for_requests("/introspect", 32).await;
        let received_requests = scene.provider.requests("/introspect");
        let of_one =
            received_requests.iter().filter(|received_request| received_request.body.contains("greedy")).count();
        assert_eq!((received_requests.len(), of_one), (32, 8));
        // All tasks are waiting, so the paused clock advances at once.
        tokio::time::pause();
    });
    assert!(found.iter().all(|found| *found == Err(INVALID)));
}

#[tokio::test]
async fn never_introspects_malformed_tokens() {
    let scene = IntrospectionFixture::new().await;
    scene.answer_with(json!({ "active": true, "sub": "ada" }));
    for text in ["", "=", "a b", "a\nb", "é", "a=b", "tg_abcdefgh_x", &"a".repeat(16 * 1024 + 1)] {
        let visible =
            scene.authenticator.authenticate(Credentials { bearer: Some(text), ..Credentials::default() }).await;
        assert_eq!(visible, Err(INVALID), "{text:?}");
    }
    assert_eq!(scene.questions(), 0);
}
