//! Signed tokens over HTTP: a good one reaches what its claims give, and a bad one learns nothing.

mod caller_attributes;
mod scopes;
mod signer;
mod tenants;

use std::time::SystemTime;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use super::server::Server;
use super::{ConfiguredFolder, tidegate};
pub(super) use signer::message;
use signer::{Signer, signed_with_secret};

const CONFIGURATION: &str = r"
databases: [{name: shop, files: shop}]
tools:
  - {name: orders_all, description: O, sql: SELECT id FROM orders ORDER BY id}
  - {name: orders_secret, description: O, sql: SELECT 1 AS one, access: [orders.secret]}
toolsets: {orders: [orders_*]}
roles:
  - {name: clerk, toolsets: [orders], claims: {groups: clerks}}
  - {name: chief, access: [orders.secret], claims: {groups: chiefs, department: sales}}
  - {name: analyst, toolsets: ['*'], databases: [shop], claims: {groups: analysts}}
auth:
  tokens:
    issuer: https://login.example.com
    audience: [tidegate, https://data.example.com]
    algorithms: [RS256]
";

/// A node that takes the tokens of one issuer.
struct Node {
    server: Server,
    /// The folder that it serves, for as long as it does.
    _configured: ConfiguredFolder,
    issuer: Signer,
}

impl Node {
    /// `keys` is the line that says what signatures are checked with.
    fn start(keys: &str) -> Self {
        Self::with_signer(CONFIGURATION, keys)
    }

    /// A node of `configuration`, which ends in `auth.tokens`.
    fn with_signer(configuration: &str, keys: &str) -> Self {
        Self::with_signer_and_files(configuration, keys, |_| ())
    }

    /// The same, with the files that `write` adds to its folder.
    fn with_signer_and_files(configuration: &str, keys: &str, write: impl Fn(&std::path::Path)) -> Self {
        let issuer = Signer::new();
        let configured = ConfiguredFolder::new(&format!("{configuration}    {keys}\n"));
        std::fs::write(configured.folder().join("keys.jwks"), issuer.jwks()).unwrap();
        std::fs::write(configured.folder().join("key.pem"), issuer.pem()).unwrap();
        write(configured.folder());
        let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "debug"];
        let server = Server::start(tidegate().current_dir(configured.folder()).args(serve));
        Self { server, _configured: configured, issuer }
    }

    /// Status, challenge and answer.
    async fn request(&self, token: &str, method: &str, mut params: Value) -> (StatusCode, Option<String>, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let request = Client::new()
            .post(&self.server.url)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .bearer_auth(token)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        let response = request.send().await.unwrap();
        let challenge = response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
        (response.status(), challenge, response.json().await.unwrap())
    }

    async fn tools(&self, token: &str) -> Vec<String> {
        let (status, _, answer) = self.request(token, "tools/list", json!({})).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The claims of a good token, but for `handler_watchers`; null takes a claim away.
fn claims(changes: Value) -> Value {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({"iss": "https://login.example.com", "aud": "tidegate", "sub": "ada", "exp": now + 3_600});
    claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

#[tokio::test(flavor = "multi_thread")]
async fn valid_token_grants_its_claims() {
    for keys in ["jwks: keys.jwks", "public_key: key.pem"] {
        let node = Node::start(keys);
        let tools = async |changes: Value| node.tools(&node.issuer.token(&claims(changes))).await;
        assert_eq!(tools(json!({"groups": "clerks"})).await, ["orders_all"]);
        assert_eq!(tools(json!({"groups": ["runners", "clerks"], "aud": ["other", "tidegate"]})).await, ["orders_all"]);
        let both = json!({"groups": ["clerks", "chiefs"], "department": "sales"});
        assert_eq!(tools(both).await, ["orders_all", "orders_secret"]);
        let half = json!({"groups": ["clerks", "chiefs"], "department": "stores"});
        assert_eq!(tools(half).await, ["orders_all"], "a role takes all of its claims");
        assert_eq!(tools(json!({})).await, Vec::<String>::new(), "known, and without a role");
        let analyst = node.issuer.token(&claims(json!({"groups": "analysts"})));
        assert!(node.tools(&analyst).await.contains(&"sql".to_owned()));
        let clerk = node.issuer.token(&claims(json!({"groups": "clerks"})));
        let (_, _, answer) = node.request(&clerk, "tools/call", json!({"name": "orders_all", "arguments": {}})).await;
        assert_eq!(answer["result"]["content"][0]["text"], r#"[{"id":1},{"id":2},{"id":3}]"#);
        for hidden in ["orders_secret", "sql", "nothing"] {
            let (_, _, answer) = node.request(&clerk, "tools/call", json!({"name": hidden, "arguments": {}})).await;
            let output = answer["error"]["message"].as_str().unwrap().lines().next();
            assert_eq!(output, Some(format!("there is no tool {hidden:?}").as_str()), "{answer}");
        }
    }
}

/// Everything that can be wrong with a token.
fn invalid_tokens(node: &Node) -> Vec<(&'static str, String)> {
    let clerk = claims(json!({"groups": "clerks"}));
    let good = node.issuer.token(&clerk);
    let issued = |changes: Value| node.issuer.token(&claims(changes));
    let (start, signature) = good.rsplit_once('.').unwrap();
    let of_chief = message(&json!({"alg": "RS256", "kid": "first"}), &claims(json!({"groups": "chiefs"})));
    vec![
        ("expired", issued(json!({"exp": 1_700_000_000}))),
        ("without an end", issued(json!({"exp": null}))),
        ("not yet good", issued(json!({"nbf": 4_000_000_000_u64}))),
        ("of another issuer", issued(json!({"iss": "https://login.example.org"}))),
        ("of no issuer", issued(json!({"iss": null}))),
        ("for somebody else", issued(json!({"aud": "tidegates"}))),
        ("for nobody", issued(json!({"aud": null}))),
        ("unsigned", format!("{}.", message(&json!({"alg": "none"}), &clerk))),
        ("said to be unsigned", format!("{}.{signature}", message(&json!({"alg": "none"}), &clerk))),
        ("without its signature", format!("{start}.")),
        ("with the signature of another", format!("{of_chief}.{signature}")),
        ("signed by another key", Signer::new().token(&clerk)),
        ("signed with the public key as secret", signed_with_secret(&node.issuer.pem(), &clerk)),
        ("signed with the set of keys as secret", signed_with_secret(&node.issuer.jwks(), &clerk)),
        ("of another algorithm", node.issuer.token_with_header(&json!({"alg": "RS512", "kid": "first"}), &clerk)),
        ("of an unknown algorithm", node.issuer.token_with_header(&json!({"alg": "XS1", "kid": "first"}), &clerk)),
        ("cut off", good[..good.len() / 2].to_owned()),
        ("too long", format!("{good}{}", "A".repeat(20_000))),
        ("garbage", "garbage".to_owned()),
        ("dots", "..".to_owned()),
        ("an API key", "tg_0123456789".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_token_reveals_nothing() {
    for keys in ["jwks: keys.jwks", "public_key: key.pem"] {
        let node = Node::start(keys);
        let tokens = invalid_tokens(&node);
        for (subject, token) in &tokens {
            let (status, challenge, answer) = node.request(token, "tools/list", json!({})).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{subject}: {answer}");
            assert_eq!(challenge.as_deref(), Some(r#"Bearer realm="tidegate", error="invalid_token""#), "{subject}");
            let error = json!({"code": -32600, "message": "the key or token is not valid"});
            assert_eq!(answer, json!({"jsonrpc": "2.0", "id": null, "error": error}), "{subject}");
        }
        node.server.signal("TERM");
        let (status, log) = node.server.wait_for_exit();
        assert_eq!(status.code(), Some(0));
        // Not even the log keeps what was shown.
        for (subject, token) in tokens.iter().filter(|(_, token)| token.len() > 10) {
            assert!(!log.contains(token.as_str()), "{subject}: {log}");
        }
    }
}

#[cfg(unix)]
#[test]
fn development_tokens_print_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let configured = ConfiguredFolder::new("");
    let ran = configured.run(&["token", "key"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .starts_with("FOR DEVELOPMENT ONLY: anyone holding development-key.pem can impersonate any principal"),
        "{ran:?}"
    );
    let key = std::fs::metadata(configured.folder().join("development-key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600, "its owner alone reads it");
    assert_eq!(configured.run(&["token", "key"]).code, Some(2), "no key is written over");
    configured.write(&ran.stdout);
    let checked = configured.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stderr.contains("auth.tokens accepts tokens of a development key"), "{checked:?}");
    let ran = configured.run(&["token", "new", "--subject", "ann"]);
    assert_eq!((ran.code, ran.stdout.trim().split('.').count()), (Some(0), 3), "{ran:?}");
    assert!(ran.stderr.starts_with("FOR DEVELOPMENT ONLY: a token of ann") && !ran.stderr.contains(ran.stdout.trim()));
}

#[test]
fn offline_access_scope_is_warned_about() {
    let kept = "  - {name: orders_kept, description: O, sql: SELECT 1 AS one, scopes: [offline_access]}\n";
    let configuration = CONFIGURATION.replace("toolsets: {", &format!("{kept}toolsets: {{"));
    let oauth = "  oauth: {resource: https://data.example.com, scopes: [orders, offline_access]}\n";
    let configured = ConfiguredFolder::new(&format!("{configuration}    jwks: keys.jwks\n{oauth}"));
    std::fs::write(configured.folder().join("keys.jwks"), Signer::new().jwks()).unwrap();
    let checked = configured.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for path in ["auth.oauth.scopes", "tools[2].scopes"] {
        assert!(checked.stderr.contains(&format!("{path} contains offline_access")), "{checked:?}");
    }
}

#[test]
fn invalid_jwks_error_hides_its_content() {
    let configured = ConfiguredFolder::new(&format!("{CONFIGURATION}    jwks: keys.jwks\n"));
    std::fs::write(configured.folder().join("keys.jwks"), "hunter2").unwrap();
    let text = configured.usage_error(&["config", "check"]);
    assert!(text.contains("auth") && !text.contains("hunter2"), "{text}");
    std::fs::remove_file(configured.folder().join("keys.jwks")).unwrap();
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]), @r"
    error: the configuration cannot be used
    tidegate.yaml:16:5: auth.tokens.jwks: keys.jwks cannot be read: No such file or directory (os error 2)
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn leeway_extends_token_expiry() {
    let ended = |node: &Node| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        node.issuer.token(&claims(json!({"exp": now - 1})))
    };
    for (leeway, status) in [("0s", StatusCode::UNAUTHORIZED), ("60s", StatusCode::OK)] {
        let node = Node::with_signer(&format!("{CONFIGURATION}    leeway: {leeway}\n"), "jwks: keys.jwks");
        let (answered, _, answer) = node.request(&ended(&node), "tools/list", json!({})).await;
        assert_eq!(answered, status, "{leeway}: {answer}");
    }
}
