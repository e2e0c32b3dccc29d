//! The request of an http tool: parsed once from the configuration, filled in for each call.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value};
use tidegate_core::{Error, Violation};
use tidegate_runtime::ToolAnnotations;

use super::allowed_hosts::AllowedHosts;
use super::secrets::Secrets;
use super::templates::{BodyTemplate, CallArguments, UrlTemplate, host_and_port, parse_template};
use super::{HttpArgument, HttpDefinition, HttpProblem};
use crate::arguments::OUTPUT_ARGUMENTS;
use crate::declared::template::TextTemplate;

const BODY_BYTES_DEFAULT: usize = 4 * 1024 * 1024;
/// The maximum limit for a response body: it is read whole, and its rows take several times as much memory.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
const HEADER_BYTES_MAX: usize = 8_192;

/// Headers that belong to the connection, or would override a limit.
const RESERVED_HEADERS: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept-encoding",
    "proxy-authorization",
];

const ACCEPT_DEFAULT: &str = "application/json, text/*;q=0.5";
const CONTENT_TYPE_DEFAULT: &str = "application/json";

/// The template of an http tool's request.
#[derive(Clone)]
pub struct HttpRequestTemplate {
    method: Method,
    address: UrlTemplate,
    headers: Vec<(HeaderName, TextTemplate)>,
    body: Option<BodyTemplate>,
    defaults: BTreeMap<String, Value>,
    secrets: Secrets,
    pub(super) rows: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) bytes_max: usize,
}

#[derive(Clone)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl HttpRequestTemplate {
    /// Parses `definition` of a tool with `arguments` that may reach `hosts`.
    ///
    /// # Errors
    /// All problems at once, without the values of headers.
    pub fn parse(
        definition: &HttpDefinition,
        arguments: &[HttpArgument],
        hosts: &AllowedHosts,
    ) -> Result<Self, Vec<HttpProblem>> {
        let mut problems = Vec::new();
        let method = parse_method(&definition.method, &mut problems);
        let address = UrlTemplate::parse(&definition.url, &definition.query, hosts, &mut problems);
        let headers = parse_headers(&definition.headers, &mut problems);
        let body = definition.body.as_ref().map(|body| BodyTemplate::parse("body", body, &mut problems));
        if body.is_some() && method == Some(Method::GET) {
            problems.push(HttpProblem::new("body", "a GET request has no body", "use query, or method: POST"));
        }
        check_bounds(definition, &mut problems);
        let mut argument_uses = ArgumentUses { arguments, problems: &mut problems, used: Vec::new() };
        argument_uses.check(address.as_ref(), &headers, body.as_ref().and_then(Option::as_ref));
        let (Some(method), Some(address), true) = (method, address, problems.is_empty()) else { return Err(problems) };
        let defaults = arguments.iter().filter_map(|argument| Some((argument.name.clone(), argument.default.clone()?)));
        Ok(Self {
            secrets: Secrets::new(&headers, &definition.secrets, address.origin()),
            method,
            address,
            headers,
            body: body.flatten(),
            defaults: defaults.collect(),
            rows: definition.rows.clone(),
            timeout: definition.timeout,
            bytes_max: definition.max_bytes.unwrap_or(BODY_BYTES_DEFAULT),
        })
    }

    /// The tool's annotations. `destructive` is the configured value, if any.
    pub fn annotations(&self, destructive: Option<bool>) -> ToolAnnotations {
        let is_get = self.method == Method::GET;
        let is_delete = self.method == Method::DELETE;
        ToolAnnotations {
            read_only: Some(is_get),
            destructive: if is_get { None } else { destructive.or(is_delete.then_some(true)) },
            idempotent: (is_delete || self.method == Method::PUT).then_some(true),
            open_world: Some(true),
        }
    }

    /// The host of the request, with its port if that is not the scheme's default.
    pub fn host(&self) -> String {
        host_and_port(self.address.origin())
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(super) fn render(&self, arguments: &Map<String, Value>) -> Result<HttpRequest, Error> {
        let call_arguments = CallArguments { arguments, defaults: &self.defaults };
        let mut violations = Vec::new();
        let url = self.address.render(call_arguments, &mut violations);
        let mut headers = self.render_headers(call_arguments, &mut violations);
        let body = self.body.as_ref().and_then(|body| body.render(call_arguments, &mut violations));
        let (Some(url), true) = (url, violations.is_empty()) else {
            return Err(Error::invalid_arguments("the arguments do not fit the request:", violations));
        };
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(ACCEPT_DEFAULT));
        if body.is_some() {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(CONTENT_TYPE_DEFAULT));
        }
        let body = body.map(|body| body.to_string().into_bytes());
        Ok(HttpRequest { method: self.method.clone(), url, headers, body })
    }

    fn render_headers(&self, call_arguments: CallArguments<'_>, violations: &mut Vec<Violation>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, template) in &self.headers {
            let value = match template.render(|argument| header_text(argument, call_arguments)) {
                Ok(Some(value)) => value,
                // A missing argument omits its header.
                Ok(None) => continue,
                Err(violation) => {
                    violations.push(violation);
                    continue;
                }
            };
            match HeaderValue::try_from(value) {
                Ok(mut value) if value.len() <= HEADER_BYTES_MAX => {
                    value.set_sensitive(true);
                    headers.insert(name.clone(), value);
                }
                _ => violations.push(Violation {
                    path: template.arguments().next().unwrap_or_default().to_owned(),
                    message: format!("makes the header {name} longer than {HEADER_BYTES_MAX} bytes"),
                }),
            }
        }
        headers
    }
}

impl fmt::Debug for HttpRequestTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug_struct = f.debug_struct("HttpRequestTemplate");
        debug_struct.field("method", &self.method).field("host", &self.host()).finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug_struct = f.debug_struct("HttpRequest");
        debug_struct.field("method", &self.method).field("host", &host_and_port(&self.url)).finish_non_exhaustive()
    }
}

/// The value of an argument in a header. A line break would start another header.
fn header_text(argument: &str, call_arguments: CallArguments<'_>) -> Result<Option<String>, Violation> {
    let text = call_arguments.text(argument)?;
    match &text {
        Some(text) if !text.chars().all(|character| character == ' ' || character.is_ascii_graphic()) => {
            let message =
                "is sent in a header and may contain printable ASCII characters only, no line breaks".to_owned();
            Err(Violation { path: argument.to_owned(), message })
        }
        _ => Ok(text),
    }
}

fn parse_method(text: &str, problems: &mut Vec<HttpProblem>) -> Option<Method> {
    match text {
        "" | "GET" => Some(Method::GET),
        "POST" => Some(Method::POST),
        "PUT" => Some(Method::PUT),
        "PATCH" => Some(Method::PATCH),
        "DELETE" => Some(Method::DELETE),
        _ => {
            let message = format!("{text:?} is not a method of http tools");
            problems.push(HttpProblem::new("method", message, "one of GET, POST, PUT, PATCH, DELETE"));
            None
        }
    }
}

fn parse_headers(headers: &[(String, String)], problems: &mut Vec<HttpProblem>) -> Vec<(HeaderName, TextTemplate)> {
    let mut parsed: Vec<(HeaderName, TextTemplate)> = Vec::new();
    for (text, value) in headers {
        let field = format!("headers.{text}");
        let template = parse_template(&field, value, problems);
        let Ok(name) = HeaderName::from_bytes(text.as_bytes()) else {
            problems.push(HttpProblem::new(field, "is not a header name", "letters, digits and -, such as X-Api-Key"));
            continue;
        };
        if RESERVED_HEADERS.contains(&name.as_str()) {
            problems.push(HttpProblem::new(field, "is set by the connection itself", "leave it out"));
            continue;
        }
        if parsed.iter().any(|(other, _)| *other == name) {
            problems.push(HttpProblem::new(field, "is set twice", "set it once; case does not matter"));
            continue;
        }
        let Some(template) = template else { continue };
        if !template.texts().all(|text| HeaderValue::from_str(text).is_ok()) {
            let message = "contains a line break or another character that headers do not allow";
            let hint = "printable ASCII characters; a secret that was read from a file may end in a line break";
            problems.push(HttpProblem::new(field, message, hint));
            continue;
        }
        parsed.push((name, template));
    }
    parsed
}

fn check_bounds(definition: &HttpDefinition, problems: &mut Vec<HttpProblem>) {
    if definition.timeout.is_some_and(|timeout| timeout.is_zero()) {
        problems.push(HttpProblem::new("timeout", "is zero", "a time such as 10s, or leave it out"));
    }
    if definition.max_bytes.is_some_and(|bytes| bytes == 0 || bytes > BODY_BYTES_MAX) {
        let message = "is out of range";
        problems.push(HttpProblem::new("max_bytes", message, format!("from 1 to {BODY_BYTES_MAX} bytes (64 MiB)")));
    }
    let is_pointer = |text: &str| {
        let escapes_are_valid = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        (text.is_empty() || text.starts_with('/')) && escapes_are_valid
    };
    if definition.rows.as_deref().is_some_and(|rows| !is_pointer(rows)) {
        let hint = "begin each name with a slash: /items or /data/rows (RFC 6901)";
        problems.push(HttpProblem::new("rows", "is not a JSON pointer", hint));
    }
}

struct ArgumentUses<'a> {
    arguments: &'a [HttpArgument],
    problems: &'a mut Vec<HttpProblem>,
    used: Vec<String>,
}

impl ArgumentUses<'_> {
    fn check(
        &mut self,
        address: Option<&UrlTemplate>,
        headers: &[(HeaderName, TextTemplate)],
        body: Option<&BodyTemplate>,
    ) {
        if let Some(address) = address {
            address.path_arguments().for_each(|name| self.record_path_use(name));
            address.query_arguments().for_each(|name| self.record_use("query", name));
        }
        for (header, template) in headers {
            template.arguments().for_each(|name| self.record_use(&format!("headers.{header}"), name));
        }
        if let Some(body) = body {
            body.for_each_argument(&mut |name: &str| self.record_use("body", name));
        }
        for argument in self.arguments {
            let field = format!("input.{}", argument.name);
            if OUTPUT_ARGUMENTS.contains(&argument.name.as_str()) {
                let hint = "choose another name; {{name}} may differ from what the API calls it";
                self.problems.push(HttpProblem::new(field, "is reserved: every http tool has this argument", hint));
            } else if !self.used.contains(&argument.name) && address.is_some() && self.problems.is_empty() {
                // Reported only without other problems, which may hide a use.
                let hint = format!("write {{{{{}}}}} into the url, query, headers or body", argument.name);
                self.problems.push(HttpProblem::new(field, "is not used in the request", hint));
            }
        }
    }

    fn record_use(&mut self, field: &str, name: &str) {
        if !self.arguments.iter().any(|argument| argument.name == name) {
            // The name is omitted where it may be part of a secret with braces.
            let message = match field.starts_with("headers.") {
                true => "the braces name an undeclared argument".to_owned(),
                false => format!("{{{{{name}}}}} is not a declared argument"),
            };
            self.problems.push(HttpProblem::new(field, message, "declare it in input, or write {{\"{\"}} for a brace"));
        }
        self.used.push(name.to_owned());
    }

    fn record_path_use(&mut self, name: &str) {
        self.record_use("url", name);
        let declared = self.arguments.iter().find(|argument| argument.name == name);
        if declared.is_some_and(|argument| !argument.is_required && argument.default.is_none()) {
            let message = format!("{{{{{name}}}}} is part of the path but optional");
            self.problems.push(HttpProblem::new("url", message, "make it required, or give it a default"));
        }
    }
}

/// What a request is made of, and what no argument can make of it.
#[cfg(test)]
mod tests {
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
}
