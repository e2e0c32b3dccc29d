//! Keys and tokens for development.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_auth::{
    AuthenticatorOptions, CredentialAuthenticator, DevelopmentKey, DevelopmentToken, TokenKey, TokenOptions,
};

use tidegate_testkit::token_authenticator::{
    AUDIENCE, ISSUER, MovedClock, authenticate_bearer_now, role, token_options,
};
use tidegate_testkit::token_signer::RSA;

fn token(claims: Value) -> DevelopmentToken {
    DevelopmentToken {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        subject: "ann".to_owned(),
        claims: claims.as_object().unwrap().clone(),
        expires_in: Duration::from_secs(3600),
    }
}

#[test]
fn accepts_development_tokens_until_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let made = DevelopmentKey::create(&path).unwrap();
    let key = DevelopmentKey::read(&path).unwrap();
    assert_eq!(made.public_key_pem().unwrap(), key.public_key_pem().unwrap());
    let clock = MovedClock::default();
    let tokens = token_options(TokenKey::PublicKeyPem(key.public_key_pem().unwrap()), &[DevelopmentKey::ALGORITHM]);
    let credential_authenticator = CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(TokenOptions { tenant_claim: Some("tenant".to_owned()), ..tokens }),
        roles: vec![role("reader", json!({ "groups": "readers" }))],
        clock: clock.clock(),
        ..AuthenticatorOptions::default()
    })
    .unwrap();
    let signed = key.sign(&token(json!({ "tenant": "north", "groups": ["readers"] })), &clock.clock()).unwrap();
    let ann = authenticate_bearer_now(&credential_authenticator, Some(signed.expose())).unwrap();
    assert_eq!((ann.subject.as_str(), ann.tenant.as_deref()), ("ann", Some("north")));
    assert!(ann.roles.contains("reader"));
    clock.pass(3629);
    assert!(authenticate_bearer_now(&credential_authenticator, Some(signed.expose())).is_ok());
    clock.pass(1);
    assert!(authenticate_bearer_now(&credential_authenticator, Some(signed.expose())).is_err());
}

#[test]
fn the_key_is_its_owners_alone_and_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    DevelopmentKey::create(&path).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    assert!(DevelopmentKey::create(&path).err().unwrap().contains("exists already"));
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(DevelopmentKey::read(&path).err().unwrap().contains("can be read by users other than its owner"));
        }
    }
}

#[test]
fn rejects_invalid_key_file_without_quoting_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let private = |text: &str| {
        let _ = fs::remove_file(&path);
        DevelopmentKey::create(&path).unwrap();
        fs::write(&path, text).unwrap();
    };
    for text in ["", "hunter2", "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----", &RSA.pem()] {
        private(text);
        let error = DevelopmentKey::read(&path).err().unwrap();
        assert!(error.contains("is not a key file"), "{text}: {error}");
        assert!(!error.contains("hunter2"));
    }
    assert!(DevelopmentKey::read(folder.path()).is_err());
    let nowhere = folder.path().join("nowhere/key.pem");
    assert!(DevelopmentKey::create(&nowhere).err().unwrap().starts_with("cannot write"));
}

#[test]
fn rejects_reserved_claims_and_empty_subject() {
    let folder = tempfile::tempdir().unwrap();
    let key = DevelopmentKey::create(&folder.path().join("key.pem")).unwrap();
    let clock = MovedClock::default().clock();
    let error = |token: DevelopmentToken| key.sign(&token, &clock).err().unwrap();
    for name in ["iss", "aud", "sub", "exp", "iat", "nbf"] {
        assert_eq!(
            error(token(json!({ name: 1 }))),
            format!("the claim {name:?} is reserved; set it with its own option")
        );
    }
    for nobody in [
        DevelopmentToken { subject: " ".to_owned(), ..token(json!({})) },
        DevelopmentToken { issuer: String::new(), ..token(json!({})) },
        DevelopmentToken { audience: String::new(), ..token(json!({})) },
    ] {
        assert_eq!(error(nobody), "a token needs a subject, an issuer and an audience that are not empty");
    }
}
