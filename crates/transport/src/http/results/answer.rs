//! From a reply to a response that can be checked, resumed and kept.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_core::{AnswerFormat, BodyHead, Budget, Chunk, Outcome, Reply, ReplyEvent};

use super::super::rest::{Begun, Encoding, Pieces, Problem, begun, describe, first, not_modified, told};
use super::asked::{Asked, extension};
use super::coding::Coding;
use super::conditions::{Given, given};
use super::range::Part;
use super::route::Route;
use super::tag::Tag;
use crate::standing::Standing;

/// What stays as it is need not be asked for again, for about as long as a link lives.
const KEPT: HeaderValue = HeaderValue::from_static("private, max-age=300, immutable");
/// What may be another one a moment later, or was opened by a link, which is for one download.
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");

/// What of a result a request is about, in the form and coding that it accepts.
struct Representation {
    head: BodyHead,
    tag: Option<Tag>,
    /// How many bytes there are of it, if that is known and can be counted on.
    bytes: Option<u64>,
    coding: Option<Coding>,
    job: String,
}

/// Waits for the first words of `reply`. Until then a failure is a problem with its status.
pub(super) async fn answer(
    mut reply: Reply,
    mut standing: Option<Standing>,
    route: &Route,
    asked: &mut Asked,
    parts: &Parts,
) -> Result<Response, Problem> {
    let job = reply.job().id().to_string();
    let begins = first(&mut reply);
    let begins = match &mut standing {
        Some(standing) => standing.during(begins).await.map_err(|lapsed| Problem::refused(&lapsed.into()))?,
        None => begins.await,
    };
    let (head, encoding, first) = match begins {
        ReplyEvent::End(Outcome::Failed(error)) => return Err(error.into()),
        ReplyEvent::Chunk(Chunk::Body(head)) => (head, Encoding::Body, None),
        // A manifest is text.
        first => {
            let media_type = AnswerFormat::Json.media_type();
            (BodyHead { media_type, bounds: Budget::default(), lasting: None, file: None }, Encoding::Text, Some(first))
        }
    };
    if let Some(problem) = asked.refused.take().filter(|_| head.file.is_none()) {
        return Err(problem);
    }
    let representation = Representation::new(head, asked, parts, job);
    let part = match given(parts, representation.tag.as_ref(), representation.bytes)? {
        Given::Nothing => return Ok(representation.not_modified(asked)),
        Given::Whole => None,
        Given::Part(part) => Some(part),
    };
    let pieces = Pieces::new(reply, standing, encoding, first).begin().await?;
    Ok(representation.response(pieces, part, route, asked, parts))
}

impl Representation {
    fn new(head: BodyHead, asked: &Asked, parts: &Parts, job: String) -> Self {
        let bytes = head.lasting.as_ref().and_then(|lasting| lasting.bytes);
        // Ranges are of bytes that are the same each time, which those of a coding are not.
        let is_ranged = bytes.is_some() && parts.method == Method::GET && parts.headers.contains_key(header::RANGE);
        // A file is sent as it is: its bytes are what its length and its tag speak of.
        let is_file = head.file.is_some();
        let coding = Some(asked.format).filter(|format| Coding::suits(*format) && !is_ranged && !is_file);
        let coding = coding.and_then(|_| Coding::accepted(&parts.headers));
        let tag = head.lasting.as_ref().map(|lasting| match coding {
            Some(_) => Tag::weak(&lasting.tag),
            None => Tag::strong(&lasting.tag),
        });
        Self { tag, bytes: bytes.filter(|_| coding.is_none()), coding, head, job }
    }

    /// The response to one who has it.
    fn not_modified(&self, asked: &Asked) -> Response {
        let mut response = not_modified();
        self.say_how_to_keep(response.headers_mut(), asked);
        response
    }

    /// The response with `part` of what has begun, or all of it.
    fn response(&self, pieces: Begun, part: Option<Part>, route: &Route, asked: &Asked, parts: &Parts) -> Response {
        // An answer that is over already has its facts in its head, unless they are not those of the part.
        let facts = match &pieces {
            Begun::Whole(_, facts) if part.is_none() => told(facts),
            Begun::Whole(..) | Begun::Streaming(_) => HeaderMap::new(),
        };
        let mut response = match (self.coding, part.or(self.bytes.map(Part::whole))) {
            (Some(coding), _) => {
                let name = HeaderValue::from_static(coding.name());
                with_field(coding.encode(pieces.stream()), header::CONTENT_ENCODING, name)
            }
            (None, Some(counted)) => {
                let length = HeaderValue::from(counted.count);
                with_field(counted.cut(pieces.stream()), header::CONTENT_LENGTH, length)
            }
            (None, None) => begun(pieces, parts),
        };
        response.headers_mut().extend(facts);
        if let Some(part) = part {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            // Digits and letters.
            let range = HeaderValue::from_str(&part.content_range());
            response.headers_mut().extend(range.map(|range| (header::CONTENT_RANGE, range)));
        }
        let headers = response.headers_mut();
        describe(headers, &self.head, &self.job);
        self.say_how_to_keep(headers, asked);
        if self.bytes.is_some() {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        let disposition = match &self.head.file {
            Some(file) => Some(attachment(&file.name)),
            None => route.file_stem().map(|stem| attachment(&format!("{stem}.{}", extension(asked.format)))),
        };
        // ASCII without controls.
        let disposition = disposition.and_then(|it| HeaderValue::from_str(&it).ok());
        headers.extend(disposition.map(|it| (header::CONTENT_DISPOSITION, it)));
        if self.head.file.is_some() {
            // Whatever the file is, it is no page of ours.
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
        }
        response
    }

    fn say_how_to_keep(&self, headers: &mut HeaderMap, asked: &Asked) {
        headers.extend(self.tag.as_ref().and_then(Tag::field).map(|tag| (header::ETAG, tag)));
        let is_kept = self.head.lasting.is_some() && !asked.has_link;
        headers.insert(header::CACHE_CONTROL, if is_kept { KEPT } else { NOT_KEPT });
        headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding, authorization"));
    }
}

/// What names a download. A name with other letters than those of ASCII stands there a second time, as it is.
///
/// [RFC 6266](https://www.rfc-editor.org/rfc/rfc6266)
fn attachment(name: &str) -> String {
    let is_plain = |letter: char| letter == ' ' || (letter.is_ascii_graphic() && !"\"\\%".contains(letter));
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if plain == name {
        return format!("attachment; filename=\"{name}\"");
    }
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

/// The response with `body` and a field that says how it comes.
fn with_field(body: Body, name: HeaderName, value: HeaderValue) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_named_as_the_file_is() {
        let named = ["big.txt", "a b.csv", "Grüße \"1\".pdf", "100%.txt", "x\r\ny"].map(attachment);
        insta::assert_snapshot!(named.join("\n"), @r#"
        attachment; filename="big.txt"
        attachment; filename="a b.csv"
        attachment; filename="Gr__e _1_.pdf"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%221%22%2Epdf
        attachment; filename="100_.txt"; filename*=UTF-8''100%25%2Etxt
        attachment; filename="x__y"; filename*=UTF-8''x%0D%0Ay
        "#);
    }
}
