//! What opens a result: a token of the caller's, or a link that is renewed before it grows old.

use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use tokio::time::{Duration, Instant};

use crate::bearer::Bearer;
use crate::manifest::Manifest;

/// What opens a result.
pub(crate) enum Access {
    Nothing,
    Bearer(Bearer),
    Link(Mutex<Link>),
}

/// A link's token, and when the server gave it.
pub(crate) struct Link {
    token: String,
    since: Instant,
}

impl Access {
    /// The link if there is one, since a token for one server is no business of the server of a link, else the bearer.
    pub(crate) fn new(link: Option<&str>, bearer: Option<&Bearer>) -> Self {
        match (link, bearer) {
            (Some(token), _) => Self::Link(Mutex::new(Link { token: token.to_owned(), since: Instant::now() })),
            (None, Some(bearer)) => Self::Bearer(bearer.clone()),
            (None, None) => Self::Nothing,
        }
    }

    /// `url` with what opens it.
    pub(crate) fn url(&self, mut url: Url) -> Url {
        if let Self::Link(link) = self {
            url.query_pairs_mut().append_pair("link", &link.lock().token);
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

    /// Whether this is a link that will not be good much longer.
    pub(crate) fn is_stale(&self, fresh_for: Duration) -> bool {
        matches!(self, Self::Link(link) if link.lock().since.elapsed() >= fresh_for)
    }

    /// Takes the fresh link of `manifest` in place of the old one.
    pub(crate) fn renew(&self, manifest: &Manifest) {
        if let (Self::Link(link), Some(token)) = (self, manifest.link()) {
            *link.lock() = Link { token, since: Instant::now() };
        }
    }

    /// What must not be shown, should the server repeat it.
    pub(crate) fn secret(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Bearer(bearer) => Some(bearer.token().to_owned()),
            Self::Link(link) => Some(link.lock().token.clone()),
        }
    }
}
