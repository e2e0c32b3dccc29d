//! The message that each text is decoded to, and the errors for all other texts.

use serde_json::{Value, json};
use tidegate_mcp::{DecodeError, IncomingMessage, RPC_BATCH_MESSAGES_MAX, decode};

fn check(bytes: impl AsRef<[u8]>) -> String {
    text(&decode(bytes.as_ref()))
}

fn text(decoded: &Result<IncomingMessage, DecodeError>) -> String {
    match decoded {
        Ok(IncomingMessage::Request(request)) => format!("request {} of id {}", request.method, request.id.as_json()),
        Ok(IncomingMessage::Notification(notification)) => format!("notification {}", notification.method),
        Ok(IncomingMessage::Response(_)) => "response".to_owned(),
        Ok(IncomingMessage::RpcBatch(messages)) => {
            format!("batch of [{}]", messages.iter().map(text).collect::<Vec<_>>().join("; "))
        }
        Err(DecodeError { id, error }) => {
            let answer: Value = serde_json::from_slice(&error.to_bytes(id.as_ref())).unwrap();
            tidegate_testkit::schema::check_response(tidegate_mcp::Revision::V2026_07_28, "", &answer);
            let id = id.as_ref().map_or("null", |id| id.as_json());
            format!("{} for id {id}: {}", error.code, error.message)
        }
    }
}

/// One line for each message and what it is.
fn table(messages: &[&str]) -> String {
    messages.iter().map(|message| format!("{message}\n    {}\n", check(message))).collect()
}

#[test]
fn invalid_json_is_parse_error() {
    insta::assert_snapshot!(table(&[
        "",
        " ",
        "hello",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping""#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"{'jsonrpc':'2.0'}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}"#,
        "[",
        "[1,",
    ]), @r#"
        -32700 for id null: Parse error: EOF while parsing a value at line 1 column 0
     
        -32700 for id null: Parse error: EOF while parsing a value at line 1 column 1
    hello
        -32700 for id null: Parse error: expected value at line 1 column 1
    {"jsonrpc":"2.0","id":1,"method":"ping"
        -32700 for id null: Parse error: EOF while parsing an object at line 1 column 39
    {"jsonrpc":"2.0","id":1,"method":"ping"}}
        -32700 for id null: Parse error: trailing characters at line 1 column 41
    {"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}
        -32700 for id null: Parse error: trailing characters at line 1 column 42
    {'jsonrpc':'2.0'}
        -32700 for id null: Parse error: key must be a string at line 1 column 2
    {"jsonrpc":"2.0","id":01,"method":"ping"}
        -32700 for id null: Parse error: invalid number at line 1 column 24
    {"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}
        -32700 for id null: Parse error: expected value at line 1 column 45
    [
        -32700 for id null: Parse error: EOF while parsing a list at line 1 column 1
    [1,
        -32700 for id null: Parse error: EOF while parsing a value at line 1 column 3
    "#);
    assert!(check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}").starts_with("-32700 for id null: "));
    assert!(check(b"\xef\xbb\xbf{}").starts_with("-32700"));
    assert!(check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}").starts_with("-32700"));
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    insta::assert_snapshot!(table(&[
        "5",
        "null",
        r#""ping""#,
        "{}",
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":[]}"#,
    ]), @r#"
    5
        -32600 for id null: Invalid request: invalid type: integer `5`, expected an object at line 1 column 1
    null
        -32600 for id null: Invalid request: invalid type: null, expected an object at line 1 column 4
    "ping"
        -32600 for id null: Invalid request: invalid type: string "ping", expected an object at line 1 column 6
    {}
        -32600 for id null: Invalid request: the member "jsonrpc" must be "2.0"
    {"id":1,"method":"ping"}
        -32600 for id 1: Invalid request: the member "jsonrpc" must be "2.0"
    {"jsonrpc":"1.0","id":1,"method":"ping"}
        -32600 for id 1: Invalid request: the member "jsonrpc" must be "2.0"
    {"jsonrpc":2.0,"id":1,"method":"ping"}
        -32600 for id 1: Invalid request: the member "jsonrpc" must be "2.0"
    {"jsonrpc":"2.0","id":1}
        -32600 for id 1: Invalid request: the member "method" is missing
    {"jsonrpc":"2.0","id":1,"method":7}
        -32600 for id 1: Invalid request: the method must be a string
    {"jsonrpc":"2.0","id":1,"method":null}
        -32600 for id 1: Invalid request: the method must be a string
    {"jsonrpc":"2.0","id":1,"method":"ping","params":[]}
        -32600 for id 1: Invalid request: the params must be an object
    {"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}
        -32600 for id 1: Invalid request: the params must be an object
    {"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}
        -32600 for id null: Invalid request: duplicate field `method` at line 1 column 48
    {"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}
        -32600 for id null: Invalid request: duplicate field `id` at line 1 column 28
    {"jsonrpc":"2.0","method":"notifications/x","params":[]}
        -32600 for id null: Invalid request: the params must be an object
    "#);
}

#[test]
fn params_that_are_null_are_missing() {
    let decoded = decode(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#).unwrap();
    let IncomingMessage::Request(request) = decoded else { panic!("no request") };
    assert_eq!(request.params::<Value>().ok(), Some(json!({})));
    let decoded = decode(br#"{"jsonrpc":"2.0","method":"notifications/initialized","params":null}"#);
    assert!(matches!(decoded, Ok(IncomingMessage::Notification(_))), "{decoded:?}");
}

#[test]
fn an_id_is_a_string_or_a_number_and_returns_as_it_came() {
    insta::assert_snapshot!(table(&[
        r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":-7,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7.0,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5e3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"a\u00e4\"\n","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":false,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
    ]), @r#"
    {"jsonrpc":"2.0","id":0,"method":"ping"}
        request ping of id 0
    {"jsonrpc":"2.0","id":-7,"method":"ping"}
        request ping of id -7
    {"jsonrpc":"2.0","id":7.0,"method":"ping"}
        request ping of id 7.0
    {"jsonrpc":"2.0","id":1.5e3,"method":"ping"}
        request ping of id 1.5e3
    {"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}
        request ping of id 12345678901234567890123
    {"jsonrpc":"2.0","id":"","method":"ping"}
        request ping of id ""
    {"jsonrpc":"2.0","id":"a\u00e4\"\n","method":"ping"}
        request ping of id "a\u00e4\"\n"
    {"jsonrpc":"2.0","id":null,"method":"ping"}
        -32600 for id null: Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":true,"method":"ping"}
        -32600 for id null: Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":false,"method":"ping"}
        -32600 for id null: Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":[1],"method":"ping"}
        -32600 for id null: Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":{},"method":"ping"}
        -32600 for id null: Invalid request: the id must be a string or a number
    {"jsonrpc":"2.0","id":"\ud800","method":"ping"}
        -32600 for id null: Invalid request: the id must be a string or a number
    "#);
    let long = |characters: usize| format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(characters));
    assert!(check(long(4_000)).starts_with("request ping of id \"xxx"));
    assert_eq!(check(long(5_000)), "-32600 for id null: Invalid request: the id must be a string or a number");
}

#[test]
fn accepts_requests_notifications_and_responses() {
    insta::assert_snapshot!(table(&[
        " \t\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n",
        r#"{"method":"ping","params":{},"extra":[{}],"id":"a","jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m\u0065thod"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
    ]), @r#"
     	
    {"jsonrpc":"2.0","id":1,"method":"ping"}

        request ping of id 1
    {"method":"ping","params":{},"extra":[{}],"id":"a","jsonrpc":"2.0"}
        request ping of id "a"
    {"jsonrpc":"2.0","method":"notifications/initialized"}
        notification notifications/initialized
    {"jsonrpc":"2.0","id":1,"result":{}}
        response
    {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}
        response
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}
        response
    {"jsonrpc":"2.0","id":1,"method":"m\u0065thod"}
        request method of id 1
    {"jsonrpc":"2.0","id":1,"method":""}
        request  of id 1
    "#);
}

#[test]
fn request_meta_members_are_type_checked() {
    let meta = |meta: &str| check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{meta}}}}}"#));
    let metas = [
        "{}",
        "null",
        "[]",
        r#"["2026-07-28",{}]"#,
        "7",
        r#"{"progressToken":"a"}"#,
        r#"{"progressToken":-7}"#,
        r#"{"progressToken":null}"#,
        r#"{"progressToken":true}"#,
        r#"{"progressToken":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":7}"#,
        r#"{"io.modelcontextprotocol/clientCapabilities":[]}"#,
        r#"{"io.modelcontextprotocol/clientInfo":"me"}"#,
        r#"{"io.modelcontextprotocol/logLevel":"loud"}"#,
        r#"{"traceparent":"not checked, only not logged","baggage":7}"#,
    ];
    let table: String = metas.iter().map(|text| format!("{text}\n    {}\n", meta(text))).collect();
    insta::assert_snapshot!(table, @r#"
    {}
        request ping of id 1
    null
        request ping of id 1
    []
        -32602 for id 1: params._meta is wrong: it must be an object
    ["2026-07-28",{}]
        -32602 for id 1: params._meta is wrong: it must be an object
    7
        -32602 for id 1: params._meta is wrong: it must be an object
    {"progressToken":"a"}
        request ping of id 1
    {"progressToken":-7}
        request ping of id 1
    {"progressToken":null}
        request ping of id 1
    {"progressToken":true}
        -32602 for id 1: params._meta.progressToken must be a string or a number
    {"progressToken":{}}
        -32602 for id 1: params._meta.progressToken must be a string or a number
    {"io.modelcontextprotocol/protocolVersion":7}
        -32602 for id 1: params._meta is wrong: invalid type: integer `7`, expected a string at line 1 column 44
    {"io.modelcontextprotocol/clientCapabilities":[]}
        -32602 for id 1: params._meta is wrong: clientCapabilities and clientInfo must be objects
    {"io.modelcontextprotocol/clientInfo":"me"}
        -32602 for id 1: params._meta is wrong: clientCapabilities and clientInfo must be objects
    {"io.modelcontextprotocol/logLevel":"loud"}
        -32602 for id 1: params._meta is wrong: there is no log level "loud"
    {"traceparent":"not checked, only not logged","baggage":7}
        request ping of id 1
    "#);
}

#[test]
fn a_batch_is_read_message_by_message() {
    insta::assert_snapshot!(table(&[
        "[]",
        " [ ]",
        "[1]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2},null]"#,
        r#"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#,
        r#"[["2.0",1,"ping"]]"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},]"#,
    ]), @r#"
    []
        -32600 for id null: Invalid request: an empty batch
     [ ]
        -32600 for id null: Invalid request: an empty batch
    [1]
        batch of [-32600 for id null: Invalid request: invalid type: integer `1`, expected an object at line 1 column 1]
    [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2},null]
        batch of [request ping of id 1; notification x; -32600 for id 2: Invalid request: the member "method" is missing; -32600 for id null: Invalid request: invalid type: null, expected an object at line 1 column 4]
    [[{"jsonrpc":"2.0","id":1,"method":"ping"}]]
        batch of [-32600 for id null: Invalid request: a batch cannot contain a batch]
    [["2.0",1,"ping"]]
        batch of [-32600 for id null: Invalid request: a batch cannot contain a batch]
    [{"jsonrpc":"2.0","id":1,"method":"ping"},]
        -32700 for id null: Parse error: trailing comma at line 1 column 43
    "#);
    let batch = |messages: usize| {
        let message = r#"{"jsonrpc":"2.0","method":"x"}"#;
        format!("[{}]", vec![message; messages].join(","))
    };
    assert!(check(batch(RPC_BATCH_MESSAGES_MAX)).starts_with("batch of [notification x; "));
    insta::assert_snapshot!(check(batch(RPC_BATCH_MESSAGES_MAX + 1)), @"-32600 for id null: Invalid request: a batch of 101 messages; at most 100");
}

#[test]
fn deep_nesting_does_not_overflow() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{open}{close}");
    insta::assert_snapshot!(check(&open), @"-32700 for id null: Parse error: EOF while parsing a list at line 1 column 100000");
    insta::assert_snapshot!(check(&nested), @"batch of [-32600 for id null: Invalid request: a batch cannot contain a batch]");
    insta::assert_snapshot!(check(format!(r#"{{"jsonrpc":"2.0","id":{nested},"method":"ping"}}"#)), @"-32600 for id null: Invalid request: the id must be a string or a number");
    insta::assert_snapshot!(check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":{nested}}}"#)), @"-32600 for id 1: Invalid request: the method must be a string");
    insta::assert_snapshot!(check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","x":{nested}}}"#)), @"request ping of id 1");
    insta::assert_snapshot!(check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{nested}}}}}"#)), @"request ping of id 1");
    let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    assert!(check(&objects).starts_with("-32600 for id null: "));
}
