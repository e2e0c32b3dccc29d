//! What arguments can do to an address, and what they cannot.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn hosts() -> AllowedHosts {
    AllowedHosts::parse(&["api.example.com".to_owned(), "127.0.0.1:8080".to_owned()]).unwrap()
}

fn template(url: &str, query: &Value) -> UrlTemplate {
    let query: Vec<_> = query.as_object().unwrap().clone().into_iter().collect();
    let mut problems = Vec::new();
    let template = UrlTemplate::parse(url, &query, &hosts(), &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    template.unwrap()
}

fn render_with(template: &UrlTemplate, arguments: &Map<String, Value>) -> Result<Url, Vec<Violation>> {
    let (mut violations, defaults) = (Vec::new(), BTreeMap::new());
    let url = template.render(CallArguments { arguments, defaults: &defaults }, &mut violations);
    url.ok_or(violations)
}

fn check(url: &str, query: &Value, arguments: &Value) -> String {
    match render_with(&template(url, query), arguments.as_object().unwrap()) {
        Ok(url) => url.to_string(),
        Err(violations) => {
            violations.iter().map(|violation| format!("{}: {}", violation.path, violation.message)).collect()
        }
    }
}

#[test]
fn arguments_are_percent_encoded() {
    let at = |url, arguments| check(url, &json!({}), &arguments);
    assert_eq!(at("https://api.example.com", json!({})), "https://api.example.com/");
    assert_eq!(
        at("https://api.example.com/a/{{b}}", json!({"b": "c d/é?#"})),
        "https://api.example.com/a/c%20d%2F%C3%A9%3F%23"
    );
    assert_eq!(at("https://api.example.com/a/{{b}}.json", json!({"b": 5.0})), "https://api.example.com/a/5.json");
    assert_eq!(at("https://api.example.com/x:go/a%20b/", json!({})), "https://api.example.com/x:go/a%20b/");
    assert_eq!(
        at("https://api.example.com/?a={{b}}&c+d=%7Be%7D", json!({"b": "1&c=2"})),
        "https://api.example.com/?a=1%26c%3D2&c%20d=%7Be%7D"
    );
    assert_eq!(at("http://127.0.0.1:8080/{{a}}", json!({"a": true})), "http://127.0.0.1:8080/true");
}

#[test]
fn missing_values_drop_pairs_and_arrays_repeat_them() {
    let query = json!({"state": "open", "n": 5, "limit": "{{limit}}", "label": "{{labels}}", "since": ">{{since}}"});
    let at = |arguments| check("https://api.example.com/t?v=1", &query, &arguments);
    assert_eq!(at(json!({})), "https://api.example.com/t?v=1&state=open&n=5");
    assert_eq!(at(json!({"limit": null, "labels": []})), "https://api.example.com/t?v=1&state=open&n=5");
    let all = at(json!({"limit": 50, "labels": ["a", "b c"], "since": "x"}));
    assert_eq!(all, "https://api.example.com/t?v=1&state=open&n=5&limit=50&label=a&label=b%20c&since=%3Ex");
    let wrong = at(json!({"limit": {"a": 1}}));
    assert_eq!(wrong, "limit: an object cannot be part of a text; expected text, a number, true or false");
}

#[test]
fn rejects_dot_segments_and_empty_path_values() {
    let at = |url: &str, arguments| check(&format!("https://api.example.com{url}"), &json!({}), &arguments);
    let dots = "a: is a path segment of only dots, which is not allowed";
    for value in [".", "..", "../x", "x/..", "..\\x", "x/./y"] {
        assert_eq!(at("/v1/{{a}}/z", json!({"a": value})), dots, "{value}");
    }
    assert_eq!(at("/v1/{{a}}{{b}}", json!({"a": ".", "b": "."})), dots);
    assert_eq!(at("/v1/%2e{{a}}", json!({"a": "."})), dots);
    assert_eq!(at("/v1/{{a}}", json!({"a": ""})), "a: is part of the address and must not be empty");
    assert_eq!(at("/v1/{{a}}", json!({})), "a: is part of the address and must have a value");
    assert_eq!(at("/v1/{{a}}", json!({"a": "..."})), "https://api.example.com/v1/...");
    assert_eq!(at("/v1/{{a}}", json!({"a": "%2e%2e"})), "https://api.example.com/v1/%252e%252e");
    assert!(at("/v1/{{a}}", json!({"a": "x".repeat(9_000)})).contains("at most 8192"));
}

#[test]
fn rejects_invalid_urls_at_load() {
    let problem = |url: &str| {
        let mut problems = Vec::new();
        UrlTemplate::parse(url, &[], &hosts(), &mut problems);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for (url, wrong) in [
        ("ftp://api.example.com/", "does not begin with a scheme"),
        ("{{s}}://api.example.com/", "does not begin with a scheme"),
        ("https://{{h}}.example.com/", "host and port cannot contain arguments"),
        ("https://api.example.com:{{p}}/", "host and port cannot contain arguments"),
        ("https://user:pass@api.example.com/", "contains credentials"),
        ("https://api.example.com:99999/", "has no valid host"),
        ("https:///x", "has no valid host"),
        ("https://other.example.com/", "other.example.com is not among the hosts"),
        ("http://127.0.0.1/", "127.0.0.1 is not among the hosts"),
        ("http://0x7f.1/", "127.0.0.1 is not among the hosts"),
        ("https://api.example.com\\@evil.example/", ""),
        ("https://api.exam\tple.com/", "white space"),
        ("https://api.example.com/#x", "fragment"),
        ("https://api.example.com/a/../b", "consists of dots only"),
        ("https://api.example.com/a/%2E%2e/b", "consists of dots only"),
        ("https://api.example.com/{{a", "part 1 of the path): the braces are not closed"),
        ("https://api.example.com/?{{a}}=1", "pair 1 of the query): the name contains an argument"),
    ] {
        let problem = problem(url);
        assert!(problem.contains(wrong) && problem.is_empty() == wrong.is_empty(), "{url}: {problem}");
        assert!(!problem.contains("pass"), "{problem}");
    }
}

#[test]
fn reports_all_url_problems() {
    let mut problems = Vec::new();
    let query = [("a".to_owned(), json!([1])), ("b".to_owned(), json!("{{"))];
    UrlTemplate::parse("https://evil.example/{{/{{}}?x={{", &query, &hosts(), &mut problems);
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "url",
            "url (part 1 of the path)",
            "url (part 2 of the path)",
            "url (pair 1 of the query)",
            "query.a",
            "query.b"
        ]
    );
}

proptest! {
    #[test]
    fn no_value_changes_the_request_target(a in any_text(), b in any_text(), c in any_text()) {
        let template = template("https://api.example.com/v1/{{a}}/x-{{b}}.json?q={{c}}", &json!({"r": "{{a}}", "s": "s{{b}}"}));
        let arguments = json!({"a": a, "b": b, "c": c});
        if let Ok(url) = render_with(&template, arguments.as_object().unwrap()) {
            prop_assert_eq!((url.scheme(), url.host_str(), url.port()), ("https", Some("api.example.com"), None));
            prop_assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
            let segments: Vec<String> = url.path_segments().unwrap()
                .map(|segment| percent_decode_str(segment).decode_utf8().unwrap().into_owned())
                .collect();
            // The encoding round-trips: what the server decodes is what the caller gave.
            prop_assert_eq!(segments, vec!["v1".to_owned(), a.clone(), format!("x-{b}.json")]);
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            let expected = [("q", c.clone()), ("r", a.clone()), ("s", format!("s{b}"))];
            prop_assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value)).to_vec());
        } else {
            let is_climbing = |text: &str| text.split(['/', '\\']).any(|part| part == "." || part == "..");
            let middle = format!("x-{b}.json");
            prop_assert!(a.is_empty() || is_climbing(&a) || is_climbing(&middle), "{a:?} {b:?} {c:?}");
        }
    }
}

/// Any text, and often one that is made of what matters in an address.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![".*", "[./\\\\%?#&=@:+ \r\n\t2eEfF{}-]{0,12}", "(\\.|%2e|/|\\\\){0,4}"]
}
