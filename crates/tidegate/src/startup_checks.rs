//! What keeps `serve` from starting with a configuration that is right in itself.

use crate::audit_log;
use crate::config::{ConfigProblem, LoadedConfig, callers_are_asked};
use crate::listen_address::{DEFAULT_LISTEN_ADDRESS, resolve_listen_address};

/// The address that the configuration names; [`DEFAULT_LISTEN_ADDRESS`] where it names none.
pub(crate) fn configured_address(loaded: &LoadedConfig) -> &str {
    loaded.config.server.listen.as_deref().unwrap_or(DEFAULT_LISTEN_ADDRESS)
}

/// Why a server may not listen at that address, if it may not.
pub(crate) fn check_address(loaded: &LoadedConfig) -> Option<ConfigProblem> {
    let allowed = resolve_listen_address(configured_address(loaded), callers_are_asked(&loaded.config));
    allowed.err().map(|message| ConfigProblem::new("server.listen", message))
}

/// Everything that `serve` would refuse, in its words.
pub(crate) fn find_startup_problems(loaded: &LoadedConfig) -> Vec<ConfigProblem> {
    check_address(loaded).into_iter().chain(audit_log::find_problem(loaded)).collect()
}
