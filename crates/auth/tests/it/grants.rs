//! Roles of keys and tokens, and their combined grants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_auth::{AuthenticatorOptions, CredentialAuthenticator, KeyFile, Secret, TokenAlgorithm, TokenKey};
use tidegate_core::{Grants, ImpliedScopes, Principal};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use tidegate_testkit::token_authenticator::{MovedClock, authenticate_bearer_now, role, token_options};
use tidegate_testkit::token_signer::{SECRET, Signer, claims_with};

/// The principal of a token with `claims`, where the role `r` requires `expected`.
fn holder(expected: Value, claims: Value) -> Arc<Principal> {
    let mut tokens = token_options(TokenKey::Secret(Secret::new(SECRET)), &[TokenAlgorithm::Hs256]);
    let implied = [("admin", "write"), ("write", "list")];
    let implied = implied.map(|(broad, narrow)| (broad.to_owned(), vec![narrow.to_owned()]));
    tokens.implied_scopes = Arc::new(ImpliedScopes::new(&implied.into()).unwrap());
    let clock = MovedClock::default().clock();
    let roles = vec![role("r", expected)];
    let credential_authenticator = CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        roles,
        clock,
        ..AuthenticatorOptions::default()
    })
    .unwrap();
    let token = Signer::Secret(SECRET.to_owned()).token(TokenAlgorithm::Hs256, &claims_with(claims));
    let principal = authenticate_bearer_now(&credential_authenticator, Some(&token)).unwrap();
    assert!(principal.implied_scopes.implies("admin", "list"), "access checks read it from the principal");
    principal
}

#[test]
fn claims_give_roles() {
    let cases = [
        (json!({}), json!({ "groups": ["a"] }), false),
        (json!({ "groups": "a" }), json!({}), false),
        (json!({ "groups": "a" }), json!({ "groups": "a" }), true),
        (json!({ "groups": "a" }), json!({ "groups": "A" }), false),
        (json!({ "groups": "a" }), json!({ "groups": ["b", "a"] }), true),
        (json!({ "groups": "a" }), json!({ "groups": ["b", "ab"] }), false),
        (json!({ "groups": "a" }), json!({ "groups": "a b" }), false),
        (json!({ "groups": ["a", "b"] }), json!({ "groups": "b" }), true),
        (json!({ "groups": ["a", "b"] }), json!({ "groups": ["c", "b"] }), true),
        (json!({ "groups": ["a", "b"] }), json!({ "groups": ["c"] }), false),
        (json!({ "groups": [] }), json!({ "groups": [] }), false),
        (json!({ "staff": true }), json!({ "staff": true }), true),
        (json!({ "staff": true }), json!({ "staff": "true" }), false),
        (json!({ "level": 3 }), json!({ "level": 3 }), true),
        (json!({ "groups": "a", "staff": true }), json!({ "groups": ["a"], "staff": true }), true),
        (json!({ "groups": "a", "staff": true }), json!({ "groups": ["a"] }), false),
        (json!({ "scope": "read" }), json!({ "scope": "write read" }), true),
        (json!({ "scope": "read" }), json!({ "scope": "reader write" }), false),
        (json!({ "scope": ["read", "all"] }), json!({ "scope": "write all" }), true),
        (json!({ "scope": "read" }), json!({ "scope": ["read"] }), true),
        (json!({ "scope": "" }), json!({ "scope": "read" }), false),
        (json!({ "scope": "read write" }), json!({ "scope": "write read more" }), true),
        (json!({ "scp": "read write" }), json!({ "scp": ["write", "read"] }), true),
        (json!({ "scope": "read write" }), json!({ "scope": "read" }), false),
        (json!({ "scope": ["read write", "all"] }), json!({ "scope": "write" }), false),
        (json!({ "scope": "list" }), json!({ "scope": "admin" }), true),
        (json!({ "scope": "list" }), json!({ "scope": "read" }), false),
        (json!({ "scope": "admin" }), json!({ "scope": "list" }), false),
        (json!({ "scope": ["list", "all"] }), json!({ "scope": ["other", "write"] }), true),
        (json!({ "scp": "list" }), json!({ "scp": "other write" }), true),
        (json!({ "groups": "list" }), json!({ "groups": "admin" }), false),
        (json!({ "sub": "ada" }), json!({}), true),
    ];
    for (expected, claims, is_held) in cases {
        let principal = holder(expected.clone(), claims.clone());
        assert_eq!(principal.roles.contains("r"), is_held, "wanted {expected}, claimed {claims}");
        assert_eq!(principal.grants.entries.includes("r_a"), is_held);
    }
}

#[test]
fn without_a_role_there_are_no_grants() {
    assert_eq!(*holder(json!({}), json!({})).grants, Grants::default());
}

#[test]
fn shares_grants_of_equal_role_sets() {
    let folder = tempfile::tempdir().unwrap();
    let moved_clock = MovedClock::default();
    let keys = KeyFile::new(folder.path().join("keys.json")).with_clock(moved_clock.clock());
    let add = |name: &str, roles: &[&str]| {
        let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
        keys.add(name, &roles, None).unwrap().key
    };
    let (ada, bob, eve) = (add("ada", &["a", "b"]), add("bob", &["b", "gone", "a", "b"]), add("eve", &["a"]));
    let tokens = token_options(TokenKey::Secret(Secret::new(SECRET)), &[TokenAlgorithm::Hs256]);
    let credential_authenticator = CredentialAuthenticator::new(AuthenticatorOptions {
        keys: Some(keys.clone()),
        tokens: Some(tokens),
        roles: vec![role("a", json!({ "groups": "a" })), role("b", json!({ "groups": "b" }))],
        anonymous: vec!["a".to_owned()],
        clock: moved_clock.clock(),
        ..AuthenticatorOptions::default()
    })
    .unwrap();
    let token = |claims| Signer::Secret(SECRET.to_owned()).token(TokenAlgorithm::Hs256, &claims_with(claims));
    let [ada, bob, eve] =
        [ada, bob, eve].map(|key| authenticate_bearer_now(&credential_authenticator, Some(key.expose())).unwrap());
    let both =
        authenticate_bearer_now(&credential_authenticator, Some(&token(json!({ "groups": ["b", "a"] })))).unwrap();
    let one =
        authenticate_bearer_now(&credential_authenticator, Some(&token(json!({ "groups": ["a"], "sub": "zoe" }))))
            .unwrap();
    assert_eq!(bob.roles.iter().collect::<Vec<_>>(), ["a", "b"], "a role that is not known is not held");
    assert!(Arc::ptr_eq(&ada.grants, &bob.grants) && Arc::ptr_eq(&ada.grants, &both.grants));
    assert!(Arc::ptr_eq(&eve.grants, &one.grants) && !Arc::ptr_eq(&eve.grants, &ada.grants));
    assert!(Arc::ptr_eq(&eve.grants, &authenticate_bearer_now(&credential_authenticator, None).unwrap().grants));
    assert!(ada.grants.entries.includes("a_x") && ada.grants.entries.includes("b_x"));
}

/// Counts warnings and keeps their text.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>, Arc<Mutex<String>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.1.lock().unwrap().push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn warns_once_about_unknown_roles_of_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let gone = vec!["gone".to_owned()];
    let key = keys.add("ada", &gone, None).unwrap().key;
    keys.add("bob", &gone, None).unwrap();
    keys.add("old", &["older".to_owned()], None).unwrap();
    keys.revoke("old").unwrap();
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        let credential_authenticator =
            CredentialAuthenticator::new(AuthenticatorOptions { keys: Some(keys), ..AuthenticatorOptions::default() })
                .unwrap();
        for _ in 0..3 {
            let ada = authenticate_bearer_now(&credential_authenticator, Some(key.expose())).unwrap();
            assert!(ada.roles.is_empty() && *ada.grants == Grants::default());
        }
    });
    let text = warnings.1.lock().unwrap();
    assert_eq!(warnings.0.load(Ordering::Relaxed), 1, "{text}");
    assert!(text.contains("gone") && text.contains("ada") && text.contains("bob"), "{text}");
}
