//! What an entry of the file demands of its callers.

use tidegate_core::{Access, Acl, IpNetwork, TransportKind, is_scope};

use super::problem::{ConfigProblem, parse_items};
use super::types::AllowedOriginsEntry;

/// The demands of the entry at `path`.
pub(super) fn parse_access(
    names: &[String],
    scopes: &[String],
    from: &AllowedOriginsEntry,
    path: &str,
    problems: &mut Vec<ConfigProblem>,
) -> Access {
    let transports = from.transports.as_ref().map(|names| {
        parse_items(names, &format!("{path}.from.transports"), problems, |name| {
            TransportKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                let known = TransportKind::ALL.map(TransportKind::name).join(", ");
                format!("there is no transport {name:?}; there are {known}")
            })
        })
    });
    let networks = from.networks.as_ref().map(|networks| {
        parse_items(networks, &format!("{path}.from.networks"), problems, |text| {
            IpNetwork::parse(text)
                .ok_or_else(|| format!("{text:?} is no network; write it as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7"))
        })
    });
    let scopes = parse_items(scopes, &format!("{path}.scopes"), problems, |scope| match is_scope(scope) {
        true => Ok(scope.to_owned()),
        false => Err(format!("{scope:?} is no scope: one is a word without spaces, quotes and backslashes")),
    });
    Access { names: names.to_vec(), scopes, acl: Acl { transports, networks }, ..Access::default() }
}
