//! Interprets the response of an API: as a table, as text, or as an error.
//!
//! The objects of a table have one schema for all of them. A column has the narrowest type that holds all its values:
//! boolean, 64-bit integer, 64-bit float or text. Arrays and objects become JSON text. Batches are built one by one,
//! because objects with few common members would need memory for every missing member.
//!
//! A caller reads the host and a short reason. The secrets of the request are removed, even where the API repeats them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use tidegate_core::{Error, ErrorKind, shorten};
use tidegate_query::QueryRows;

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
enum MediaType {
    Json,
    Text,
    Other,
}

impl MediaType {
    fn classify(essence: &str) -> Self {
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

const COLUMNS_MAX: usize = 1_000;
const BATCH_ROWS: usize = 1_024;
const VALUE_COLUMN: &str = "value";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonColumnType {
    Null,
    Boolean,
    Integer,
    Float,
    Text,
}

/// The columns of a table, in the order of first appearance.
struct InferredColumns {
    names: Vec<String>,
    column_types: Vec<JsonColumnType>,
    /// Whether rows are objects; otherwise each item is the value of the only column.
    are_members: bool,
}

/// The table of `items`. `extract` is the requested column, which an empty table has as well.
pub(super) fn rows_from_json(items: Vec<Value>, extract: Option<&str>) -> Result<QueryRows, Error> {
    let mut columns = InferredColumns::infer(&items)?;
    if let (true, Some(name)) = (items.is_empty(), extract) {
        columns.names.push(name.to_owned());
        columns.column_types.push(JsonColumnType::Null);
    }
    let schema = columns.schema();
    let batches = {
        let schema = schema.clone();
        let starts = (0..items.len()).step_by(BATCH_ROWS);
        starts.map(move |start| {
            let end = items.len().min(start + BATCH_ROWS);
            columns.batch(&schema, &items[start..end])
        })
    };
    Ok(QueryRows::new(schema, futures::stream::iter(batches).boxed()))
}

impl InferredColumns {
    fn infer(items: &[Value]) -> Result<Self, Error> {
        if !items.iter().all(Value::is_object) {
            let kind =
                items.iter().fold(JsonColumnType::Null, |kind, item| kind.widen(JsonColumnType::from_value(item)));
            return Ok(Self { names: vec![VALUE_COLUMN.to_owned()], column_types: vec![kind], are_members: false });
        }
        let mut indexes: HashMap<&str, usize> = HashMap::new();
        let (mut names, mut kinds) = (Vec::new(), Vec::new());
        for (name, value) in items.iter().filter_map(Value::as_object).flatten() {
            let index = *indexes.entry(name).or_insert_with(|| {
                names.push(name.clone());
                kinds.push(JsonColumnType::Null);
                names.len() - 1
            });
            if names.len() > COLUMNS_MAX {
                let message = format!("the rows of the answer have more than {COLUMNS_MAX} different members");
                return Err(Error::new(ErrorKind::TooLarge, message).with_hint("Request fewer members from the API."));
            }
            kinds[index] = kinds[index].widen(JsonColumnType::from_value(value));
        }
        Ok(Self { names, column_types: kinds, are_members: true })
    }

    fn schema(&self) -> SchemaRef {
        let fields =
            self.names.iter().zip(&self.column_types).map(|(name, kind)| Field::new(name, kind.data_type(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn batch(&self, schema: &SchemaRef, items: &[Value]) -> Result<RecordBatch, Error> {
        let columns = self.names.iter().zip(&self.column_types).map(|(name, kind)| {
            let values = items.iter().map(|item| if self.are_members { item.get(name) } else { Some(item) });
            kind.column(values)
        });
        // Objects without members are rows without columns, so the number of rows must be set.
        let options = RecordBatchOptions::new().with_row_count(Some(items.len()));
        RecordBatch::try_new_with_options(schema.clone(), columns.collect(), &options)
            .map_err(|error| Error::internal(format!("the rows of an http tool are malformed: {error}")))
    }
}

impl JsonColumnType {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(number) if number.is_f64() => Self::Float,
            // Integers beyond the signed 64 bits keep their digits as text.
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Self::Text,
        }
    }

    fn widen(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (one, other) if one == other => one,
            (Self::Integer, Self::Float) | (Self::Float, Self::Integer) => Self::Float,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Null | Self::Text => DataType::Utf8,
        }
    }

    fn column<'a>(self, values: impl Iterator<Item = Option<&'a Value>>) -> ArrayRef {
        match self {
            Self::Boolean => Arc::new(values.map(|value| value?.as_bool()).collect::<BooleanArray>()),
            Self::Integer => Arc::new(values.map(|value| value?.as_i64()).collect::<Int64Array>()),
            Self::Float => Arc::new(values.map(|value| value?.as_f64()).collect::<Float64Array>()),
            Self::Null | Self::Text => Arc::new(values.map(|value| value_text(value?)).collect::<StringArray>()),
        }
    }
}

fn value_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

const API_MESSAGE_CHARACTERS_MAX: usize = 2_000;
const DATE_CHARACTERS_MAX: usize = 40;

/// The error for a status other than 2xx, without `secrets`.
pub(super) fn status_error(fetched: &HttpResponse, secrets: &Secrets) -> Error {
    let HttpResponse { status, headers, host, .. } = fetched;
    let with_api_message = |kind, subject: &str| {
        let error = Error::new(kind, format!("{subject}: {host} answers {status}"));
        match api_message(fetched, secrets) {
            Some(message) => error.with_hint(format!("The API's message: {message}")),
            None => error,
        }
    };
    match status.as_u16() {
        401 | 403 | 407 => {
            let message = format!("{host} rejects this server's credentials ({status})");
            Error::new(ErrorKind::Forbidden, message)
                .with_hint("The owner of this server has to correct them; other arguments do not help.")
        }
        404 | 410 => with_api_message(ErrorKind::NotFound, "the requested item does not exist"),
        408 | 504 => Error::new(ErrorKind::TimedOut, format!("{host} timed out ({status})")),
        413 | 414 => with_api_message(ErrorKind::TooLarge, "the request is too large for the API"),
        429 => with_retry_hint(
            Error::new(ErrorKind::RateLimited, format!("{host} limits the request rate ({status})")),
            headers,
        ),
        // Statuses that are caused by the tool's configuration, not by its arguments.
        405 | 406 | 411 | 415 | 426 => {
            Error::new(ErrorKind::Unavailable, format!("{host} does not accept the request of this tool ({status})"))
        }
        400..=499 => with_api_message(ErrorKind::InvalidArguments, "the API rejects these arguments"),
        500..=599 => with_retry_hint(Error::new(ErrorKind::Unavailable, format!("{host} fails ({status})")), headers),
        _ => Error::new(ErrorKind::Unavailable, format!("{host} answers {status}, which http tools do not support")),
    }
}

fn with_retry_hint(error: Error, headers: &HeaderMap) -> Error {
    let text = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
    match text {
        Some(seconds) if seconds.parse::<u32>().is_ok() => error.with_hint(format!("Try again in {seconds} seconds.")),
        // A date of RFC 9110 contains only these characters.
        Some(date) if is_date(date) => error.with_hint(format!("Try again after {date}.")),
        _ => error,
    }
}

fn is_date(text: &str) -> bool {
    let is_of_date = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ',' | ':' | '-');
    !text.is_empty() && text.len() <= DATE_CHARACTERS_MAX && text.chars().all(is_of_date)
}

fn api_message(fetched: &HttpResponse, secrets: &Secrets) -> Option<String> {
    let is_readable = match media_type(&fetched.headers) {
        Some(media_type) => match MediaType::classify(&media_type) {
            MediaType::Json => true,
            MediaType::Text => media_type != "text/html",
            MediaType::Other => false,
        },
        None => false,
    };
    if !is_readable {
        return None;
    }
    let text = secrets.redact_error(&String::from_utf8_lossy(&fetched.body));
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| shorten(text, API_MESSAGE_CHARACTERS_MAX))
}

pub(super) fn body_too_large(host: &str, bytes_max: usize) -> Error {
    let message = format!("the answer of {host} is larger than {bytes_max} bytes, the limit of this tool (max_bytes)");
    Error::new(ErrorKind::TooLarge, message)
        .with_hint("Request less data; the owner of this server can raise max_bytes of the tool.")
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;
    use futures::FutureExt;
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

    /// Types, names and values, one row in each line.
    fn render_table(items: &Value) -> String {
        let rows = rows_from_json(items.as_array().unwrap().clone(), None).unwrap();
        let fields = rows.schema.fields();
        let types: Vec<_> = fields.iter().map(|field| field.data_type().to_string()).collect();
        let names: Vec<_> = fields.iter().map(|field| field.name().clone()).collect();
        let mut lines = vec![types.join(" "), names.join(" | ")];
        for batch in rows.batches.collect::<Vec<_>>().now_or_never().unwrap() {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayRef| match column.is_null(row) {
                    true => "-".to_owned(),
                    false => array_value_to_string(column, row).unwrap(),
                };
                lines.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" | "));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn infers_column_types_in_order_of_appearance() {
        let items = json!([
            {"id": 1, "b": true, "f": 1, "s": "x", "mixed": 1, "n": null, "deep": {"z": [1, null]}},
            {"id": -2, "b": null, "f": 0.5, "late": 1, "mixed": "two", "n": null, "deep": []},
            {"mixed": false, "big": 18_446_744_073_709_551_615_u64},
        ]);
        insta::assert_snapshot!(render_table(&items), @r#"
        Int64 Boolean Float64 Utf8 Utf8 Utf8 Utf8 Int64 Utf8
        id | b | f | s | mixed | n | deep | late | big
        1 | true | 1.0 | x | 1 | - | {"z":[1,null]} | - | -
        -2 | - | 0.5 | - | two | - | [] | 1 | -
        - | - | - | - | false | - | - | - | 18446744073709551615
        "#);
    }

    #[test]
    fn scalar_items_become_one_column() {
        insta::assert_snapshot!(render_table(&json!([1, 2.5, null])), @r"
        Float64
        value
        1.0
        2.5
        -
        ");
    }

    #[test]
    fn a_table_without_rows_has_the_requested_column() {
        let rows = rows_from_json(Vec::new(), Some("id")).unwrap();
        assert_eq!(rows.schema.field(0).name(), "id");
        assert!(rows_from_json(Vec::new(), None).unwrap().schema.fields().is_empty());
    }

    #[test]
    fn long_tables_come_in_batches_and_empty_objects_are_rows() {
        let rows = rows_from_json(vec![json!({}); 2_500], None).unwrap();
        let batches = rows.batches.collect::<Vec<_>>().now_or_never().unwrap();
        let counts: Vec<usize> = batches.iter().map(|batch| batch.as_ref().unwrap().num_rows()).collect();
        assert_eq!(counts, [1_024, 1_024, 452]);
    }

    #[test]
    fn too_many_columns_are_refused() {
        let items: Vec<Value> = (0..=COLUMNS_MAX).map(|index| json!({ format!("c{index}"): 1 })).collect();
        assert_eq!(rows_from_json(items, None).err().unwrap().kind(), ErrorKind::TooLarge);
    }
}
