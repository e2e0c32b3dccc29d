//! Signals: the first asks the process to finish, the second ends it at once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// How long running calls may take to end after the first signal.
pub(crate) const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// How long they may take to end after the second, and how long what is written down of them may take.
pub(crate) const AT_ONCE_WITHIN: Duration = Duration::from_millis(300);

/// What the signals have asked for so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    /// Fires at the first signal.
    pub(crate) graceful: CancellationToken,
    /// Fires at the second signal.
    pub(crate) at_once: CancellationToken,
}

impl Shutdown {
    /// Listens for SIGINT and SIGTERM.
    pub(crate) fn on_signals() -> anyhow::Result<Self> {
        let shutdown = Self::default();
        let mut signals = Signals::listen()?;
        let told = shutdown.clone();
        tokio::spawn(async move {
            signals.next().await;
            tracing::info!(within_s = DRAIN_WITHIN.as_secs(), "shutting down; a second signal ends at once");
            told.graceful.cancel();
            signals.next().await;
            told.at_once.cancel();
        });
        Ok(shutdown)
    }

    /// Runs `work` to its end, or until the second signal.
    pub(crate) async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.at_once.cancelled() => Err(anyhow::anyhow!("ended at once by a second signal").into()),
            result = work => Ok(result),
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signals the process ends as its system ends it.
            std::future::pending::<()>().await;
        }
    }
}
