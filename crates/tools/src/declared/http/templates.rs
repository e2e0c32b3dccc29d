//! Templates of a request, filled with the arguments of one call and defaults: a JSON body, and a URL. The origin of a
//! URL is fixed; arguments are allowed in path segments and query values.
//!
//! All characters of an argument except letters, digits, `-`, `.`, `_` and `~` are percent-encoded. Segments of dots
//! could still change the path, so they are rejected: URL parsers resolve them even when encoded, and servers that
//! decode `%2F` would resolve them as well.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;
use serde_json::{Map, Number, Value};
use tidegate_core::Violation;

use super::HttpProblem;
use super::allowed_hosts::AllowedHosts;
use crate::declared::template::{TemplateError, TextTemplate};

const URL_BYTES_MAX: usize = 8_192;
/// Encodes the value of an argument.
pub(super) const VALUE_ENCODE_SET: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Encodes the fixed text of a path; existing percent-encoding stays.
const PATH_ENCODE_SET: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

#[derive(Clone)]
pub(super) struct UrlTemplate {
    origin: Url,
    segments: Vec<TextTemplate>,
    query: Vec<QueryPair>,
}

#[derive(Clone)]
struct QueryPair {
    name: String,
    value: TextTemplate,
}

impl UrlTemplate {
    /// Parses `url` and the added query pairs; errors are added to `problems`.
    pub(super) fn parse(
        url: &str,
        pairs: &[(String, Value)],
        hosts: &AllowedHosts,
        problems: &mut Vec<HttpProblem>,
    ) -> Option<Self> {
        let mut query = Vec::new();
        let address = UrlParts::split(url, problems).and_then(|parts| {
            let origin = parts.origin(hosts, problems);
            let segments = parts.segments(problems);
            query.extend(parts.query(problems)?);
            origin.zip(segments)
        });
        for (name, value) in pairs {
            add_pair(name, value, &mut query, problems);
        }
        let (origin, segments) = address?;
        Some(Self { origin, segments, query })
    }

    pub(super) fn origin(&self) -> &Url {
        &self.origin
    }

    /// The arguments in the path, which must always have a value.
    pub(super) fn path_arguments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(TextTemplate::arguments)
    }

    pub(super) fn query_arguments(&self) -> impl Iterator<Item = &str> {
        self.query.iter().flat_map(|pair| pair.value.arguments())
    }

    pub(super) fn render(&self, call_arguments: CallArguments<'_>, violations: &mut Vec<Violation>) -> Option<Url> {
        let before = violations.len();
        let mut text = self.origin.as_str().trim_end_matches('/').to_owned();
        for segment in &self.segments {
            text.push('/');
            match render_segment(segment, call_arguments) {
                Ok(segment) => text.push_str(&segment),
                Err(violation) => violations.push(violation),
            }
        }
        let mut separator = '?';
        for pair in &self.query {
            match pair.values(call_arguments) {
                Ok(values) => {
                    for value in values {
                        text.push(separator);
                        text.extend(utf8_percent_encode(&pair.name, VALUE_ENCODE_SET));
                        text.push('=');
                        text.extend(utf8_percent_encode(&value, VALUE_ENCODE_SET));
                        separator = '&';
                    }
                }
                Err(violation) => violations.push(violation),
            }
        }
        if violations.len() > before {
            return None;
        }
        let url = self.verify_rendered(&text);
        if let Err(message) = &url {
            violations.push(Violation { path: String::new(), message: message.clone() });
        }
        url.ok()
    }

    /// Checks again, behind the encoding, that origin and number of segments are those of the template.
    fn verify_rendered(&self, text: &str) -> Result<Url, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("the address would be {} bytes long; at most {URL_BYTES_MAX} are allowed", text.len()));
        }
        let changed = || "the arguments would change where the request goes".to_owned();
        let url = Url::parse(text).map_err(|_| changed())?;
        let segments = url.path_segments().map_or(0, Iterator::count);
        let is_bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let is_same = is_bare && is_same_origin(&url, &self.origin) && segments == self.segments.len();
        if is_same { Ok(url) } else { Err(changed()) }
    }
}

pub(super) fn is_same_origin(one: &Url, other: &Url) -> bool {
    let origin = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    origin(one) == origin(other)
}

/// The host for messages, with its port if that is not the scheme's default.
pub(super) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or("no host");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

impl QueryPair {
    /// The values in the query: empty for a missing argument, several for an array.
    fn values(&self, call_arguments: CallArguments<'_>) -> Result<Vec<String>, Violation> {
        if let Some(name) = self.value.only_argument()
            && let Some(Value::Array(items)) = call_arguments.value(name)
        {
            let texts = items.iter().map(|item| value_to_text(name, item));
            return Ok(texts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect());
        }
        Ok(self.value.render(|name| call_arguments.text(name))?.into_iter().collect())
    }
}

fn render_segment(segment: &TextTemplate, call_arguments: CallArguments<'_>) -> Result<String, Violation> {
    let Some(name) = segment.arguments().next() else { return Ok(segment.texts().collect()) };
    let violation = |message: &str| Violation { path: name.to_owned(), message: message.to_owned() };
    let encoded = segment.render(|name| {
        let text = call_arguments.text(name)?;
        Ok::<_, Violation>(text.map(|text| utf8_percent_encode(&text, VALUE_ENCODE_SET).to_string()))
    })?;
    let encoded = encoded.ok_or_else(|| violation("is part of the address and must have a value"))?;
    if encoded.is_empty() {
        return Err(violation("is part of the address and must not be empty"));
    }
    if has_dot_segment(&encoded) {
        return Err(violation("is a path segment of only dots, which is not allowed"));
    }
    Ok(encoded)
}

fn has_dot_segment(encoded: &str) -> bool {
    let decoded = percent_decode_str(encoded).decode_utf8_lossy();
    decoded.split(['/', '\\']).any(|part| part == "." || part == "..")
}

fn add_pair(name: &str, value: &Value, query: &mut Vec<QueryPair>, problems: &mut Vec<HttpProblem>) {
    let field = format!("query.{name}");
    let Some(name) = parse_name(&field, name, problems) else { return };
    let mut add = |value: TextTemplate| query.push(QueryPair { name: name.clone(), value });
    match value {
        Value::String(text) => {
            if let Some(value) = parse_template(&field, text, problems) {
                add(value);
            }
        }
        Value::Bool(_) | Value::Number(_) => add(TextTemplate::literal(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            let hint = "a text, a number, true or false; an argument that is an array repeats its pair";
            problems.push(HttpProblem::new(field, "is not one value", hint));
        }
    }
}

struct UrlParts<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> UrlParts<'a> {
    fn split(url: &'a str, problems: &mut Vec<HttpProblem>) -> Option<Self> {
        let mut reject = |message: &str, hint: &str| {
            problems.push(HttpProblem::new("url", message, hint));
            None
        };
        if url.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return reject("contains white space or a control character", "percent-encode it, for example %20");
        }
        let scheme_and_rest = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        let Some((scheme, rest)) = scheme_and_rest else {
            return reject("does not begin with a scheme", "begin with https:// or http://, without arguments");
        };
        if rest.contains('#') {
            return reject("has a fragment (#), which is never sent", "leave it out, or write %23");
        }
        let end = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query)));
        Some(Self { scheme, authority, path, query })
    }

    fn origin(&self, hosts: &AllowedHosts, problems: &mut Vec<HttpProblem>) -> Option<Url> {
        let mut reject = |message: String, hint: &str| {
            problems.push(HttpProblem::new("url", message, hint));
            None
        };
        if self.authority.contains(['{', '}']) {
            let hint = "write them out; arguments are allowed in the path and the query";
            return reject("host and port cannot contain arguments".to_owned(), hint);
        }
        if self.authority.contains('@') {
            return reject("contains credentials".to_owned(), "send them in headers: Authorization");
        }
        let Some(origin) = Url::parse(&format!("{}://{}/", self.scheme, self.authority)).ok() else {
            return reject("has no valid host and port".to_owned(), "for example https://api.example.com/v1/tickets");
        };
        if !hosts.permits(&origin) {
            let message = format!("{} is not among the hosts that http tools may reach", host_and_port(&origin));
            return reject(message, "add it to http.allow_hosts");
        }
        Some(origin)
    }

    fn segments(&self, problems: &mut Vec<HttpProblem>) -> Option<Vec<TextTemplate>> {
        let path = self.path.strip_prefix('/').unwrap_or(self.path);
        let mut segments = Vec::new();
        let mut is_valid = true;
        for (index, text) in path.split('/').enumerate() {
            let field = format!("url (part {} of the path)", index + 1);
            let Some(template) = parse_template(&field, text, problems) else {
                is_valid = false;
                continue;
            };
            if template.fixed_text().is_some_and(|text| has_dot_segment(&text)) {
                problems.push(HttpProblem::new(field, "consists of dots only", "write the path without it"));
                is_valid = false;
            }
            segments.push(template.map_texts(|text| utf8_percent_encode(text, PATH_ENCODE_SET).to_string()));
        }
        is_valid.then_some(segments)
    }

    fn query(&self, problems: &mut Vec<HttpProblem>) -> Option<Vec<QueryPair>> {
        let mut pairs = Vec::new();
        for (index, text) in self.query.unwrap_or_default().split('&').filter(|text| !text.is_empty()).enumerate() {
            let field = format!("url (pair {} of the query)", index + 1);
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let name = parse_name(&field, name, problems);
            let value = parse_template(&field, value, problems);
            pairs.push(name.zip(value).map(|(name, value)| QueryPair {
                name: decode_query_text(&name),
                value: value.map_texts(decode_query_text),
            }));
        }
        pairs.into_iter().collect()
    }
}

/// Decodes the text of a query; it is encoded again together with the values.
fn decode_query_text(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// Nesting levels at most; bodies are read and written recursively.
const DEPTH_MAX: usize = 64;

/// A JSON value with arguments. Parts with a missing argument are omitted.
#[derive(Debug, Clone)]
pub(super) enum BodyTemplate {
    Fixed(Value),
    /// The argument with its JSON type.
    Argument(String),
    Text(TextTemplate),
    Items(Vec<BodyTemplate>),
    Members(Vec<(String, BodyTemplate)>),
}

impl BodyTemplate {
    /// Parses `body`, the value of the field `field`; errors are added to `problems`.
    pub(super) fn parse(field: &str, body: &Value, problems: &mut Vec<HttpProblem>) -> Option<Self> {
        Self::parse_within(field, body, DEPTH_MAX, problems)
    }

    fn parse_within(field: &str, body: &Value, depth: usize, problems: &mut Vec<HttpProblem>) -> Option<Self> {
        if depth == 0 {
            problems.push(HttpProblem::new(field, "nests too deep", format!("at most {DEPTH_MAX} levels")));
            return None;
        }
        match body {
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(Self::Fixed(body.clone())),
            Value::String(text) => {
                let template = parse_template(field, text, problems)?;
                Some(match (template.only_argument(), template.fixed_text()) {
                    (Some(name), _) => Self::Argument(name.to_owned()),
                    (None, Some(fixed)) => Self::Fixed(Value::String(fixed)),
                    (None, None) => Self::Text(template),
                })
            }
            Value::Array(items) => {
                // All items are parsed first, so that all errors are reported.
                let items: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| Self::parse_within(&format!("{field}[{index}]"), item, depth - 1, problems))
                    .collect();
                Some(Self::Items(items.into_iter().collect::<Option<_>>()?))
            }
            Value::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, member)| {
                        let field = format!("{field}.{name}");
                        let member = Self::parse_within(&field, member, depth - 1, problems);
                        parse_name(&field, name, problems).zip(member)
                    })
                    .collect();
                Some(Self::Members(members.into_iter().collect::<Option<_>>()?))
            }
        }
    }

    pub(super) fn for_each_argument(&self, visit: &mut impl FnMut(&str)) {
        match self {
            Self::Fixed(_) => {}
            Self::Argument(name) => visit(name),
            Self::Text(template) => template.arguments().for_each(visit),
            Self::Items(items) => items.iter().for_each(|item| item.for_each_argument(visit)),
            Self::Members(members) => members.iter().for_each(|(_, member)| member.for_each_argument(visit)),
        }
    }

    /// Fills in the arguments; `None` if the value is to be omitted.
    pub(super) fn render(&self, call_arguments: CallArguments<'_>, violations: &mut Vec<Violation>) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Argument(name) => call_arguments.value(name).cloned(),
            Self::Text(template) => match template.render(|name| call_arguments.text(name)) {
                Ok(text) => text.map(Value::String),
                Err(violation) => {
                    violations.push(violation);
                    None
                }
            },
            Self::Items(items) => {
                Some(Value::Array(items.iter().filter_map(|item| item.render(call_arguments, violations)).collect()))
            }
            Self::Members(members) => {
                let members = members.iter().filter_map(|(name, member)| {
                    member.render(call_arguments, violations).map(|member| (name.clone(), member))
                });
                Some(Value::Object(members.collect::<Map<_, _>>()))
            }
        }
    }
}

pub(super) fn parse_template(field: &str, text: &str, problems: &mut Vec<HttpProblem>) -> Option<TextTemplate> {
    let problem = |error: TemplateError| HttpProblem::new(field, error.to_string(), TemplateError::HINT);
    TextTemplate::parse(text).map_err(|error| problems.push(problem(error))).ok()
}

/// Parses `text` as a name, which must not contain arguments.
fn parse_name(field: &str, text: &str, problems: &mut Vec<HttpProblem>) -> Option<String> {
    let name = parse_template(field, text, problems)?.fixed_text();
    if name.is_none() {
        let hint = "put {{name}} into the value, or write {{\"{\"}} for a brace";
        problems.push(HttpProblem::new(field, "the name contains an argument", hint));
    }
    name
}

/// Whole floats below this are written as integers: JSON Schema accepts 5.0 as an integer, a URL may not.
const WHOLE_FLOAT_MAX: f64 = 9e15;

#[derive(Clone, Copy)]
pub(super) struct CallArguments<'a> {
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) defaults: &'a BTreeMap<String, Value>,
}

impl<'a> CallArguments<'a> {
    /// The value of `name`: the argument or its default.
    pub(super) fn value(self, name: &str) -> Option<&'a Value> {
        self.arguments.get(name).or_else(|| self.defaults.get(name))
    }

    /// The value of `name` as text; `None` if it is missing or null.
    pub(super) fn text(self, name: &str) -> Result<Option<String>, Violation> {
        self.value(name).map_or(Ok(None), |value| value_to_text(name, value))
    }
}

/// `value` of the argument `name` as text; arrays and objects are errors.
fn value_to_text(name: &str, value: &Value) -> Result<Option<String>, Violation> {
    let sort = match value {
        Value::Null => return Ok(None),
        Value::String(text) => return Ok(Some(text.clone())),
        Value::Bool(truth) => return Ok(Some(truth.to_string())),
        Value::Number(number) => return Ok(Some(number_text(number))),
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let message = format!("{sort} cannot be part of a text; expected text, a number, true or false");
    Err(Violation { path: name.to_owned(), message })
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        // The bound keeps the conversion exact.
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < WHOLE_FLOAT_MAX => {
            (float as i64).to_string()
        }
        _ => number.to_string(),
    }
}

/// What arguments can do to an address, and what they cannot.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

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
        let query =
            json!({"state": "open", "n": 5, "limit": "{{limit}}", "label": "{{labels}}", "since": ">{{since}}"});
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

    fn rendered(body: &Value, arguments: &Value) -> (Option<Value>, Vec<Violation>) {
        let mut problems = Vec::new();
        let template = BodyTemplate::parse("body", body, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let (mut violations, defaults) = (Vec::new(), BTreeMap::from([("size".to_owned(), json!(3))]));
        let call_arguments = CallArguments { arguments: arguments.as_object().unwrap(), defaults: &defaults };
        (template.unwrap().render(call_arguments, &mut violations), violations)
    }

    #[test]
    fn whole_arguments_keep_their_json_type() {
        let body = json!({"a": "{{a}}", "t": "a={{a}}, s={{size}}", "f": [1, null, "{x}"], "deep": {"l": "{{l}}"}});
        let (value, violations) = rendered(&body, &json!({"a": 7, "l": [1, {"x": null}]}));
        assert!(violations.is_empty());
        let expected = json!({"a": 7, "t": "a=7, s=3", "f": [1, null, "{x}"], "deep": {"l": [1, {"x": null}]}});
        assert_eq!(value, Some(expected));
    }

    #[test]
    fn missing_arguments_are_left_out() {
        let body = json!({"a": "{{a}}", "t": "is {{a}}", "list": ["{{a}}", "{{b}}"], "null": "{{n}}"});
        let (value, _) = rendered(&body, &json!({"b": true, "n": null}));
        assert_eq!(value, Some(json!({"list": [true], "null": null})));
        assert_eq!(rendered(&json!("{{a}}"), &json!({})).0, None);
    }

    #[test]
    fn values_cannot_add_members() {
        let (value, _) = rendered(&json!({"t": "say {{a}}"}), &json!({"a": "\", \"admin\": true, \"x\": \"{{b}}"}));
        assert_eq!(value, Some(json!({"t": "say \", \"admin\": true, \"x\": \"{{b}}"})));
    }

    #[test]
    fn arrays_within_text_are_refused() {
        let (_, violations) = rendered(&json!({"t": "say {{a}}"}), &json!({"a": [1]}));
        assert_eq!(violations[0].path, "a");
    }

    #[test]
    fn reports_all_body_problems() {
        let mut problems = Vec::new();
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let body = json!({"a": "{{", "b": ["{{}}"], "{{c}}": 1, "deep": deep});
        assert!(BodyTemplate::parse("body", &body, &mut problems).is_none());
        let fields: Vec<String> = problems.iter().map(|problem| problem.field.chars().take(10).collect()).collect();
        assert_eq!(fields, ["body.a", "body.b[0]", "body.{{c}}", "body.deep["]);
    }
}
