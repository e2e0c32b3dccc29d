//! Builds the TLS of the addresses of the server, and reloads its files.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_transport::tls::{ApplicationProtocol, ClientCertificateOptions, Tls, TlsError, TlsOptions, TlsVersion};

use super::LoadedConfig;
use super::problems::Problems;
use super::types::{ClientCertificatesConfig, ServerAddress, TlsConfig, TlsVersionConfig};

/// The TLS of each address of the running server.
#[derive(Default)]
pub(crate) struct RunningTls(Mutex<Vec<RunningAddress>>);

struct RunningAddress {
    /// `None` for the address of the command line, which has the TLS of `server.tls`.
    listed: Option<String>,
    tls: Option<Arc<Tls>>,
}

impl RunningTls {
    /// The TLS of an address of a server that starts. `is_listed` is false for an address of the command line. The files
    /// may have become invalid since they were checked.
    pub(crate) fn load_for_address(
        &self,
        address: ServerAddress<'_>,
        is_listed: bool,
        protocol: ApplicationProtocol,
        loaded: &LoadedConfig,
    ) -> Result<Option<Arc<Tls>>, TlsError> {
        let load = |entry| Tls::load_for(&to_tls_options(entry, loaded), protocol);
        let tls = address.tls.map(load).transpose()?;
        let listed = is_listed.then(|| address.address.to_owned());
        self.0.lock().push(RunningAddress { listed, tls: tls.clone() });
        Ok(tls)
    }

    /// Reads the files of `loaded` again. If they are invalid, the previous ones stay in use, and an error is logged.
    pub(super) fn reload(&self, loaded: &LoadedConfig) {
        let server = &loaded.config.server;
        let addresses = server.addresses();
        for (index, RunningAddress { listed, tls }) in self.0.lock().iter().enumerate() {
            // Several addresses may have port 0, so the one in the same place comes first.
            let mut candidates = addresses.get(index).into_iter().chain(&addresses);
            let entry = match listed {
                None => Some(server.tls.as_ref()),
                Some(listed) => candidates.find(|address| address.address == listed).map(|address| address.tls),
            };
            match (tls, entry) {
                (Some(running), Some(Some(entry))) => match running.reload(&to_tls_options(entry, loaded)) {
                    Ok(()) => tracing::debug!("the certificates were read again"),
                    Err(error) => tracing::error!("the certificates stay as they were: {error}"),
                },
                // Removed addresses are reported with all others.
                (_, None) | (None, Some(None)) => {}
                (Some(_), Some(None)) | (None, Some(Some(_))) => {
                    tracing::warn!("server.tls was added or removed; this takes effect when the server restarts");
                }
            }
        }
    }
}

pub(super) fn check_tls(loaded: &LoadedConfig, problems: &Problems) {
    for (path, entry) in loaded.config.server.tls_entries() {
        let problems = problems.at(path);
        if entry.client_ca.is_none() {
            let unused = [
                ("client_certificates", entry.client_certificates.is_some()),
                ("client_crl", entry.client_crl.is_some()),
            ];
            for (member, _) in unused.into_iter().filter(|(_, is_set)| *is_set) {
                problems.add(member, "has no effect without client_ca, the authorities of client certificates");
            }
        }
        if let Err(error) = Tls::load(&to_tls_options(entry, loaded)) {
            problems.add("", error.to_string());
        }
    }
}

pub(crate) fn to_tls_options(entry: &TlsConfig, loaded: &LoadedConfig) -> TlsOptions {
    TlsOptions {
        certificate: loaded.resolve(&entry.certificate),
        key: loaded.resolve(&entry.key),
        clients: entry.client_ca.as_ref().map(|authorities| ClientCertificateOptions {
            authorities: loaded.resolve(authorities),
            are_required: entry.client_certificates == Some(ClientCertificatesConfig::Required),
            revocation_list: entry.client_crl.as_ref().map(|revoked| loaded.resolve(revoked)),
        }),
        min_version: match entry.min_version {
            TlsVersionConfig::V1_2 => TlsVersion::V1_2,
            TlsVersionConfig::V1_3 => TlsVersion::V1_3,
        },
    }
}
