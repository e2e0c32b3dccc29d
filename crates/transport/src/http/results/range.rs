//! Conditions and byte ranges: a request gets the whole representation, a part of it, or 304.
//!
//! No representation has a date, so conditions with a date are ignored. A request for several ranges gets the whole body, as
//! the RFC allows.
//!
//! [RFC 9110, 13](https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests) and
//! [14](https://www.rfc-editor.org/rfc/rfc9110#name-range-requests)

use std::io;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use headers::{ETag, HeaderMapExt, IfMatch, IfRange};

use super::super::answer::{ProblemDetails, ProblemType, matches_none_match};
use super::super::body::broken_body_error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeHeader {
    /// No range, several ranges, or an invalid header.
    None,
    /// From a byte to the end, or to another byte.
    From(u64, Option<u64>),
    /// A number of bytes at the end.
    Last(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RangeNotSatisfiable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) first: u64,
    pub(super) count: u64,
    total: u64,
}

impl RangeHeader {
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::RANGE).iter();
        match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
            (Some(text), None) => Self::parse(text).unwrap_or(Self::None),
            _ => Self::None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (unit, set) = text.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let mut ranges = set.split(',').map(str::trim).filter(|range| !range.is_empty());
        let (range, more) = (ranges.next()?, ranges.next());
        if more.is_some() {
            return None;
        }
        match range.split_once('-')? {
            ("", last) => Some(Self::Last(parse_position(last)?)),
            (first, "") => Some(Self::From(parse_position(first)?, None)),
            (first, last) => {
                let (first, last) = (parse_position(first)?, parse_position(last)?);
                (first <= last).then_some(Self::From(first, Some(last)))
            }
        }
    }

    /// The range within `bytes` bytes; `None` for all of them.
    fn resolve(self, bytes: u64) -> Result<Option<ByteRange>, RangeNotSatisfiable> {
        let (first, count) = match self {
            Self::None => return Ok(None),
            // An empty representation has no range; it is sent as a whole.
            Self::Last(count) if count > 0 && bytes == 0 => return Ok(None),
            Self::Last(count) => (bytes.saturating_sub(count), count.min(bytes)),
            Self::From(first, last) => {
                let end = last.map_or(bytes, |last| last.saturating_add(1).min(bytes));
                (first, end.saturating_sub(first))
            }
        };
        if count == 0 { Err(RangeNotSatisfiable) } else { Ok(Some(ByteRange { first, count, total: bytes })) }
    }
}

/// A decimal number; values beyond `u64::MAX` count as `u64::MAX`.
fn parse_position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

impl ByteRange {
    pub(super) fn whole(bytes: u64) -> Self {
        Self { first: 0, count: bytes, total: bytes }
    }

    pub(super) fn content_range(&self) -> String {
        format!("bytes {}-{}/{}", self.first, self.first + self.count.saturating_sub(1), self.total)
    }

    /// Cuts the stream `pieces` to the range while it arrives. If the stream has another total length, the body fails.
    pub(super) fn slice_body(self, pieces: BoxStream<'static, io::Result<Bytes>>) -> Body {
        let is_to_end = self.first + self.count == self.total;
        Body::from_stream(BodySlice { pieces, skip: self.first, left: self.count, is_to_end }.into_stream())
    }
}

struct BodySlice {
    pieces: BoxStream<'static, io::Result<Bytes>>,
    skip: u64,
    left: u64,
    is_to_end: bool,
}

impl BodySlice {
    fn into_stream(self) -> impl stream::Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::unfold(Some(self), |cut| async move {
            let mut cut = cut?;
            let next = cut.next().await?;
            let cut = next.is_ok().then_some(cut);
            Some((next, cut))
        })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while self.left > 0 {
            let mut piece = match self.pieces.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Some(Err(error)),
                None => return Some(Err(broken_body_error("the body is shorter than it should be").await)),
            };
            // Both are at most the length of the piece.
            let skipped = self.skip.min(piece.len() as u64);
            piece.advance(skipped as usize);
            self.skip -= skipped;
            if piece.is_empty() {
                continue;
            }
            let is_last = piece.len() as u64 >= self.left;
            if is_last && self.is_to_end {
                let last = self.finish_last_piece(piece).await;
                self.left = 0;
                return Some(last);
            }
            if is_last {
                piece.truncate(self.left as usize);
            }
            self.left -= piece.len() as u64;
            return Some(Ok(piece));
        }
        None
    }

    /// The last bytes of the body, after the stream has ended successfully: an error may follow them.
    async fn finish_last_piece(&mut self, piece: Bytes) -> io::Result<Bytes> {
        let mut is_too_long = piece.len() as u64 > self.left;
        while let Some(more) = self.pieces.next().await {
            is_too_long |= !more?.is_empty();
        }
        match is_too_long {
            false => Ok(piece),
            true => Err(broken_body_error("the body is longer than it should be").await),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn resolves_range_headers() {
        let mut table = String::new();
        for text in [
            "bytes=0-4",
            "bytes=4-4",
            "bytes=5-",
            "bytes=0-",
            "bytes=9-99999999999999999999999",
            "bytes=-3",
            "bytes=-99999999999999999999999",
            "BYTES = 2-3",
            "bytes=, 2-3 ,",
            "bytes=10-",
            "bytes=10-12",
            "bytes=99999999999999999999999-",
            "bytes=-0",
            "bytes=4-2",
            "bytes=0-1,3-4",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=-",
            "bytes=1",
            "bytes=",
            "rows=0-4",
            "0-4",
        ] {
            let ranges = RangeHeader::parse(text).unwrap_or(RangeHeader::None);
            let message = |bytes| match ranges.resolve(bytes) {
                Ok(None) => "whole".to_owned(),
                Ok(Some(part)) => part.content_range(),
                Err(RangeNotSatisfiable) => "none".to_owned(),
            };
            table.push_str(&format!("{text:35} {:18} {}\n", message(10), message(0)));
        }
        insta::assert_snapshot!(table, @r#"
        bytes=0-4                           bytes 0-4/10       none
        bytes=4-4                           bytes 4-4/10       none
        bytes=5-                            bytes 5-9/10       none
        bytes=0-                            bytes 0-9/10       none
        bytes=9-99999999999999999999999     bytes 9-9/10       none
        bytes=-3                            bytes 7-9/10       whole
        bytes=-99999999999999999999999      bytes 0-9/10       whole
        BYTES = 2-3                         bytes 2-3/10       none
        bytes=, 2-3 ,                       bytes 2-3/10       none
        bytes=10-                           none               none
        bytes=10-12                         none               none
        bytes=99999999999999999999999-      none               none
        bytes=-0                            none               none
        bytes=4-2                           whole              whole
        bytes=0-1,3-4                       whole              whole
        bytes=a-b                           whole              whole
        bytes=+1-2                          whole              whole
        bytes=-                             whole              whole
        bytes=1                             whole              whole
        bytes=                              whole              whole
        rows=0-4                            whole              whole
        0-4                                 whole              whole
        "#);
    }

    /// Cuts `pieces` to `part`, or returns the error of the body.
    fn slice(pieces: &[Vec<u8>], part: ByteRange) -> io::Result<Vec<u8>> {
        let pieces: Vec<io::Result<Bytes>> = pieces.iter().map(|piece| Ok(Bytes::from(piece.clone()))).collect();
        let body = part.slice_body(stream::iter(pieces).boxed()).into_data_stream();
        let gathered = body.try_fold(Vec::new(), |mut all, piece| async move {
            all.extend_from_slice(&piece);
            Ok(all)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(gathered).map_err(io::Error::other)
    }

    proptest! {
        #[test]
        fn range_is_independent_of_chunk_boundaries(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..10),
            (first, last) in (0_u64..80, 0_u64..80),
        ) {
            let whole = pieces.concat();
            let bytes = whole.len() as u64;
            prop_assert_eq!(&slice(&pieces, ByteRange::whole(bytes)).unwrap(), &whole);
            if let Ok(Some(part)) = RangeHeader::From(first, Some(last)).resolve(bytes) {
                let expected = &whole[part.first as usize..][..part.count as usize];
                prop_assert_eq!(slice(&pieces, part).unwrap(), expected);
                prop_assert!(part.first == first && part.count == last.min(bytes - 1) + 1 - first);
            } else {
                prop_assert!(first > last || first >= bytes);
            }
            if let Ok(Some(part)) = RangeHeader::Last(first).resolve(bytes) {
                prop_assert_eq!(slice(&pieces, part).unwrap(), &whole[whole.len() - first.min(bytes) as usize..]);
            }
        }

        #[test]
        fn body_of_unexpected_length_fails(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 1..10),
            more in 1_u64..10,
        ) {
            let bytes = pieces.concat().len() as u64;
            prop_assert!(slice(&pieces, ByteRange::whole(bytes + more)).is_err());
            prop_assert!(bytes <= more || slice(&pieces, ByteRange::whole(bytes - more)).is_err());
        }
    }
}
