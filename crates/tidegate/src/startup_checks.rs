//! Problems that prevent `serve` from starting with a valid configuration: an address beyond this machine without
//! authentication, or an audit log that cannot be opened.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::Context as _;
use tidegate_audit::AuditLog;
use tokio::net::TcpListener;

use crate::command_error::CommandError;
use crate::config::{ConfigProblem, LoadedConfig, audit_options, requires_authentication};

const DEFAULT_LISTEN_ADDRESS: &str = "127.0.0.1:7070";

/// A listener at `address` (`host:port`). Without `requires_authentication`, only loopback addresses are allowed.
pub(crate) async fn listen(address: &str, requires_authentication: bool) -> Result<TcpListener, CommandError> {
    let addresses = resolve_listen_address(address, requires_authentication).map_err(CommandError::Usage)?;
    let listener = TcpListener::bind(&addresses[..]).await.with_context(|| {
        format!("cannot listen on {address}; --listen takes another address, and with port 0 any free one")
    })?;
    Ok(listener)
}

fn resolve_listen_address(address: &str, requires_authentication: bool) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| format!("{address} is no address to listen on: {error}; write it as 127.0.0.1:7070"))?
        .collect();
    let is_reachable = || addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
    if addresses.is_empty() || (!requires_authentication && is_reachable()) {
        return Err(refusal_message(address));
    }
    Ok(addresses)
}

fn refusal_message(address: &str) -> String {
    format!(
        "{address} can be reached from other machines, and every client there could read the data, because callers are not \
         authenticated.\n\
         Either require keys: tidegate key add NAME --role ROLE, and a configuration with that role and\n\
         \n    auth:\n      keys: tidegate-keys.json\n\n\
         or listen on 127.0.0.1:7070 and give others a tunnel (ssh -L 7070:127.0.0.1:7070 THIS-MACHINE)."
    )
}

pub(crate) fn configured_address(loaded: &LoadedConfig) -> &str {
    loaded.config.server.listen.as_deref().unwrap_or(DEFAULT_LISTEN_ADDRESS)
}

pub(crate) fn check_address(loaded: &LoadedConfig) -> Option<ConfigProblem> {
    let allowed = resolve_listen_address(configured_address(loaded), requires_authentication(&loaded.config));
    allowed.err().map(|message| ConfigProblem::new("server.listen", message))
}

pub(crate) fn find_startup_problems(loaded: &LoadedConfig) -> Vec<ConfigProblem> {
    check_address(loaded).into_iter().chain(find_audit_problem(loaded)).collect()
}

/// The reason why the audit log cannot be opened, if there is one. The check writes nothing.
pub(crate) fn find_audit_problem(loaded: &LoadedConfig) -> Option<ConfigProblem> {
    let options = audit_options(loaded, &mut Vec::new())?;
    AuditLog::check_openable(&options).err().map(|error| ConfigProblem::new("audit.file", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unauthenticated_server_listens_on_loopback_only() {
        for address in ["127.0.0.1:0", "[::1]:0", "localhost:0"] {
            // A machine without IPv6 cannot listen there, but that is not refused as a usage.
            assert!(!matches!(listen(address, false).await, Err(CommandError::Usage(_))), "{address}");
        }
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "127.0.0.1", "nonsense"] {
            assert!(matches!(listen(address, false).await, Err(CommandError::Usage(_))), "{address}");
        }
    }
}
