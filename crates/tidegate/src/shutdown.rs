//! Signals: the first one starts a graceful shutdown, the second one ends the process at once.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::command_error::CommandError;

/// How long running calls may take to end after the first signal.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long they may take after the second signal, and how long their audit lines may take then.
pub(crate) const FORCED_DRAIN_TIMEOUT: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    pub(crate) graceful: CancellationToken,
    pub(crate) forced: CancellationToken,
}

impl Shutdown {
    pub(crate) fn on_signals() -> anyhow::Result<Self> {
        let shutdown = Self::default();
        let mut signals = Signals::listen()?;
        let requested = shutdown.clone();
        tokio::spawn(async move {
            signals.next().await;
            tracing::info!(within_s = DRAIN_TIMEOUT.as_secs(), "shutting down; a second signal ends at once");
            requested.graceful.cancel();
            signals.next().await;
            requested.forced.cancel();
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

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
