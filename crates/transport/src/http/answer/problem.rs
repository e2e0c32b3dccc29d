//! Problem details for refusals and failures, and the table of their status codes.
//!
//! [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, ErrorKind};

use crate::http::caller::CallerError;
use crate::http::protected_resource::Challenge;
use crate::http::response::retry_after_value;
use crate::http::state::HttpState;
use crate::revalidation::Revoked;

pub(in crate::http) const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";
/// The prefix of `type`: problem types are tags, not locations.
pub(in crate::http) const TYPE_PREFIX: &str = "tag:tidegate.dev,2026:problem/";

/// The type of a problem: an error kind of calls, or an error of a request that never became a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum ProblemType {
    Call(ErrorKind),
    /// The body is not a JSON object, a parameter of the address is unknown, duplicate or invalid, the `Authorization`
    /// header is not `Bearer` and a key or token, or `Transfer-Encoding` is not `chunked`. At `/data`, also a body whose rows
    /// cannot be read or do not fit.
    BadRequest,
    /// The server has no such path.
    NoSuchPath,
    /// The path exists for other methods. `Allow` lists them.
    MethodNotAllowed,
    /// `Accept` names no format in which the answer is available. If the answer was not a table, the tool has run.
    NotAcceptable,
    /// The body arrived too slowly.
    TooSlow,
    /// The body is larger than `server.max_body`.
    BodyTooLarge,
    /// `Content-Type` is missing or not supported by the path.
    UnsupportedMediaType,
    /// `If-Match` contains none of the tags of the stored result.
    PreconditionFailed,
    /// The range is beyond the end of the stored result. `Content-Range` contains its length.
    RangeNotSatisfiable,
}

/// Name, status code and title of each type of problem details, in the order of their status codes.
pub fn problem_types() -> Vec<(&'static str, u16, &'static str)> {
    let incapable = ProblemType::Call(ErrorKind::MissingClientCapability);
    let all = ProblemType::ALL.into_iter().chain(ProblemType::DOWNLOAD_ONLY).chain([incapable]);
    let mut rows: Vec<_> = all.map(ProblemType::row).collect();
    rows.sort_by_key(|(_, status, _)| *status);
    rows
}

impl ProblemType {
    /// All types of REST, in the order of their status codes.
    pub(in crate::http) const ALL: [Self; 19] = [
        Self::BadRequest,
        Self::Call(ErrorKind::Unauthenticated),
        Self::Call(ErrorKind::Forbidden),
        Self::Call(ErrorKind::NotFound),
        Self::NoSuchPath,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::TooSlow,
        Self::Call(ErrorKind::Cancelled),
        Self::Call(ErrorKind::Conflict),
        Self::Call(ErrorKind::TooLarge),
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::Call(ErrorKind::InvalidArguments),
        Self::Call(ErrorKind::Failed),
        Self::Call(ErrorKind::RateLimited),
        Self::Call(ErrorKind::Internal),
        Self::Call(ErrorKind::Unavailable),
        Self::Call(ErrorKind::TimedOut),
    ];

    /// Types that only downloads of stored results have.
    pub(in crate::http) const DOWNLOAD_ONLY: [Self; 2] = [Self::PreconditionFailed, Self::RangeNotSatisfiable];

    pub(in crate::http) const STORED_RESULTS: [Self; 15] = [
        Self::BadRequest,
        Self::Call(ErrorKind::Unauthenticated),
        Self::Call(ErrorKind::Forbidden),
        Self::Call(ErrorKind::NotFound),
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::Call(ErrorKind::Cancelled),
        Self::PreconditionFailed,
        Self::Call(ErrorKind::TooLarge),
        Self::RangeNotSatisfiable,
        Self::Call(ErrorKind::InvalidArguments),
        Self::Call(ErrorKind::RateLimited),
        Self::Call(ErrorKind::Internal),
        Self::Call(ErrorKind::Unavailable),
        Self::Call(ErrorKind::TimedOut),
    ];

    /// The table: name, status code and title of each type.
    fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::BadRequest => ("bad_request", 400, "The request cannot be parsed"),
            Self::NoSuchPath => ("no_such_path", 404, "There is no such path"),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "The path does not support this method"),
            Self::NotAcceptable => ("not_acceptable", 406, "No format that the client accepts is available"),
            Self::TooSlow => ("too_slow", 408, "The body arrived too slowly"),
            Self::PreconditionFailed => ("precondition_failed", 412, "The result has changed"),
            Self::BodyTooLarge => ("body_too_large", 413, "The body is too large"),
            Self::UnsupportedMediaType => {
                ("unsupported_media_type", 415, "The media type of the body is not supported")
            }
            Self::RangeNotSatisfiable => ("range_not_satisfiable", 416, "The range is outside the result"),
            Self::Call(kind) => {
                let (status, title) = match kind {
                    ErrorKind::InvalidArguments => (422, "Invalid arguments"),
                    ErrorKind::NotFound => (404, "Not found"),
                    ErrorKind::Forbidden => (403, "The caller is not allowed to do this"),
                    ErrorKind::Unauthenticated => (401, "Authentication is required"),
                    ErrorKind::RateLimited => (429, "Too many calls at once"),
                    ErrorKind::TimedOut => (504, "The call exceeded its time limit"),
                    ErrorKind::Cancelled => (409, "The call was cancelled"),
                    ErrorKind::Conflict => (409, "Another call changes the same"),
                    ErrorKind::TooLarge => (413, "The request or its answer is too large"),
                    ErrorKind::Unavailable => (503, "A part of the server is unavailable"),
                    ErrorKind::InputRequired | ErrorKind::MissingClientCapability => {
                        (501, "The call needs user input, which REST does not support")
                    }
                    ErrorKind::Failed => (422, "The handler reported an error"),
                    ErrorKind::Internal => (500, "Internal error"),
                };
                (kind.name(), status, title)
            }
        }
    }

    pub(in crate::http) fn name(self) -> &'static str {
        self.row().0
    }

    pub(in crate::http) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(in crate::http) fn title(self) -> &'static str {
        self.row().2
    }
}

/// A refusal or a failure, in the form of RFC 9457.
#[derive(Debug)]
pub(in crate::http) struct ProblemDetails(Box<ProblemParts>);

#[derive(Debug)]
struct ProblemParts {
    problem_type: ProblemType,
    detail: String,
    members: Map<String, Value>,
    header: Option<(HeaderName, HeaderValue)>,
    challenge: Option<Challenge>,
    is_before_call: bool,
}

impl ProblemDetails {
    /// The problem of a request that never became a call.
    pub(in crate::http) fn new(problem_type: ProblemType, detail: impl Into<String>) -> Self {
        let (detail, members) = (detail.into(), Map::new());
        let (header, challenge, is_before_call) = (None, None, true);
        Self(Box::new(ProblemParts { problem_type, detail, members, header, challenge, is_before_call }))
    }

    pub(in crate::http) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemType::BadRequest, detail)
    }

    pub(in crate::http) fn with_challenge(mut self, challenge: Challenge) -> Self {
        self.0.challenge = Some(challenge);
        self
    }

    pub(in crate::http) fn with_allow(self, methods: HeaderValue) -> Self {
        self.with_header(header::ALLOW, methods)
    }

    pub(in crate::http) fn with_choices<'a>(mut self, choices: impl IntoIterator<Item = &'a str>) -> Self {
        let choices: Vec<&str> = choices.into_iter().collect();
        self.0.members.insert("choices".to_owned(), json!(choices));
        self
    }

    pub(in crate::http) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    pub(in crate::http) fn with_hint(mut self, hint: &str) -> Self {
        self.0.members.insert("hint".to_owned(), hint.into());
        self
    }

    /// The same problem as one of a request that cannot be parsed.
    pub(in crate::http) fn into_bad_request(mut self) -> Self {
        self.0.problem_type = ProblemType::BadRequest;
        self
    }

    pub(in crate::http) fn is_before_call(&self) -> bool {
        self.0.is_before_call
    }

    pub(in crate::http) fn status(&self) -> StatusCode {
        self.0.problem_type.status()
    }

    pub(in crate::http) fn detail(&self) -> &str {
        &self.0.detail
    }

    pub(in crate::http) fn to_json(&self) -> Value {
        let ProblemParts { problem_type, detail, members, .. } = &*self.0;
        let (name, status, title) = problem_type.row();
        let mut body = json!({
            "type": format!("{TYPE_PREFIX}{name}"),
            "title": title,
            "status": status,
            "detail": detail,
        });
        if let Value::Object(body) = &mut body {
            body.extend(members.clone());
        }
        body
    }

    pub(in crate::http) fn into_response(self, http_state: &HttpState) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.0.problem_type.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.0.header);
        let challenge =
            self.0.challenge.map(|challenge| http_state.options.protected_resource.challenge_header(&challenge));
        headers.extend(challenge.map(|challenge| (header::WWW_AUTHENTICATE, challenge)));
        response
    }
}

impl From<CallerError> for ProblemDetails {
    fn from(refused: CallerError) -> Self {
        let problem = Self::new(refused.problem_type(), refused.to_rpc_error().message);
        match refused {
            CallerError::Unauthenticated(reason) => problem.with_challenge(Challenge::from(reason)),
            CallerError::NoSuchToolset(_) => problem,
            CallerError::ConfigurationChanging => {
                problem.with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
        }
    }
}

impl From<Revoked> for ProblemDetails {
    fn from(revoked: Revoked) -> Self {
        CallerError::from(revoked).into()
    }
}

impl From<Error> for ProblemDetails {
    fn from(error: Error) -> Self {
        // The list after the colon is in a member of its own.
        let detail = error.message().trim_end_matches(':').to_owned();
        let mut problem = Self::new(ProblemType::Call(error.kind()), detail);
        problem.0.is_before_call = false;
        let scopes = error.scopes().to_vec();
        if error.kind() == ErrorKind::Unauthenticated {
            problem = problem.with_challenge(Challenge::Missing { scopes });
        } else if !scopes.is_empty() {
            problem = problem.with_challenge(Challenge::Scopes(scopes));
        }
        if !error.scopes().is_empty() {
            problem.0.members.insert("scopes".to_owned(), json!(error.scopes()));
        }
        let is_temporary = error.kind() == ErrorKind::Unavailable && error.retry_after().is_some();
        if error.kind() == ErrorKind::RateLimited || is_temporary {
            problem = problem.with_header(header::RETRY_AFTER, retry_after_value(error.retry_after()));
        }
        let members = &mut problem.0.members;
        if !error.violations().is_empty() {
            let violations = error.violations().iter();
            let violations = violations.map(|violation| json!({"path": violation.path, "message": violation.message}));
            members.insert("violations".to_owned(), violations.collect());
        }
        if !error.choices().is_empty() {
            members.insert("choices".to_owned(), json!(error.choices()));
        }
        if let Some(hint) = error.hint() {
            members.insert("hint".to_owned(), hint.into());
        }
        if let Some(id) = error.id() {
            members.insert("id".to_owned(), id.to_string().into());
        }
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that `documentation` has a row for each of `sorts`, in their order.
    fn check(documentation: &str, sorts: &[ProblemType]) {
        let mut from = 0;
        for sort in sorts {
            let (name, status, _) = sort.row();
            let row = format!("| `{name}` | {status} | ");
            let position = documentation[from..].find(&row);
            assert!(position.is_some(), "the documentation has no row {row} here");
            from += position.unwrap_or_default();
        }
    }

    #[test]
    fn documentation_lists_every_problem_type_in_order() {
        check(include_str!("../../../../../docs/reference/errors.md"), &ProblemType::ALL);
        let of_downloads = [
            ProblemType::BadRequest,
            ProblemType::Call(ErrorKind::Unauthenticated),
            ProblemType::Call(ErrorKind::NotFound),
            ProblemType::NotAcceptable,
            ProblemType::PreconditionFailed,
            ProblemType::RangeNotSatisfiable,
            ProblemType::Call(ErrorKind::Internal),
            ProblemType::Call(ErrorKind::Unavailable),
        ];
        check(include_str!("../../../../../docs/reference/transports/results.md"), &of_downloads);
    }
}
