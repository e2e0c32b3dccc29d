//! The headers of an answer: its type, its limits, its job and its metadata.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tidegate_core::MissingNodes;
use tidegate_runtime::{AnswerMeta, BodyMetadata, Job};

/// What is percent-encoded in the names of nodes.
const NOT_IN_NAMES: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b'%').add(b'"').add(b'\\').add(b';');

const JOB: HeaderName = HeaderName::from_static("tidegate-job");
/// The maximum number of rows and bytes of an answer; sent before it begins.
const ROWS_MAX: HeaderName = HeaderName::from_static("tidegate-rows-max");
const BYTES_MAX: HeaderName = HeaderName::from_static("tidegate-bytes-max");
/// The number of rows, and whether more exist: in the headers of a short answer, in the trailer of a long one.
pub(in crate::http) const ROWS: HeaderName = HeaderName::from_static("tidegate-rows");
pub(in crate::http) const TRUNCATED: HeaderName = HeaderName::from_static("tidegate-truncated");
/// The nodes whose rows the answer lacks; sent before it begins.
const PARTIAL: HeaderName = HeaderName::from_static("tidegate-partial");
/// The maximum length of the names of missing nodes.
const PARTIAL_BYTES_MAX: usize = 2 * 1024;
/// The cursor for the next page; sent together with [`ROWS`].
const CURSOR: HeaderName = HeaderName::from_static("tidegate-cursor");

pub(in crate::http) fn describe(headers: &mut HeaderMap, head: &BodyMetadata, job: &Job) {
    let file_type = head.file.as_ref().and_then(|file| HeaderValue::from_str(file.media_type.as_deref()?).ok());
    headers.insert(header::CONTENT_TYPE, file_type.unwrap_or(HeaderValue::from_static(head.media_type)));
    headers.extend(head.budget.rows.map(|rows| (ROWS_MAX, HeaderValue::from(rows))));
    headers.extend(head.budget.bytes.map(|bytes| (BYTES_MAX, HeaderValue::from(bytes))));
    add_missing_nodes_header(headers, job);
    add_job_header(headers, &job.id().to_string());
}

pub(in crate::http) fn add_missing_nodes_header(headers: &mut HeaderMap, job: &Job) {
    let names = job.missing_nodes().map(|missing| HeaderValue::from_str(&header_names(&missing)));
    headers.extend(names.and_then(Result::ok).map(|names| (PARTIAL, names)));
}

/// The names, separated by commas. Characters that a header or the list does not allow are percent-encoded. Names that
/// would exceed the limit of a header are left out.
fn header_names(missing: &MissingNodes) -> String {
    let mut names = String::new();
    for node in &missing.nodes {
        let name = utf8_percent_encode(&node.name, NOT_IN_NAMES).to_string();
        let separator = if names.is_empty() { "" } else { ", " };
        if names.len() + separator.len() + name.len() > PARTIAL_BYTES_MAX {
            break;
        }
        names.push_str(separator);
        names.push_str(&name);
    }
    if names.is_empty() { "unknown".to_owned() } else { names }
}

pub(in crate::http) fn add_job_header(headers: &mut HeaderMap, job: &str) {
    // An id consists of hexadecimal digits and hyphens.
    headers.extend(HeaderValue::from_str(job).map(|job| (JOB, job)));
}

pub(in crate::http) fn answer_headers(metadata: &AnswerMeta) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.extend(metadata.rows.map(|rows| (ROWS, HeaderValue::from(rows))));
    if let Some(is_truncated) = metadata.is_truncated {
        fields.insert(TRUNCATED, HeaderValue::from_static(if is_truncated { "true" } else { "false" }));
    }
    // A signed cursor consists of letters, digits, hyphens and underscores.
    let cursor = metadata.cursor.as_deref().and_then(|cursor| HeaderValue::from_str(cursor).ok());
    fields.extend(cursor.map(|cursor| (CURSOR, cursor)));
    fields
}

/// Whether the client accepts trailers (RFC 9110, 6.5.1).
pub(in crate::http) fn accepts_trailers(parts: &Parts) -> bool {
    let mut values = parts.headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    let accepts = values.any(|value| value.split(',').any(|token| token.trim().eq_ignore_ascii_case("trailers")));
    accepts && parts.version == Version::HTTP_11
}
