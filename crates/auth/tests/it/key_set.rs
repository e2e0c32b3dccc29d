//! The choice of the key of a JWKS.

use serde_json::{Value, json};
use tidegate_auth::{TokenAlgorithm, TokenKey};

use tidegate_testkit::token_authenticator::{authenticate_bearer_now, token_authenticator_with, token_options};
use tidegate_testkit::token_signer::{ED25519, OTHER_RSA, P256, P384, RSA, SECRET, Signer, claims};

use TokenAlgorithm::{Ed25519, EdDsa, Es256, Hs256, Rs256, Rs512};

/// Whether an authenticator with the keys `jwks` accepts a token that `signer` signed and that names the key `id`.
fn lets_in(jwks: &[Value], signer: &Signer, algorithm: TokenAlgorithm, id: Option<&str>) -> bool {
    let jwks = TokenKey::Jwks(json!({ "keys": jwks }).to_string());
    let allowed: &[TokenAlgorithm] = if algorithm == Es256 { &[Rs256, Es256] } else { &[Rs256] };
    let credential_authenticator = token_authenticator_with(token_options(jwks, allowed));
    let header = match id {
        Some(id) => json!({ "alg": algorithm.name(), "kid": id }),
        None => json!({ "alg": algorithm.name() }),
    };
    authenticate_bearer_now(&credential_authenticator, Some(&signer.token_with_header(algorithm, &header, &claims())))
        .is_ok()
}

#[test]
fn kid_selects_the_key() {
    let set = [RSA.jwk_with(json!({ "kid": "one" })), OTHER_RSA.jwk_with(json!({ "kid": "two" }))];
    assert!(lets_in(&set, &RSA, Rs256, Some("one")));
    assert!(lets_in(&set, &OTHER_RSA, Rs256, Some("two")));
    assert!(!lets_in(&set, &RSA, Rs256, Some("two")), "another's key");
    assert!(!lets_in(&set, &RSA, Rs256, Some("three")), "an unknown id");
    assert!(!lets_in(&set, &RSA, Rs256, None), "two could be meant");
}

#[test]
fn without_kid_uses_the_only_matching_key() {
    let set =
        [RSA.jwk_with(json!({ "kid": "one" })), P256.jwk_with(json!({ "kid": "two" })), P384.jwk(), ED25519.jwk()];
    assert!(lets_in(&set, &RSA, Rs256, None));
    assert!(lets_in(&set, &P256, Es256, None));
    assert!(!lets_in(&set, &ED25519, EdDsa, None), "its algorithm is not allowed");
    assert!(!lets_in(&[RSA.jwk()], &RSA, Rs256, Some("one")), "the only key is not the one that is named");
}

#[test]
fn accepts_both_names_of_ed25519() {
    for named in [json!({}), json!({ "alg": "EdDSA" }), json!({ "alg": "Ed25519" })] {
        let jwks = TokenKey::Jwks(json!({ "keys": [ED25519.jwk_with(named.clone())] }).to_string());
        for taken in [&[EdDsa][..], &[Ed25519], &[EdDsa, Ed25519]] {
            let credential_authenticator = token_authenticator_with(token_options(jwks.clone(), taken));
            for algorithm in [EdDsa, Ed25519] {
                let is_good =
                    authenticate_bearer_now(&credential_authenticator, Some(&ED25519.token(algorithm, &claims())))
                        .is_ok();
                assert_eq!(is_good, taken.contains(&algorithm), "{algorithm} where {taken:?} are taken by {named}");
            }
        }
    }
}

#[test]
fn duplicate_kid_selects_by_kind_or_fails() {
    let same = json!({ "kid": "same" });
    let kinds = [RSA.jwk_with(same.clone()), P256.jwk_with(same.clone())];
    assert!(lets_in(&kinds, &RSA, Rs256, Some("same")) && lets_in(&kinds, &P256, Es256, Some("same")));
    let twins = [RSA.jwk_with(same.clone()), OTHER_RSA.jwk_with(same)];
    assert!(!lets_in(&twins, &RSA, Rs256, Some("same")));
}

#[test]
fn respects_use_key_ops_and_alg() {
    let good = |jwk: Value| {
        let other = OTHER_RSA.jwk_with(json!({ "kid": "other" }));
        lets_in(&[jwk, other], &RSA, Rs256, Some("one"))
    };
    let with = |members: Value| {
        let mut jwk = RSA.jwk_with(json!({ "kid": "one" }));
        jwk.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        jwk
    };
    assert!(good(with(json!({ "use": "sig", "alg": "RS256", "key_ops": ["verify"], "x5t": "further" }))));
    assert!(!good(with(json!({ "use": "enc" }))));
    assert!(!good(with(json!({ "key_ops": ["encrypt"] }))));
    assert!(!good(with(json!({ "alg": Rs512.name() }))));
    assert!(!good(with(json!({ "alg": "RSA-OAEP" }))));
    assert!(!good(with(json!({ "kty": "NEW" }))));
    assert!(!good(with(json!({ "n": "AQAB" }))));
    assert!(!good(json!("no object")));
}

#[test]
fn ignores_symmetric_keys_in_a_jwks() {
    let secret = Signer::Secret(SECRET.to_owned());
    let set = [RSA.jwk(), secret.jwk_with(json!({ "kid": "one", "alg": "HS256" }))];
    assert!(!lets_in(&set, &secret, Hs256, Some("one")));
}

#[test]
fn single_key_ignores_kid() {
    let credential_authenticator = token_authenticator_with(token_options(TokenKey::PublicKeyPem(RSA.pem()), &[Rs256]));
    let header = json!({ "alg": "RS256", "kid": "whatever" });
    assert!(
        authenticate_bearer_now(&credential_authenticator, Some(&RSA.token_with_header(Rs256, &header, &claims())))
            .is_ok()
    );
}
