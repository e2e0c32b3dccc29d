//! Handlers: the code behind an entry, implemented by hosts. A handler turns a call into an answer.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Completion, CompletionRequest, Error};

use crate::job::Job;
use crate::reply::{Answer, RunningCall};

/// The code behind a tool, a resource or a prompt.
///
/// A handler returns its answer: a value, or what writes it. It observes [`Job::cancelled`]. A panic becomes an internal
/// error with an id; the process continues.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers `call`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error>;
}

/// Completes the arguments of one prompt or resource template.
#[async_trait]
pub trait Completer: Send + Sync + 'static {
    /// Completes `request`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error>;
}

/// Makes a handler from an async function, for hosts with small tools.
///
/// ```
/// use tidegate_runtime::{Answer, handler_fn};
///
/// let hello = handler_fn(|_call| async { Ok(Answer::text("hello")) });
/// # let _ = hello;
/// ```
pub fn handler_fn<F, Fut>(function: F) -> Arc<dyn Handler>
where
    F: Fn(RunningCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Answer, Error>> + Send + 'static,
{
    Arc::new(ClosureHandler(function))
}

struct ClosureHandler<F>(F);

#[async_trait]
impl<F, Fut> Handler for ClosureHandler<F>
where
    F: Fn(RunningCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Answer, Error>> + Send + 'static,
{
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        (self.0)(call).await
    }
}

pub(crate) fn panic_to_error(panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    Error::internal(format!("a handler panicked: {message}"))
}
