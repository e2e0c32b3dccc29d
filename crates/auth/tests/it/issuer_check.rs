//! The check of an issuer's configuration.

use serde_json::json;
use tidegate_auth::{IntrospectionOptions, Secret, TokenAlgorithm, TokenKey, TokenOptions};

use TokenAlgorithm::{Es256, Rs256};

use crate::provider::Provider;
use tidegate_testkit::token_authenticator::token_options;
use tidegate_testkit::token_signer::{P256, RSA, SECRET};

async fn report(options: TokenOptions) -> String {
    match options.check_issuer().await {
        Ok(trial) => format!("{trial:?}"),
        Err(trouble) => format!("trouble: {trouble}"),
    }
}

#[tokio::test]
async fn reports_issuer_keys_and_errors() {
    let provider = Provider::start().await;
    let of_keys = |path: &str| token_options(TokenKey::JwksUrl(provider.at(path)), &[Rs256, Es256]);
    provider.answer("/both", 200, "", json!({"keys": [RSA.jwk(), P256.jwk()]}));
    provider.answer("/one", 200, "", json!({"keys": [RSA.jwk(), {"kty": "oct", "k": "AAAA"}]}));
    provider.answer("/none", 200, "", json!({"keys": []}));
    provider.answer("/page", 200, "", json!("<html>"));
    provider.answer("/broken", 500, "", json!({}));
    let mut table = Vec::new();
    for path in ["/both", "/one", "/none", "/page", "/broken", "/absent"] {
        table.push(format!("{path}: {}", report(of_keys(path)).await));
    }
    let discovered = TokenOptions { issuer: provider.url.clone(), ..token_options(TokenKey::Discovery, &[Rs256]) };
    table.push(format!("no metadata: {}", report(discovered.clone()).await));
    let metadata = json!({"issuer": provider.url, "jwks_uri": provider.at("/both")});
    provider.answer("/.well-known/oauth-authorization-server", 200, "", metadata);
    table.push(format!("metadata: {}", report(discovered.clone()).await));
    provider.answer("/.well-known/oauth-authorization-server", 200, "", json!({"issuer": "https://other.example"}));
    table.push(format!("metadata of another: {}", report(discovered).await));
    table.push(format!("a secret: {}", report(token_options(TokenKey::Secret(Secret::new(SECRET)), &[Rs256])).await));
    insta::assert_snapshot!(table.join("\n"), @r#"
    /both: Keys { count: 2, missing_algorithms: [] }
    /one: Keys { count: 1, missing_algorithms: [Es256] }
    /none: Keys { count: 0, missing_algorithms: [Rs256, Es256] }
    /page: trouble: this is not a JWKS: it must be a JSON object with a list named keys
    /broken: trouble: it answered with the status 500
    /absent: trouble: it answered with the status 404
    no metadata: trouble: it answered with the status 404
    metadata: Keys { count: 2, missing_algorithms: [] }
    metadata of another: trouble: its metadata name another issuer: "https://other.example"
    a secret: NotNeeded
    "#);
}

#[tokio::test]
async fn detects_issuer_that_accepts_everything() {
    let provider = Provider::start().await;
    let introspection_options = IntrospectionOptions {
        url: provider.at("/introspect"),
        client_id: "tidegate".to_owned(),
        client_secret: Secret::new("hunter2"),
        needs_audience: true,
    };
    let mut table = Vec::new();
    for (status, answer) in [
        (200, json!({"active": false})),
        (400, json!({"error": "invalid_request"})),
        (200, json!({"active": true, "sub": "ada"})),
        (200, json!({"active": "false"})),
        (200, json!({"error": "what?"})),
        (200, json!([])),
        (401, json!({"error": "invalid_client"})),
    ] {
        provider.answer("/introspect", status, "", answer.clone());
        table.push(format!(
            "{status} {answer}: {}",
            report(token_options(TokenKey::Introspection(introspection_options.clone()), &[])).await
        ));
    }
    insta::assert_snapshot!(table.join("\n"), @r#"
    200 {"active":false}: Introspects
    400 {"error":"invalid_request"}: RejectsProbe
    200 {"active":true,"sub":"ada"}: trouble: it reports a text that is not a token as active: any bearer would be admitted
    200 {"active":"false"}: trouble: its answer does not say whether the token is active
    200 {"error":"what?"}: trouble: its answer does not say whether the token is active
    200 []: trouble: its answer is not a JSON object
    401 {"error":"invalid_client"}: trouble: it answered with the status 401
    "#);
    let nowhere = IntrospectionOptions { url: "http://127.0.0.1:9/introspect".to_owned(), ..introspection_options };
    let message = report(token_options(TokenKey::Introspection(nowhere), &[])).await;
    assert!(message.starts_with("trouble: it cannot be reached: ") && !message.contains("hunter2"), "{message}");
}
