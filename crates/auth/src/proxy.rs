//! Identity headers of trusted proxies.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use tidegate_core::{AuthMethod, AuthenticationError, Credentials, IpNetwork, Principal};

use crate::roles::Roles;

const NAME_BYTES_MAX: usize = 256;
const ROLES_MAX: usize = 256;
/// Headers with another meaning, or that other parties may add in transit.
const RESERVED_HEADERS: [&str; 8] =
    ["authorization", "cookie", "host", "content-type", "content-length", "connection", "via", "forwarded"];

/// The trusted proxies and their identity headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyOptions {
    /// The addresses of the proxies. Identity headers from other addresses are ignored.
    pub networks: Vec<IpNetwork>,
    /// The header with the subject of the caller.
    pub user: String,
    /// The header with the tenant of the caller.
    pub tenant: Option<String>,
    /// The header with the roles of the caller, separated by commas. Undefined roles grant nothing.
    pub roles: Option<String>,
    /// The roles of callers for whom the proxy sends no header with roles. All must be defined.
    pub default_roles: Vec<String>,
}

pub(crate) struct TrustedProxies {
    networks: Vec<IpNetwork>,
    user: String,
    tenant: Option<String>,
    roles: Option<String>,
    default_roles: BTreeSet<String>,
    headers: Arc<[String]>,
}

impl TrustedProxies {
    pub(crate) fn new(options: ProxyOptions, defined: &Roles) -> Result<Self, String> {
        if options.networks.is_empty() {
            return Err("a proxy needs networks: the addresses from which it connects".to_owned());
        }
        let user = parse_header_name(&options.user)?;
        let tenant = options.tenant.as_deref().map(parse_header_name).transpose()?;
        let roles = options.roles.as_deref().map(parse_header_name).transpose()?;
        let mut headers = Vec::new();
        for header in [Some(&user), tenant.as_ref(), roles.as_ref()].into_iter().flatten() {
            if headers.contains(header) {
                return Err(format!("the header {header:?} is configured for two values; use one header for each"));
            }
            headers.push(header.clone());
        }
        let default_roles = defined.require("proxied", options.default_roles)?;
        Ok(Self { networks: options.networks, user, tenant, roles, default_roles, headers: headers.into() })
    }

    /// The names of the identity headers, in lower case.
    pub(crate) fn headers(&self) -> Arc<[String]> {
        self.headers.clone()
    }

    /// The principal that a trusted proxy names; `None` if the peer is not one, or it names no user.
    pub(crate) fn principal_for(
        &self,
        credentials: Credentials<'_>,
        roles: &Roles,
    ) -> Result<Option<Arc<Principal>>, AuthenticationError> {
        let Some(peer) = credentials.peer.filter(|peer| self.networks.iter().any(|network| network.contains(*peer)))
        else {
            return Ok(None);
        };
        let header_value = |header: Option<&String>| {
            header.map_or(Ok(None), |header| single_value(credentials.identity_headers, header))
        };
        let subject = header_value(Some(&self.user))?;
        let (tenant, names) = (header_value(self.tenant.as_ref())?, header_value(self.roles.as_ref())?);
        let Some(subject) = subject else {
            // A tenant or roles without a user belong to no principal.
            return if tenant.or(names).is_none() { Ok(None) } else { Err(AuthenticationError::Invalid) };
        };
        let tenant = tenant.map(validate_name).transpose()?;
        let names = names.map_or_else(|| Ok(self.default_roles.clone()), |names| known_roles(names, roles))?;
        let principal = roles.build_principal(validate_name(subject)?, AuthMethod::Proxy, names);
        tracing::trace!(%peer, subject = principal.subject, "a trusted proxy names the caller");
        Ok(Some(Arc::new(Principal { tenant, ..principal })))
    }
}

/// Parses the address or network of trusted proxies: `10.0.0.5`, `10.1.0.0/16`, `fd00::/8`.
///
/// # Errors
/// What is wrong with `text`.
pub fn parse_trusted_network(text: &str) -> Result<IpNetwork, String> {
    let network = IpNetwork::parse(text)
        .ok_or_else(|| format!("{text:?} is not an address or network such as 10.0.0.5, 10.1.0.0/16 or fd00::/8"))?;
    let bits = network.prefix_bits;
    if bits == 0 {
        return Err(format!("{text:?} contains every address; list the addresses of your proxies"));
    }
    let first = match network.address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() & (u32::MAX << (32 - bits))).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << (128 - bits))).into()),
    };
    match first == network.address {
        true => Ok(network),
        false => Err(format!("{text:?} has bits set after the first {bits}; did you mean {first}/{bits}?")),
    }
}

fn parse_header_name(name: &str) -> Result<String, String> {
    let lower = name.to_ascii_lowercase();
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if lower.is_empty() || !lower.bytes().all(is_token_byte) || RESERVED_HEADERS.contains(&lower.as_str()) {
        return Err(format!("{name:?} is not allowed as the name of an identity header"));
    }
    Ok(lower)
}

/// Rejects a header that occurs twice: one of them may come from the caller.
fn single_value<'a>(asserted: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, AuthenticationError> {
    let mut values = asserted.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some((_, value)), None) => Ok(Some(value.trim())),
        (Some(_), Some(_)) => Err(AuthenticationError::Invalid),
    }
}

/// A valid subject or tenant. An invalid one must not turn into "no subject" or "no tenant".
fn validate_name(text: &str) -> Result<String, AuthenticationError> {
    let is_valid = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_valid { Ok(text.to_owned()) } else { Err(AuthenticationError::Invalid) }
}

fn known_roles(names: &str, roles: &Roles) -> Result<BTreeSet<String>, AuthenticationError> {
    if names.split(',').count() > ROLES_MAX {
        return Err(AuthenticationError::Invalid);
    }
    Ok(names.split(',').map(str::trim).filter(|name| roles.has(name)).map(str::to_owned).collect())
}
