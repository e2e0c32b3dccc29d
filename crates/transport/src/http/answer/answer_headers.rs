//! The headers of an answer: its type, its limits, its job and its metadata.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use tidegate_runtime::{BodyMetadata, Metadata};

const JOB: HeaderName = HeaderName::from_static("tidegate-job");
/// The maximum number of rows and bytes of an answer; sent before it begins.
const ROWS_MAX: HeaderName = HeaderName::from_static("tidegate-rows-max");
const BYTES_MAX: HeaderName = HeaderName::from_static("tidegate-bytes-max");
/// The number of rows, and whether more exist: in the headers of a short answer, in the trailer of a long one.
pub(in crate::http) const ROWS: HeaderName = HeaderName::from_static("tidegate-rows");
pub(in crate::http) const TRUNCATED: HeaderName = HeaderName::from_static("tidegate-truncated");
/// The cursor for the next page; sent together with [`ROWS`].
const CURSOR: HeaderName = HeaderName::from_static("tidegate-cursor");

pub(in crate::http) fn describe(headers: &mut HeaderMap, head: &BodyMetadata, job: &str) {
    let file_type = head.file.as_ref().and_then(|file| HeaderValue::from_str(file.media_type.as_deref()?).ok());
    headers.insert(header::CONTENT_TYPE, file_type.unwrap_or(HeaderValue::from_static(head.media_type)));
    headers.extend(head.budget.rows.map(|rows| (ROWS_MAX, HeaderValue::from(rows))));
    headers.extend(head.budget.bytes.map(|bytes| (BYTES_MAX, HeaderValue::from(bytes))));
    add_job_header(headers, job);
}

pub(in crate::http) fn add_job_header(headers: &mut HeaderMap, job: &str) {
    // An id consists of hexadecimal digits and hyphens.
    headers.extend(HeaderValue::from_str(job).map(|job| (JOB, job)));
}

pub(in crate::http) fn answer_headers(metadata: &Metadata) -> HeaderMap {
    let mut fields = HeaderMap::new();
    if let Some(rows) = metadata.get("dev.tidegate/rows").and_then(serde_json::Value::as_u64) {
        fields.insert(ROWS, HeaderValue::from(rows));
    }
    if let Some(truncated) = metadata.get("dev.tidegate/truncated").and_then(serde_json::Value::as_bool) {
        fields.insert(TRUNCATED, HeaderValue::from_static(if truncated { "true" } else { "false" }));
    }
    // A signed cursor consists of letters, digits, hyphens and underscores.
    let cursor = metadata.get("dev.tidegate/cursor").and_then(serde_json::Value::as_str);
    if let Some(cursor) = cursor.and_then(|cursor| HeaderValue::from_str(cursor).ok()) {
        fields.insert(CURSOR, cursor);
    }
    fields
}

/// Whether the client accepts trailers (RFC 9110, 6.5.1).
pub(in crate::http) fn accepts_trailers(parts: &Parts) -> bool {
    let mut values = parts.headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    let accepts = values.any(|value| value.split(',').any(|token| token.trim().eq_ignore_ascii_case("trailers")));
    accepts && parts.version == Version::HTTP_11
}
