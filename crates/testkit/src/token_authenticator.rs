//! A clock that tests advance, an authenticator with it, and one that accepts one key until a test revokes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tidegate_auth::{
    AuthenticatorOptions, Clock, CredentialAuthenticator, Role, TokenAlgorithm, TokenKey, TokenOptions,
};
use tidegate_core::{AllowedNames, AuthMethod, AuthenticationError, Authenticator, Credentials, Grants, Principal};

/// The initial time of tests, in seconds since 1970.
pub const NOW: i64 = 2_000_000_000;
pub const ISSUER: &str = "https://issuer.example";
pub const AUDIENCE: &str = "https://tidegate.example/mcp";

/// A clock that only tests advance.
#[derive(Clone)]
pub struct MovedClock(Arc<AtomicI64>);

impl Default for MovedClock {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NOW)))
    }
}

impl MovedClock {
    pub fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The time, in seconds since 1970.
    pub fn seconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn clock(&self) -> Clock {
        let seconds = self.0.clone();
        Clock::new(move || time(seconds.load(Ordering::Relaxed)))
    }
}

pub fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

/// Authenticates `bearer`, which must not wait.
pub fn authenticate_bearer_now(
    authenticator: &dyn Authenticator,
    bearer: Option<&str>,
) -> Result<Arc<Principal>, AuthenticationError> {
    authenticate_now(authenticator, Credentials { bearer, ..Credentials::default() })
}

/// Authenticates `credentials`, which must not wait.
pub fn authenticate_now(
    authenticator: &dyn Authenticator,
    credentials: Credentials<'_>,
) -> Result<Arc<Principal>, AuthenticationError> {
    let mut answer = authenticator.authenticate(credentials);
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the authenticator waits"),
    }
}

/// A role that grants the entries `NAME_*`, for tokens with all of `claims`.
pub fn role(name: &str, claims: Value) -> Role {
    let claims: Map<String, Value> = claims.as_object().unwrap().clone();
    let grants = Grants { entries: AllowedNames::matching([format!("{name}_*")]), ..Grants::default() };
    Role { name: name.to_owned(), grants, claims }
}

pub fn token_options(key: TokenKey, algorithms: &[TokenAlgorithm]) -> TokenOptions {
    TokenOptions::new(key, ISSUER, vec![AUDIENCE.to_owned()], algorithms.to_vec())
}

/// An authenticator at [`NOW`] that accepts the tokens of `tokens`.
pub fn token_authenticator_with(tokens: TokenOptions) -> CredentialAuthenticator {
    let clock = MovedClock::default().clock();
    CredentialAuthenticator::new(AuthenticatorOptions {
        tokens: Some(tokens),
        clock,
        ..AuthenticatorOptions::default()
    })
    .unwrap()
}

/// Accepts the bearer token `key`, until it is revoked.
#[derive(Default)]
pub struct RevocableKey {
    /// Whether the key is revoked.
    pub is_revoked: AtomicBool,
    /// The generation of its principals.
    pub generation: AtomicU64,
    /// The version of the authenticator whose principals are still valid.
    pub version: AtomicU64,
}

#[async_trait]
impl Authenticator for RevocableKey {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthenticationError> {
        let bearer = credentials.bearer.ok_or(AuthenticationError::Missing)?;
        if bearer != "key" || self.is_revoked.load(Ordering::SeqCst) {
            return Err(AuthenticationError::Invalid);
        }
        let principal = Principal::new("ann", AuthMethod::Key, Arc::new(Grants::everything()));
        Ok(Arc::new(Principal { generation: self.generation.load(Ordering::SeqCst), ..principal }))
    }

    fn local_principal(&self) -> Arc<Principal> {
        Principal::process_user()
    }

    fn is_still_valid(&self, principal: &Principal) -> bool {
        self.version.load(Ordering::SeqCst) == principal.authenticator_version
    }

    fn enforces_authentication(&self) -> bool {
        true
    }
}
