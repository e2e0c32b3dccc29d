//! The hosts that http tools may reach (`http.allow_hosts`).
//!
//! An entry is a name (`api.example.com`), all names below one (`*.internal.example.com`) or an address (`127.0.0.1`,
//! `[::1]`), each with a port or for all ports; or a network (`10.0.0.0/8`). A network does not allow requests to its
//! addresses; it allows listed names to resolve to them.
//!
//! The addresses of the connection itself are checked, after resolution. A name that changes between two resolutions
//! (DNS rebinding) therefore gains nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;
use tidegate_core::IpNetwork;

use super::HttpProblem;

/// The hosts that http tools may reach; empty by default.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts {
    hosts: Vec<AllowedHost>,
    networks: Vec<IpNetwork>,
}

#[derive(Debug, Clone)]
struct AllowedHost {
    pattern: HostPattern,
    /// `None` allows every port.
    port: Option<u16>,
}

#[derive(Debug, Clone)]
enum HostPattern {
    Name(String),
    /// The suffix of the names, with its leading dot.
    Subdomains(String),
    Address(IpAddr),
}

enum AllowListEntry {
    Host(AllowedHost),
    Network(IpNetwork),
}

impl AllowedHosts {
    /// Parses the list, `http.allow_hosts` in the configuration.
    ///
    /// # Errors
    /// All invalid entries.
    pub fn parse(entries: &[String]) -> Result<Self, Vec<HttpProblem>> {
        let mut allowed = Self::default();
        let mut problems = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match parse_entry(entry) {
                Ok(AllowListEntry::Host(host)) => allowed.hosts.push(host),
                Ok(AllowListEntry::Network(network)) => allowed.networks.push(network),
                Err((message, hint)) => {
                    let message = format!("{entry:?} {message}");
                    problems.push(HttpProblem::new(format!("http.allow_hosts[{index}]"), message, hint));
                }
            }
        }
        if problems.is_empty() { Ok(allowed) } else { Err(problems) }
    }

    /// Whether a request to `url` is allowed, by its text alone.
    pub fn permits(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
        let address = parse_ip_host(host);
        let is_listed = |allowed: &AllowedHost| {
            let is_host = match (&allowed.pattern, address) {
                (HostPattern::Address(listed), Some(address)) => *listed == address,
                (HostPattern::Name(listed), None) => listed == host,
                (HostPattern::Subdomains(suffix), None) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
                (HostPattern::Address(_), None) | (HostPattern::Name(_) | HostPattern::Subdomains(_), Some(_)) => false,
            };
            is_host && allowed.port.is_none_or(|listed| listed == port)
        };
        matches!(url.scheme(), "http" | "https") && self.hosts.iter().any(is_listed)
    }

    /// Whether the listed name `name` may resolve to `address`.
    ///
    /// The owner of a DNS zone chooses its addresses. So that a name cannot direct requests to local services, only
    /// `localhost` may resolve to loopback, and a private address needs a listed network. Link-local addresses, where
    /// clouds serve credentials, are never allowed.
    fn permits_address(&self, name: &str, address: IpAddr) -> bool {
        let is_listed = || self.networks.iter().any(|network| network.contains(address));
        match classify_address(address) {
            AddressClass::Public => true,
            AddressClass::Loopback => is_localhost(name) || is_listed(),
            AddressClass::Private => is_listed(),
            AddressClass::Forbidden => false,
        }
    }
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn parse_ip_host(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

type EntryProblem = (&'static str, &'static str);

fn parse_entry(text: &str) -> Result<AllowListEntry, EntryProblem> {
    if text.contains("://") {
        return Err(("has a scheme", "list the host alone, for example api.example.com or api.example.com:8443"));
    }
    if let Some((address, bits)) = text.split_once('/') {
        return parse_network(address, bits).map(AllowListEntry::Network).ok_or((
            "is neither a host nor a network",
            "list the host without a path, or a network such as 10.0.0.0/8",
        ));
    }
    if let Ok(address) = text.parse() {
        return Ok(AllowListEntry::Host(AllowedHost { pattern: HostPattern::Address(address), port: None }));
    }
    let (host, port) = match text.rsplit_once(':') {
        // A colon within brackets is part of the address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(parse_port(port)?)),
        _ => (text, None),
    };
    let pattern = parse_host(host)?;
    Ok(AllowListEntry::Host(AllowedHost { pattern, port }))
}

fn parse_port(text: &str) -> Result<u16, EntryProblem> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or(("has no valid port", "a port is a number from 1 to 65535"))
}

fn parse_network(address: &str, bits: &str) -> Option<IpNetwork> {
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let prefix_bits = bits.parse().ok().filter(|bits| *bits <= bits_max)?;
    Some(IpNetwork { address, prefix_bits })
}

fn parse_host(text: &str) -> Result<HostPattern, EntryProblem> {
    let (is_below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
    if name.contains('*') {
        return Err(("has a * that is not its first label", "list *.example.com for all names below example.com"));
    }
    let not_a_host = ("is not a host", "list a name such as api.example.com, or an address");
    // Characters that a URL parser drops or interprets are not allowed.
    let has_colon = name.contains(':') && !name.starts_with('[');
    if name.is_empty() || has_colon || name.contains(['@', '?', '#', '\\', '%']) || name.contains(char::is_whitespace) {
        return Err(not_a_host);
    }
    // The same parser as for the URLs of tools, so that both normalise a name alike.
    let url = Url::parse(&format!("http://{name}/")).map_err(|_| not_a_host)?;
    let host = url.host_str().ok_or(not_a_host)?;
    match (parse_ip_host(host), is_below) {
        (Some(_), true) => Err(("has a * before an address", "list the address itself, or a network: 10.0.0.0/8")),
        (Some(address), false) => Ok(HostPattern::Address(address)),
        (None, true) => Ok(HostPattern::Subdomains(format!(".{host}"))),
        (None, false) => Ok(HostPattern::Name(host.to_owned())),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressClass {
    Public,
    Loopback,
    Private,
    /// Link-local and metadata addresses, and addresses that do not belong to one host. No API has such an address.
    Forbidden,
}

/// Metadata services of clouds outside the link-local networks: Alibaba, Azure.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
/// The same for AWS and Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// Classifies `address`. IPv6 forms of an IPv4 address count as IPv4.
fn classify_address(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => embedded_ipv4(address).map_or_else(|| classify_v6(address), classify_v4),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Forbidden;
    }
    match address.octets() {
        [127, ..] => AddressClass::Loopback,
        // "This network", link-local, multicast, reserved and broadcast.
        [0, ..] | [169, 254, ..] | [224..=255, ..] => AddressClass::Forbidden,
        // RFC 1918, shared address space, protocol assignments, benchmarks.
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => {
            AddressClass::Private
        }
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Forbidden;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Link-local, multicast, and Teredo, which embeds another address.
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] | [0x2001, 0, ..] => AddressClass::Forbidden,
        // Unique local, the deprecated site-local, and NAT64 with a local prefix.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

/// The IPv4 address in an IPv6 address: mapped, compatible, NAT64 (RFC 6052) and 6to4. This includes the unspecified
/// address, but not loopback.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [high, low] = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => return None,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] => [high, low],
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [high, low],
        [0x2002, high, low, ..] => [high, low],
        _ => return None,
    };
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Some(Ipv4Addr::new(a, b, c, d))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(entries: &[&str]) -> AllowedHosts {
        AllowedHosts::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn permits(entries: &[&str], url: &str) -> bool {
        allowed(entries).permits(&Url::parse(url).unwrap())
    }

    #[test]
    fn names_are_matched_whole_and_without_case() {
        assert!(permits(&["API.example.com"], "https://api.EXAMPLE.com/x"));
        assert!(permits(&["bücher.example"], "https://xn--bcher-kva.example/"));
        assert!(!permits(&["api.example.com"], "https://api.example.com.evil.example/"));
        assert!(!permits(&["api.example.com"], "https://xapi.example.com/"));
        assert!(!permits(&["api.example.com"], "https://evil.example/api.example.com"));
        assert!(!permits(&["api.example.com"], "https://api.example.com@evil.example/"));
        assert!(!permits(&["api.example.com"], "ftp://api.example.com/"));
        assert!(!permits(&[], "https://api.example.com/"));
    }

    #[test]
    fn a_star_stands_for_one_label_or_more() {
        let star = ["*.internal.example.com"];
        assert!(permits(&star, "https://a.internal.example.com/"));
        assert!(permits(&star, "https://a.b.internal.example.com/"));
        assert!(!permits(&star, "https://internal.example.com/"));
        assert!(!permits(&star, "https://xinternal.example.com/"));
    }

    #[test]
    fn ports_count_when_they_are_listed() {
        assert!(permits(&["api.example.com"], "https://api.example.com:8443/"));
        assert!(permits(&["api.example.com:443"], "https://api.example.com/"));
        assert!(!permits(&["api.example.com:443"], "http://api.example.com/"));
        assert!(permits(&["[::1]:8080"], "http://[::1]:8080/"));
        assert!(!permits(&["[::1]:8080"], "http://[::1]/"));
        assert!(permits(&["::1"], "http://[::1]/"));
    }

    #[test]
    fn addresses_are_reached_only_when_they_are_listed_themselves() {
        assert!(permits(&["127.0.0.1:8080"], "http://127.0.0.1:8080/"));
        assert!(permits(&["127.0.0.1"], "http://2130706433/"));
        for url in ["http://127.0.0.1:8080/", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/"]
        {
            assert!(!permits(&["localhost", "*.example.com", "127.0.0.0/8", "169.254.0.0/16"], url), "{url}");
        }
        assert!(!permits(&["127.0.0.1"], "http://[::ffff:127.0.0.1]/"));
        assert!(permits(&["169.254.169.254"], "http://169.254.169.254/"));
    }

    #[test]
    fn names_stand_for_public_addresses_and_listed_networks() {
        let permits = |entries: &[&str], name: &str, address: &str| {
            allowed(entries).permits_address(name, address.parse().unwrap())
        };
        assert!(permits(&[], "api.example.com", "93.184.216.34"));
        for address in ["127.0.0.1", "::1", "10.1.2.3", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00::1", "0.0.0.0"] {
            assert!(!permits(&["127.0.0.1", "10.1.2.3"], "api.example.com", address), "{address}");
        }
        assert!(permits(&[], "localhost", "127.0.0.1"));
        assert!(permits(&[], "app.localhost", "::1"));
        assert!(!permits(&[], "localhost", "10.0.0.1"));
        assert!(!permits(&[], "notlocalhost", "127.0.0.1"));
        assert!(permits(&["10.0.0.0/8"], "a.internal.example.com", "10.1.2.3"));
        assert!(!permits(&["10.0.0.0/8"], "a.internal.example.com", "192.168.1.1"));
        for address in ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254"] {
            let all = ["0.0.0.0/0", "::/0", "169.254.169.254"];
            assert!(!permits(&all, "localhost", address), "{address}");
        }
    }

    #[test]
    fn reports_all_invalid_entries() {
        let invalid = [
            "https://a.example",
            "a.example/path",
            "*",
            "a.*.example",
            "*.10.0.0.1",
            "a.example:0",
            "a.example:x",
            "",
            "a@b.example",
            "10.0.0.0/33",
            "a b",
            "[::1",
            "a:81:80",
        ];
        let problems = AllowedHosts::parse(&invalid.map(str::to_owned)).unwrap_err();
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.clone()).collect();
        assert_eq!(fields, (0..invalid.len()).map(|index| format!("http.allow_hosts[{index}]")).collect::<Vec<_>>());
        let first = "http.allow_hosts[0]: \"https://a.example\" has a scheme; list the host alone, for example \
                     api.example.com or api.example.com:8443";
        assert_eq!(problems[0].to_string(), first);
    }

    #[test]
    fn classifies_addresses_in_every_notation() {
        let all = [
            (AddressClass::Public, ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "172.32.0.1"]),
            (AddressClass::Loopback, ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]),
            (AddressClass::Loopback, ["::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "127.255.255.255"]),
            (AddressClass::Private, ["10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"]),
            (AddressClass::Private, ["fc00::1", "fdff::1", "fec0::1", "::ffff:10.0.0.1"]),
            (AddressClass::Forbidden, ["169.254.169.254", "::ffff:169.254.1.1", "fe80::1", "febf::1"]),
            (AddressClass::Forbidden, ["0.0.0.0", "::", "255.255.255.255", "ff02::1"]),
            (AddressClass::Forbidden, ["100.100.100.200", "168.63.129.16", "fd00:ec2::254", "224.0.0.1"]),
        ];
        for (address_class, addresses) in all {
            for address in addresses {
                assert_eq!(classify_address(address.parse().unwrap()), address_class, "{address}");
            }
        }
    }
}
