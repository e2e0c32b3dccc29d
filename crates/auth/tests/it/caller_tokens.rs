//! Tokens that name a caller to another node: the verifier of this crate reads them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair,
};
use serde_json::{Map, Value, json};
use tidegate_auth::{
    AuthenticatorOptions, CallerTokenOptions, CallerTokenSigner, CredentialAuthenticator, Secret, TokenAlgorithm,
    TokenKey, TokenOptions,
};
use tidegate_core::{AuthMethod, AuthenticationError, CallerTokens as _, ErrorKind, Grants, Principal};
use tidegate_testkit::token_authenticator::{MovedClock, NOW, authenticate_bearer_now, role};
use tidegate_testkit::token_signer::{SECRET, Signer, pem};

const ISSUER: &str = "https://asker.example";
const NODE: &str = "oslo";

/// A caller as an identity provider has described it.
fn caller() -> Principal {
    let claims = json!({
        "iss": "https://idp.example", "aud": "asker", "exp": 1, "nbf": 9_999_999_999_i64, "sub": "idp|ada", "jti": "x",
        "cnf": {"jkt": "y"}, "tenant": "other", "roles": ["admin"], "site": ["rome"], "scope": "read",
    });
    Principal {
        tenant: Some("acme".to_owned()),
        roles: ["analyst".to_owned(), "reader".to_owned()].into(),
        claims: claims.as_object().unwrap().clone(),
        ..Principal::new("ada", AuthMethod::Token, Arc::new(Grants::default()))
    }
}

fn options() -> CallerTokenOptions {
    CallerTokenOptions::new(ISSUER, Secret::new(SECRET), TokenAlgorithm::Hs256)
}

fn signer(clock: &MovedClock) -> CallerTokenSigner {
    CallerTokenSigner::new(CallerTokenOptions { clock: clock.clock(), ..options() }).unwrap()
}

/// The authenticator of another node.
fn node(key: TokenKey, algorithm: TokenAlgorithm, audience: &str, clock: &MovedClock) -> CredentialAuthenticator {
    let tokens = TokenOptions {
        tenant_claim: Some("tenant".to_owned()),
        leeway_seconds: 0,
        ..TokenOptions::new(key, ISSUER, vec![audience.to_owned()], vec![algorithm])
    };
    let roles = ["analyst", "reader", "admin"].map(|name| role(name, json!({"roles": name})));
    let options = AuthenticatorOptions {
        tokens: Some(tokens),
        roles: roles.into(),
        clock: clock.clock(),
        ..AuthenticatorOptions::default()
    };
    CredentialAuthenticator::new(options).unwrap()
}

fn secret_node(clock: &MovedClock) -> CredentialAuthenticator {
    node(TokenKey::Secret(Secret::new(SECRET)), TokenAlgorithm::Hs256, NODE, clock)
}

#[test]
fn development_identity_stays_on_its_node() {
    let unproven = Principal { auth_method: AuthMethod::Development, ..caller() };
    let refused = signer(&MovedClock::default()).token_for(&unproven, NODE).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden, "{refused}");
}

#[test]
fn another_node_knows_the_caller() {
    let clock = MovedClock::default();
    let token = signer(&clock).token_for(&caller(), NODE).unwrap();
    let known = authenticate_bearer_now(&secret_node(&clock), Some(&token)).unwrap();
    assert_eq!((known.subject.as_str(), known.tenant.as_deref()), ("ada", Some("acme")));
    assert_eq!(known.roles, caller().roles);
    assert_eq!(known.claims["site"], json!(["rome"]));
    assert_eq!(known.claims["scope"], json!("read"));
    assert_eq!((&known.claims["iss"], &known.claims["aud"]), (&json!(ISSUER), &json!(NODE)));
    let times = ["iat", "nbf", "exp"].map(|name| known.claims[name].clone());
    assert_eq!(times, [json!(NOW), json!(NOW), json!(NOW + 60)]);
    assert!(!known.claims.contains_key("cnf"));
    assert_ne!(known.claims["jti"], json!("x"));
}

/// A claim of the caller must not become a tenant or a role of the other node.
#[test]
fn claims_of_a_caller_without_tenant_give_none() {
    let clock = MovedClock::default();
    let poor = Principal { tenant: None, roles: Default::default(), ..caller() };
    let token = signer(&clock).token_for(&poor, NODE).unwrap();
    let known = authenticate_bearer_now(&secret_node(&clock), Some(&token)).unwrap();
    assert_eq!((known.tenant.clone(), known.roles.len()), (None, 0));
}

#[test]
fn each_algorithm_verifies() {
    let clock = MovedClock::default();
    let p256 = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap();
    let ed25519 = Ed25519KeyPair::generate().unwrap();
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let rsa_der: Pkcs8V1Der<'_> = rsa.as_der().unwrap();
    let keys = [
        (pem("PRIVATE KEY", p256.to_pkcs8v1().unwrap().as_ref()), Signer::P256(p256), TokenAlgorithm::Es256),
        (pem("PRIVATE KEY", p384.to_pkcs8v1().unwrap().as_ref()), Signer::P384(p384), TokenAlgorithm::Es384),
        (pem("PRIVATE KEY", rsa_der.as_ref()), Signer::Rsa(rsa), TokenAlgorithm::Ps256),
        (pem("PRIVATE KEY", ed25519.to_pkcs8().unwrap().as_ref()), Signer::Ed25519(ed25519), TokenAlgorithm::Ed25519),
    ];
    for (index, (private, public, algorithm)) in keys.iter().enumerate() {
        let options = CallerTokenOptions {
            clock: clock.clock(),
            ..CallerTokenOptions::new(ISSUER, Secret::new(private), *algorithm)
        };
        let token = CallerTokenSigner::new(options).unwrap().token_for(&caller(), NODE).unwrap();
        let other = node(TokenKey::PublicKeyPem(public.pem()), *algorithm, NODE, &clock);
        assert_eq!(authenticate_bearer_now(&other, Some(&token)).unwrap().subject, "ada", "{algorithm}");
        let (_, _, next) = &keys[(index + 1) % keys.len()];
        let unfit = CallerTokenOptions::new(ISSUER, Secret::new(private), *next);
        let error = CallerTokenSigner::new(unfit).err().unwrap().to_string();
        assert!(error.starts_with("this is not a private key in PEM"), "{algorithm} as {next}: {error}");
    }
}

#[test]
fn other_audiences_expired_and_forged_tokens_are_rejected() {
    let clock = MovedClock::default();
    let token = signer(&clock).token_for(&caller(), NODE).unwrap();
    let rejected = Err(AuthenticationError::Invalid);
    let rome = node(TokenKey::Secret(Secret::new(SECRET)), TokenAlgorithm::Hs256, "rome", &clock);
    assert_eq!(authenticate_bearer_now(&rome, Some(&token)), rejected);
    let other_key = node(TokenKey::Secret(Secret::new("x".repeat(64))), TokenAlgorithm::Hs256, NODE, &clock);
    assert_eq!(authenticate_bearer_now(&other_key, Some(&token)), rejected);
    let (_, signature) = token.rsplit_once('.').unwrap();
    let forged = Signer::Secret("y".repeat(64)).token(TokenAlgorithm::Hs256, &json!({"iss": ISSUER, "sub": "root"}));
    let forged = format!("{}.{signature}", forged.rsplit_once('.').unwrap().0);
    assert_eq!(authenticate_bearer_now(&secret_node(&clock), Some(&forged)), rejected);
    let node = secret_node(&clock);
    clock.pass(59);
    assert!(authenticate_bearer_now(&node, Some(&token)).is_ok());
    clock.pass(1);
    assert_eq!(authenticate_bearer_now(&node, Some(&token)), rejected);
}

#[test]
fn a_token_is_used_again_until_shortly_before_its_expiry() {
    let clock = MovedClock::default();
    let signer = signer(&clock);
    let first = signer.token_for(&caller(), NODE).unwrap();
    assert_ne!(signer.token_for(&caller(), "rome").unwrap(), first);
    assert_ne!(signer.token_for(&Principal { tenant: None, ..caller() }, NODE).unwrap(), first);
    clock.pass(44);
    assert_eq!(signer.token_for(&caller(), NODE).unwrap(), first);
    clock.pass(1);
    assert_ne!(signer.token_for(&caller(), NODE).unwrap(), first);
    // The clock was set back.
    clock.pass(-1000);
    let claims = claims_of(&signer.token_for(&caller(), NODE).unwrap());
    assert_eq!(claims["exp"], json!(clock.seconds() + 60));
}

#[test]
fn a_token_expires_with_that_of_the_caller() {
    let clock = MovedClock::default();
    let signer = signer(&clock);
    let expires_at = |seconds: i64| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.unsigned_abs()));
    signer.token_for(&caller(), NODE).unwrap();
    let ending = Principal { expires_at: expires_at(NOW + 7), ..caller() };
    assert_eq!(claims_of(&signer.token_for(&ending, NODE).unwrap())["exp"], json!(NOW + 7));
    let ended = Principal { expires_at: expires_at(NOW), ..caller() };
    assert_eq!(signer.token_for(&ended, NODE).unwrap_err().kind(), ErrorKind::Unauthenticated);
}

#[test]
fn a_call_passes_a_bounded_number_of_nodes() {
    let clock = MovedClock::default();
    let (signer, node) = (signer(&clock), secret_node(&clock));
    let mut principal = caller();
    for _ in 0..4 {
        let token = signer.token_for(&principal, NODE).unwrap();
        principal = authenticate_bearer_now(&node, Some(&token)).unwrap().as_ref().clone();
    }
    let error = signer.token_for(&principal, NODE).unwrap_err();
    assert!(error.to_string().contains("do networks contain each other"), "{error}");
}

#[test]
fn invalid_options_and_long_claims_are_refused() {
    let refused = |options: CallerTokenOptions| CallerTokenSigner::new(options).err().unwrap().to_string();
    assert!(refused(CallerTokenOptions { issuer: " ".to_owned(), ..options() }).starts_with("an issuer is missing"));
    assert!(refused(CallerTokenOptions { key: Secret::new("short"), ..options() }).contains("at least 32 bytes"));
    for claim in ["", "sub", "roles"] {
        let error = refused(CallerTokenOptions { tenant_claim: claim.to_owned(), ..options() });
        assert!(error.contains("cannot be in the claim"), "{claim}: {error}");
    }
    let claims = Map::from_iter([("groups".to_owned(), Value::from("x".repeat(16 * 1024)))]);
    let error = signer(&MovedClock::default()).token_for(&Principal { claims, ..caller() }, NODE).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}

fn claims_of(token: &str) -> Value {
    use base64::Engine as _;
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}
