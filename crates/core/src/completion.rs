//! Completion: which values an argument may take, given what was typed so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Error;
use crate::job::Job;

/// What is to be completed.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// The prompt or resource template.
    pub reference: CompletionReference,
    /// The argument or template variable.
    pub argument: String,
    /// What was typed so far.
    pub value: String,
    /// Values of other arguments that are known already.
    pub context: BTreeMap<String, String>,
}

/// What a completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionReference {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its template text.
    Resource(String),
}

impl CompletionReference {
    /// The prompt's name or the template's text.
    pub fn name(&self) -> &str {
        match self {
            Self::Prompt(name) | Self::Resource(name) => name,
        }
    }
}

/// The values that fit, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most [`Completion::VALUES_MAX`] values.
    pub values: Vec<String>,
    /// How many fit in all, if known.
    pub total: Option<u64>,
    /// Whether more fit than `values` shows.
    pub has_more: bool,
}

impl Completion {
    /// The most values that one answer may hold (MCP, `completion/complete`).
    pub const VALUES_MAX: usize = 100;

    /// Of all `candidates` those that begin with `typed` (whatever the case), cut to the bound.
    pub fn matching(candidates: impl IntoIterator<Item = String>, typed: &str) -> Self {
        let typed = typed.to_lowercase();
        let values: Vec<String> =
            candidates.into_iter().filter(|candidate| candidate.to_lowercase().starts_with(&typed)).collect();
        Self { total: Some(values.len() as u64), has_more: false, values }.truncated()
    }

    /// The same, cut to the bound; what is cut off counts as more.
    pub(crate) fn truncated(mut self) -> Self {
        if self.values.len() > Self::VALUES_MAX {
            self.total = self.total.or(Some(self.values.len() as u64));
            self.has_more = true;
            self.values.truncate(Self::VALUES_MAX);
        }
        self
    }
}

/// The code that completes the arguments of one prompt or resource template.
#[async_trait]
pub trait Completer: Send + Sync + 'static {
    /// Completes `request`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error>;
}
