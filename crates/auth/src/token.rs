//! Tokens of an issuer: their verification, and the principals of their holders.

mod algorithm;
mod fetched_keys;
mod introspection;
mod issuer_check;
mod key_ring;
mod options;
mod permits;
mod principals;
mod verifier;

use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_core::{Principal, is_bearer_token};

use crate::clock::Clock;
use crate::roles::Roles;
use crate::secret::{Digest, sha256};
use crate::token::fetched_keys::{FetchedKeys, KeySource};
use crate::token::introspection::SharedIntrospection;
use crate::token::key_ring::KeyRing;
use crate::token::principals::{TokenPrincipals, seconds_of};
use crate::token::verifier::{TokenVerdict, TokenVerifier};

pub(crate) use algorithm::KeyKind;
pub use algorithm::TokenAlgorithm;
pub use issuer_check::IssuerCheck;
pub(crate) use key_ring::install_provider;
pub use options::{IntrospectionOptions, TokenKey, TokenOptions, TokenOptionsError};

/// Bytes of a token at most; longer ones are rejected without parsing.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct TokenAuthenticator {
    source: VerificationSource,
    principals: Arc<TokenPrincipals>,
}

enum VerificationSource {
    /// With configured signature keys.
    Fixed(KeyRing),
    /// With signature keys fetched from the issuer.
    Fetched(Arc<FetchedKeys>),
    /// By token introspection at the issuer.
    Introspected(Box<SharedIntrospection>),
}

impl TokenAuthenticator {
    pub(crate) fn new(options: TokenOptions, roles: Arc<Roles>, clock: Clock) -> Result<Self, TokenOptionsError> {
        let (key, algorithms, issuer) = (options.key.clone(), options.algorithms.clone(), options.issuer.clone());
        let implied_scopes = options.implied_scopes.clone();
        // Other invalid options are reported before an invalid key.
        let verifier = TokenVerifier::new(options)?;
        let source = match (&key, KeySource::find(&key, &issuer)?) {
            (TokenKey::Introspection(options), _) => {
                VerificationSource::Introspected(Box::new(SharedIntrospection::new(options)?))
            }
            (_, Some(source)) => {
                if let Some(algorithm) = algorithms.iter().find(|algorithm| algorithm.secret_bytes_min() > 0) {
                    return Err(TokenOptionsError::unsupported(*algorithm, "a public one that the issuer publishes"));
                }
                VerificationSource::Fetched(Arc::new(FetchedKeys::new(source, algorithms, clock.clone())))
            }
            (key, None) => VerificationSource::Fixed(KeyRing::from_configured(key, &algorithms)?),
        };
        Ok(Self { source, principals: Arc::new(TokenPrincipals::new(verifier, roles, implied_scopes, clock)) })
    }

    pub(crate) fn start(&self) {
        if let VerificationSource::Fetched(keys) = &self.source {
            keys.start();
        }
    }

    /// Takes over the keys that `before` fetched, if their source is the same.
    pub(crate) fn reuse_fetched_keys(&mut self, before: &Self) {
        if let (VerificationSource::Fetched(keys), VerificationSource::Fetched(fetched)) =
            (&mut self.source, &before.source)
            && keys.is_same_as(fetched)
        {
            *keys = fetched.clone();
        }
    }

    /// `None` if `token` is not valid at `now`. Waits only for the issuer, and only for a token that is not cached.
    pub(crate) async fn principal_for(
        &self,
        token: &str,
        peer: Option<IpAddr>,
        now: DateTime<Utc>,
    ) -> Option<Arc<Principal>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let digest = sha256(token);
        // Read before the keys: a result that is based on keys replaced meanwhile must not be cached as current.
        let epoch = self.epoch();
        if let Some(principal) = self.principals.cache.get(&digest, seconds_of(now), epoch) {
            if let VerificationSource::Fetched(keys) = &self.source {
                keys.current_keys(now);
            }
            return Some(principal);
        }
        match &self.source {
            VerificationSource::Fixed(keys) => {
                match self.principals.verifier.verify(token, Some(keys), seconds_of(now)) {
                    TokenVerdict::Valid(verified) => Some(self.principals.add(digest, verified, now, epoch)),
                    TokenVerdict::UnknownKey | TokenVerdict::Invalid => None,
                }
            }
            VerificationSource::Fetched(keys) => self.verify_signed(keys, token, digest, now).await,
            VerificationSource::Introspected(introspection) => {
                if !is_bearer_token(token) || introspection.was_recently_rejected(&digest, seconds_of(now)) {
                    return None;
                }
                introspection.principal_for(token, digest, peer, &self.principals).await
            }
        }
    }

    fn epoch(&self) -> u64 {
        match &self.source {
            VerificationSource::Fetched(keys) => keys.epoch(),
            VerificationSource::Fixed(_) | VerificationSource::Introspected(_) => 0,
        }
    }

    /// If the issuer's keys do not include the token's key, they are fetched again once.
    async fn verify_signed(
        &self,
        keys: &FetchedKeys,
        token: &str,
        digest: Digest,
        now: DateTime<Utc>,
    ) -> Option<Arc<Principal>> {
        let attempts = keys.attempts();
        let mut now = now;
        let mut has_requested = false;
        loop {
            let epoch = keys.epoch();
            let current = keys.current_keys(now);
            match self.principals.verifier.verify(token, current.as_deref(), seconds_of(now)) {
                TokenVerdict::Valid(verified) => {
                    return Some(self.principals.add(digest, verified, now, epoch));
                }
                TokenVerdict::UnknownKey if !has_requested && keys.wait_for_fetch_after(attempts, now).await => {
                    has_requested = true;
                    now = self.principals.clock.now();
                }
                TokenVerdict::UnknownKey | TokenVerdict::Invalid => return None,
            }
        }
    }
}
