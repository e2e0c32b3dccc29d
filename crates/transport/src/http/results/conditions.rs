//! What of a representation a request is to get: all of it, a part of it, or nothing, because the client has it.
//!
//! [RFC 9110, 13](https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests). Nothing here has a date, so
//! that the conditions that name one say nothing.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};

use super::super::rest::{Problem, Sort};
use super::range::{Part, Ranges, Unsatisfiable};
use super::tag::{Named, Tag};

/// What a request gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Given {
    Whole,
    Part(Part),
    /// The client has it.
    Nothing,
}

/// Decides what a request for the representation with `tag` gets, which has so many `bytes` if that is known.
pub(super) fn given(parts: &Parts, tag: Option<&Tag>, bytes: Option<u64>) -> Result<Given, Problem> {
    let headers = &parts.headers;
    if Named::read(headers, header::IF_MATCH).is_some_and(|named| !named.has_strongly(tag)) {
        let detail = "it has none of the tags that If-Match names; without If-Match it is answered as it is";
        return Err(Problem::new(Sort::PreconditionFailed, detail.to_owned()));
    }
    if Named::read(headers, header::IF_NONE_MATCH).is_some_and(|named| named.has_weakly(tag)) {
        return Ok(Given::Nothing);
    }
    match bytes {
        Some(bytes) if may_be_part(parts, tag) => part(headers, bytes),
        _ => Ok(Given::Whole),
    }
}

/// Whether a range counts: one who has the beginning of something else needs the whole.
fn may_be_part(parts: &Parts, tag: Option<&Tag>) -> bool {
    let is_same = match Named::read(&parts.headers, header::IF_RANGE) {
        None => true,
        Some(Named::Any) => false,
        // One tag, and no list of them.
        Some(named @ Named::These(_)) => named.is_one() && named.has_strongly(tag),
    };
    parts.method == Method::GET && is_same
}

fn part(headers: &HeaderMap, bytes: u64) -> Result<Given, Problem> {
    match Ranges::read(headers).of(bytes) {
        Ok(None) => Ok(Given::Whole),
        Ok(Some(part)) => Ok(Given::Part(part)),
        Err(Unsatisfiable) => {
            let problem = Problem::new(
                Sort::RangeNotSatisfiable,
                format!("it has {bytes} bytes, and the range holds none of them"),
            );
            // Digits and letters.
            Err(match HeaderValue::from_str(&format!("bytes */{bytes}")) {
                Ok(all) => problem.with_header(header::CONTENT_RANGE, all),
                Err(_) => problem,
            })
        }
    }
}
