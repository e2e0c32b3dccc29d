//! Invalid token options.

use std::str::FromStr;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::RsaKeyPair;
use serde_json::{Value, json};
use tidegate_auth::{
    AuthenticatorError, AuthenticatorOptions, CredentialAuthenticator, IntrospectionOptions, Secret, TokenAlgorithm,
    TokenKey, TokenOptions,
};

use tidegate_testkit::token_authenticator::token_options;
use tidegate_testkit::token_signer::{ED25519, P256, P384, RSA, SECRET, pem};

use TokenAlgorithm::{EdDsa, Es256, Es384, Hs256, Hs512, Ps256, Rs256};

fn error_of(options: TokenOptions) -> String {
    match CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(options),
        ..AuthenticatorOptions::default()
    }) {
        Err(AuthenticatorError::Tokens(error)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("expected an options error"),
    }
}

fn error_with(key: TokenKey, algorithms: &[TokenAlgorithm]) -> String {
    error_of(token_options(key, algorithms)).to_string()
}

fn jwks(keys: Value) -> TokenKey {
    TokenKey::Jwks(json!({ "keys": keys }).to_string())
}

#[test]
fn requires_issuer_and_audience() {
    let good = || token_options(TokenKey::Secret(Secret::new(SECRET)), &[Hs256]);
    let no_issuer = error_of(TokenOptions { issuer: String::new(), ..good() });
    assert_eq!(no_issuer, "an issuer is missing: the iss that tokens must have");
    for audiences in [Vec::new(), vec![String::new()]] {
        assert!(error_of(TokenOptions { audiences, ..good() }).starts_with("an audience is missing: "));
    }
    let no_algorithm = error_of(TokenOptions { algorithms: Vec::new(), ..good() });
    assert_eq!(no_algorithm, "no algorithm is listed; list those that may sign tokens");
    let nameless = TokenOptions { tenant_claim: Some(String::new()), ..good() };
    assert_eq!(error_of(nameless), "the tenant claim has an empty name");
    assert_eq!(
        error_of(TokenOptions { leeway_seconds: 601, ..good() }),
        "a leeway of 601 seconds is too long; at most 600 are allowed"
    );
}

#[test]
fn rejects_alg_none() {
    for name in ["none", "None", "NONE", "", "rs256", "ES512", "dir"] {
        assert!(TokenAlgorithm::from_str(name).is_err(), "{name:?}");
    }
    for algorithm in TokenAlgorithm::ALL {
        assert_eq!(TokenAlgorithm::from_str(algorithm.name()), Ok(*algorithm));
        assert_eq!(algorithm.to_string(), algorithm.name());
    }
    assert_eq!(
        TokenAlgorithm::from_str("none").unwrap_err().to_string(),
        "\"none\" is not a token algorithm; use one of: HS256, HS384, HS512, RS256, RS384, RS512, \
         PS256, PS384, PS512, ES256, ES384, EdDSA, Ed25519"
    );
}

#[test]
fn an_algorithm_fits_its_kind_of_key_only() {
    let public = |signer: &tidegate_testkit::token_signer::Signer| TokenKey::PublicKeyPem(signer.pem());
    let cases = [
        (public(&RSA), Es256, "an RSA key"),
        (public(&RSA), Hs256, "an RSA key"),
        (public(&P256), Es384, "an EC key on P-256"),
        (public(&P256), Rs256, "an EC key on P-256"),
        (public(&P384), Es256, "an EC key on P-384"),
        (public(&ED25519), Ps256, "an Ed25519 key"),
        (public(&ED25519), Hs512, "an Ed25519 key"),
        (TokenKey::Secret(Secret::new(RSA.pem())), Rs256, "a secret"),
        (TokenKey::Secret(Secret::new(SECRET)), EdDsa, "a secret"),
        (jwks(json!([RSA.jwk(), P256.jwk()])), EdDsa, "an EC key on P-256 or an RSA key"),
        (jwks(json!([RSA.jwk_with(json!({ "alg": "RS512" }))])), Rs256, "an RSA key"),
    ];
    for (key, algorithm, kind) in cases {
        let expected = format!("the algorithm {algorithm} does not fit the key, which is {kind}");
        assert_eq!(error_with(key, &[algorithm]), expected);
    }
    let expected = "the algorithm HS256 does not fit the key, which is an RSA key";
    assert_eq!(error_with(public(&RSA), &[Rs256, Hs256]), expected, "each must fit");
}

#[test]
fn rejects_short_secret_without_quoting_it() {
    for (algorithm, bytes) in [(Hs256, 31), (Hs512, 63)] {
        let error = error_with(TokenKey::Secret(Secret::new("s3cr3t".repeat(11)[..bytes].to_owned())), &[algorithm]);
        let expected = format!("the secret is too short for {algorithm}, which needs at least {} bytes", bytes + 1);
        assert_eq!(error, expected);
    }
}

/// The `RSAPublicKey` of a modulus between 128 and 254 bytes long, in DER.
fn rsa_public_key(modulus: &[u8]) -> Vec<u8> {
    let length = u8::try_from(modulus.len()).unwrap();
    let mut der = vec![0x30, 0x81, length + 9, 0x02, 0x81, length + 1, 0];
    der.extend(modulus);
    der.extend([0x02, 0x03, 0x01, 0x00, 0x01]);
    der
}

#[test]
fn rejects_invalid_public_key_pem() {
    let private: Pkcs8V1Der<'_> = RsaKeyPair::generate(KeySize::Rsa2048).unwrap().as_der().unwrap();
    let private = pem("PRIVATE KEY", private.as_ref());
    assert!(error_of(token_options(TokenKey::PublicKeyPem(private), &[Rs256])).starts_with("this is a private key"));
    let wrong = [
        String::new(),
        "-----BEGIN PUBLIC KEY-----".to_owned(),
        pem("PUBLIC KEY", b"hunter2"),
        RSA.pem().replace("PUBLIC KEY", "CERTIFICATE"),
        format!("{}{}", RSA.pem(), P256.pem()),
        RSA.pem().replacen("MII", "MIJ", 1),
        pem("RSA PUBLIC KEY", &rsa_public_key(&[0xc3; 128])),
    ];
    for text in wrong {
        let error = error_of(token_options(TokenKey::PublicKeyPem(text.clone()), &[Rs256]));
        assert!(error.starts_with("this is not a usable public key in PEM"), "{text}: {error}");
        assert!(!error.contains("hunter2"));
    }
}

#[test]
fn rejects_jwks_without_usable_key() {
    for text in ["", "hunter2", "[]", "{}", r#"{ "keys": {} }"#] {
        assert!(error_of(token_options(TokenKey::Jwks(text.to_owned()), &[Rs256])).starts_with("this is not a JWKS"));
    }
    let off_the_curve = json!({ "kty": "EC", "crv": "P-256", "x": "A".repeat(43), "y": "A".repeat(43) });
    let unusable = [
        json!([]),
        json!([1, null, {}]),
        json!([{ "kty": "oct", "k": "aHVudGVyMg" }]),
        json!([RSA.jwk_with(json!({ "use": "enc" }))]),
        json!([{ "kty": "RSA", "n": "AQAB", "e": "AQAB" }]),
        json!([{ "kty": "RSA", "n": "A".repeat(400), "e": "AQAB" }]),
        json!([{ "kty": "RSA", "n": "z".repeat(340), "e": "AQAB" }]),
        json!([off_the_curve]),
        json!([{ "kty": "OKP", "crv": "Ed25519", "x": "AAAA" }]),
        json!([{ "kty": "OKP", "crv": "X25519", "x": "A".repeat(43) }]),
    ];
    for keys in unusable {
        let error = error_of(token_options(jwks(keys.clone()), &[Rs256]));
        assert!(error.starts_with("the JWKS has no usable key"), "{keys}: {error}");
    }
    let private = jwks(json!([RSA.jwk_with(json!({ "d": "hunter2" }))]));
    assert!(error_of(token_options(private, &[Rs256])).starts_with("this is a private key"));
    let many = jwks(json!(vec![P256.jwk(); 257]));
    assert_eq!(error_with(many, &[Es256]), "the JWKS has 257 keys; at most 256 are allowed");
}

#[test]
fn requires_https_provider_urls() {
    let at = |url: &str| error_with(TokenKey::JwksUrl(url.to_owned()), &[Rs256]);
    for (url, reason) in [
        ("", "is not a complete URL such as https://login.example.com/keys"),
        ("/keys", "is not a complete URL such as https://login.example.com/keys"),
        (
            "http://login.example.com/keys",
            "must begin with https://; http:// is allowed for this machine only (localhost, 127.0.0.1)",
        ),
        (
            "http://localhost.example.com/",
            "must begin with https://; http:// is allowed for this machine only (localhost, 127.0.0.1)",
        ),
        (
            "ftp://localhost/keys",
            "must begin with https://; http:// is allowed for this machine only (localhost, 127.0.0.1)",
        ),
        ("file:///etc/keys", "is not a complete URL such as https://login.example.com/keys"),
        ("https://ann:hunter2@login.example.com/", "must not contain a user name or password"),
        ("https://login.example.com/#keys", "must not have a part after #"),
    ] {
        assert_eq!(at(url), format!("the jwks_url {reason}"), "{url}");
    }
    let discovered = TokenOptions { issuer: "our issuer".to_owned(), ..token_options(TokenKey::Discovery, &[Rs256]) };
    assert_eq!(
        error_of(discovered).to_string(),
        "the issuer, whose metadata are fetched, is not a complete URL such as https://login.example.com/keys"
    );
    for url in ["https://login.example.com/keys?v=1", "http://localhost:1/", "http://[::1]:1/", "http://127.9.9.9/"] {
        let tokens = token_options(TokenKey::JwksUrl(url.to_owned()), &[Rs256]);
        assert!(
            CredentialAuthenticator::new(AuthenticatorOptions {
                tokens: Some(tokens),
                ..AuthenticatorOptions::default()
            })
            .is_ok(),
            "{url}"
        );
    }
}

#[test]
fn rejects_hmac_with_fetched_keys() {
    assert_eq!(
        error_with(TokenKey::JwksUrl("https://login.example.com/keys".to_owned()), &[Rs256, Hs256]),
        "the algorithm HS256 does not fit the key, which is a public one that the issuer publishes"
    );
}

#[test]
fn introspection_requires_client_credentials() {
    let asking = |id: &str, secret: &str, url: &str| {
        TokenKey::Introspection(IntrospectionOptions {
            url: url.to_owned(),
            client_id: id.to_owned(),
            client_secret: Secret::new(secret),
            needs_audience: true,
        })
    };
    let url = "https://login.example.com/introspect";
    for key in [asking("", "hunter2", url), asking("tidegate", "", url)] {
        assert!(error_of(token_options(key, &[])).starts_with("introspection needs a client_id"));
    }
    let error = error_with(asking("a", "b", "http://login.example.com/"), &[]);
    assert!(error.starts_with("the url of introspection must begin with https://"), "{error}");
    let printed = format!("{:?}", token_options(asking("a", "hunter2", url), &[]));
    assert!(!printed.contains("hunter2"));
}
