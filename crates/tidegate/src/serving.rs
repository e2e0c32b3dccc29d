//! What keeps `serve` from starting with a configuration that is right in itself.

use crate::address::{LISTEN, allowed};
use crate::auditing;
use crate::config::{Loaded, Problem, callers_are_asked};

/// The address that the configuration names; [`LISTEN`] where it names none.
pub(crate) fn address(loaded: &Loaded) -> &str {
    loaded.config.server.listen.as_deref().unwrap_or(LISTEN)
}

/// Why a server may not listen at that address, if it may not.
pub(crate) fn refused_address(loaded: &Loaded) -> Option<Problem> {
    let allowed = allowed(address(loaded), callers_are_asked(&loaded.config));
    allowed.err().map(|message| Problem::new("server.listen", message))
}

/// Everything that `serve` would refuse, in its words.
pub(crate) fn obstacles(loaded: &Loaded) -> Vec<Problem> {
    refused_address(loaded).into_iter().chain(auditing::obstacle(loaded)).collect()
}
