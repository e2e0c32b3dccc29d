//! Callers who show a certificate, or come through a proxy that knows them.

use tidegate_auth::{CertificateName, CertificateRule, ProxyOptions, TrustedNetwork, TrustedNetworkError};

use crate::config::problem::ConfigProblem;
use crate::config::types::{CertificateEntry, ProxyEntry};

/// Whose certificates are taken; less those that are wrong.
pub(super) fn parse_certificates(
    entries: &[CertificateEntry],
    problems: &mut Vec<ConfigProblem>,
) -> Vec<CertificateRule> {
    let mut rules = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let holds = match (&entry.subject, &entry.alternative_name) {
            (Some(subject), None) => CertificateName::Subject(subject.clone()),
            (None, Some(name)) => CertificateName::AlternativeName(name.clone()),
            _ => {
                let message = "wants exactly one of subject and alternative_name: what stands in the certificate";
                problems.push(ConfigProblem::new(format!("auth.certificates[{index}]"), message));
                continue;
            }
        };
        if let CertificateName::AlternativeName(name) = &holds
            && !["dns:", "email:", "ip:", "uri:"].iter().any(|sort| name.starts_with(sort))
        {
            let message = format!("{name:?} wants its sort before it: dns:, email:, ip: or uri:");
            problems.push(ConfigProblem::new(format!("auth.certificates[{index}].alternative_name"), message));
        }
        let (name, roles, tenant) = (entry.name.clone(), entry.roles.clone(), entry.tenant.clone());
        rules.push(CertificateRule { name, certificate_name: holds, roles, tenant });
    }
    rules
}

/// The proxies that are believed, if nothing is wrong with what is said of them.
pub(super) fn parse_proxy(entry: &ProxyEntry, problems: &mut Vec<ConfigProblem>) -> Option<ProxyOptions> {
    let before = problems.len();
    let mut networks: Vec<TrustedNetwork> = Vec::new();
    for (index, text) in entry.networks.iter().enumerate() {
        match text.parse() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let error: TrustedNetworkError = error;
                problems.push(ConfigProblem::new(format!("auth.proxy.networks[{index}]"), error.to_string()));
            }
        }
    }
    let (user, tenant, roles) = (entry.user_header.clone(), entry.tenant_header.clone(), entry.roles_header.clone());
    (problems.len() == before).then_some(ProxyOptions { networks, user, tenant, roles })
}
