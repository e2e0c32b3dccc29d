//! The job of a call that runs as long as a test needs it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{CallLimits, CallOrigin, CallTarget, Caller, LogLevel, Principal, TransportKind};
use tidegate_runtime::event::{ClientLogSubscriber, EventDispatcher, Subscriber};
use tidegate_runtime::{
    Answer, Call, Job, Registry, Reply, ReplyNotification, ReplyPart, SnapshotBuilder, Tool, handler_fn,
};

/// A job of an anonymous caller, which runs until it is cancelled or dropped.
pub struct TestJob {
    pub job: Arc<Job>,
    reply: Reply,
}

impl TestJob {
    pub async fn start() -> Self {
        Self::start_with_limits(CallLimits::default()).await
    }

    /// A job that ends after `timeout`.
    pub async fn start_within(timeout: Duration) -> Self {
        Self::start_with_limits(CallLimits { timeout: Some(timeout), ..CallLimits::default() }).await
    }

    async fn start_with_limits(limits: CallLimits) -> Self {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        let handler = handler_fn(move |call| {
            let sender = sender.lock().unwrap().take();
            async move {
                let _ = sender.unwrap().send(call.job().clone());
                call.cancelled().await;
                Ok(Answer::content(Vec::new()))
            }
        });
        let tool = Tool::new("wait", "Waits.", handler).with_limits(limits);
        let client_log: Arc<dyn Subscriber> = Arc::new(ClientLogSubscriber);
        let registry = Registry::new(SnapshotBuilder::new().tool(tool).build(), EventDispatcher::new([client_log]));
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let mut call = Call::new(CallTarget::Tool("wait".to_owned()), Caller::new(Principal::anonymous(), origin));
        call.log_level = Some(LogLevel::Debug);
        let reply = registry.call(call).unwrap();
        Self { job: receiver.await.unwrap(), reply }
    }

    /// The next log message for the client that contains these words.
    pub async fn next_log(&mut self, words: &str) -> String {
        loop {
            let part = self.reply.next().await.unwrap();
            if let ReplyPart::Notification(ReplyNotification::Log { data, .. }) = part
                && data.to_string().contains(words)
            {
                return data.to_string();
            }
        }
    }
}
