//! Checks whether an issuer answers as required, with one request as the authenticator would send it.

use tokio::time::timeout;

use super::algorithm::TokenAlgorithm;
use super::fetched_keys::{KeySource, fetch_key_set};
use super::introspection::{IntrospectionResult, Introspector};
use super::key_ring::KeyRing;
use super::options::{TokenKey, TokenOptions};
use crate::provider::{ProviderClient, ProviderError, REQUEST_TIMEOUT};

/// A text that is not a valid token of any issuer.
const PROBE_TOKEN: &str = "tidegate-asks-whether-you-answer";

/// The result of checking an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerCheck {
    /// No request is needed: the keys are configured.
    NotNeeded,
    /// The issuer publishes keys.
    Keys {
        /// The number of usable keys.
        count: usize,
        /// Configured algorithms without a published key.
        missing_algorithms: Vec<TokenAlgorithm>,
    },
    /// The issuer answers introspection requests.
    Introspects,
    /// The issuer answers 400. Either this is its answer for texts that are not tokens, or it cannot parse the request.
    RejectsProbe,
}

impl TokenOptions {
    /// Sends the issuer one request, for five seconds at most.
    ///
    /// # Errors
    /// Why tokens cannot be verified: the issuer cannot be reached, or does not answer as required.
    pub async fn check_issuer(&self) -> Result<IssuerCheck, String> {
        let check = timeout(REQUEST_TIMEOUT, self.run_issuer_check()).await;
        let check = check.unwrap_or_else(|_| Err(ProviderError::timed_out()));
        check.map_err(|failure| failure.to_string())
    }

    async fn run_issuer_check(&self) -> Result<IssuerCheck, ProviderError> {
        if let TokenKey::Introspection(options) = &self.key {
            let introspector = Introspector::new(options).map_err(ProviderError::other)?;
            return match introspector.query_issuer_strictly(PROBE_TOKEN).await {
                Ok(IntrospectionResult::Active(_)) => {
                    let problem = "it reports a text that is not a token as active: any bearer would be admitted";
                    Err(ProviderError::other(problem))
                }
                Ok(IntrospectionResult::Inactive) => Ok(IssuerCheck::Introspects),
                Err(ProviderError::Status(400)) => Ok(IssuerCheck::RejectsProbe),
                Err(failure) => Err(failure),
            };
        }
        let Some(source) = KeySource::find(&self.key, &self.issuer).map_err(ProviderError::other)? else {
            return Ok(IssuerCheck::NotNeeded);
        };
        let page = fetch_key_set(&ProviderClient::default(), &source).await?;
        let keys = KeyRing::from_jwks(&page.body).map_err(ProviderError::other)?;
        Ok(IssuerCheck::Keys { count: keys.len(), missing_algorithms: keys.unsupported_algorithms(&self.algorithms) })
    }
}
