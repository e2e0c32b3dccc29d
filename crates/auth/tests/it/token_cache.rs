//! Repeated tokens.

use std::sync::Arc;

use serde_json::json;
use tidegate_auth::{AuthenticatorOptions, CredentialAuthenticator, TokenAlgorithm, TokenKey};
use tidegate_core::AuthenticationError;

use tidegate_testkit::token_authenticator::{MovedClock, NOW, authenticate_bearer_now, token_options};
use tidegate_testkit::token_signer::{P256, claims, claims_with};

fn authenticator(moved_clock: &MovedClock) -> CredentialAuthenticator {
    let tokens = token_options(TokenKey::PublicKeyPem(P256.pem()), &[TokenAlgorithm::Es256]);
    CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        clock: moved_clock.clock(),
        ..AuthenticatorOptions::default()
    })
    .unwrap()
}

#[test]
fn revalidates_cached_token_after_a_minute() {
    let moved_clock = MovedClock::default();
    let credential_authenticator = authenticator(&moved_clock);
    let token = P256.token(TokenAlgorithm::Es256, &claims());
    let first = authenticate_bearer_now(&credential_authenticator, Some(&token)).unwrap();
    moved_clock.pass(59);
    assert!(
        Arc::ptr_eq(&first, &authenticate_bearer_now(&credential_authenticator, Some(&token)).unwrap()),
        "the principal is made by a check"
    );
    moved_clock.pass(1);
    let second = authenticate_bearer_now(&credential_authenticator, Some(&token)).unwrap();
    assert!(!Arc::ptr_eq(&first, &second) && *first == *second);
    assert!(Arc::ptr_eq(&second, &authenticate_bearer_now(&credential_authenticator, Some(&token)).unwrap()));
}

#[test]
fn cached_token_expires() {
    let moved_clock = MovedClock::default();
    let credential_authenticator = authenticator(&moved_clock);
    let token = P256.token(TokenAlgorithm::Es256, &claims_with(json!({ "exp": NOW + 5 })));
    assert!(authenticate_bearer_now(&credential_authenticator, Some(&token)).is_ok());
    moved_clock.pass(34);
    assert!(authenticate_bearer_now(&credential_authenticator, Some(&token)).is_ok(), "within the leeway");
    moved_clock.pass(1);
    assert_eq!(authenticate_bearer_now(&credential_authenticator, Some(&token)), Err(AuthenticationError::Invalid));
}

#[test]
fn rejected_token_is_not_cached() {
    let moved_clock = MovedClock::default();
    let credential_authenticator = authenticator(&moved_clock);
    let token = P256.token(TokenAlgorithm::Es256, &claims_with(json!({ "nbf": NOW + 100 })));
    assert_eq!(authenticate_bearer_now(&credential_authenticator, Some(&token)), Err(AuthenticationError::Invalid));
    moved_clock.pass(70);
    assert!(authenticate_bearer_now(&credential_authenticator, Some(&token)).is_ok());
}
