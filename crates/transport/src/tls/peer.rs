//! The client of a TLS connection: its certificate, and whether that is still trusted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::pki_types::CertificateDer;
use tidegate_core::ClientCertificate;

use super::{Tls, certificate};

/// The client of a TLS connection.
pub struct TlsPeer {
    tls: Arc<Tls>,
    presented: Option<PeerCertificate>,
}

struct PeerCertificate {
    certificate: ClientCertificate,
    chain: Vec<CertificateDer<'static>>,
    /// The last verification: twice the number of the load of the files, plus one if the chain was trusted.
    last_check: AtomicU64,
}

/// The certificate is no longer trusted, or is missing although now required: a new connection would fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedCertificate;

impl TlsPeer {
    /// A client that presented `chain`, its own certificate first, under load `number` of the files.
    pub(super) fn new(tls: Arc<Tls>, number: u64, chain: Vec<CertificateDer<'static>>) -> io::Result<Self> {
        if chain.is_empty() {
            return Ok(Self { tls, presented: None });
        }
        let certificate = certificate::parse_chain(&chain)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the client's certificate cannot be parsed"))?;
        let checked = AtomicU64::new(encode_check(number, true));
        Ok(Self { tls, presented: Some(PeerCertificate { certificate, chain, last_check: checked }) })
    }

    /// The certificate that the client presented, if it did and the server requests certificates.
    ///
    /// # Errors
    /// When a new connection of the client would fail.
    pub fn certificate(&self) -> Result<Option<&ClientCertificate>, UntrustedCertificate> {
        let state = self.tls.0.load();
        let Some(peer_certificate) = &self.presented else {
            return if state.requires_certificate { Err(UntrustedCertificate) } else { Ok(None) };
        };
        if state.verifier.is_none() {
            // The server no longer requests certificates.
            return Ok(None);
        }
        let is_trusted = match peer_certificate.last_check.load(Ordering::Relaxed) {
            known if known == encode_check(state.generation, true) => true,
            known if known == encode_check(state.generation, false) => false,
            _ => {
                let is_trusted = state.trusts(&peer_certificate.chain);
                peer_certificate.last_check.store(encode_check(state.generation, is_trusted), Ordering::Relaxed);
                is_trusted
            }
        };
        if is_trusted { Ok(Some(&peer_certificate.certificate)) } else { Err(UntrustedCertificate) }
    }
}

fn encode_check(number: u64, is_trusted: bool) -> u64 {
    number * 2 + u64::from(is_trusted)
}
