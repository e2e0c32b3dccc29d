//! What proves the node to its clients, and their tokens to the node: how long the certificate is good, and whether the
//! issuer of tokens answers.

use std::time::SystemTime;

use tidegate_auth::IssuerTrial;
use tidegate_transport::tls::{CertificateLife, LifeState};

use super::Findings;
use crate::config::{tls_options, token_options};
use crate::opened::Opened;

/// A certificate that ends sooner should be renewed by now.
const DAYS_MIN: u64 = 30;

/// How long the certificates of the server are good. That the key is theirs was asked when the configuration was.
pub(super) fn certificates(opened: &Opened, findings: &mut Findings) {
    let Some(options) = tls_options(&opened.loaded) else { return };
    let lives = match options.lives(SystemTime::now()) {
        Ok(lives) => lives,
        Err(error) => return findings.wrong(error),
    };
    let file = options.certificate.display();
    for (index, CertificateLife { subject, state }) in lives.into_iter().enumerate() {
        // Clients may know another way to a root than by those that follow the first.
        let is_own = index == 0;
        let what = if is_own { format!("certificate {file}") } else { format!("certificate {file}: {subject} in it") };
        match state {
            LifeState::Good { ends, days } if days >= DAYS_MIN => {
                if is_own {
                    findings.good(format!("{what} is good until {ends}"));
                }
            }
            LifeState::Good { ends, days } => {
                let renewed = "a renewed file counts without a restart";
                findings.hint(format!("{what} is good for {days} days more, until {ends}; {renewed}"));
            }
            LifeState::Over { ended } if is_own => {
                findings.wrong(format!("{what} is good no longer, since {ended}: clients refuse it"));
            }
            LifeState::NotYet { begins } if is_own => {
                findings.wrong(format!("{what} is not good before {begins}: clients refuse it, or a clock is wrong"));
            }
            LifeState::Over { ended: time } | LifeState::NotYet { begins: time } => {
                findings.hint(format!("{what} is not good now ({time}): some clients may refuse the chain"));
            }
        }
    }
}

/// Whether tokens can be checked.
pub(super) async fn issuer(opened: &Opened, findings: &mut Findings) {
    let Some(options) = token_options(&opened.loaded) else { return };
    let issuer = &options.issuer;
    match options.try_issuer().await {
        Ok(IssuerTrial::NotAsked) => findings.good("signed tokens are checked"),
        Ok(IssuerTrial::Answers) => findings.good(format!("the issuer {issuer} answers about tokens")),
        Ok(IssuerTrial::Refuses) => findings.hint(format!(
            "the issuer {issuer} answers 400 about a text that is no token: if it does so about good ones too, the \
             url or the client of auth.tokens.introspection is wrong, and nobody is let in; try a token"
        )),
        Ok(IssuerTrial::Keys { count: 0, .. }) => {
            findings.wrong(format!("the issuer {issuer} shows no key that can be used: no token is taken"));
        }
        Ok(IssuerTrial::Keys { count, without }) => {
            findings.good(format!("the issuer {issuer} shows {count} keys"));
            for algorithm in without {
                findings.hint(format!("none of the keys of {issuer} is for {algorithm} (auth.tokens.algorithms)"));
            }
        }
        Err(trouble) => {
            findings.wrong(format!("the issuer {issuer} cannot be asked, and no new token is taken: {trouble}"))
        }
    }
}
