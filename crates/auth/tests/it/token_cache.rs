//! A token that is shown twice.

use std::sync::Arc;

use serde_json::json;
use tidegate_auth::{AuthenticatorOptions, CredentialAuthenticator, TokenAlgorithm, TokenKey};
use tidegate_core::AuthenticationError;

use crate::scene::{MovedClock, NOW, show, token_options};
use crate::signer::{P256, claims, claims_with};

fn gate(moved: &MovedClock) -> CredentialAuthenticator {
    let tokens = token_options(TokenKey::PublicKeyPem(P256.pem()), &[TokenAlgorithm::Es256]);
    CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        clock: moved.clock(),
        ..AuthenticatorOptions::default()
    })
    .unwrap()
}

#[test]
fn revalidates_cached_token_after_a_minute() {
    let moved = MovedClock::new();
    let gate = gate(&moved);
    let token = P256.token(TokenAlgorithm::Es256, &claims());
    let first = show(&gate, Some(&token)).unwrap();
    moved.pass(59);
    assert!(Arc::ptr_eq(&first, &show(&gate, Some(&token)).unwrap()), "the principal is made by a check");
    moved.pass(1);
    let second = show(&gate, Some(&token)).unwrap();
    assert!(!Arc::ptr_eq(&first, &second) && *first == *second);
    assert!(Arc::ptr_eq(&second, &show(&gate, Some(&token)).unwrap()));
}

#[test]
fn cached_token_expires() {
    let moved = MovedClock::new();
    let gate = gate(&moved);
    let token = P256.token(TokenAlgorithm::Es256, &claims_with(json!({ "exp": NOW + 5 })));
    assert!(show(&gate, Some(&token)).is_ok());
    moved.pass(34);
    assert!(show(&gate, Some(&token)).is_ok(), "within the leeway");
    moved.pass(1);
    assert_eq!(show(&gate, Some(&token)), Err(AuthenticationError::Invalid));
}

#[test]
fn rejected_token_is_not_cached() {
    let moved = MovedClock::new();
    let gate = gate(&moved);
    let token = P256.token(TokenAlgorithm::Es256, &claims_with(json!({ "nbf": NOW + 100 })));
    assert_eq!(show(&gate, Some(&token)), Err(AuthenticationError::Invalid));
    moved.pass(70);
    assert!(show(&gate, Some(&token)).is_ok());
}
