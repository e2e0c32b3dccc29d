//! Resolves allowed names to allowed addresses.
//!
//! The addresses of the connection itself are checked, after resolution. A name that changes between two resolutions
//! (DNS rebinding) therefore gains nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use super::allowed_hosts::AllowedHosts;

/// Resolves names. Tests replace the system's resolver.
#[async_trait]
pub trait DnsResolver: Send + Sync + 'static {
    /// The addresses of `name`.
    ///
    /// # Errors
    /// When the name is unknown, or no DNS server answers.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

pub(super) struct SystemResolver;

#[async_trait]
impl DnsResolver for SystemResolver {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// None of a name's addresses is allowed. The text is for the log.
#[derive(Debug, Error)]
#[error("{name} resolves to {addresses:?}, which http tools may not reach (list the network in http.allow_hosts)")]
pub(super) struct DisallowedAddresses {
    name: String,
    addresses: Vec<IpAddr>,
}

pub(super) struct AllowListResolver {
    pub(super) resolver: Arc<dyn DnsResolver>,
    pub(super) allowed: Arc<AllowedHosts>,
}

impl Resolve for AllowListResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (names, allowed) = (self.resolver.clone(), self.allowed.clone());
        Box::pin(async move {
            let name = name.as_str().to_ascii_lowercase();
            let addresses = names.lookup(&name).await?;
            if addresses.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no addresses").into());
            }
            let permitted: Vec<SocketAddr> = addresses
                .iter()
                .filter(|address| allowed.permits_address(&name, **address))
                // The client replaces the port 0 by that of the URL.
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            if permitted.is_empty() {
                return Err(DisallowedAddresses { name, addresses }.into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}
