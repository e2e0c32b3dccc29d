//! Valid and invalid tokens.

use aws_lc_rs::signature::KeyPair;
use serde_json::{Value, json};
use tidegate_auth::{CredentialAuthenticator, Secret, TokenAlgorithm, TokenKey, TokenOptions};

use tidegate_testkit::token_authenticator::{
    AUDIENCE, ISSUER, NOW, authenticate_bearer_now, time, token_authenticator_with, token_options,
};
use tidegate_testkit::token_signer::{
    ED25519, OTHER_RSA, P256, P384, RSA, SECRET, Signer, claims, claims_with, message, pem,
};

use TokenAlgorithm::{Ed25519, EdDsa, Es256, Es384, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
use tidegate_core::{AuthMethod, AuthenticationError};

/// An authenticator that accepts tokens of [`RSA`], signed with RS256.
fn rsa_authenticator() -> CredentialAuthenticator {
    token_authenticator_with(token_options(TokenKey::PublicKeyPem(RSA.pem()), &[Rs256]))
}

#[test]
fn good_tokens_of_every_algorithm() {
    let secret = Signer::Secret(SECRET.to_owned());
    let signers: [(&Signer, &[TokenAlgorithm]); 5] = [
        (&RSA, &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512]),
        (&P256, &[Es256]),
        (&P384, &[Es384]),
        (&ED25519, &[EdDsa, Ed25519]),
        (&secret, &[Hs256, Hs384, Hs512]),
    ];
    for (signer, algorithms) in signers {
        let keys = match signer {
            Signer::Secret(secret) => vec![TokenKey::Secret(Secret::new(secret))],
            signer => vec![
                TokenKey::PublicKeyPem(signer.pem()),
                TokenKey::Jwks(json!({ "keys": [signer.jwk()] }).to_string()),
            ],
        };
        for key in keys {
            let credential_authenticator = token_authenticator_with(token_options(key.clone(), algorithms));
            for algorithm in algorithms.iter().copied() {
                let token = signer.token(algorithm, &claims());
                assert_eq!(
                    authenticate_bearer_now(&credential_authenticator, Some(&token)).unwrap().subject,
                    "ada",
                    "{algorithm} by {key:?}"
                );
                let (start, signature) = token.rsplit_once('.').unwrap();
                let bent = signature.replacen(&signature[9..10], if &signature[9..10] == "A" { "B" } else { "A" }, 1);
                assert_eq!(
                    authenticate_bearer_now(&credential_authenticator, Some(&format!("{start}.{bent}"))),
                    Err(AuthenticationError::Invalid)
                );
            }
        }
    }
}

#[test]
fn accepts_pkcs1_rsa_keys() {
    let Signer::Rsa(key) = &*RSA else { panic!("it is RSA") };
    let key = TokenKey::PublicKeyPem(pem("RSA PUBLIC KEY", key.public_key().as_ref()));
    let credential_authenticator = token_authenticator_with(token_options(key, &[Rs256]));
    assert!(authenticate_bearer_now(&credential_authenticator, Some(&RSA.token(Rs256, &claims()))).is_ok());
}

#[test]
fn a_token_proves_its_subject() {
    let options = token_options(TokenKey::PublicKeyPem(RSA.pem()), &[Rs256]);
    let credential_authenticator =
        token_authenticator_with(TokenOptions { tenant_claim: Some("org".to_owned()), ..options });
    let of = |changes: Value| {
        authenticate_bearer_now(&credential_authenticator, Some(&RSA.token(Rs256, &claims_with(changes))))
    };
    let principal = of(json!({ "org": "acme", "level": 3 })).unwrap();
    assert_eq!((principal.subject.as_str(), principal.auth_method), ("ada", AuthMethod::Token));
    assert_eq!(principal.tenant.as_deref(), Some("acme"));
    assert_eq!((&principal.claims["level"], &principal.claims["iss"]), (&json!(3), &json!(ISSUER)));
    assert_eq!(of(json!({})).unwrap().tenant, None);
    for wrong in [json!(7), json!(""), json!(["acme"]), json!({ "id": 7 })] {
        assert_eq!(of(json!({ "org": wrong })), Err(AuthenticationError::Invalid), "{wrong} must not become no tenant");
    }
}

#[test]
fn validates_claims() {
    let credential_authenticator = rsa_authenticator();
    let huge = "x".repeat(17 * 1024);
    let cases = [
        ("nothing changed", json!({}), true),
        ("expired long ago", json!({ "exp": NOW - 1000 }), false),
        ("expired as long ago as the leeway", json!({ "exp": NOW - 30 }), false),
        ("expired a second later than that", json!({ "exp": NOW - 29 }), true),
        ("expires in a fraction", json!({ "exp": NOW as f64 - 29.5 }), true),
        ("expires never", json!({ "exp": null }), false),
        ("expires in words", json!({ "exp": (NOW + 300).to_string() }), false),
        ("expires before there was time", json!({ "exp": -1 }), false),
        ("good from now", json!({ "nbf": NOW }), true),
        ("good from the end of the leeway", json!({ "nbf": NOW + 30 }), true),
        ("good from later", json!({ "nbf": NOW + 31 }), false),
        ("good from words", json!({ "nbf": "now" }), false),
        ("another issuer", json!({ "iss": "https://other.example" }), false),
        ("an issuer with more", json!({ "iss": format!("{ISSUER}/") }), false),
        ("no issuer", json!({ "iss": null }), false),
        ("many issuers", json!({ "iss": [ISSUER] }), false),
        ("another audience", json!({ "aud": "https://other.example" }), false),
        ("no audience", json!({ "aud": null }), false),
        ("our audience among others", json!({ "aud": ["https://other.example", AUDIENCE] }), true),
        ("other audiences", json!({ "aud": ["https://other.example", 7] }), false),
        ("an empty list of audiences", json!({ "aud": [] }), false),
        ("an audience in an object", json!({ "aud": { "is": AUDIENCE } }), false),
        ("no subject", json!({ "sub": null }), false),
        ("no subject but a client", json!({ "sub": null, "client_id": "importer" }), false),
        ("an empty subject", json!({ "sub": "" }), false),
        ("a blank subject", json!({ "sub": "  " }), false),
        ("a number as subject", json!({ "sub": 7 }), false),
        ("many claims", json!({ "text": "x".repeat(8 * 1024) }), true),
        ("too many claims", json!({ "text": huge }), false),
    ];
    for (case, changes, is_good) in cases {
        let found = authenticate_bearer_now(&credential_authenticator, Some(&RSA.token(Rs256, &claims_with(changes))));
        assert_eq!(found.is_ok(), is_good, "{case}");
        assert!(is_good || found == Err(AuthenticationError::Invalid));
    }
    let ada = authenticate_bearer_now(
        &credential_authenticator,
        Some(&RSA.token(Rs256, &claims_with(json!({ "exp": NOW + 60 })))),
    )
    .unwrap();
    assert_eq!(ada.expires_at, Some(time(NOW + 90).into()), "with the leeway");
}

#[test]
fn zero_leeway_is_exact() {
    let options = token_options(TokenKey::PublicKeyPem(RSA.pem()), &[Rs256]);
    let credential_authenticator = token_authenticator_with(TokenOptions { leeway_seconds: 0, ..options });
    let is_good = |changes: Value| {
        authenticate_bearer_now(&credential_authenticator, Some(&RSA.token(Rs256, &claims_with(changes)))).is_ok()
    };
    assert!(is_good(json!({ "exp": NOW + 1, "nbf": NOW })));
    assert!(!is_good(json!({ "exp": NOW })));
    assert!(!is_good(json!({ "nbf": NOW + 1 })));
}

#[test]
fn validates_signatures() {
    let credential_authenticator = rsa_authenticator();
    let claims = claims();
    let good = RSA.token(Rs256, &claims);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let none = message(&json!({ "alg": "none", "typ": "JWT" }), &claims);
    let confused = Signer::Secret(RSA.pem());
    let trimmed = Signer::Secret(RSA.pem().trim().to_owned());
    let other_claims = message(&json!({ "alg": "RS256", "typ": "JWT" }), &claims_with(json!({ "sub": "eve" })));
    let own_key = json!({ "alg": "RS256", "jwk": OTHER_RSA.jwk(), "jku": "https://eve.example", "kid": "../eve" });
    let by_rsa = |header: Value| RSA.token_with_header(Rs256, &header, &claims);
    let cases = [
        ("nothing changed", good.clone(), true),
        (
            "with an id and a type that nobody asked for",
            by_rsa(json!({ "alg": "RS256", "kid": "k", "typ": "at+jwt" })),
            true,
        ),
        ("none, unsigned", format!("{none}."), false),
        ("none, without the last dot", none.clone(), false),
        ("none, with a good signature", format!("{none}.{signature}"), false),
        ("none, spelt otherwise", format!("{}.", message(&json!({ "alg": "nOnE" }), &claims)), false),
        ("unsigned", format!("{signed}."), false),
        ("the public key as a secret", confused.token(Hs256, &claims), false),
        ("the public key as a secret, trimmed", trimmed.token(Hs256, &claims), false),
        ("the same, called RS256", confused.token_with_header(Hs256, &json!({ "alg": "RS256" }), &claims), false),
        ("an algorithm that is not allowed", RSA.token(Rs384, &claims), false),
        ("called otherwise than it was signed", by_rsa(json!({ "alg": "RS384" })), false),
        ("padded otherwise than it says", RSA.token_with_header(Ps256, &json!({ "alg": "RS256" }), &claims), false),
        ("no algorithm", by_rsa(json!({ "typ": "JWT" })), false),
        ("an algorithm that is no text", by_rsa(json!({ "alg": 7 })), false),
        ("an id that is no text", by_rsa(json!({ "alg": "RS256", "kid": 7 })), false),
        ("something critical", by_rsa(json!({ "alg": "RS256", "crit": ["b64"], "b64": true })), false),
        ("another's signature", OTHER_RSA.token(Rs256, &claims), false),
        ("another's signature and key", OTHER_RSA.token_with_header(Rs256, &own_key, &claims), false),
        ("other claims than were signed", format!("{other_claims}.{signature}"), false),
        ("a header that is no object", by_rsa(json!(["RS256"])), false),
        ("claims that are no object", RSA.token(Rs256, &json!(["ada"])), false),
        ("padded base64", format!("{good}="), false),
        ("a blank before", format!(" {good}"), false),
        ("four parts", format!("{good}.{signature}"), false),
        ("five parts", format!("{good}.{signature}.{signature}"), false),
        ("two parts", signed.to_owned(), false),
        ("dots", "..".to_owned(), false),
        ("nothing", String::new(), false),
        ("with its scheme", format!("Bearer {good}"), false),
    ];
    for (case, token, is_good) in cases {
        let found = authenticate_bearer_now(&credential_authenticator, Some(&token));
        assert_eq!(found.is_ok(), is_good, "{case}");
        assert!(is_good || found == Err(AuthenticationError::Invalid));
    }
}

#[test]
fn rejects_oversized_token_unparsed() {
    let credential_authenticator = rsa_authenticator();
    let good = RSA.token(Rs256, &claims());
    for token in ["a".repeat(10 << 20), format!("{good}{}", "=".repeat(16 * 1024)), ".".repeat(16 * 1024 + 1)] {
        assert_eq!(authenticate_bearer_now(&credential_authenticator, Some(&token)), Err(AuthenticationError::Invalid));
    }
}
