//! Whether the query that a function computes for is still wanted: the settings of its session tell it.

use std::any::Any;

use datafusion::common::Result;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::execution::SessionState;
use datafusion::logical_expr::ScalarFunctionArgs;

use crate::embedded::plan::guard::Wanted;

/// `session`, whose functions end when the query is no longer `wanted`, while it is planned too: a call of constants
/// is computed then.
pub(crate) fn watched(mut session: SessionState, wanted: &Wanted) -> SessionState {
    session.config_mut().options_mut().extensions.insert(Watch(wanted.clone()));
    session
}

/// Whether the query of `session` is wanted; none for one that is only described.
pub(super) fn of(session: &SessionState) -> Option<Wanted> {
    session.config_options().extensions.get::<Watch>().map(|watch| watch.0.clone())
}

/// # Errors
/// When the query is no longer wanted.
pub(super) fn check(args: &ScalarFunctionArgs) -> Result<()> {
    args.config_options.extensions.get::<Watch>().map_or(Ok(()), |watch| watch.0.check())
}

#[derive(Debug)]
struct Watch(Wanted);

impl ConfigExtension for Watch {
    const PREFIX: &'static str = "watch";
}

impl ExtensionOptions for Watch {
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
