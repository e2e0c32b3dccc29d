//! What a request is made of, and what no argument can make of it.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const TOKEN: &str = "Bearer s3cr3t-token";

fn hosts() -> AllowedHosts {
    AllowedHosts::parse(&["api.example.com".to_owned()]).unwrap()
}

fn argument(name: &str) -> HttpArgument {
    HttpArgument { name: name.to_owned(), is_required: true, default: None }
}

fn definition() -> HttpDefinition {
    HttpDefinition {
        method: "POST".to_owned(),
        url: "https://api.example.com/v1/{{a}}".to_owned(),
        query: vec![("q".to_owned(), json!("{{b}}"))],
        headers: vec![("Authorization".to_owned(), TOKEN.to_owned()), ("X-Trace".to_owned(), "t-{{c}}".to_owned())],
        body: Some(json!({"a": "{{a}}"})),
        ..HttpDefinition::default()
    }
}

fn template() -> HttpRequestTemplate {
    let optional = |name| HttpArgument { is_required: false, ..argument(name) };
    let with_default = HttpArgument { default: Some(json!(50)), ..optional("b") };
    HttpRequestTemplate::parse(&definition(), &[argument("a"), with_default, optional("c")], &hosts()).unwrap()
}

fn problems(definition: &HttpDefinition, arguments: &[HttpArgument]) -> String {
    let problems = HttpRequestTemplate::parse(definition, arguments, &hosts()).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn renders_method_url_headers_and_body() {
    let request = template().render(json!({"a": 7, "c": "x y"}).as_object().unwrap()).unwrap();
    assert_eq!(request.url.as_str(), "https://api.example.com/v1/7?q=50");
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.body.as_deref(), Some(br#"{"a":7}"#.as_slice()));
    let header = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("authorization").as_deref(), Some(TOKEN));
    assert_eq!(header("x-trace").as_deref(), Some("t-x y"));
    assert_eq!(header("accept").as_deref(), Some("application/json, text/*;q=0.5"));
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
}

#[test]
fn headers_of_arguments_that_were_not_given_are_left_out() {
    let request = template().render(json!({"a": 7}).as_object().unwrap()).unwrap();
    assert!(!request.headers.contains_key("x-trace"));
}

#[test]
fn reports_all_invalid_arguments() {
    let arguments = json!({"a": "..", "b": {}, "c": "x\r\nX-Admin: 1"});
    let error = template().render(arguments.as_object().unwrap()).unwrap_err();
    insta::assert_snapshot!(error, @r"
    the arguments do not fit the request:
    - a: is a path segment of only dots, which is not allowed
    - b: an object cannot be part of a text; expected text, a number, true or false
    - c: is sent in a header and may contain printable ASCII characters only, no line breaks
    ");
}

#[test]
fn reports_all_definition_problems() {
    let definition = HttpDefinition {
        method: "HEAD".to_owned(),
        url: "https://evil.example/{{a}}".to_owned(),
        query: vec![("n".to_owned(), Value::Null)],
        headers: vec![
            ("Host".to_owned(), "other.example".to_owned()),
            ("X Y".to_owned(), "1".to_owned()),
            ("X-A".to_owned(), "s3cr3t\n".to_owned()),
            ("X-B".to_owned(), "s3cr3t{{".to_owned()),
            ("X-C".to_owned(), "s3{{cr3t}}".to_owned()),
            ("x-c".to_owned(), "s3cr3t".to_owned()),
        ],
        body: Some(json!(["{{b}}", "{{}}"])),
        rows: Some("items".to_owned()),
        timeout: Some(Duration::ZERO),
        max_bytes: Some(usize::MAX),
        secrets: Vec::new(),
    };
    insta::assert_snapshot!(problems(&definition, &[argument("format")]), @r#"
    method: "HEAD" is not a method of http tools; one of GET, POST, PUT, PATCH, DELETE
    url: evil.example is not among the hosts that http tools may reach; add it to http.allow_hosts
    query.n: is not one value; a text, a number, true or false; an argument that is an array repeats its pair
    headers.Host: is set by the connection itself; leave it out
    headers.X Y: is not a header name; letters, digits and -, such as X-Api-Key
    headers.X-A: contains a line break or another character that headers do not allow; printable ASCII characters; a secret that was read from a file may end in a line break
    headers.X-B: the braces are not closed (character 7); write {{name}} for an argument, {{"{"}} and {{"}"}} for braces
    headers.x-c: is set twice; set it once; case does not matter
    body[1]: the braces contain no valid name (character 1); write {{name}} for an argument, {{"{"}} and {{"}"}} for braces
    timeout: is zero; a time such as 10s, or leave it out
    max_bytes: is out of range; from 1 to 67108864 bytes (64 MiB)
    rows: is not a JSON pointer; begin each name with a slash: /items or /data/rows (RFC 6901)
    headers.x-c: the braces name an undeclared argument; declare it in input, or write {{"{"}} for a brace
    input.format: is reserved: every http tool has this argument; choose another name; {{name}} may differ from what the API calls it
    "#);
}

#[test]
fn arguments_must_be_declared_used_and_given_where_the_path_needs_them() {
    let optional = HttpArgument { is_required: false, ..argument("a") };
    insta::assert_snapshot!(problems(&definition(), &[optional, argument("b")]), @r#"
    url: {{a}} is part of the path but optional; make it required, or give it a default
    headers.x-trace: the braces name an undeclared argument; declare it in input, or write {{"{"}} for a brace
    "#);
    let all = ["a", "b", "c", "d"].map(argument);
    insta::assert_snapshot!(problems(&definition(), &all), @"input.d: is not used in the request; write {{d}} into the url, query, headers or body");
    let get = HttpDefinition { method: String::new(), ..definition() };
    insta::assert_snapshot!(problems(&get, &all[..3]), @"body: a GET request has no body; use query, or method: POST");
}

#[test]
fn annotations_follow_the_method() {
    let hints = |method: &str, destructive| {
        let body = (method != "GET").then(|| json!({"a": "{{a}}"}));
        let definition = HttpDefinition { method: method.to_owned(), body, ..definition() };
        let template = HttpRequestTemplate::parse(&definition, &["a", "b", "c"].map(argument), &hosts()).unwrap();
        let ToolAnnotations { read_only, destructive, idempotent, open_world } = template.annotations(destructive);
        (read_only, destructive, idempotent, open_world)
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(hints("GET", no), (yes, None, None, yes));
    assert_eq!(hints("POST", None), (no, None, None, yes));
    assert_eq!(hints("PATCH", no), (no, no, None, yes));
    assert_eq!(hints("PUT", yes), (no, yes, yes, yes));
    assert_eq!(hints("DELETE", None), (no, yes, yes, yes));
    assert_eq!(hints("DELETE", no), (no, no, yes, yes));
}

#[test]
fn debug_output_hides_secrets() {
    let template = template();
    let request = template.render(json!({"a": 7}).as_object().unwrap()).unwrap();
    let visible = format!("{:?} {template:?} {request:?} {:?}", definition(), request.headers);
    assert!(!visible.contains("s3cr3t"), "{visible}");
    assert_eq!(template.secrets().redact_error("Bearer s3cr3t-token, s3cr3t-token"), "***, ***");
}

proptest! {
    #[test]
    fn no_value_adds_or_changes_a_header(c in any_text()) {
        let arguments = json!({"a": 1, "c": c});
        match template().render(arguments.as_object().unwrap()) {
            Ok(request) => {
                let names: Vec<&str> = request.headers.keys().map(HeaderName::as_str).collect();
                prop_assert_eq!(names.len(), 4);
                prop_assert_eq!(request.headers["x-trace"].to_str().unwrap(), format!("t-{c}"));
                prop_assert_eq!(request.headers["authorization"].as_bytes(), TOKEN.as_bytes());
                prop_assert!(!c.contains(['\r', '\n', '\0']));
            }
            Err(error) => prop_assert!(c.chars().any(|c| c != ' ' && !c.is_ascii_graphic()), "{error}"),
        }
    }

    #[test]
    fn no_value_changes_the_shape_of_the_body(a in any_text()) {
        let arguments = json!({"a": a});
        if let Ok(request) = template().render(arguments.as_object().unwrap()) {
            let body: Value = serde_json::from_slice(&request.body.unwrap()).unwrap();
            prop_assert_eq!(body, json!({"a": a}));
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![".*", "[ -~]{0,20}", "[a\r\n:{}\"\0 ]{0,12}"]
}
