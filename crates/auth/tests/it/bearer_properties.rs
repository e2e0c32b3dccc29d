//! Arbitrary bearers neither cause a panic nor are accepted.

use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_auth::{AuthenticatorOptions, CredentialAuthenticator, KeyFile, TokenAlgorithm, TokenKey};
use tidegate_core::AuthenticationError;

use tidegate_testkit::token_authenticator::{MovedClock, authenticate_bearer_now, token_options};
use tidegate_testkit::token_signer::{RSA, claims};

struct BearerFixture {
    _folder: TempDir,
    authenticator: CredentialAuthenticator,
    key: String,
    token: String,
}

static SCENE: LazyLock<BearerFixture> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(folder.path().join("keys.json"));
    let key = keys.add("ada", &[], None).unwrap().key.expose().to_owned();
    let tokens = token_options(TokenKey::PublicKeyPem(RSA.pem()), &[TokenAlgorithm::Rs256]);
    let clock = MovedClock::default().clock();
    let credential_authenticator = CredentialAuthenticator::new(AuthenticatorOptions {
        keys: Some(keys),
        tokens: Some(tokens),
        clock,
        ..AuthenticatorOptions::default()
    })
    .unwrap();
    BearerFixture {
        _folder: folder,
        authenticator: credential_authenticator,
        key,
        token: RSA.token(TokenAlgorithm::Rs256, &claims()),
    }
});

fn is_refused(bearer: &str) {
    assert_eq!(
        authenticate_bearer_now(&SCENE.authenticator, Some(bearer)),
        Err(AuthenticationError::Invalid),
        "{bearer:?}"
    );
}

#[test]
fn accepts_the_unmodified_credentials() {
    assert!(authenticate_bearer_now(&SCENE.authenticator, Some(&SCENE.key)).is_ok());
    assert!(authenticate_bearer_now(&SCENE.authenticator, Some(&SCENE.token)).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_refused(bearer in any::<String>()) {
        is_refused(&bearer);
    }

    #[test]
    fn rejects_key_shaped_text(bearer in "tg_[a-z2-7é_]{0,9}_?[A-Za-z0-9_é-]{40,46}") {
        is_refused(&bearer);
    }

    #[test]
    fn rejects_token_shaped_text(bearer in "[A-Za-z0-9_-]{0,60}(\\.[A-Za-z0-9_=é-]{0,60}){0,4}") {
        is_refused(&bearer);
    }

    #[test]
    fn a_key_or_token_with_one_character_changed_is_refused(
        is_key in any::<bool>(),
        place in any::<prop::sample::Index>(),
        character in "[A-Za-z0-9._-]",
    ) {
        let good = if is_key { &SCENE.key } else { &SCENE.token };
        let place = place.index(good.len());
        let bent = format!("{}{character}{}", &good[..place], &good[place + 1..]);
        prop_assume!(bent != *good);
        is_refused(&bent);
    }

    #[test]
    fn a_key_or_token_cut_short_is_refused(is_key in any::<bool>(), place in any::<prop::sample::Index>()) {
        let good = if is_key { &SCENE.key } else { &SCENE.token };
        is_refused(&good[..place.index(good.len())]);
    }
}
