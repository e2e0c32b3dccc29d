//! Evaluates conditions and ranges of a request: it gets the whole representation, a part of it, or 304.
//!
//! [RFC 9110, 13](https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests). No representation has a date, so
//! conditions with a date are ignored.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};

use super::super::answer::{EntityTag, EntityTagList, ProblemDetails, ProblemType};
use super::range::{ByteRange, RangeHeader, RangeNotSatisfiable};

/// The result of the conditions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConditionOutcome {
    Whole,
    Part(ByteRange),
    /// The client has the current version.
    NotModified,
}

/// Evaluates the conditions for the representation with `tag`, whose length is `bytes` if it is known.
pub(super) fn evaluate_conditions(
    parts: &Parts,
    tag: Option<&EntityTag>,
    bytes: Option<u64>,
) -> Result<ConditionOutcome, ProblemDetails> {
    let headers = &parts.headers;
    if EntityTagList::from_headers(headers, header::IF_MATCH).is_some_and(|named| !named.matches_strongly(tag)) {
        let detail = "the result has none of the entity tags in If-Match; omit If-Match to get the current version";
        return Err(ProblemDetails::new(ProblemType::PreconditionFailed, detail.to_owned()));
    }
    if EntityTagList::from_headers(headers, header::IF_NONE_MATCH).is_some_and(|named| named.matches_weakly(tag)) {
        return Ok(ConditionOutcome::NotModified);
    }
    match bytes {
        Some(bytes) if allows_range(parts, tag) => select_range(headers, bytes),
        _ => Ok(ConditionOutcome::Whole),
    }
}

/// Whether a range applies: a client with the beginning of another version needs the whole.
fn allows_range(parts: &Parts, tag: Option<&EntityTag>) -> bool {
    let is_same = match EntityTagList::from_headers(&parts.headers, header::IF_RANGE) {
        None => true,
        Some(EntityTagList::Any) => false,
        // Exactly one tag is required.
        Some(named @ EntityTagList::Tags(_)) => named.is_single() && named.matches_strongly(tag),
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
