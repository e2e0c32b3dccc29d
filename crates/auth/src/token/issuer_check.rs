//! Whether an issuer answers as it should, for whoever sets a node up: it is asked once, as the gate will ask it.

use tokio::time::timeout;

use super::algorithm::TokenAlgorithm;
use super::fetched_keys::fetch_key_set;
use super::introspection::{IntrospectionResult, Introspector};
use super::key_ring::KeyRing;
use super::key_source;
use super::options::{TokenKey, TokenOptions};
use crate::provider::{ProviderClient, ProviderError, REQUEST_TIMEOUT};

/// Text that is no token of anybody.
const PROBE_TOKEN: &str = "tidegate-asks-whether-you-answer";

/// What became of asking an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerCheck {
    /// It is asked nothing: what tokens are checked with is here.
    NotNeeded,
    /// It shows keys.
    Keys {
        /// How many of them can be used.
        count: usize,
        /// Algorithms that tokens may be signed with, and for which it shows none.
        missing_algorithms: Vec<TokenAlgorithm>,
    },
    /// It answers about tokens.
    Introspects,
    /// It says that the question is wrong (400), which may be its way to say that what it was asked about is no token, or
    /// mean that it understands no question.
    RejectsProbe,
}

/// Why tokens cannot be checked, in words that tell nothing of who asks with which secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IssuerCheckError(String);

impl TokenOptions {
    /// Asks the issuer once what tokens are checked with, for five seconds at most.
    ///
    /// # Errors
    /// When it cannot be reached, or does not answer as it should.
    pub async fn check_issuer(&self) -> Result<IssuerCheck, IssuerCheckError> {
        let trouble = |failure: &dyn std::fmt::Display| IssuerCheckError(failure.to_string());
        let tried = timeout(REQUEST_TIMEOUT, self.run_issuer_check());
        let tried = tried.await.unwrap_or(Err(ProviderError::TimedOut));
        tried.map_err(|failure| trouble(&failure))
    }

    async fn run_issuer_check(&self) -> Result<IssuerCheck, ProviderError> {
        if let TokenKey::Introspection(options) = &self.key {
            let introspector = Introspector::new(options).map_err(ProviderError::KeySet)?;
            return match introspector.query_issuer_strictly(PROBE_TOKEN).await {
                Ok(IntrospectionResult::Active(_)) => Err(ProviderError::EverythingActive),
                Ok(IntrospectionResult::Inactive | IntrospectionResult::Unavailable) => Ok(IssuerCheck::Introspects),
                Err(ProviderError::Status(400)) => Ok(IssuerCheck::RejectsProbe),
                Err(failure) => Err(failure),
            };
        }
        let Some(source) = key_source(&self.key, &self.issuer).map_err(ProviderError::KeySet)? else {
            return Ok(IssuerCheck::NotNeeded);
        };
        let page = fetch_key_set(&ProviderClient::default(), &source).await?;
        let keys = KeyRing::from_jwks(&page.body).map_err(ProviderError::KeySet)?;
        Ok(IssuerCheck::Keys { count: keys.len(), missing_algorithms: keys.unsupported_algorithms(&self.algorithms) })
    }
}
