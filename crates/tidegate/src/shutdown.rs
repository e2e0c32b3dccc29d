//! Signals: the first asks the process to finish, the second ends it at once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::command_error::CommandError;

/// How long running calls may take to end after the first signal.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long they may take to end after the second, and how long what is written down of them may take.
pub(crate) const FORCED_DRAIN_TIMEOUT: Duration = Duration::from_millis(300);

/// What the signals have asked for so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    /// Fires at the first signal.
    pub(crate) graceful: CancellationToken,
    /// Fires at the second signal.
    pub(crate) forced: CancellationToken,
}

impl Shutdown {
    /// Listens for SIGINT and SIGTERM.
    pub(crate) fn on_signals() -> anyhow::Result<Self> {
        let shutdown = Self::default();
        let mut signals = Signals::listen()?;
        let message = shutdown.clone();
        tokio::spawn(async move {
            signals.next().await;
            tracing::info!(within_s = DRAIN_TIMEOUT.as_secs(), "shutting down; a second signal ends at once");
            message.graceful.cancel();
            signals.next().await;
            message.forced.cancel();
        });
        Ok(shutdown)
    }

    /// Runs `work` to its end, or until the second signal.
    pub(crate) async fn run_until_forced<T>(&self, work: impl Future<Output = T>) -> Result<T, CommandError> {
        tokio::select! {
            biased;
            () = self.forced.cancelled() => Err(anyhow::anyhow!("ended at once by a second signal").into()),
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
