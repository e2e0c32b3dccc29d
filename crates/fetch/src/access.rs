//! What opens a result: a token of the caller's, or a link.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::bearer::Bearer;

/// What opens a result.
pub(crate) enum Access {
    Nothing,
    Bearer(Bearer),
    /// The token of a link.
    Link(String),
}

impl Access {
    /// The link if there is one, since a token for one server is no business of the server of a link, else the bearer.
    pub(crate) fn new(link: Option<&str>, bearer: Option<&Bearer>) -> Self {
        match (link, bearer) {
            (Some(token), _) => Self::Link(token.to_owned()),
            (None, Some(bearer)) => Self::Bearer(bearer.clone()),
            (None, None) => Self::Nothing,
        }
    }

    /// `url` with what opens it.
    pub(crate) fn url(&self, mut url: Url) -> Url {
        if let Self::Link(token) = self {
            url.query_pairs_mut().append_pair("link", token);
        }
        url
    }

    /// `headers` with what proves who calls.
    pub(crate) fn headers(&self, mut headers: HeaderMap) -> HeaderMap {
        if let Self::Bearer(bearer) = self {
            headers.insert(AUTHORIZATION, bearer.header().clone());
        }
        headers
    }

    /// What must not be shown, should the server repeat it.
    pub(crate) fn secret(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Bearer(bearer) => Some(bearer.token().to_owned()),
            Self::Link(token) => Some(token.clone()),
        }
    }
}
