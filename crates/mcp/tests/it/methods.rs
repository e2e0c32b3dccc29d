//! Which revision has which method.

use serde_json::json;
use tidegate_mcp::Revision;

use crate::client::Client;

#[tokio::test]
async fn each_revision_has_its_methods_and_refuses_those_of_others() {
    let argument = json!({"name": "mood", "value": "a"});
    let methods = [
        ("server/discover", json!({})),
        ("initialize", json!({"protocolVersion": "2025-11-25"})),
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "script"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "test://plain"})),
        ("resources/subscribe", json!({"uri": "test://plain"})),
        ("resources/unsubscribe", json!({"uri": "test://plain"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "plain"})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "decorated"}, "argument": argument})),
        ("logging/setLevel", json!({"level": "info"})),
        ("subscriptions/listen", json!({"notifications": {}})),
        ("tasks/get", json!({"taskId": "1"})),
        ("sampling/createMessage", json!({})),
        ("tools/List", json!({})),
        ("", json!({})),
    ];
    let mut table = format!("{:28}{}\n", "", Revision::ALL.map(Revision::name).join("  "));
    for (method, params) in methods {
        let mut row = format!("{method:28}");
        for client in Client::all_revisions() {
            let response = client.send_request(method, params.clone()).await.response.unwrap();
            let outcome = response["error"]["code"].as_i64().map_or("yes".to_owned(), |code| code.to_string());
            row.push_str(&format!("{outcome:12}"));
        }
        table.push_str(&format!("{}\n", row.trim_end()));
    }
    insta::assert_snapshot!(table, @r"
                                2024-11-05  2025-03-26  2025-06-18  2025-11-25  2026-07-28
    server/discover             -32601      -32601      -32601      -32601      yes
    initialize                  -32601      -32601      -32601      -32601      -32601
    ping                        yes         yes         yes         yes         -32601
    tools/list                  yes         yes         yes         yes         yes
    tools/call                  yes         yes         yes         yes         yes
    resources/list              yes         yes         yes         yes         yes
    resources/templates/list    yes         yes         yes         yes         yes
    resources/read              yes         yes         yes         yes         yes
    resources/subscribe         yes         yes         yes         yes         -32601
    resources/unsubscribe       yes         yes         yes         yes         -32601
    prompts/list                yes         yes         yes         yes         yes
    prompts/get                 yes         yes         yes         yes         yes
    completion/complete         yes         yes         yes         yes         yes
    logging/setLevel            yes         yes         yes         yes         -32601
    subscriptions/listen        -32601      -32601      -32601      -32601      yes
    tasks/get                   -32601      -32601      -32601      -32601      -32021
    sampling/createMessage      -32601      -32601      -32601      -32601      -32601
    tools/List                  -32601      -32601      -32601      -32601      -32601
                                -32601      -32601      -32601      -32601      -32601
    ");
}

#[tokio::test]
async fn ping_and_set_level_answer_with_exactly_nothing() {
    for client in Client::all_revisions().filter(|client| client.revision.is_legacy()) {
        assert_eq!(client.send_request("ping", json!({})).await.result(), json!({}));
        assert_eq!(client.send_request("logging/setLevel", json!({"level": "error"})).await.result(), json!({}));
    }
}

#[tokio::test]
async fn wrong_params_errors_name_the_cause() {
    let client = Client::of(Revision::V2025_11_25);
    let mut message = String::new();
    for (method, params) in [
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": "script", "arguments": []})),
        ("tools/call", json!({"name": "script", "arguments": null})),
        ("tools/list", json!({"cursor": 7})),
        ("resources/read", json!({"url": "test://plain"})),
        ("prompts/get", json!({"name": null})),
        ("completion/complete", json!({"ref": {"type": "ref/tool", "name": "script"}, "argument": {}})),
        ("logging/setLevel", json!({"level": "loud"})),
        ("logging/setLevel", json!({})),
    ] {
        message.push_str(&format!(
            "{method} {params}\n    {}\n",
            client.send_request(method, params.clone()).await.text()
        ));
    }
    insta::assert_snapshot!(message, @r#"
    tools/call {}
        error -32602: the params of tools/call are wrong: missing field `name` at line 1 column 2
    tools/call {"name":7}
        error -32602: the params of tools/call are wrong: invalid type: integer `7`, expected a string at line 1 column 9
    tools/call {"name":"script","arguments":[]}
        error -32602: the params of tools/call are wrong: invalid type: sequence, expected a map at line 1 column 29
    tools/call {"name":"script","arguments":null}
        result {"content":[{"type":"text","text":"nothing to do"}],"isError":false}
    tools/list {"cursor":7}
        error -32602: the params of tools/list are wrong: invalid type: integer `7`, expected a string at line 1 column 11
    resources/read {"url":"test://plain"}
        error -32602: the params of resources/read are wrong: missing field `uri` at line 1 column 22
    prompts/get {"name":null}
        error -32602: the params of prompts/get are wrong: invalid type: null, expected a string at line 1 column 12
    completion/complete {"ref":{"type":"ref/tool","name":"script"},"argument":{}}
        error -32602: the params of completion/complete are wrong: unknown variant `ref/tool`, expected `ref/prompt` or `ref/resource` at line 1 column 25
    logging/setLevel {"level":"loud"}
        error -32602: there is no level "loud"; levels are debug, info, notice, warning, error, critical, alert, emergency
    logging/setLevel {}
        error -32602: the params of logging/setLevel are wrong: missing field `level` at line 1 column 2
    "#);
}

#[tokio::test]
async fn arguments_too_deep_to_be_read_are_wrong_params() {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"script","arguments":{{"steps":{nested}}}}}}}"#
    );
    let Ok(tidegate_mcp::IncomingMessage::Request(request)) = tidegate_mcp::decode(text.as_bytes()) else { panic!() };
    let client = Client::of(Revision::V2025_11_25);
    let client_result = crate::client::collect_answer(client.service.answer(request, &client.context).await).await;
    insta::assert_snapshot!(client_result.text(), @"error -32602: the params of tools/call are wrong: recursion limit exceeded at line 1 column 164");
}

#[tokio::test]
async fn names_and_uris_have_a_bound() {
    let client = Client::of(Revision::V2025_11_25);
    let (name, uri) = ("n".repeat(4_097), format!("test://{}", "u".repeat(8_192)));
    let argument = json!({"name": "a", "value": ""});
    let mut rendered = String::new();
    for (method, params) in [
        ("tools/call", json!({"name": name})),
        ("prompts/get", json!({"name": name})),
        ("resources/read", json!({"uri": uri})),
        ("resources/subscribe", json!({"uri": uri})),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": name}, "argument": argument})),
        ("completion/complete", json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument})),
    ] {
        rendered.push_str(&client.send_request(method, params).await.text());
        rendered.push('\n');
    }
    let column = |line: &str| line.split(" at line").next().unwrap().to_owned();
    let rendered: Vec<String> = rendered.lines().map(column).collect();
    insta::assert_snapshot!(rendered.join("\n"), @r"
    error -32602: the params of tools/call are wrong: the name is 4097 bytes long; at most 4096
    error -32602: the params of prompts/get are wrong: the name is 4097 bytes long; at most 4096
    error -32602: the params of resources/read are wrong: the URI is 8199 bytes long; at most 8192
    error -32602: the params of resources/subscribe are wrong: the URI is 8199 bytes long; at most 8192
    error -32602: the params of completion/complete are wrong: the name is 4097 bytes long; at most 4096
    error -32602: the params of completion/complete are wrong: the URI is 8199 bytes long; at most 8192
    ");
    let long = json!({"name": "script", "_meta": {"progressToken": "p".repeat(4_097)}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": long}).to_string();
    let rejection = tidegate_mcp::decode(message.as_bytes()).unwrap_err();
    assert_eq!(rejection.error.message, "params._meta.progressToken is longer than 4096 bytes");
    assert!(rejection.id.is_some());
    // What is just short enough is looked for, and not found.
    let answer = client.send_request("tools/call", json!({"name": &name[1..]})).await.text();
    assert!(answer.contains("there is no tool"), "{answer}");
}
