//! Problems that prevent `serve` from starting with a valid configuration: an address beyond this machine without
//! authentication, or an audit log that cannot be opened.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::Context as _;
use tidegate_runtime::audit::AuditLog;
use tokio::net::TcpListener;

use crate::command_error::CommandError;
use crate::config::{ConfigProblem, ListenConfig, LoadedConfig, ServerAddress, audit_options, verifies_callers};
use crate::flight::find_flight_problems;

/// A listener at `address` (`host:port`). Without `verifies_callers`, only loopback addresses are allowed.
pub(crate) async fn listen(address: &str, verifies_callers: bool) -> Result<TcpListener, CommandError> {
    let addresses = resolve_listen_address(address, verifies_callers).map_err(CommandError::Usage)?;
    let listener = TcpListener::bind(&addresses[..]).await.with_context(|| {
        format!("cannot listen on {address}; --listen takes another address, and with port 0 any free one")
    })?;
    Ok(listener)
}

fn resolve_listen_address(address: &str, verifies_callers: bool) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| format!("{address} is no address to listen on: {error}; write it as 127.0.0.1:7070"))?
        .collect();
    let is_reachable = || addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
    if addresses.is_empty() || (!verifies_callers && is_reachable()) {
        return Err(refusal_message(address));
    }
    Ok(addresses)
}

fn refusal_message(address: &str) -> String {
    format!(
        "{address} can be reached from other machines, and every client there could read the data, because callers are not \
         authenticated.\n\
         Either require keys: tidegate key add NAME --role ROLE, and a configuration with that role, without \
         auth.development, and\n\
         \n    auth:\n      keys: tidegate-keys.json\n\n\
         or listen on 127.0.0.1:7070 and give others a tunnel (ssh -L 7070:127.0.0.1:7070 THIS-MACHINE)."
    )
}

pub(crate) fn empty_list_problem() -> ConfigProblem {
    ConfigProblem::new("server.listen", "is an empty list; name an address, such as 127.0.0.1:7070")
}

pub(crate) fn check_addresses(loaded: &LoadedConfig) -> Vec<ConfigProblem> {
    let addresses = loaded.config.server.addresses();
    let is_list = matches!(loaded.config.server.listen, Some(ListenConfig::Addresses(_)));
    let mut problems = Vec::new();
    if addresses.is_empty() {
        problems.push(empty_list_problem());
    }
    for (index, ServerAddress { address, .. }) in addresses.iter().enumerate() {
        let path = if is_list { format!("server.listen[{index}]") } else { "server.listen".to_owned() };
        if let Err(message) = resolve_listen_address(address, verifies_callers(&loaded.config)) {
            problems.push(ConfigProblem::new(path, message));
        } else if addresses[..index].iter().any(|other| other.address == *address) && !address.ends_with(":0") {
            problems.push(ConfigProblem::new(path, format!("{address} is listed twice; remove one of the entries")));
        }
    }
    problems
}

pub(crate) fn find_startup_problems(loaded: &LoadedConfig) -> Vec<ConfigProblem> {
    let flight = find_flight_problems(loaded);
    check_addresses(loaded).into_iter().chain(flight).chain(find_audit_problem(loaded)).collect()
}

/// The reason why the audit log cannot be opened, if there is one. The check writes nothing.
pub(crate) fn find_audit_problem(loaded: &LoadedConfig) -> Option<ConfigProblem> {
    let options = audit_options(loaded).ok()??;
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
