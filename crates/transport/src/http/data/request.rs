//! Reads the arguments of a call from the address and the headers, before its body.

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use tidegate_runtime::RequestBodyTypes;

use super::route::DataRoute;
use crate::http::answer::{ParameterKind, ProblemDetails, ProblemType, QueryParameter, parse_parameters};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// [RFC 7240](https://www.rfc-editor.org/rfc/rfc7240)
const PREFER: HeaderName = HeaderName::from_static("prefer");
const KEY_BYTES_MAX: usize = 255;

pub(in crate::http) const PARAMETERS: [QueryParameter; 6] = [
    QueryParameter::new(
        "on_reject",
        ParameterKind::Text,
        "all: one row that does not fit refuses the request (default); row: it is kept in the table of rejected rows",
    ),
    QueryParameter::new("create", ParameterKind::Flag, "false: only a table that exists gets rows"),
    QueryParameter::new("delimiter", ParameterKind::Text, "CSV: what separates fields"),
    QueryParameter::new("null", ParameterKind::Text, "CSV: the text without quotes that is null"),
    QueryParameter::new("header", ParameterKind::Flag, "CSV: whether the first line has the names of the columns"),
    QueryParameter::new("binary", ParameterKind::Text, "JSON and CSV: how bytes are written, base64 or hex"),
];

/// The arguments of a call, whose request has a body or none.
pub(super) fn read_arguments(
    route: &DataRoute,
    parts: &Parts,
    has_body: bool,
) -> Result<Map<String, Value>, ProblemDetails> {
    let parameters: &[QueryParameter] = if has_body { &PARAMETERS } else { &[] };
    let mut arguments = parse_parameters(&parts.uri, parameters)?;
    arguments.insert("database".to_owned(), route.database.as_str().into());
    arguments.insert("table".to_owned(), route.table.as_str().into());
    if let Some(key) = read_key(parts)?.filter(|_| has_body) {
        arguments.insert("key".to_owned(), key.into());
    }
    Ok(arguments)
}

/// The key of `Idempotency-Key`, with or without the quotes of a structured header.
fn read_key(parts: &Parts) -> Result<Option<String>, ProblemDetails> {
    let invalid = |reason: &str| Err(ProblemDetails::bad_request(format!("Idempotency-Key {reason}")));
    let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return invalid("is given more than once");
    }
    let Ok(text) = value.to_str() else { return invalid("must consist of visible ASCII characters") };
    let text = text.trim();
    let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match key.len() {
        0 => invalid("is empty"),
        bytes if bytes > KEY_BYTES_MAX => invalid(&format!("is {bytes} bytes long; at most {KEY_BYTES_MAX}")),
        _ => Ok(Some(key.to_owned())),
    }
}

/// The media type and the coding of a body, which are among `types`.
pub(super) fn read_body_type(
    parts: &Parts,
    types: RequestBodyTypes,
) -> Result<(String, Option<String>), ProblemDetails> {
    let media_types = || types.media_types.iter().copied();
    let unsupported = |detail: String| ProblemDetails::new(ProblemType::UnsupportedMediaType, detail);
    let Some(media_type) = single_value(parts, &header::CONTENT_TYPE)? else {
        let detail = "Content-Type is missing; it states the format of the rows".to_owned();
        return Err(unsupported(detail).with_choices(media_types()));
    };
    if !types.takes_media_type(&media_type) {
        let detail = format!("Content-Type is {media_type:?}, which is no format of rows");
        return Err(unsupported(detail).with_choices(media_types()));
    }
    if let Some(charset) = charset_of(&media_type).filter(|charset| !is_utf8(charset)) {
        return Err(unsupported(format!("the body must be UTF-8, not {charset}")));
    }
    let coding = single_value(parts, &header::CONTENT_ENCODING)?;
    if let Some(coding) = coding.as_deref().filter(|coding| !types.takes_coding(coding)) {
        let detail = format!("Content-Encoding is {coding:?}, which is not supported");
        let problem = unsupported(detail).with_choices(types.codings.iter().copied());
        // RFC 9110, 15.5.16: it states the codings that would have been accepted.
        let accepted = HeaderValue::from_str(&types.codings.join(", "));
        return Err(match accepted {
            Ok(accepted) => problem.with_header(header::ACCEPT_ENCODING, accepted),
            Err(_) => problem,
        });
    }
    Ok((media_type, coding))
}

fn single_value(parts: &Parts, name: &HeaderName) -> Result<Option<String>, ProblemDetails> {
    let mut values = parts.headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim().to_owned())),
        (Ok(_), Some(_)) => Err(ProblemDetails::bad_request(format!("the header {name} is given more than once"))),
        (Err(_), _) => Err(ProblemDetails::bad_request(format!("the header {name} has characters other than ASCII"))),
    }
}

fn charset_of(media_type: &str) -> Option<String> {
    let mut parameters = media_type.split(';').skip(1).map(|parameter| parameter.trim().to_ascii_lowercase());
    let charset = parameters.find_map(|parameter| parameter.strip_prefix("charset=").map(str::to_owned))?;
    Some(charset.trim_matches('"').to_owned())
}

fn is_utf8(charset: &str) -> bool {
    matches!(charset, "utf-8" | "utf8" | "us-ascii")
}

/// Whether the answer needs no body.
pub(super) fn prefers_minimal(parts: &Parts) -> bool {
    let values = parts.headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut preferences = values.flat_map(|value| value.split(',')).map(|preference| {
        let preference = preference.split(';').next().unwrap_or_default();
        preference.split_whitespace().collect::<String>().to_ascii_lowercase()
    });
    // Of several, the first applies.
    preferences.find(|preference| preference.starts_with("return=")).is_some_and(|first| first == "return=minimal")
}
