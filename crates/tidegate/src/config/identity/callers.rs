//! Callers who show a certificate, or come through a proxy that knows them.

use tidegate_auth::{CertificateName, CertificateRule, Network, NetworkError, ProxyOptions};

use crate::config::problem::Problem;
use crate::config::types::{CertificateEntry, ProxyEntry};

/// Whose certificates are taken; less those that are wrong.
pub(super) fn certificates(entries: &[CertificateEntry], problems: &mut Vec<Problem>) -> Vec<CertificateRule> {
    let mut rules = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let holds = match (&entry.subject, &entry.alternative_name) {
            (Some(subject), None) => CertificateName::Subject(subject.clone()),
            (None, Some(name)) => CertificateName::AlternativeName(name.clone()),
            _ => {
                let message = "wants exactly one of subject and alternative_name: what stands in the certificate";
                problems.push(Problem::new(format!("auth.certificates[{index}]"), message));
                continue;
            }
        };
        if let CertificateName::AlternativeName(name) = &holds
            && !["dns:", "email:", "ip:", "uri:"].iter().any(|sort| name.starts_with(sort))
        {
            let message = format!("{name:?} wants its sort before it: dns:, email:, ip: or uri:");
            problems.push(Problem::new(format!("auth.certificates[{index}].alternative_name"), message));
        }
        let (name, roles, tenant) = (entry.name.clone(), entry.roles.clone(), entry.tenant.clone());
        rules.push(CertificateRule { name, holds, roles, tenant });
    }
    rules
}

/// The proxies that are believed, if nothing is wrong with what is said of them.
pub(super) fn proxy(entry: &ProxyEntry, problems: &mut Vec<Problem>) -> Option<ProxyOptions> {
    let before = problems.len();
    let mut networks: Vec<Network> = Vec::new();
    for (index, text) in entry.networks.iter().enumerate() {
        match text.parse() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let error: NetworkError = error;
                problems.push(Problem::new(format!("auth.proxy.networks[{index}]"), error.to_string()));
            }
        }
    }
    let (user, tenant, roles) = (entry.user.clone(), entry.tenant.clone(), entry.roles.clone());
    (problems.len() == before).then_some(ProxyOptions { networks, user, tenant, roles })
}
