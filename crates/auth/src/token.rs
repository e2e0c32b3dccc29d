//! Tokens of an issuer: how they are checked, and who shows them.

mod algorithm;
mod error;
mod fetched_keys;
mod introspection;
mod key_ring;
mod memory;
mod options;
mod places;
mod trial;
mod verifier;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use reqwest::Url;
use tidegate_core::{ImpliedScopes, Principal, Proof, is_bearer};

use crate::clock::Clock;
use crate::digest::{Digest, sha256};
use crate::provider::parse;
use crate::roles::Roles;
use fetched_keys::{FetchedKeys, KeySource};
use introspection::{Introspector, Told};
use key_ring::{FixedKey, KeyRing};
use memory::Memory;
use verifier::{Verdict, Verified, Verifier};

pub use algorithm::{TokenAlgorithm, UnknownAlgorithm};
pub use error::TokenOptionsError;
pub use options::{Introspection, TokenKey, TokenOptions};
pub use trial::{IssuerTrial, IssuerTrouble};

/// Longer tokens are refused before anything is made of them.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Seconds since 1970, as tokens tell time: a whole number or a fraction.
type Seconds = f64;

/// Checks tokens and remembers the good ones.
pub(crate) struct Tokens {
    verifier: Verifier,
    source: Source,
    memory: Memory,
    implied_scopes: Arc<ImpliedScopes>,
    clock: Clock,
}

/// What is known of good tokens.
enum Source {
    /// The keys that sign them.
    Fixed(KeyRing),
    /// The keys that sign them, as the issuer shows them.
    Fetched(Arc<FetchedKeys>),
    /// Nothing: the issuer is asked.
    Asked(Box<Introspector>),
}

impl Tokens {
    /// # Errors
    /// When tokens cannot be checked in that way.
    pub(crate) fn new(options: TokenOptions, clock: Clock) -> Result<Self, TokenOptionsError> {
        let (key, algorithms, issuer) = (options.key.clone(), options.algorithms.clone(), options.issuer.clone());
        let implied_scopes = options.implied_scopes.clone();
        // What is wrong with the rest is told first.
        let verifier = Verifier::new(options)?;
        let fixed = |key: FixedKey<'_>| KeyRing::read(&key, &algorithms).map(Source::Fixed);
        let fetched = |source| {
            if let Some(algorithm) = algorithms.iter().find(|algorithm| algorithm.secret_bytes_min() > 0) {
                let keys = "a public one, as the issuer shows it".to_owned();
                return Err(TokenOptionsError::AlgorithmDoesNotFit { algorithm: *algorithm, keys });
            }
            Ok(Source::Fetched(Arc::new(FetchedKeys::new(source, algorithms.clone(), clock.clone()))))
        };
        let source = match &key {
            TokenKey::Jwks(jwks) => fixed(FixedKey::Jwks(jwks))?,
            TokenKey::PublicKeyPem(pem) => fixed(FixedKey::PublicKeyPem(pem))?,
            TokenKey::Secret(secret) => fixed(FixedKey::Secret(secret))?,
            TokenKey::Introspection(options) => Source::Asked(Box::new(Introspector::new(options)?)),
            TokenKey::JwksUrl(url) => fetched(key_set(url)?)?,
            TokenKey::Discovery => fetched(metadata(&issuer)?)?,
        };
        Ok(Self { verifier, source, memory: Memory::default(), implied_scopes, clock })
    }

    /// Begins what goes on in the background.
    pub(crate) fn start(&self) {
        if let Source::Fetched(keys) = &self.source {
            keys.start();
        }
    }

    /// Goes on with the keys that `before` fetched, if they are of the same place.
    pub(crate) fn follow(&mut self, before: &Self) {
        if let (Source::Fetched(keys), Source::Fetched(had)) = (&mut self.source, &before.source)
            && keys.is_same_as(had)
        {
            *keys = had.clone();
        }
    }

    /// Who shows `token` from `peer`; none if it is not valid at `now`. Waits for nothing but the issuer, and for that only
    /// with a token that was not seen before.
    pub(crate) async fn holder(
        &self,
        token: &str,
        peer: Option<IpAddr>,
        now: DateTime<Utc>,
        roles: &Roles,
    ) -> Option<Arc<Principal>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let digest = sha256(token);
        // Asked before the keys are: what is found out with keys that change meanwhile does not count.
        let epoch = self.epoch();
        if let Some(principal) = self.memory.recall(&digest, seconds_of(now), epoch) {
            if let Source::Fetched(keys) = &self.source {
                keys.now(now);
            }
            return Some(principal);
        }
        match &self.source {
            Source::Fixed(keys) => match self.verifier.verify(token, Some(keys), seconds_of(now)) {
                Verdict::Good(verified) => Some(self.known(digest, verified, now, epoch, roles)),
                Verdict::UnknownKey | Verdict::Bad => None,
            },
            Source::Fetched(keys) => self.signed(keys, token, digest, now, roles).await,
            Source::Asked(introspector) => self.asked(introspector, (token, peer), digest, now, roles).await,
        }
    }

    fn epoch(&self) -> u64 {
        match &self.source {
            Source::Fetched(keys) => keys.epoch(),
            Source::Fixed(_) | Source::Asked(_) => 0,
        }
    }

    /// Who shows a token that a key of the issuer signed. Where it has none of that name, it is asked for newer ones.
    async fn signed(
        &self,
        keys: &FetchedKeys,
        token: &str,
        digest: Digest,
        now: DateTime<Utc>,
        roles: &Roles,
    ) -> Option<Arc<Principal>> {
        let attempts = keys.attempts();
        let mut now = now;
        let mut has_asked = false;
        loop {
            let epoch = keys.epoch();
            match self.verifier.verify(token, keys.now(now).as_deref(), seconds_of(now)) {
                Verdict::Good(verified) => return Some(self.known(digest, verified, now, epoch, roles)),
                Verdict::UnknownKey if !has_asked && keys.after(attempts, now).await => {
                    has_asked = true;
                    now = self.clock.now();
                }
                Verdict::UnknownKey | Verdict::Bad => return None,
            }
        }
    }

    /// Who shows a token that the issuer is asked about.
    async fn asked(
        &self,
        introspector: &Introspector,
        (token, peer): (&str, Option<IpAddr>),
        digest: Digest,
        now: DateTime<Utc>,
        roles: &Roles,
    ) -> Option<Arc<Principal>> {
        if !is_bearer(token) || introspector.was_refused(&digest, seconds_of(now)) {
            return None;
        }
        let find = async {
            let told = introspector.ask(token, peer).await;
            let now = self.clock.now();
            let verified = match told {
                Told::Nothing => return None,
                Told::Inactive => None,
                Told::Active(claims) => self.verifier.accept_told(claims, seconds_of(now)),
            };
            if verified.is_none() {
                introspector.refuse(digest, seconds_of(now));
            }
            Some(self.known(digest, verified?, now, 0, roles))
        };
        introspector.once(digest, find).await
    }

    /// The principal of a good token, which is remembered.
    fn known(
        &self,
        digest: Digest,
        verified: Verified,
        now: DateTime<Utc>,
        epoch: u64,
        roles: &Roles,
    ) -> Arc<Principal> {
        let names = roles.given_by(&verified.claims, &self.implied_scopes);
        let principal = Arc::new(Principal {
            tenant: verified.tenant,
            claims: verified.claims,
            implied_scopes: self.implied_scopes.clone(),
            good_until: time_of(verified.good_until),
            ..roles.principal(verified.subject, Proof::Token, names)
        });
        self.memory.keep(digest, principal.clone(), seconds_of(now), verified.good_until, epoch);
        principal
    }
}

/// Where the issuer shows its keys, if it is asked for them.
fn key_source(key: &TokenKey, issuer: &str) -> Result<Option<KeySource>, TokenOptionsError> {
    match key {
        TokenKey::JwksUrl(url) => key_set(url).map(Some),
        TokenKey::Discovery => metadata(issuer).map(Some),
        TokenKey::Jwks(_) | TokenKey::PublicKeyPem(_) | TokenKey::Secret(_) | TokenKey::Introspection(_) => Ok(None),
    }
}

fn key_set(url: &str) -> Result<KeySource, TokenOptionsError> {
    address("the jwks_url", url).map(KeySource::Url)
}

fn metadata(issuer: &str) -> Result<KeySource, TokenOptionsError> {
    let url = address("the issuer, whose metadata shall be fetched,", issuer)?;
    Ok(KeySource::Discovery { issuer: issuer.to_owned(), url })
}

fn address(member: &'static str, text: &str) -> Result<Url, TokenOptionsError> {
    parse(text).map_err(|reason| TokenOptionsError::Address { member, reason })
}

/// None for a time that is never, or not worth to tell from it.
fn time_of(seconds: Seconds) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    UNIX_EPOCH.checked_add(since)
}

fn seconds_of(time: DateTime<Utc>) -> Seconds {
    time.timestamp_millis() as Seconds / 1000.0
}
