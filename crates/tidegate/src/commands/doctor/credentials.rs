//! What proves the node to its clients, and their tokens to the node: how long the certificate is good, and whether the
//! issuer of tokens answers.

use std::time::SystemTime;

use tidegate_auth::IssuerCheck;
use tidegate_transport::tls::{CertificateValidity, ValidityState};

use super::DoctorReport;
use crate::config::{tls_options, token_options};
use crate::open_node::OpenNode;

/// A certificate that ends sooner should be renewed by now.
const DAYS_MIN: u64 = 30;

/// How long the certificates of the server are good. That the key is theirs was asked when the configuration was.
pub(super) fn check_certificates(opened: &OpenNode, findings: &mut DoctorReport) {
    let Some(options) = tls_options(&opened.loaded_config) else { return };
    let lives = match options.certificate_validity(SystemTime::now()) {
        Ok(lives) => lives,
        Err(error) => return findings.add_problem(error),
    };
    let file = options.certificate.display();
    for (index, CertificateValidity { subject, state }) in lives.into_iter().enumerate() {
        // Clients may know another way to a root than by those that follow the first.
        let is_own = index == 0;
        let description =
            if is_own { format!("certificate {file}") } else { format!("certificate {file}: {subject} in it") };
        match state {
            ValidityState::Valid { ends, days } if days >= DAYS_MIN => {
                if is_own {
                    findings.add_ok(format!("{description} is good until {ends}"));
                }
            }
            ValidityState::Valid { ends, days } => {
                let renewed = "a renewed file counts without a restart";
                findings.add_hint(format!("{description} is good for {days} days more, until {ends}; {renewed}"));
            }
            ValidityState::Expired { ended } if is_own => {
                findings.add_problem(format!("{description} is good no longer, since {ended}: clients refuse it"));
            }
            ValidityState::NotYetValid { begins } if is_own => {
                findings.add_problem(format!(
                    "{description} is not good before {begins}: clients refuse it, or a clock is wrong"
                ));
            }
            ValidityState::Expired { ended: time } | ValidityState::NotYetValid { begins: time } => {
                findings.add_hint(format!("{description} is not good now ({time}): some clients may refuse the chain"));
            }
        }
    }
}

/// Whether tokens can be checked.
pub(super) async fn check_issuer(opened: &OpenNode, findings: &mut DoctorReport) {
    let Some(options) = token_options(&opened.loaded_config) else { return };
    let issuer = &options.issuer;
    match options.check_issuer().await {
        Ok(IssuerCheck::NotNeeded) => findings.add_ok("signed tokens are checked"),
        Ok(IssuerCheck::Introspects) => findings.add_ok(format!("the issuer {issuer} answers about tokens")),
        Ok(IssuerCheck::RejectsProbe) => findings.add_hint(format!(
            "the issuer {issuer} answers 400 about a text that is no token: if it does so about good ones too, the \
             url or the client of auth.tokens.introspection is wrong, and nobody is let in; try a token"
        )),
        Ok(IssuerCheck::Keys { count: 0, .. }) => {
            findings.add_problem(format!("the issuer {issuer} shows no key that can be used: no token is taken"));
        }
        Ok(IssuerCheck::Keys { count, missing_algorithms: without }) => {
            findings.add_ok(format!("the issuer {issuer} shows {count} keys"));
            for algorithm in without {
                findings.add_hint(format!("none of the keys of {issuer} is for {algorithm} (auth.tokens.algorithms)"));
            }
        }
        Err(trouble) => {
            findings.add_problem(format!("the issuer {issuer} cannot be asked, and no new token is taken: {trouble}"))
        }
    }
}
