//! What opens a result: a token of the caller's, or a link.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::bearer::BearerToken;

/// What opens a result.
pub(crate) enum ResultCredential {
    Anonymous,
    Bearer(BearerToken),
    /// The token of a link.
    Link(String),
}

impl ResultCredential {
    /// The link if there is one, since a token for one server is no business of the server of a link, else the bearer.
    pub(crate) fn new(link: Option<&str>, bearer: Option<&BearerToken>) -> Self {
        match (link, bearer) {
            (Some(token), _) => Self::Link(token.to_owned()),
            (None, Some(bearer)) => Self::Bearer(bearer.clone()),
            (None, None) => Self::Anonymous,
        }
    }

    /// `url` with what opens it.
    pub(crate) fn authorize_url(&self, mut url: Url) -> Url {
        if let Self::Link(token) = self {
            url.query_pairs_mut().append_pair("link", token);
        }
        url
    }

    /// `authorize_headers` with what proves who calls.
    pub(crate) fn authorize_headers(&self, mut headers: HeaderMap) -> HeaderMap {
        if let Self::Bearer(bearer) = self {
            headers.insert(AUTHORIZATION, bearer.header().clone());
        }
        headers
    }

    /// What must not be shown, should the server repeat it.
    pub(crate) fn secret(&self) -> Option<String> {
        match self {
            Self::Anonymous => None,
            Self::Bearer(bearer) => Some(bearer.token().to_owned()),
            Self::Link(token) => Some(token.clone()),
        }
    }
}
