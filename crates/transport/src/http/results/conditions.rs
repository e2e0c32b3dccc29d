//! Evaluates conditions and ranges of a request: it gets the whole representation, a part of it, or 304.
//!
//! [RFC 9110, 13](https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests). No representation has a date, so
//! conditions with a date are ignored.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use headers::{ETag, HeaderMapExt, IfMatch, IfRange};

use super::super::answer::{ProblemDetails, ProblemType, matches_none_match};
use super::range::{ByteRange, RangeHeader, RangeNotSatisfiable};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConditionOutcome {
    Whole,
    Part(ByteRange),
    /// The client has the current version.
    NotModified,
}

pub(super) fn evaluate_conditions(
    parts: &Parts,
    tag: Option<&ETag>,
    bytes: Option<u64>,
) -> Result<ConditionOutcome, ProblemDetails> {
    let headers = &parts.headers;
    let required = headers.typed_get::<IfMatch>();
    if required.is_some_and(|named| tag.map_or(named != IfMatch::any(), |tag| !named.precondition_passes(tag))) {
        let detail = "the result has none of the entity tags in If-Match; omit If-Match to get the current version";
        return Err(ProblemDetails::new(ProblemType::PreconditionFailed, detail.to_owned()));
    }
    if matches_none_match(headers, tag) {
        return Ok(ConditionOutcome::NotModified);
    }
    match bytes {
        Some(bytes) if allows_range(parts, tag) => select_range(headers, bytes),
        _ => Ok(ConditionOutcome::Whole),
    }
}

/// Whether a range applies: a client with the beginning of another version needs the whole.
fn allows_range(parts: &Parts, tag: Option<&ETag>) -> bool {
    let is_same = match parts.headers.typed_try_get::<IfRange>() {
        Ok(None) => true,
        Ok(Some(version)) => !version.is_modified(tag, None),
        Err(_) => false,
    };
    parts.method == Method::GET && is_same
}

fn select_range(headers: &HeaderMap, bytes: u64) -> Result<ConditionOutcome, ProblemDetails> {
    match RangeHeader::from_headers(headers).resolve(bytes) {
        Ok(None) => Ok(ConditionOutcome::Whole),
        Ok(Some(part)) => Ok(ConditionOutcome::Part(part)),
        Err(RangeNotSatisfiable) => {
            let problem = ProblemDetails::new(
                ProblemType::RangeNotSatisfiable,
                format!("the range is outside the result, which has {bytes} bytes"),
            );
            // Digits and letters.
            Err(match HeaderValue::from_str(&format!("bytes */{bytes}")) {
                Ok(all) => problem.with_header(header::CONTENT_RANGE, all),
                Err(_) => problem,
            })
        }
    }
}
