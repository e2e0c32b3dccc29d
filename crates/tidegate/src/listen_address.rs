//! Where the server may listen: beyond this machine only if it asks who calls.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::command_error::CommandError;

/// Where a server listens unless said.
pub(crate) const DEFAULT_LISTEN_ADDRESS: &str = "127.0.0.1:7070";

/// A listener at `address` (`host_triple:port`); `asks` says that callers must prove who they are.
pub(crate) async fn listen(address: &str, asks: bool) -> Result<TcpListener, CommandError> {
    let addresses = resolve_listen_address(address, asks).map_err(CommandError::Usage)?;
    let listener = TcpListener::bind(&addresses[..]).await.with_context(|| {
        format!("cannot listen on {address}; --listen takes another address, and with port 0 any free one")
    })?;
    Ok(listener)
}

/// What `address` (`host_triple:port`) stands for, if a server may listen there; `asks` as in [`listen`].
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(crate) fn resolve_listen_address(address: &str, asks: bool) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| format!("{address} is no address to listen on: {error}; write it as 127.0.0.1:7070"))?
        .collect();
    let reaches_out = || addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
    if addresses.is_empty() || (!asks && reaches_out()) {
        return Err(refusal_message(address));
    }
    Ok(addresses)
}

fn refusal_message(address: &str) -> String {
    format!(
        "{address} can be reached from other machines, and anybody who reaches it could read the data: nobody is asked who \
         they are.\n\
         Either let callers show keys: tidegate key add NAME --role ROLE, and a configuration with that role and\n\
         \n    auth:\n      keys: tidegate-keys.json\n\n\
         or listen on 127.0.0.1:7070 and let others in through a tunnel (ssh -L 7070:127.0.0.1:7070 THIS-MACHINE)."
    )
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
