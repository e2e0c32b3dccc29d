//! Resolves the caller of a request, and checks during long answers that it is still admitted.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use tidegate_core::{
    AuthenticationError, CallOrigin, Caller, Credentials, FORWARDING_HEADERS, HOPS_CLAIM, Principal, TransportKind,
    is_bearer_token,
};
use tidegate_runtime::event::Event;
use tidegate_transport::tls::TlsPeer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::FlightState;

/// Number and interval of attempts while a new configuration is being applied, which takes a moment.
const TRIES_MAX: usize = 100;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// Interval between two checks of a caller. Shorter answers are not checked.
const REVALIDATE_EVERY: Duration = Duration::from_secs(5);
/// Limits for identity headers: number of values, and bytes of each.
const IDENTITY_HEADERS_MAX: usize = 16;
const IDENTITY_HEADER_BYTES_MAX: usize = 1024;
/// Bytes of an `authorization` header.
const AUTHORIZATION_BYTES_MAX: usize = 16 * 1024;

/// Clients in Go send base64 without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The peer of a connection. tonic adds it to each request.
#[derive(Clone)]
pub(super) struct FlightPeer {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Arc<TlsPeer>>,
}

/// The credentials of a request, which are resolved again during long answers.
#[derive(Clone)]
pub(super) struct FlightCredentials {
    bearer: Result<Option<Arc<str>>, AuthenticationError>,
    identity_headers: Vec<(String, String)>,
    is_direct: bool,
    peer: Option<FlightPeer>,
}

impl FlightCredentials {
    pub(super) fn from_request<T>(state: &FlightState, request: &tonic::Request<T>) -> Self {
        let metadata = request.metadata();
        let asserting = state.authenticator.identity_headers();
        Self {
            bearer: parse_authorization(metadata),
            identity_headers: asserting.map_or_else(Vec::new, |names| collect_identity_headers(metadata, &names)),
            is_direct: FORWARDING_HEADERS.iter().all(|name| !metadata.contains_key(*name)),
            peer: request.extensions().get::<FlightPeer>().cloned(),
        }
    }

    /// The key or token.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.bearer.as_ref().ok()?.as_deref()
    }

    fn address(&self) -> Option<IpAddr> {
        self.peer.as_ref().map(|peer| peer.address.ip())
    }

    /// The caller according to the current authenticator and registry, which belong to the same configuration.
    ///
    /// # Errors
    /// `Unauthenticated`, with the same text whatever exists.
    pub(super) async fn resolve_caller(&self, state: &FlightState) -> Result<Caller, Status> {
        let origin = CallOrigin { transport: TransportKind::FlightSql, peer: self.address() };
        let refused = |reason: AuthenticationError| {
            let reason = reason.to_string();
            let events = state.registry.events();
            events.emit(Event::MessageRefused { transport: origin.transport, peer: origin.peer, reason: &reason });
            Status::unauthenticated(reason)
        };
        let bearer = match &self.bearer {
            // Without authentication, unusable credentials are ignored.
            Err(_) if !state.authenticator.enforces_authentication() => None,
            Err(reason) => return Err(refused(*reason)),
            Ok(bearer) => bearer.as_deref(),
        };
        for _ in 0..TRIES_MAX {
            let certificate = self.peer.as_ref().and_then(|peer| peer.tls.as_ref()).map(|tls| tls.certificate());
            let certificate = certificate.transpose().map_err(|_| refused(AuthenticationError::Invalid))?;
            let credentials = Credentials {
                bearer,
                peer: origin.peer,
                certificate: certificate.flatten(),
                identity_headers: &self.identity_headers,
                is_direct: self.is_direct,
            };
            let principal = state.authenticator.authenticate(credentials).await.map_err(refused)?;
            match state.registry.snapshot().create_caller(principal, origin) {
                Some(caller) => return Ok(caller),
                None => tokio::time::sleep(TRY_AGAIN_AFTER).await,
            }
        }
        Err(Status::unavailable("the configuration of the server is changing; try again"))
    }
}

/// The key of `Bearer`, or the password of `Basic`: clients with a user name and a password send the key as the password.
fn parse_authorization(metadata: &MetadataMap) -> Result<Option<Arc<str>>, AuthenticationError> {
    let mut values = metadata.get_all("authorization").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        // A proxy in front of the server may have checked the other value.
        return Err(AuthenticationError::Malformed);
    }
    let value = value.to_str().map_err(|_| AuthenticationError::Malformed)?;
    let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
    let rest = rest.trim_matches(' ');
    let token = if value.len() > AUTHORIZATION_BYTES_MAX {
        return Err(AuthenticationError::Malformed);
    } else if scheme.eq_ignore_ascii_case("bearer") {
        rest.to_owned()
    } else if scheme.eq_ignore_ascii_case("basic") {
        parse_password(rest).ok_or(AuthenticationError::Malformed)?
    } else {
        return Err(AuthenticationError::Missing);
    };
    if is_bearer_token(&token) { Ok(Some(token.into())) } else { Err(AuthenticationError::Malformed) }
}

fn parse_password(basic: &str) -> Option<String> {
    let text = String::from_utf8(BASE64.decode(basic).ok()?).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}

/// A value that is unreadable or over the limits counts as a duplicate, which is rejected wherever the header matters.
fn collect_identity_headers(metadata: &MetadataMap, names: &[String]) -> Vec<(String, String)> {
    let mut asserted = Vec::new();
    for name in names {
        for value in metadata.get_all(name.as_str()) {
            let value = value.to_str().ok().filter(|value| value.len() <= IDENTITY_HEADER_BYTES_MAX);
            match value.filter(|_| asserted.len() < IDENTITY_HEADERS_MAX) {
                Some(value) => asserted.push((name.clone(), value.to_owned())),
                None => return vec![(name.clone(), String::new()); 2],
            }
        }
    }
    asserted
}

/// Checks at intervals, and when credentials or the configuration change, that the caller of an answer is admitted.
pub(super) struct CallerCheck {
    state: Arc<FlightState>,
    credentials: FlightCredentials,
    owner: Arc<Principal>,
    versions: watch::Receiver<u64>,
    reloads: watch::Receiver<u64>,
    next_check: Instant,
}

impl CallerCheck {
    pub(super) fn new(state: &Arc<FlightState>, credentials: FlightCredentials, caller: &Caller) -> Self {
        Self {
            credentials,
            owner: caller.principal.clone(),
            versions: state.registry.versions(),
            reloads: state.authenticator.credential_reloads(),
            state: state.clone(),
            next_check: Instant::now() + REVALIDATE_EVERY,
        }
    }

    /// The output of `work`, which is dropped when the caller is no longer admitted.
    pub(super) async fn run_while_admitted<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Status> {
        let mut work = std::pin::pin!(work);
        loop {
            if Instant::now() >= self.next_check {
                self.check().await?;
            }
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                () = sleep_until(self.next_check) => {}
                Ok(()) = self.versions.changed() => self.next_check = Instant::now(),
                Ok(()) = self.reloads.changed() => self.next_check = Instant::now(),
            }
        }
    }

    /// Whether the caller came with a token that another node signed for this request. Such a token lives for a minute,
    /// and its answer may take longer, up to the time limit of the call.
    fn has_token_of_a_node_expired(&self) -> bool {
        self.owner.claims.contains_key(HOPS_CLAIM) && !self.owner.is_valid_at(SystemTime::now())
    }

    async fn check(&mut self) -> Result<(), Status> {
        self.next_check = Instant::now() + REVALIDATE_EVERY;
        match self.credentials.resolve_caller(&self.state).await {
            Ok(caller) if caller.principal.is_same_identity(&self.owner) => Ok(()),
            // A change of the configuration is over after a moment.
            Err(status) if status.code() == tonic::Code::Unavailable => Ok(()),
            Err(_) if self.has_token_of_a_node_expired() => Ok(()),
            Ok(_) | Err(_) => Err(Status::unauthenticated(AuthenticationError::Invalid.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str]) -> Result<Option<String>, AuthenticationError> {
        let mut metadata = MetadataMap::new();
        for value in values {
            metadata.append("authorization", value.parse().unwrap());
        }
        parse_authorization(&metadata).map(|token| token.map(|token| token.to_string()))
    }

    #[test]
    fn parses_bearer_and_basic() {
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&["Bearer abc"]), Ok(Some("abc".to_owned())));
        assert_eq!(parse(&["bearer   a-b.c=="]), Ok(Some("a-b.c==".to_owned())));
        assert_eq!(parse(&[&format!("Basic {}", BASE64.encode("ann:key"))]), Ok(Some("key".to_owned())));
        assert_eq!(parse(&["Basic OmFi"]), Ok(Some("ab".to_owned())));
        assert_eq!(parse(&["Basic OmE"]), Ok(Some("a".to_owned())));
        assert_eq!(parse(&["Digest x"]), Err(AuthenticationError::Missing));
        for malformed in ["Bearer", "Bearer a b", "Basic ???", "Basic YQ=="] {
            assert_eq!(parse(&[malformed]), Err(AuthenticationError::Malformed), "{malformed}");
        }
        assert_eq!(parse(&["Bearer a", "Bearer b"]), Err(AuthenticationError::Malformed));
    }
}
