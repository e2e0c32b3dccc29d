//! Whether an issuer answers as it should, for whoever sets a node up: it is asked once, as the gate will ask it.

use tokio::time::timeout;

use super::algorithm::TokenAlgorithm;
use super::fetched_keys::page;
use super::introspection::{Introspector, Told};
use super::key_ring::KeyRing;
use super::key_source;
use super::options::{TokenKey, TokenOptions};
use crate::provider::{Failure, Http, PATIENCE};

/// Text that is no token of anybody.
const NO_TOKEN: &str = "tidegate-asks-whether-you-answer";

/// What became of asking an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerTrial {
    /// It is asked nothing: what tokens are checked with is here.
    NotAsked,
    /// It shows keys.
    Keys {
        /// How many of them can be used.
        count: usize,
        /// Algorithms that tokens may be signed with, and for which it shows none.
        without: Vec<TokenAlgorithm>,
    },
    /// It answers about tokens.
    Answers,
    /// It says that the question is wrong (400), which may be its way to say that what it was asked about is no token, or
    /// mean that it understands no question.
    Refuses,
}

/// Why tokens cannot be checked, in words that tell nothing of who asks with which secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IssuerTrouble(String);

impl TokenOptions {
    /// Asks the issuer once what tokens are checked with, for five seconds at most.
    ///
    /// # Errors
    /// When it cannot be reached, or does not answer as it should.
    pub async fn try_issuer(&self) -> Result<IssuerTrial, IssuerTrouble> {
        let trouble = |failure: &dyn std::fmt::Display| IssuerTrouble(failure.to_string());
        let tried = timeout(PATIENCE, self.tried());
        let tried = tried.await.unwrap_or(Err(Failure::Slow));
        tried.map_err(|failure| trouble(&failure))
    }

    async fn tried(&self) -> Result<IssuerTrial, Failure> {
        if let TokenKey::Introspection(options) = &self.key {
            let introspector = Introspector::new(options).map_err(Failure::KeySet)?;
            return match introspector.heard(NO_TOKEN).await {
                Ok(Told::Active(_)) => Err(Failure::EverythingActive),
                Ok(Told::Inactive | Told::Nothing) => Ok(IssuerTrial::Answers),
                Err(Failure::Status(400)) => Ok(IssuerTrial::Refuses),
                Err(failure) => Err(failure),
            };
        }
        let Some(source) = key_source(&self.key, &self.issuer).map_err(Failure::KeySet)? else {
            return Ok(IssuerTrial::NotAsked);
        };
        let page = page(&Http::default(), &source).await?;
        let keys = KeyRing::fetched(&page.body).map_err(Failure::KeySet)?;
        Ok(IssuerTrial::Keys { count: keys.len(), without: keys.unchecked(&self.algorithms) })
    }
}
