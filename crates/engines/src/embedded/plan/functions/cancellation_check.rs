//! The cancellation of the query that a function computes for. It is an extension of the session's settings.

use std::any::Any;

use datafusion::common::Result;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::execution::SessionState;
use datafusion::logical_expr::ScalarFunctionArgs;

use crate::embedded::plan::cancellation::QueryCancellation;

/// `session`, whose functions stop when `cancellation` is cancelled, also during planning, which evaluates calls with
/// constant arguments.
pub(crate) fn with_cancellation(mut session: SessionState, query_cancellation: &QueryCancellation) -> SessionState {
    session.config_mut().options_mut().extensions.insert(CancellationExtension(query_cancellation.clone()));
    session
}

/// The cancellation of the query of `session`. `None` if a statement is only described.
pub(super) fn session_cancellation(session: &SessionState) -> Option<QueryCancellation> {
    session.config_options().extensions.get::<CancellationExtension>().map(|watch| watch.0.clone())
}

/// # Errors
/// When the query is cancelled.
pub(super) fn check_cancelled(args: &ScalarFunctionArgs) -> Result<()> {
    args.config_options.extensions.get::<CancellationExtension>().map_or(Ok(()), |watch| watch.0.check_cancelled())
}

#[derive(Debug)]
struct CancellationExtension(QueryCancellation);

impl ConfigExtension for CancellationExtension {
    const PREFIX: &'static str = "watch";
}

impl ExtensionOptions for CancellationExtension {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(Self(self.0.clone()))
    }

    fn set(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
