//! Verification keys, the signature algorithms that they are for, and the choice of the key for a token.
//!
//! The published keys of an issuer are fetched in the background, cached and refreshed. A request waits only if the key of its
//! token is missing. All such requests wait for the same fetch.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use aws_lc_rs::rsa::RsaParameters;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey, VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::crypto::aws_lc;
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::Url;
use serde_json::{Map, Value};
use strum::VariantArray;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::{TokenKey, TokenOptionsError};
use crate::provider::{self, LogThrottle, ProviderClient, ProviderError, ProviderResponse, REQUEST_TIMEOUT, parse_url};
use crate::secret::{Clock, Digest, Secret, sha256_of};

const JWKS_KEYS_MAX: usize = 256;
/// Bits of an RSA modulus; the library verifies nothing with other sizes.
const RSA_BITS: RangeInclusive<usize> = 2048..=8192;

pub(super) enum KeyRing {
    /// The only key. It has no id, so the `kid` of a token is ignored.
    Single(VerificationKey),
    /// The keys of a JWKS.
    Set(Vec<VerificationKey>),
}

pub(super) struct VerificationKey {
    kind: KeyKind,
    id: Option<String>,
    /// The only algorithm for this key, if its JWK names one.
    algorithm: Option<TokenAlgorithm>,
    key: DecodingKey,
}

impl KeyRing {
    pub(super) fn from_configured(key: &TokenKey, algorithms: &[TokenAlgorithm]) -> Result<Self, TokenOptionsError> {
        install_provider();
        let ring = match key {
            TokenKey::Secret(secret) => Self::Single(secret_key(secret)),
            TokenKey::PublicKeyPem(pem) => Self::Single(pem_key(pem)?),
            TokenKey::Jwks(jwks) => match jwks_keys(jwks.as_bytes())? {
                keys if keys.is_empty() => return Err(TokenOptionsError::no_usable_key()),
                keys => Self::Set(keys),
            },
            // Fetched keys and introspection need no configured key.
            TokenKey::JwksUrl(_) | TokenKey::Discovery | TokenKey::Introspection(_) => {
                return Err(TokenOptionsError::no_usable_key());
            }
        };
        for algorithm in algorithms.iter().copied() {
            if !ring.keys().iter().any(|key| key.supports(algorithm)) {
                return Err(TokenOptionsError::unsupported(algorithm, &ring.kinds()));
            }
            if let TokenKey::Secret(secret) = key
                && secret.expose().len() < algorithm.secret_bytes_min()
            {
                let bytes_min = algorithm.secret_bytes_min();
                let problem =
                    format!("the secret is too short for {algorithm}, which needs at least {bytes_min} bytes");
                return Err(TokenOptionsError::new(problem));
            }
        }
        Ok(ring)
    }

    /// Reads a JWKS that an issuer publishes. A set without usable keys is valid: the issuer has withdrawn its keys.
    pub(super) fn from_jwks(jwks: &[u8]) -> Result<Self, TokenOptionsError> {
        install_provider();
        jwks_keys(jwks).map(Self::Set)
    }

    pub(super) fn len(&self) -> usize {
        self.keys().len()
    }

    pub(super) fn unsupported_algorithms(&self, algorithms: &[TokenAlgorithm]) -> Vec<TokenAlgorithm> {
        let is_unsupported = |algorithm: &TokenAlgorithm| !self.keys().iter().any(|key| key.supports(*algorithm));
        algorithms.iter().copied().filter(is_unsupported).collect()
    }

    /// The key for a token: of the keys that support `algorithm`, the one with that id; without an id, the only one.
    pub(super) fn find(&self, algorithm: TokenAlgorithm, id: Option<&str>) -> Option<&DecodingKey> {
        let mut candidates = self.keys().iter().filter(|key| {
            let is_named = match (self, id) {
                (Self::Single(_), _) | (_, None) => true,
                (Self::Set(_), Some(id)) => key.id.as_deref() == Some(id),
            };
            is_named && key.supports(algorithm)
        });
        let key = candidates.next()?;
        // Trying several keys would make a set as weak as its weakest key.
        candidates.next().is_none().then_some(&key.key)
    }

    fn keys(&self) -> &[VerificationKey] {
        match self {
            Self::Single(key) => std::slice::from_ref(key),
            Self::Set(keys) => keys,
        }
    }

    fn kinds(&self) -> String {
        let mut kinds: Vec<&str> = self.keys().iter().map(|key| key.kind.name()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.join(" or ")
    }
}

impl VerificationKey {
    fn new(kind: KeyKind, key: DecodingKey) -> Self {
        Self { kind, id: None, algorithm: None, key }
    }

    fn supports(&self, algorithm: TokenAlgorithm) -> bool {
        algorithm.key_kind() == self.kind
            && self.algorithm.is_none_or(|only| only.to_jsonwebtoken() == algorithm.to_jsonwebtoken())
    }
}

fn secret_key(secret: &Secret) -> VerificationKey {
    VerificationKey::new(KeyKind::Secret, DecodingKey::from_secret(secret.expose().as_bytes()))
}

fn pem_key(pem: &str) -> Result<VerificationKey, TokenOptionsError> {
    if pem.contains("PRIVATE KEY-----") {
        return Err(TokenOptionsError::private_key());
    }
    // The library would also search certificates and other blocks for a key.
    if pem.matches("-----BEGIN ").count() != 1 || !pem.contains("PUBLIC KEY-----") {
        return Err(TokenOptionsError::no_public_key());
    }
    let pem = pem.as_bytes();
    let candidates = [
        (KeyKind::Rsa, DecodingKey::from_rsa_pem(pem)),
        (KeyKind::P256, DecodingKey::from_ec_pem(pem)),
        (KeyKind::P384, DecodingKey::from_ec_pem(pem)),
        (KeyKind::Ed25519, DecodingKey::from_ed_pem(pem)),
    ];
    let mut usable =
        candidates.into_iter().filter_map(|(kind, key)| key.ok().map(|key| VerificationKey::new(kind, key)));
    usable.find(is_valid).ok_or_else(TokenOptionsError::no_public_key)
}

/// The library panics if two providers are compiled in and none is chosen; another crate may add a second one.
pub(crate) fn install_provider() {
    let _ = aws_lc::DEFAULT_PROVIDER.install_default();
}

fn jwks_keys(jwks: &[u8]) -> Result<Vec<VerificationKey>, TokenOptionsError> {
    let jwks: Map<String, Value> = serde_json::from_slice(jwks).map_err(|_| TokenOptionsError::no_jwks())?;
    let keys = jwks.get("keys").and_then(Value::as_array).ok_or_else(TokenOptionsError::no_jwks)?;
    if keys.len() > JWKS_KEYS_MAX {
        let problem = format!("the JWKS has {} keys; at most {JWKS_KEYS_MAX} are allowed", keys.len());
        return Err(TokenOptionsError::new(problem));
    }
    if keys.iter().any(|key| key.get("d").is_some()) {
        return Err(TokenOptionsError::private_key());
    }
    // Sets contain keys for other purposes too, so unusable keys are skipped.
    Ok(keys.iter().filter_map(jwk_key).collect())
}

/// The verification key of a JWK ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517#section-4)), if it is usable.
fn jwk_key(jwk: &Value) -> Option<VerificationKey> {
    let field = |name: &str| jwk.get(name).and_then(Value::as_str);
    let checks_signatures = jwk.get("use").is_none_or(|purpose| purpose == "sig")
        && jwk.get("key_ops").is_none_or(|may| may.as_array().is_some_and(|may| may.iter().any(|it| it == "verify")));
    // An unknown algorithm must not turn into "any algorithm".
    let algorithm = match jwk.get("alg") {
        Some(name) => Some(name.as_str()?.parse().ok()?),
        None => None,
    };
    let (kind, key) = match (field("kty")?, field("crv")) {
        ("RSA", _) => (KeyKind::Rsa, rsa_key(field("n")?, field("e")?)),
        ("EC", Some("P-256")) => (KeyKind::P256, DecodingKey::from_ec_components(field("x")?, field("y")?).ok()),
        ("EC", Some("P-384")) => (KeyKind::P384, DecodingKey::from_ec_components(field("x")?, field("y")?).ok()),
        ("OKP", Some("Ed25519")) => (KeyKind::Ed25519, DecodingKey::from_ed_components(field("x")?).ok()),
        _ => return None,
    };
    let key = VerificationKey { id: field("kid").map(str::to_owned), algorithm, ..VerificationKey::new(kind, key?) };
    (checks_signatures && (kind == KeyKind::Rsa || is_valid(&key))).then_some(key)
}

fn rsa_key(modulus: &str, exponent: &str) -> Option<DecodingKey> {
    let bytes = URL_SAFE_NO_PAD.decode(modulus).ok()?;
    let zero_bits: usize = match bytes.iter().position(|byte| *byte != 0) {
        Some(zeros) => 8 * zeros + bytes[zeros].leading_zeros() as usize,
        None => return None,
    };
    if !RSA_BITS.contains(&(8 * bytes.len() - zero_bits)) {
        return None;
    }
    DecodingKey::from_rsa_components(modulus, exponent).ok()
}

/// Whether the bytes of `key` are a valid key of its kind. The library would detect that only with the first token.
fn is_valid(key: &VerificationKey) -> bool {
    let Ok(bytes) = key.key.try_get_as_bytes() else { return false };
    let is_a_key_of = |algorithm: &'static dyn VerificationAlgorithm| ParsedPublicKey::new(algorithm, bytes).is_ok();
    match key.kind {
        KeyKind::Rsa => RsaParameters::public_modulus_len(bytes).is_ok_and(|bits| RSA_BITS.contains(&(bits as usize))),
        KeyKind::P256 => is_a_key_of(&ECDSA_P256_SHA256_FIXED),
        KeyKind::P384 => is_a_key_of(&ECDSA_P384_SHA384_FIXED),
        KeyKind::Ed25519 => is_a_key_of(&ED25519),
        KeyKind::Secret => true,
    }
}

/// A signature algorithm ([RFC 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3.1), [RFC
/// 9864](https://www.rfc-editor.org/rfc/rfc9864#section-2)). `none` is not supported.
///
/// `EdDSA` and `Ed25519` are two names of one algorithm. A token must use a configured name; a key with either name
/// verifies both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
#[allow(missing_docs, reason = "their names are the specification's")]
pub enum TokenAlgorithm {
    Hs256,
    Hs384,
    Hs512,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
    Ed25519,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// A secret that is shared with the signer.
    Secret,
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl KeyKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Secret => "a secret",
            Self::Rsa => "an RSA key",
            Self::P256 => "an EC key on P-256",
            Self::P384 => "an EC key on P-384",
            Self::Ed25519 => "an Ed25519 key",
        }
    }
}

impl TokenAlgorithm {
    /// Every algorithm.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The only kind of key for this algorithm, so that a public key is never used as a secret.
    pub(crate) fn key_kind(self) -> KeyKind {
        self.row().1
    }

    /// The algorithm in `jsonwebtoken`, which has one name for EdDSA.
    pub(crate) fn to_jsonwebtoken(self) -> Algorithm {
        self.row().2
    }

    fn row(self) -> (&'static str, KeyKind, Algorithm) {
        match self {
            Self::Hs256 => ("HS256", KeyKind::Secret, Algorithm::HS256),
            Self::Hs384 => ("HS384", KeyKind::Secret, Algorithm::HS384),
            Self::Hs512 => ("HS512", KeyKind::Secret, Algorithm::HS512),
            Self::Rs256 => ("RS256", KeyKind::Rsa, Algorithm::RS256),
            Self::Rs384 => ("RS384", KeyKind::Rsa, Algorithm::RS384),
            Self::Rs512 => ("RS512", KeyKind::Rsa, Algorithm::RS512),
            Self::Ps256 => ("PS256", KeyKind::Rsa, Algorithm::PS256),
            Self::Ps384 => ("PS384", KeyKind::Rsa, Algorithm::PS384),
            Self::Ps512 => ("PS512", KeyKind::Rsa, Algorithm::PS512),
            Self::Es256 => ("ES256", KeyKind::P256, Algorithm::ES256),
            Self::Es384 => ("ES384", KeyKind::P384, Algorithm::ES384),
            Self::EdDsa => ("EdDSA", KeyKind::Ed25519, Algorithm::EdDSA),
            Self::Ed25519 => ("Ed25519", KeyKind::Ed25519, Algorithm::EdDSA),
        }
    }

    /// Bytes of a secret at least: the length of the hash ([RFC
    /// 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3.2)).
    pub(crate) fn secret_bytes_min(self) -> usize {
        match self {
            Self::Hs256 => 32,
            Self::Hs384 => 48,
            Self::Hs512 => 64,
            _ => 0,
        }
    }
}

impl FromStr for TokenAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let algorithm = Self::ALL.iter().find(|algorithm| algorithm.name() == name);
        algorithm
            .copied()
            .ok_or_else(|| format!("{name:?} is not a token algorithm; use one of: {}", join_names(Self::ALL)))
    }
}

impl fmt::Display for TokenAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn join_names(algorithms: &[TokenAlgorithm]) -> String {
    algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

/// How long keys are fresh if the issuer does not specify it, and the bounds of what it specifies.
const FRESH_FOR: Duration = Duration::from_secs(5 * 60);
const FRESH_FOR_MIN: Duration = Duration::from_secs(60);
const FRESH_FOR_MAX: Duration = Duration::from_secs(60 * 60);
/// How much longer keys are used while the issuer is unavailable.
const STALE_FOR: Duration = Duration::from_secs(60 * 60);
const FETCH_INTERVAL_MIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyLocation {
    Url(Url),
    /// At the URL in the metadata of `issuer`. Kept as text too, because the metadata must repeat it exactly.
    Discovery {
        issuer: String,
        url: Url,
    },
}

impl KeyLocation {
    /// Where `issuer` publishes its keys, if they are fetched.
    pub(super) fn find(key: &TokenKey, issuer: &str) -> Result<Option<Self>, TokenOptionsError> {
        let parse =
            |member, text| parse_url(text).map_err(|problem| TokenOptionsError::new(format!("{member} {problem}")));
        Ok(match key {
            TokenKey::JwksUrl(url) => Some(Self::Url(parse("the jwks_url", url)?)),
            TokenKey::Discovery => {
                let url = parse("the issuer, whose metadata are fetched,", issuer)?;
                Some(Self::Discovery { issuer: issuer.to_owned(), url })
            }
            TokenKey::Jwks(_) | TokenKey::PublicKeyPem(_) | TokenKey::Secret(_) | TokenKey::Introspection(_) => None,
        })
    }
}

/// The published keys of an issuer. Dropping it ends the background task.
pub(super) struct FetchedKeys {
    shared: Arc<FetcherState>,
    worker: OnceLock<AbortHandle>,
}

struct FetcherState {
    source: KeyLocation,
    /// The accepted algorithms; those that no key supports are logged.
    algorithms: Vec<TokenAlgorithm>,
    http: ProviderClient,
    clock: Clock,
    keys: ArcSwapOption<FetchedKeySet>,
    epoch: AtomicU64,
    attempts: watch::Sender<FetchAttempts>,
    fetch_requested: Notify,
    failures: LogThrottle,
}

struct FetchedKeySet {
    keys: Arc<KeyRing>,
    digest: Digest,
    at: DateTime<Utc>,
    fresh_for: Duration,
}

#[derive(Default)]
struct FetchAttempts {
    ended: u64,
    is_running: bool,
    begun: Option<DateTime<Utc>>,
}

impl FetchedKeys {
    pub(super) fn new(source: KeyLocation, algorithms: Vec<TokenAlgorithm>, clock: Clock) -> Self {
        let shared = FetcherState {
            source,
            algorithms,
            http: ProviderClient::default(),
            clock,
            keys: ArcSwapOption::empty(),
            epoch: AtomicU64::new(0),
            attempts: watch::Sender::default(),
            fetch_requested: Notify::new(),
            failures: LogThrottle::default(),
        };
        Self { shared: Arc::new(shared), worker: OnceLock::new() }
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.shared.source == other.shared.source && self.shared.algorithms == other.shared.algorithms
    }

    /// Starts the background task, if it is not running and there is a runtime.
    pub(super) fn start(&self) {
        if let (None, Ok(runtime)) = (self.worker.get(), Handle::try_current()) {
            self.worker.get_or_init(|| runtime.spawn(run_fetch_loop(self.shared.clone())).abort_handle());
        }
    }

    /// The keys that are usable at `now`. If they are no longer fresh, a fetch is requested without waiting for it.
    pub(super) fn current_keys(&self, now: DateTime<Utc>) -> Option<Arc<KeyRing>> {
        self.start();
        let guard = self.shared.keys.load();
        let fetched_key_set = guard.as_ref()?;
        // After the clock went back, the age is unknown.
        let age = now.signed_duration_since(fetched_key_set.at).to_std().ok();
        if age.is_none_or(|age| age >= fetched_key_set.fresh_for) && self.shared.may_start_fetch(now) {
            self.shared.fetch_requested.notify_one();
        }
        age.is_none_or(|age| age < fetched_key_set.fresh_for + STALE_FOR).then(|| fetched_key_set.keys.clone())
    }

    /// The version of the keys. Results of other versions are no longer valid.
    pub(super) fn epoch(&self) -> u64 {
        self.shared.epoch.load(Ordering::Acquire)
    }

    pub(super) fn attempts(&self) -> u64 {
        self.shared.attempts.borrow().ended
    }

    /// Waits until more than `attempts` fetches are finished. Returns false if no fetch may start yet, or it times out.
    pub(super) async fn wait_for_fetch_after(&self, attempts: u64, now: DateTime<Utc>) -> bool {
        let mut changes = self.shared.attempts.subscribe();
        {
            let seen = changes.borrow();
            if seen.ended > attempts {
                return true;
            }
            if !seen.is_running && !seen.may_start(now) {
                return false;
            }
        }
        self.shared.fetch_requested.notify_one();
        timeout(REQUEST_TIMEOUT, changes.wait_for(|seen| seen.ended > attempts)).await.is_ok_and(|seen| seen.is_ok())
    }
}

impl Drop for FetchedKeys {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.get() {
            worker.abort();
        }
    }
}

pub(super) async fn fetch_key_set(
    http: &ProviderClient,
    source: &KeyLocation,
) -> Result<ProviderResponse, ProviderError> {
    match source {
        KeyLocation::Url(url) => http.get(url).await,
        KeyLocation::Discovery { issuer, url } => {
            http.get(&provider::discover_key_set_url(http, issuer, url).await?).await
        }
    }
}

async fn run_fetch_loop(shared: Arc<FetcherState>) {
    loop {
        let pause = sleep(shared.fetch().await);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                () = shared.fetch_requested.notified() => if shared.may_start_fetch(shared.clock.now()) { break },
            }
        }
    }
}

impl FetchAttempts {
    /// Whether a fetch may start at `now`: the interval since the last one is over. The clock may go back.
    fn may_start(&self, now: DateTime<Utc>) -> bool {
        let is_pause_over =
            |begun: DateTime<Utc>| now.signed_duration_since(begun).abs().to_std().ok() >= Some(FETCH_INTERVAL_MIN);
        !self.is_running && self.begun.is_none_or(is_pause_over)
    }
}

impl FetcherState {
    fn may_start_fetch(&self, now: DateTime<Utc>) -> bool {
        self.attempts.borrow().may_start(now)
    }

    async fn fetch(&self) -> Duration {
        let begun = self.clock.now();
        self.attempts.send_modify(|attempts| {
            attempts.is_running = true;
            attempts.begun = Some(begun);
        });
        let page = timeout(REQUEST_TIMEOUT, fetch_key_set(&self.http, &self.source))
            .await
            .unwrap_or_else(|_| Err(ProviderError::timed_out()));
        let outcome = page.and_then(|page| self.store_keys(&page, begun));
        let pause = match outcome {
            Ok(fresh_for) => {
                if self.failures.clear() {
                    tracing::info!(issuer = self.issuer_name(), "the issuer's keys are fetched again");
                }
                fresh_for
            }
            Err(failure) => {
                if let Some(times) = self.failures.record_occurrence() {
                    let (issuer, has_keys) = (self.issuer_name(), self.keys.load().is_some());
                    tracing::warn!(issuer, times, has_keys, "cannot fetch the issuer's keys: {failure}");
                }
                FETCH_INTERVAL_MIN
            }
        };
        self.attempts.send_modify(|attempts| {
            attempts.is_running = false;
            attempts.ended += 1;
        });
        pause
    }

    fn store_keys(&self, page: &ProviderResponse, at: DateTime<Utc>) -> Result<Duration, ProviderError> {
        let fresh_for = page.fresh_for.unwrap_or(FRESH_FOR).clamp(FRESH_FOR_MIN, FRESH_FOR_MAX);
        let digest = sha256_of(&page.body);
        let before = self.keys.load_full();
        if let Some(same) = before.filter(|before| before.digest == digest) {
            self.keys.store(Some(Arc::new(FetchedKeySet { keys: same.keys.clone(), digest, at, fresh_for })));
            return Ok(fresh_for);
        }
        let keys = KeyRing::from_jwks(&page.body).map_err(ProviderError::other)?;
        let unsupported = keys.unsupported_algorithms(&self.algorithms);
        tracing::info!(issuer = self.issuer_name(), keys = keys.len(), "the issuer published new keys");
        if !unsupported.is_empty() {
            let issuer = self.issuer_name();
            tracing::warn!(issuer, "none of the issuer's keys supports {}", join_names(&unsupported));
        }
        self.keys.store(Some(Arc::new(FetchedKeySet { keys: Arc::new(keys), digest, at, fresh_for })));
        // Only after the store: results cached for the new epoch must come from the new keys.
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(fresh_for)
    }

    fn issuer_name(&self) -> &str {
        match &self.source {
            KeyLocation::Url(url) => url.host_str().unwrap_or_default(),
            KeyLocation::Discovery { issuer, .. } => issuer,
        }
    }
}
