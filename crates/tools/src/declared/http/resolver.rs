//! From a listed name to the addresses that may be connected to.
//!
//! The check happens on the very addresses that are connected to, after the name was looked up: a name that is aimed
//! elsewhere between two look-ups (DNS rebinding) gains nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::allowed_hosts::AllowedHosts;

/// Who knows the addresses of names. Tests stand in for the system.
#[async_trait]
pub trait DnsResolver: Send + Sync + 'static {
    /// The addresses of `name`.
    ///
    /// # Errors
    /// When the name is not known or nobody can be asked.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
pub(super) struct SystemResolver;

#[async_trait]
impl DnsResolver for SystemResolver {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// No address behind a name may be connected to. The text is for the log.
#[derive(Debug)]
pub(super) struct DisallowedAddresses {
    name: String,
    addresses: Vec<IpAddr>,
}

impl fmt::Display for DisallowedAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, addresses } = self;
        write!(
            f,
            "{name} stands for {addresses:?}, which http tools may not reach (list the network in http.allow_hosts)"
        )
    }
}

impl std::error::Error for DisallowedAddresses {}

/// Lets through the addresses that the list permits.
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
                // The client puts the port of the URL in place of 0.
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            if permitted.is_empty() {
                return Err(DisallowedAddresses { name, addresses }.into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}
