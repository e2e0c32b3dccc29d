//! Scopes that imply others: a broader one reaches what a narrower one does, and a challenge names the fewest.

use serde_json::{Value, json};

use super::{ConfiguredFolder, Node, claims};

const CONFIGURATION: &str = r"
databases: [{name: shop, files: shop}]
tools:
  - {name: seen, description: S, sql: SELECT 1 AS one, scopes: ['data:read']}
  - {name: changed, description: C, sql: SELECT 2 AS two, scopes: ['data:read', 'data:write']}
roles:
  - {name: clerk, toolsets: ['*'], claims: {scope: ['data:list', 'data:read']}}
auth:
  tokens:
    issuer: https://login.example.com
    audience: tidegate
    algorithms: [RS256]
    implied_scopes: {admin: ['data:write'], 'data:write': ['data:read']}
";

#[tokio::test(flavor = "multi_thread")]
async fn broader_scope_implies_narrower() {
    let node = Node::with_signer(CONFIGURATION, "jwks: keys.jwks");
    let called = async |scope: &str, name: &str| {
        let token = node.issuer.token(&claims(json!({"scope": scope})));
        node.request(&token, "tools/call", json!({"name": name, "arguments": {}})).await
    };
    for (scope, name) in [
        ("data:read", "seen"),
        ("data:write", "seen"),
        ("data:write", "changed"),
        ("admin", "seen"),
        ("admin", "changed"),
    ] {
        let (status, challenge, answer) = called(scope, name).await;
        assert_eq!((status.as_u16(), challenge), (200, None), "{scope} {name}: {answer}");
        assert_ne!(answer["result"], Value::Null, "{scope} {name}: {answer}");
    }
    let (status, challenge, answer) = called("data:read", "changed").await;
    assert_eq!(status.as_u16(), 403, "{answer}");
    let expected = r#"Bearer realm="tidegate", error="insufficient_scope", scope="data:write""#;
    assert_eq!(challenge.as_deref(), Some(expected));
    let (_, _, answer) = called("administrator", "seen").await;
    assert!(answer.get("error").is_some(), "without a role nothing is there: {answer}");
}

#[test]
fn reports_unused_and_cyclic_scopes() {
    let configured = ConfiguredFolder::new("");
    let complaint = |implied: &str| {
        let output = "{admin: ['data:write'], 'data:write': ['data:read']}";
        let text = CONFIGURATION.replace(output, implied).replace("RS256", "HS256");
        configured.write(&format!("{text}    secret: {}\n", "s".repeat(32)));
        let output = configured.usage_error(&["config", "check"]);
        // Without the place in the file.
        output.lines().nth(1).and_then(|line| line.split_once(": ")).unwrap().1.to_owned()
    };
    insta::assert_snapshot!(complaint("{admin: ['data:reed']}"), @r#"auth.tokens.implied_scopes.admin[0]: nothing requires the scope "data:reed": no entry, no role and not auth.oauth; did you mean "data:read"?"#);
    insta::assert_snapshot!(complaint("{a: [b], b: [a]}"), @r#"auth.tokens.implied_scopes: the scope "a" implies itself: a, which implies b, which implies a"#);
    insta::assert_snapshot!(complaint("{admin: ['data read']}"), @r#"auth.tokens.implied_scopes: "data read" is no scope: one is a word without spaces, quotes and backslashes"#);
}
