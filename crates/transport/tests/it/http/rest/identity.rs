//! Authentication, and tools that are hidden from a caller.

use serde_json::{Value, json};
use tidegate_core::{Access, Acl, TransportKind};
use tidegate_runtime::SnapshotBuilder;
use tidegate_transport::http::HttpOptions;

use super::fixture::{echo, get, post, problem, request, with};
use crate::http::identity::revocable_key;

#[tokio::test]
async fn unauthenticated_callers_get_only_the_page() {
    let server = with(revocable_key().1).await;
    let mut connection = server.connect().await;
    assert_eq!(connection.ask(&get("/rest/")).await.head.status, 200);
    let mut table = String::new();
    for headers in [&[][..], &[("Authorization", "Bearer other")], &[("Authorization", "Basic key")]] {
        for (method, path) in
            [("GET", "/rest/tools"), ("GET", "/rest/openapi.json"), ("POST", "/rest/tools/script/call")]
        {
            let answer = connection.ask(&request(method, path, headers, "")).await;
            let challenge = answer.header("www-authenticate").unwrap();
            table.push_str(&format!("{path:25} {challenge:50} {}\n", problem(&answer)));
        }
    }
    insta::assert_snapshot!(table, @r#"
    /rest/tools               Bearer realm="tidegate"                            401 unauthenticated: authentication is required: send Authorization: Bearer with an API key or a token
    /rest/openapi.json        Bearer realm="tidegate"                            401 unauthenticated: authentication is required: send Authorization: Bearer with an API key or a token
    /rest/tools/script/call   Bearer realm="tidegate"                            401 unauthenticated: authentication is required: send Authorization: Bearer with an API key or a token
    /rest/tools               Bearer realm="tidegate", error="invalid_token"     401 unauthenticated: the key or token is not valid
    /rest/openapi.json        Bearer realm="tidegate", error="invalid_token"     401 unauthenticated: the key or token is not valid
    /rest/tools/script/call   Bearer realm="tidegate", error="invalid_token"     401 unauthenticated: the key or token is not valid
    /rest/tools               Bearer realm="tidegate"                            401 unauthenticated: authentication is required: send Authorization: Bearer with an API key or a token
    /rest/openapi.json        Bearer realm="tidegate"                            401 unauthenticated: authentication is required: send Authorization: Bearer with an API key or a token
    /rest/tools/script/call   Bearer realm="tidegate"                            401 unauthenticated: authentication is required: send Authorization: Bearer with an API key or a token
    "#);
    let visible = ("Authorization", "Bearer key");
    let answer = connection.ask(&request("GET", "/rest/openapi.json", &[visible], "")).await;
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(document["security"], json!([{"bearer": []}]));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
}

#[tokio::test]
async fn hidden_and_absent_tools_answer_alike() {
    let server = with(HttpOptions::default()).await;
    let named = Access { names: vec!["secrets".to_owned()], ..Access::default() };
    let elsewhere = Acl { transports: Some(vec![TransportKind::StreamableHttp]), networks: None };
    let elsewhere = Access { acl: elsewhere, ..Access::default() };
    let here = Acl { transports: Some(vec![TransportKind::Rest]), networks: None };
    let here = Access { acl: here, ..Access::default() };
    let entries = SnapshotBuilder::new()
        .tool(echo("secret_one").with_access(named))
        .tool(echo("secret_two").with_access(elsewhere))
        .tool(echo("plain").with_access(here));
    server.host.service.registry().swap(entries.build());
    let list: Value = serde_json::from_slice(&server.rest(&get("/rest/tools")).await.body).unwrap();
    assert_eq!(list["tools"].as_array().unwrap().len(), 1);
    let document = server.rest(&get("/rest/openapi.json")).await;
    assert!(document.text().contains("/rest/tools/plain/call") && !document.text().contains("secret"));
    for path in ["/rest/tools/NAME", "/rest/tools/NAME/schema", "/rest/tools/NAME/call"] {
        let mut message = Vec::new();
        for name in ["secret_one", "secret_two", "secret_not"] {
            let path = path.replace("NAME", name);
            let request = if path.ends_with("call") { post(&path, &json!({})) } else { get(&path) };
            let answer = server.rest(&request).await;
            message.push((answer.head.status, answer.text().replace(name, "NAME")));
        }
        assert_eq!(message[0].0, 404);
        assert!(message.iter().all(|answer| *answer == message[0]), "{message:?}");
    }
}
