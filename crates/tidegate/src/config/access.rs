//! What an entry of the file demands of its callers.

use tidegate_core::{Access, Acl, IpNetwork, TransportKind, is_scope};

use super::problem::ConfigProblem;
use super::types::FromEntry;

/// The demands, or what is wrong with them.
pub(super) fn parse_access(
    names: &[String],
    scopes: &[String],
    from: &FromEntry,
    path: &str,
) -> Result<Access, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let transports = from.transports.as_ref().map(|names| {
        let read = |(index, name): (usize, &String)| {
            let found = TransportKind::ALL.into_iter().find(|kind| kind.name() == name);
            if found.is_none() {
                let known = TransportKind::ALL.map(TransportKind::name).join(", ");
                let message = format!("there is no transport {name:?}; there are {known}");
                problems.push(ConfigProblem::new(format!("{path}.from.transports[{index}]"), message));
            }
            found
        };
        names.iter().enumerate().filter_map(read).collect()
    });
    let mut wrong = Vec::new();
    let networks = from.networks.as_ref().map(|networks| {
        let read = |(index, text): (usize, &String)| {
            let network = IpNetwork::parse(text);
            if network.is_none() {
                let message = format!("{text:?} is no network; write it as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7");
                wrong.push(ConfigProblem::new(format!("{path}.from.networks[{index}]"), message));
            }
            network
        };
        networks.iter().enumerate().filter_map(read).collect()
    });
    problems.append(&mut wrong);
    for (index, scope) in scopes.iter().enumerate().filter(|(_, scope)| !is_scope(scope)) {
        let message = format!("{scope:?} is no scope: one is a word without spaces, quotes and backslashes");
        problems.push(ConfigProblem::new(format!("{path}.scopes[{index}]"), message));
    }
    if problems.is_empty() {
        let (names, scopes) = (names.to_vec(), scopes.to_vec());
        Ok(Access { names, scopes, acl: Acl { transports, networks }, ..Access::default() })
    } else {
        Err(problems)
    }
}
