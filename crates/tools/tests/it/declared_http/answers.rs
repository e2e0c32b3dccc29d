//! Tables, JSON, text, and their limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_core::{Budget, CallLimits, CallTarget, ErrorKind};
use tidegate_query::{SecretRule, SecretRules};
use tidegate_testkit::wait::within_timeout;
use tidegate_tools::declared::HttpArgument;

use super::ApiFixture;
use super::test_server::{ResponseStep, TestServer, json_response, normalize_request, response};
use crate::fake::{call, collect_answer};

const TICKETS: &str = r#"[{"id": 1, "title": "Door", "tags": ["a"]}, {"id": 2, "open": true, "title": null}]"#;

#[tokio::test]
async fn an_array_of_objects_is_a_table() {
    let server = TestServer::respond_with(json_response(TICKETS)).await;
    let ask = async |arguments| ApiFixture::for_server(&server).call(arguments).await;
    let rows =
        r#"[{"id":1,"title":"Door","tags":"[\"a\"]","open":null},{"id":2,"title":null,"tags":null,"open":true}]"#;
    assert_eq!(ask(json!({})).await, rows);
    let csv = "id,title,tags,open\r\n1,Door,\"[\"\"a\"\"]\",\r\n2,,,true";
    assert_eq!(ask(json!({"format": "csv"})).await.trim_end(), csv);
    assert_eq!(ask(json!({"extract": "id"})).await, "[1,2]");
    assert!(ask(json!({"format": "xml"})).await.starts_with("invalid_arguments: there is no format \"xml\""));
}

#[tokio::test]
async fn rows_pointer_selects_the_table() {
    let server =
        TestServer::respond_with(json_response(&format!(r#"{{"next": 2, "data": {{"items": {TICKETS}}}}}"#))).await;
    let api = ApiFixture::for_server(&server).with(|definition| definition.rows = Some("/data/items".to_owned()));
    assert_eq!(api.call(json!({"extract": "title"})).await, r#"["Door",null]"#);
    let api = ApiFixture::for_server(&server).with(|definition| definition.rows = Some("/items".to_owned()));
    let host = server.host();
    let expected = format!(
        "unavailable: the answer of {host} must have its table at \"/items\", but has nothing there\n\
         Valid choices: /next, /data\nThe owner of this server can correct rows in the tool's configuration."
    );
    assert_eq!(api.call(json!({})).await, expected);
}

#[tokio::test]
async fn a_table_without_rows_is_an_answer() {
    let server = TestServer::respond_with(json_response("[]")).await;
    assert_eq!(ApiFixture::for_server(&server).call(json!({})).await, "[]");
    assert_eq!(ApiFixture::for_server(&server).call(json!({"extract": "id"})).await, "[]");
    assert_eq!(ApiFixture::for_server(&server).call(json!({"format": "csv"})).await.trim(), "");
}

#[tokio::test]
async fn non_tabular_json_and_text_become_text() {
    let server = TestServer::respond_with(json_response(r#"{ "b": 1, "a": [2] }"#)).await;
    assert_eq!(ApiFixture::for_server(&server).call(json!({"format": "csv"})).await, r#"{"b":1,"a":[2]}"#);
    let refused = "invalid_arguments: the arguments do not fit the answer:\n\
                   - extract: the answer of the API is not a table, so no column can be extracted";
    assert_eq!(ApiFixture::for_server(&server).call(json!({"extract": "b"})).await, refused);
    let server =
        TestServer::respond_with(response("200 OK", "Content-Type: text/plain; charset=utf-8\r\n", "Grüße")).await;
    assert_eq!(ApiFixture::for_server(&server).call(json!({})).await, "Grüße");
}

#[tokio::test]
async fn empty_body_is_accepted_and_images_are_rejected() {
    let server = TestServer::respond_with("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
    assert_eq!(ApiFixture::for_server(&server).call(json!({})).await, "done: 204 No Content");
    let server = TestServer::respond_with(response("200 OK", "Content-Type: image/png\r\n", "x")).await;
    let host = server.host();
    let refused = format!("unavailable: {host} answers with image/png; http tools read JSON and text");
    assert_eq!(ApiFixture::for_server(&server).call(json!({})).await, refused);
    let server = TestServer::respond_with(response("200 OK", "Content-Encoding: gzip\r\n", "x")).await;
    assert!(ApiFixture::for_server(&server).call(json!({})).await.contains("answers compressed (\"gzip\")"));
}

#[tokio::test]
async fn request_matches_definition() {
    let mut server = TestServer::respond_with(json_response("{}")).await;
    let url = server.url("/v1/tickets/{{customer}}?lang=en");
    let api = ApiFixture::get(url, [server.host()]).with_argument("customer").with(|definition| {
        definition.method = "POST".to_owned();
        definition.query = vec![("limit".to_owned(), json!("{{limit}}")), ("page".to_owned(), json!("{{page}}"))];
        definition.body =
            Some(json!({"customer": "{{customer}}", "nested": {"note": "for {{customer}}", "page": "{{page}}"}}));
    });
    let api = ApiFixture {
        arguments: [
            api.arguments.clone(),
            vec![
                HttpArgument { name: "limit".to_owned(), is_required: false, default: Some(json!(50)) },
                HttpArgument { name: "page".to_owned(), is_required: false, default: None },
            ],
        ]
        .concat(),
        ..api
    };
    assert_eq!(api.call(json!({"customer": 7})).await, "{}");
    let port = server.port;
    let expected = format!(
        "POST /v1/tickets/7?lang=en&limit=50 HTTP/1.1\n\
         accept: application/json, text/*;q=0.5\n\
         authorization: bearer s3cr3t-token\n\
         content-length: 40\n\
         content-type: application/json\n\
         host: 127.0.0.1:{port}\n\
         user-agent: tidegate/1.2.3\n\
         x-api-key: s3cr3t-token\n\
         {{\"customer\":7,\"nested\":{{\"note\":\"for 7\"}}}}"
    );
    assert_eq!(
        server.received_requests().iter().map(|request| normalize_request(request)).collect::<Vec<_>>(),
        [expected]
    );
}

#[tokio::test]
async fn body_limit_holds_with_and_without_content_length() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    let endless =
        TestServer::start(|_| vec![ResponseStep::Bytes(head.into()), ResponseStep::Forever(vec![b' '; 1_000])]).await;
    let announced = TestServer::respond_with(json_response(&" ".repeat(1_001))).await;
    for server in [endless, announced] {
        let api = ApiFixture::for_server(&server).with(|definition| definition.max_bytes = Some(1_000));
        let expected = format!(
            "too_large: the answer of {} is larger than 1000 bytes, the limit of this tool (max_bytes)\n\
             Request less data; the owner of this server can raise max_bytes of the tool.",
            server.host()
        );
        assert_eq!(api.call(json!({})).await, expected);
    }
    let fitting = TestServer::respond_with(json_response(&format!("{}{{}}", " ".repeat(998)))).await;
    let api = ApiFixture::for_server(&fitting).with(|definition| definition.max_bytes = Some(1_000));
    assert_eq!(api.call(json!({})).await, "{}");
}

#[tokio::test]
async fn tool_and_call_timeouts_apply() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[";
    let silent = TestServer::start(|_| vec![ResponseStep::Silence]).await;
    let stuck = TestServer::start(|_| vec![ResponseStep::Bytes(head.into()), ResponseStep::Silence]).await;
    for mut server in [silent, stuck] {
        let api = ApiFixture::for_server(&server).with(|definition| definition.timeout = Some(Duration::from_secs(1)));
        let expected =
            format!("timed_out: {} did not answer within 1.0 s, the time limit of this tool (timeout)", server.host());
        assert_eq!(api.call(json!({})).await, expected);
        // The connection is not kept for an abandoned response.
        within_timeout("the end of the connection", server.gone.recv()).await.unwrap();
        let mut api =
            ApiFixture::for_server(&server).with(|definition| definition.timeout = Some(Duration::from_secs(20)));
        api.limits = CallLimits { timeout: Some(Duration::from_secs(1)), ..CallLimits::default() };
        assert!(api.call(json!({})).await.starts_with("timed_out: the call exceeded its time limit of 1.0 s"));
    }
}

#[tokio::test]
async fn a_cancelled_call_drops_its_request() {
    let mut server = TestServer::start(|_| vec![ResponseStep::Silence]).await;
    let registry = ApiFixture::for_server(&server).registry();
    let reply = registry.call(call(CallTarget::Tool("api".to_owned()), json!({}))).unwrap();
    let job = reply.job().clone();
    server.requests.recv().await.unwrap();
    job.cancel();
    assert_eq!(collect_answer(reply).await.unwrap_err().kind(), ErrorKind::Cancelled);
    server.gone.recv().await.unwrap();
}

#[tokio::test]
async fn texts_end_at_the_inline_budget() {
    let server = TestServer::respond_with(json_response(&format!("[\"{}\"]", "é".repeat(1_000)))).await;
    let mut api = ApiFixture::for_server(&server);
    api.limits = CallLimits { inline: Some(Budget { rows: None, bytes: Some(1_000) }), ..CallLimits::default() };
    let answer = api.call(json!({})).await;
    assert!(answer.len() <= 1_000, "{}", answer.len());
    assert!(answer.ends_with("é\nShown: the first 800 of 2004 bytes; request less from the API."), "{answer}");
}

#[tokio::test]
async fn a_text_is_masked_once() {
    let server = TestServer::respond_with(response("200 OK", "Content-Type: text/plain\r\n", "see ticket-7")).await;
    let mut api = ApiFixture::for_server(&server);
    // A mask has the name of its rule, which this rule finds too.
    let rule = SecretRule { name: "ticket".to_owned(), pattern: "ticket(-[0-9]+)?".to_owned() };
    api.protection.redactor = Some(Arc::new(SecretRules::new(&[rule], false).unwrap()));
    assert_eq!(api.call(json!({})).await, "see [secret: ticket]");
}

#[tokio::test]
async fn echoed_secrets_are_redacted() {
    let secret = "v4lue/of mine";
    let echo =
        r#"{"url": "/x?key=v4lue%2Fof%20mine", "header": "Bearer s3cr3t-token", "body": {"token": "v4lue/of mine"}}"#;
    let rows = format!("[{echo}]");
    for (body, media_type) in [(echo, "application/json"), (&rows, "application/json"), (echo, "text/plain")] {
        for status in ["200 OK", "400 Bad Request"] {
            let server =
                TestServer::respond_with(response(status, &format!("Content-Type: {media_type}\r\n"), body)).await;
            let api = ApiFixture::for_server(&server).with(|definition| definition.secrets = vec![secret.to_owned()]);
            let answer = api.call(json!({})).await;
            assert!(answer.contains("***") && answer.contains("header"), "{answer}");
            assert!(!answer.contains("v4lue"), "{answer}");
        }
    }
}
