//! Identities that come with a connection: client certificates, which are mapped to principals, and identity headers of trusted
//! proxies.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use tidegate_core::{AuthMethod, AuthenticationError, ClientCertificate, Credentials, IpNetwork, Principal};

use crate::roles::Roles;

/// Maps one client certificate to a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRule {
    /// The subject of the principal.
    pub name: String,
    /// The name that the certificate must contain.
    pub certificate_name: CertificateName,
    /// The roles of the principal.
    pub roles: Vec<String>,
    /// The tenant of the principal, if any.
    pub tenant: Option<String>,
}

/// Identifies a certificate among those of the same authority.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CertificateName {
    /// The whole subject, in the form of [RFC 4514](https://www.rfc-editor.org/rfc/rfc4514). Blanks around commas and
    /// the case of attribute types are ignored.
    Subject(String),
    /// One of the alternative names, as in [`ClientCertificate::alternative_names`]: `uri:spiffe://example/robot`.
    AlternativeName(String),
}

#[derive(Default)]
pub(crate) struct CertificateRules(HashMap<CertificateName, (usize, Arc<Principal>)>);

impl CertificateRules {
    pub(crate) fn new(rules: Vec<CertificateRule>, roles: &Roles) -> Result<Self, String> {
        let mut by_name = HashMap::new();
        for (index, rule) in rules.into_iter().enumerate() {
            let CertificateRule { name, certificate_name, roles: role_names, tenant } = rule;
            let certificate_name = certificate_name.normalize();
            if name.trim().is_empty() || certificate_name.text().trim().is_empty() || tenant.as_deref() == Some("") {
                return Err("a certificate rule needs a name, and a subject or an alternative name".to_owned());
            }
            let principal = roles.try_build_principal(&name, AuthMethod::Certificate, role_names)?;
            let principal = Arc::new(Principal { tenant, ..principal });
            if by_name.insert(certificate_name.clone(), (index, principal)).is_some() {
                return Err(format!("two certificate rules have {}; remove one of them", certificate_name.describe()));
            }
        }
        Ok(Self(by_name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The principal of `certificate`, expired or not. If several rules match, the first one applies.
    pub(crate) fn principal_for(&self, certificate: &ClientCertificate) -> Option<Arc<Principal>> {
        let alternative = certificate.alternative_names.iter().cloned().map(CertificateName::AlternativeName);
        let subject = CertificateName::Subject(certificate.subject.clone()).normalize();
        let fitting = alternative.chain([subject]).filter_map(|name| self.0.get(&name));
        fitting.min_by_key(|(index, _)| *index).map(|(_, principal)| principal.clone())
    }
}

impl CertificateName {
    fn text(&self) -> &str {
        match self {
            Self::Subject(text) | Self::AlternativeName(text) => text,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Subject(text) => format!("the subject {text:?}"),
            Self::AlternativeName(text) => format!("the alternative name {text:?}"),
        }
    }

    fn normalize(self) -> Self {
        match self {
            Self::Subject(text) => Self::Subject(normalize_subject(&text)),
            alternative @ Self::AlternativeName(_) => alternative,
        }
    }
}

/// A subject without insignificant blanks, with upper-case attribute types. Escaped characters stay.
fn normalize_subject(subject: &str) -> String {
    let parts = split_unescaped(subject).into_iter().map(|part| match part.trim_start().split_once('=') {
        Some((kind, value)) => format!("{}={}", kind.trim().to_ascii_uppercase(), trim_value(value)),
        None => part.trim().to_owned(),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// A value without surrounding blanks. An escaped blank is part of the value.
fn trim_value(value: &str) -> &str {
    let value = value.trim_start();
    let trimmed = value.trim_end();
    let backslashes = trimmed.bytes().rev().take_while(|byte| *byte == b'\\').count();
    match value[trimmed.len()..].chars().next() {
        Some(blank) if backslashes % 2 == 1 => &value[..trimmed.len() + blank.len_utf8()],
        _ => trimmed,
    }
}

fn split_unescaped(subject: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut is_escaped) = (Vec::new(), 0, false);
    for (index, character) in subject.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                parts.push(&subject[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&subject[begin..]);
    parts
}

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

#[cfg(test)]
mod tests {
    use super::normalize_subject;

    #[test]
    fn normalizes_blanks_and_case_of_attribute_types() {
        for (written, plain) in [
            ("CN=etl,O=Example", "CN=etl,O=Example"),
            (" cn = etl , o=Example ", "CN=etl,O=Example"),
            (r"CN=a\,b\\, O=x", r"CN=a\,b\\,O=x"),
            (r"CN=a\ , O=x", r"CN=a\ ,O=x"),
            (r"CN=a\\ , O=x", r"CN=a\\,O=x"),
            ("CN=Etl", "CN=Etl"),
            ("", ""),
        ] {
            assert_eq!(normalize_subject(written), plain, "{written:?}");
        }
    }
}
