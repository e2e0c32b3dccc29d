//! The word of a proxy that knows who calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{AuthMethod, AuthenticationError, Credentials, Principal};

use crate::network::TrustedNetwork;
use crate::roles::Roles;

/// Bytes that a name in a header may have.
const NAME_BYTES_MAX: usize = 256;
/// Roles that a header may name.
const ROLES_MAX: usize = 256;
/// Headers that mean something else, or that anybody may add on the way.
const RESERVED_HEADERS: [&str; 8] =
    ["authorization", "cookie", "host", "content-type", "content-length", "connection", "via", "forwarded"];

/// The proxies that are believed, and in which headers they say who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyOptions {
    /// Where they are. From anywhere else the same headers count for nothing.
    pub networks: Vec<TrustedNetwork>,
    /// The header that names the caller.
    pub user: String,
    /// The header that names its tenant.
    pub tenant: Option<String>,
    /// The header that names its roles, with commas between them. Names of no role give nothing.
    pub roles: Option<String>,
}

/// Why nobody's word can be taken in that way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyOptionsError {
    /// Nobody would be believed.
    #[error("a proxy needs networks: the addresses from which it connects")]
    NoNetworks,
    /// A header that there cannot be.
    #[error("{0:?} is not allowed as the name of an identity header")]
    BadHeader(String),
    /// One header for two things.
    #[error("the header {0:?} is configured for two values; use one header for each")]
    DuplicateHeader(String),
}

/// Knows the proxies that are believed.
pub(crate) struct TrustedProxies {
    networks: Vec<TrustedNetwork>,
    user: String,
    tenant: Option<String>,
    roles: Option<String>,
    headers: Arc<[String]>,
}

impl TrustedProxies {
    /// # Errors
    /// When nobody's word could be taken so.
    pub(crate) fn new(options: ProxyOptions) -> Result<Self, ProxyOptionsError> {
        if options.networks.is_empty() {
            return Err(ProxyOptionsError::NoNetworks);
        }
        let user = parse_header_name(&options.user)?;
        let tenant = options.tenant.as_deref().map(parse_header_name).transpose()?;
        let roles = options.roles.as_deref().map(parse_header_name).transpose()?;
        let mut headers = Vec::new();
        for header in [Some(&user), tenant.as_ref(), roles.as_ref()].into_iter().flatten() {
            if headers.contains(header) {
                return Err(ProxyOptionsError::DuplicateHeader(header.clone()));
            }
            headers.push(header.clone());
        }
        Ok(Self { networks: options.networks, user, tenant, roles, headers: headers.into() })
    }

    /// The headers that are read, in lower case.
    pub(crate) fn headers(&self) -> Arc<[String]> {
        self.headers.clone()
    }

    /// Whom a believed proxy names; none if no such proxy calls, or it names nobody.
    ///
    /// # Errors
    /// When one says something that cannot be understood in one way only.
    pub(crate) fn principal_for(
        &self,
        credentials: Credentials<'_>,
        roles: &Roles,
    ) -> Result<Option<Arc<Principal>>, AuthenticationError> {
        let Some(peer) = credentials.peer.filter(|peer| self.networks.iter().any(|network| network.contains(*peer)))
        else {
            return Ok(None);
        };
        let said = |header: Option<&String>| {
            header.map_or(Ok(None), |header| single_value(credentials.identity_headers, header))
        };
        let subject = said(Some(&self.user))?;
        let (tenant, names) = (said(self.tenant.as_ref())?, said(self.roles.as_ref())?);
        let Some(subject) = subject else {
            // Without a user there is nobody whose tenant and roles these could be.
            return if tenant.or(names).is_none() { Ok(None) } else { Err(AuthenticationError::Invalid) };
        };
        let tenant = tenant.map(validate_name).transpose()?;
        let principal = roles.build_principal(
            validate_name(subject)?,
            AuthMethod::Proxy,
            known_roles(names.unwrap_or_default(), roles)?,
        );
        tracing::trace!(%peer, subject = principal.subject, "a trusted proxy names the caller");
        Ok(Some(Arc::new(Principal { tenant, ..principal })))
    }
}

/// The name of a header, in lower case.
fn parse_header_name(name: &str) -> Result<String, ProxyOptionsError> {
    let lower = name.to_ascii_lowercase();
    let is_of_a_header = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_good = !lower.is_empty() && lower.bytes().all(is_of_a_header) && !RESERVED_HEADERS.contains(&lower.as_str());
    if is_good { Ok(lower) } else { Err(ProxyOptionsError::BadHeader(name.to_owned())) }
}

/// What the header `name` says, if it is there.
///
/// # Errors
/// When it is there twice: one of both may be the caller's own.
fn single_value<'a>(asserted: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, AuthenticationError> {
    let mut text = asserted.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
    match (text.next(), text.next()) {
        (None, _) => Ok(None),
        (Some((_, value)), None) => Ok(Some(value.trim())),
        (Some(_), Some(_)) => Err(AuthenticationError::Invalid),
    }
}

/// The name of somebody. One that is empty or cannot be written down must not become nobody.
fn validate_name(text: &str) -> Result<String, AuthenticationError> {
    let is_good = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_good { Ok(text.to_owned()) } else { Err(AuthenticationError::Invalid) }
}

/// Those of the roles in `names` that there are.
fn known_roles(names: &str, roles: &Roles) -> Result<BTreeSet<String>, AuthenticationError> {
    if names.split(',').count() > ROLES_MAX {
        return Err(AuthenticationError::Invalid);
    }
    Ok(names.split(',').map(str::trim).filter(|name| roles.has(name)).map(str::to_owned).collect())
}
