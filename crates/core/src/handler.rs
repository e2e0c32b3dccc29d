//! What a host implements: a function from a job to a stream of chunks.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Error;
use crate::job::Job;
use crate::reply::{Metadata, ReplySender};

/// The code behind a tool, a resource or a prompt.
///
/// A handler sends chunks while it works, awaits the sender's back-pressure, watches
/// [`Job::cancelled`], and ends with metadata or an error. A panic becomes an internal error with
/// an id; the process lives on.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Executes `job` and answers into `reply`.
    ///
    /// # Errors
    /// Any [`Error`], written for the caller.
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error>;
}

/// A handler from an async function, for hosts with small tools.
///
/// ```
/// use tidegate_core::{Content, Metadata, handler_fn};
///
/// let hello = handler_fn(|_job, reply| async move {
///     reply.send_block(Content::text("hello")).await?;
///     Ok(Metadata::new())
/// });
/// # let _ = hello;
/// ```
pub fn handler_fn<F, Fut>(function: F) -> Arc<dyn Handler>
where
    F: Fn(Arc<Job>, ReplySender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Metadata, Error>> + Send + 'static,
{
    Arc::new(FunctionHandler(function))
}

struct FunctionHandler<F>(F);

#[async_trait]
impl<F, Fut> Handler for FunctionHandler<F>
where
    F: Fn(Arc<Job>, ReplySender) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Metadata, Error>> + Send + 'static,
{
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        (self.0)(job, reply).await
    }
}
