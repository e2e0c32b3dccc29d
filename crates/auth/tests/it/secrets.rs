//! Secrets are never printed.

use serde::Deserialize;
use serde_json::json;
use tidegate_auth::{AuthenticatorOptions, KeyFile, Secret, TokenAlgorithm, TokenKey};

use tidegate_testkit::token_authenticator::token_options;
use tidegate_testkit::token_signer::SECRET;

#[test]
fn debug_output_redacts_secret() {
    let secret = Secret::new("hunter2");
    assert_eq!(format!("{secret:?} {secret:#?}"), "*** ***");
    assert_eq!(secret.expose(), "hunter2");
}

#[test]
fn options_do_not_print_their_keys() {
    let private = "-----BEGIN PRIVATE KEY----- hunter2";
    for key in [
        TokenKey::Secret(Secret::new(SECRET)),
        TokenKey::PublicKeyPem(private.to_owned()),
        TokenKey::Jwks(format!("{{ \"k\": \"{SECRET}\", \"d\": \"hunter2\" }}")),
    ] {
        let tokens = Some(token_options(key, &[TokenAlgorithm::Hs256]));
        let printed = format!("{:?}", AuthenticatorOptions { tokens, ..AuthenticatorOptions::default() });
        assert!(!printed.contains(SECRET) && !printed.contains("hunter2"), "{printed}");
    }
}

#[test]
fn a_new_key_does_not_print_itself() {
    let folder = tempfile::tempdir().unwrap();
    let new = KeyFile::new(folder.path().join("keys.json")).add("ada", &[], None).unwrap();
    let secret = &new.key.expose()[12..];
    assert!(!format!("{new:?}").contains(secret));
}

#[test]
fn deserialization_errors_do_not_quote_the_secret() {
    assert_eq!(Secret::deserialize(json!("hunter2")).unwrap().expose(), "hunter2");
    let error = Secret::deserialize(json!({ "value": 123_456 })).err().unwrap().to_string();
    assert_eq!(error, "a secret must be text");
    let error = Secret::deserialize(json!(123_456)).err().unwrap().to_string();
    assert_eq!(error, "a secret must be text");
}
