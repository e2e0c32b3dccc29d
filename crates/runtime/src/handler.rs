//! Handlers: the code behind an entry, implemented by hosts. A handler turns a job into a stream of chunks.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Completion, CompletionRequest, Error};

use crate::job::Job;
use crate::reply::{AnswerMeta, ReplySender};

/// The code behind a tool, a resource or a prompt.
///
/// A handler sends chunks while it works, awaits the back-pressure of the sender, observes [`Job::cancelled`], and ends
/// with metadata or an error. A panic becomes an internal error with an id; the process continues.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Executes `job` and sends the answer to `reply`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<AnswerMeta, Error>;
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
/// use tidegate_core::Content;
/// use tidegate_runtime::{AnswerMeta, handler_fn};
///
/// let hello = handler_fn(|_job, reply| async move {
///     reply.send_block(Content::text("hello")).await?;
///     Ok(AnswerMeta::default())
/// });
/// # let _ = hello;
/// ```
pub fn handler_fn<F, Fut>(function: F) -> Arc<dyn Handler>
where
    F: Fn(Arc<Job>, ReplySender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<AnswerMeta, Error>> + Send + 'static,
{
    Arc::new(ClosureHandler(function))
}

struct ClosureHandler<F>(F);

#[async_trait]
impl<F, Fut> Handler for ClosureHandler<F>
where
    F: Fn(Arc<Job>, ReplySender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<AnswerMeta, Error>> + Send + 'static,
{
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<AnswerMeta, Error> {
        (self.0)(job, reply).await
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
