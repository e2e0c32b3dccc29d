//! The credential for a result: a bearer token or a link.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::bearer_token::BearerToken;

/// The credential for a result.
pub(crate) enum ResultCredential {
    Anonymous,
    Bearer(BearerToken),
    /// The token of a link.
    Link(String),
}

impl ResultCredential {
    /// The link if there is one, else the bearer token. With a link, the token is not sent: it may be meant for another
    /// server.
    pub(crate) fn new(link: Option<&str>, bearer: Option<&BearerToken>) -> Self {
        match (link, bearer) {
            (Some(token), _) => Self::Link(token.to_owned()),
            (None, Some(bearer)) => Self::Bearer(bearer.clone()),
            (None, None) => Self::Anonymous,
        }
    }

    /// `url` with the token of the link.
    pub(crate) fn authorize_url(&self, mut url: Url) -> Url {
        if let Self::Link(token) = self {
            url.query_pairs_mut().append_pair("link", token);
        }
        url
    }

    /// `headers` with the bearer token.
    pub(crate) fn authorize_headers(&self, mut headers: HeaderMap) -> HeaderMap {
        if let Self::Bearer(bearer) = self {
            headers.insert(AUTHORIZATION, bearer.header().clone());
        }
        headers
    }

    /// The secret, which must be removed from messages of the server.
    pub(crate) fn secret(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Bearer(bearer) => Some(bearer.token()),
            Self::Link(token) => Some(token),
        }
    }
}
