//! Interprets the response of an API as a table or as text.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;
use tidegate_core::{Error, ErrorKind};

use super::client::HttpResponse;
use super::secrets::Secrets;

/// Member names that are listed when the table is missing.
const MEMBERS_LISTED_MAX: usize = 20;

#[derive(Debug, PartialEq)]
pub(super) enum ApiResult {
    Table(Vec<Value>),
    /// Text, or JSON that is not a table.
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    Json,
    Text,
    Other,
}

impl MediaType {
    pub(super) fn classify(essence: &str) -> Self {
        match essence.split_once('/') {
            Some(("application" | "text", "json")) => Self::Json,
            Some((_, subtype)) if subtype.ends_with("+json") => Self::Json,
            Some(("text", _)) => Self::Text,
            _ => Self::Other,
        }
    }
}

/// The media type without its parameters, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!essence.is_empty()).then_some(essence)
}

/// Interprets a successful response. `rows` is the JSON pointer to the table, if any; `secrets` are removed.
pub(super) fn interpret_response(
    fetched: HttpResponse,
    rows: Option<&str>,
    secrets: &Secrets,
) -> Result<ApiResult, Error> {
    let HttpResponse { status, headers, body, host, .. } = fetched;
    let media_type = media_type(&headers);
    if body.is_empty() {
        return Ok(ApiResult::Text(format!("done: {status}")));
    }
    match media_type.as_deref().map(MediaType::classify) {
        Some(MediaType::Json) => interpret_json(&body, rows, &host, secrets),
        // Some APIs omit the media type; JSON is recognised by its first character.
        None if is_json_like(&body) => interpret_json(&body, rows, &host, secrets),
        Some(MediaType::Text) => Ok(ApiResult::Text(secrets.redact_text(String::from_utf8_lossy(&body).into_owned()))),
        Some(MediaType::Other) | None => {
            let media_type = media_type.as_deref().unwrap_or("no media type");
            let message = format!("{host} answers with {media_type}; http tools read JSON and text");
            Err(Error::new(ErrorKind::Unavailable, message))
        }
    }
}

fn is_json_like(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

fn interpret_json(body: &[u8], rows: Option<&str>, host: &str, secrets: &Secrets) -> Result<ApiResult, Error> {
    // Some servers send a byte order mark before their JSON.
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let mut value: Value = serde_json::from_slice(text).map_err(|error| {
        // The error contains a position, not the text.
        Error::new(ErrorKind::Unavailable, format!("{host} answers with invalid JSON: {error}"))
    })?;
    secrets.redact_json(&mut value);
    let Some(pointer) = rows else {
        return Ok(match value {
            Value::Array(items) if items.iter().all(Value::is_object) => ApiResult::Table(items),
            other => ApiResult::Text(other.to_string()),
        });
    };
    match value.pointer_mut(pointer).map(Value::take) {
        Some(Value::Array(items)) => Ok(ApiResult::Table(items)),
        // Some languages serialize an empty list as null.
        Some(Value::Null) => Ok(ApiResult::Table(Vec::new())),
        found => Err(missing_table_error(host, pointer, found.as_ref(), &value)),
    }
}

fn missing_table_error(host: &str, pointer: &str, found: Option<&Value>, root: &Value) -> Error {
    let location = if pointer.is_empty() { "as a whole" } else { pointer };
    let subject = match found {
        None => "nothing",
        Some(Value::Object(_)) => "an object",
        Some(_) => "a single value",
    };
    let message = format!("the answer of {host} must have its table at {location:?}, but has {subject} there");
    let error = Error::new(ErrorKind::Unavailable, message)
        .with_hint("The owner of this server can correct rows in the tool's configuration.");
    match root {
        Value::Object(members) if found.is_none() => {
            error.with_choices(members.keys().take(MEMBERS_LISTED_MAX).map(|name| format!("/{name}")))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use reqwest::header::HeaderValue;
    use serde_json::json;

    use super::*;

    fn answer(media_type: Option<&'static str>, body: &[u8], rows: Option<&str>) -> Result<ApiResult, String> {
        let mut headers = HeaderMap::new();
        if let Some(media_type) = media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        let body = body.to_vec();
        let host = "api.example.com".to_owned();
        let fetched = HttpResponse { status: StatusCode::OK, headers, body, is_cut: false, host };
        interpret_response(fetched, rows, &Secrets::default()).map_err(|error| error.to_string())
    }

    fn json_answer(body: &Value, rows: Option<&str>) -> Result<ApiResult, String> {
        answer(Some("application/json"), body.to_string().as_bytes(), rows)
    }

    #[test]
    fn arrays_of_objects_are_tables() {
        let items = vec![json!({"a": 1}), json!({})];
        let table = || Ok(ApiResult::Table(items.clone()));
        assert_eq!(json_answer(&json!(items), None), table());
        assert_eq!(json_answer(&json!(items), Some("")), table());
        assert_eq!(json_answer(&json!({"x": {"items": items}}), Some("/x/items")), table());
        assert_eq!(json_answer(&json!([]), None), Ok(ApiResult::Table(Vec::new())));
        assert_eq!(json_answer(&json!({"items": null}), Some("/items")), Ok(ApiResult::Table(Vec::new())));
    }

    #[test]
    fn other_json_is_text() {
        for value in [json!({"b": 1, "a": [2]}), json!([1, {"a": 1}]), json!("x"), json!(null)] {
            assert_eq!(json_answer(&value, None), Ok(ApiResult::Text(value.to_string())));
        }
    }

    #[test]
    fn missing_table_error_lists_members() {
        let message = |rows| json_answer(&json!({"data": {"rows": []}, "n": 1}), Some(rows)).unwrap_err();
        insta::assert_snapshot!(message("/items"), @r#"
        the answer of api.example.com must have its table at "/items", but has nothing there
        Valid choices: /data, /n
        The owner of this server can correct rows in the tool's configuration.
        "#);
        assert!(message("/data").contains("an object there"));
        assert!(message("/n").contains("a single value there"));
    }

    #[test]
    fn media_type_selects_the_reading() {
        let text = |text: &str| Ok(ApiResult::Text(text.to_owned()));
        assert_eq!(answer(Some("Application/Problem+JSON; charset=utf-8"), b"{}", None), text("{}"));
        assert_eq!(answer(Some("text/csv"), b"a,b\n\xff", None), text("a,b\n\u{fffd}"));
        assert_eq!(answer(Some("text/json"), b"\xef\xbb\xbf{}", None), text("{}"));
        assert_eq!(answer(None, b" {}", None), text("{}"));
        assert_eq!(answer(Some("image/png"), b"", None), text("done: 200 OK"));
        let message = answer(Some("image/png"), b"x", None).unwrap_err();
        assert_eq!(message, "api.example.com answers with image/png; http tools read JSON and text");
        assert!(answer(None, b"x", None).unwrap_err().contains("no media type"));
        assert!(answer(Some("application/json"), b"{\"s3cr3t", None).unwrap_err().contains("line 1 column 8"));
    }
}
