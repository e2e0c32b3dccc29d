//! Maps client certificates to principals.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::{AuthMethod, ClientCertificate, Principal};

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
