//! Builds the TLS of the server from `server.tls`, and reloads its files.

use std::sync::{Arc, OnceLock};

use tidegate_transport::tls::{ClientCertificateOptions, Tls, TlsError, TlsOptions, TlsVersion};

use super::LoadedConfig;
use super::problem::ConfigProblem;
use super::types::{ClientCertificatesConfig, TlsConfig, TlsVersionConfig};

#[derive(Default)]
pub(crate) struct RunningTls(OnceLock<Option<Arc<Tls>>>);

impl RunningTls {
    /// The TLS of a server that starts with `loaded`. The files may have become invalid since they were checked.
    pub(crate) fn load_for_server(&self, loaded: &LoadedConfig) -> Result<Option<Arc<Tls>>, TlsError> {
        let tls = tls_options(loaded).map(|options| Tls::load(&options)).transpose()?;
        Ok(self.0.get_or_init(|| tls).clone())
    }

    /// Reads the files of `loaded` again. If they are invalid, the previous ones stay in use, and an error is logged.
    pub(super) fn reload(&self, loaded: &LoadedConfig) {
        let Some(running) = self.0.get() else { return };
        match (running, tls_options(loaded)) {
            (Some(tls), Some(options)) => match tls.reload(&options) {
                Ok(()) => tracing::debug!("the certificates were read again"),
                Err(error) => tracing::error!("the certificates stay as they were: {error}"),
            },
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                tracing::warn!("server.tls was added or removed; this takes effect when the server restarts");
            }
        }
    }
}

pub(super) fn check_tls(loaded: &LoadedConfig, problems: &mut Vec<ConfigProblem>) {
    let Some(entry) = &loaded.config.server.tls else { return };
    if entry.client_ca.is_none() {
        let unused =
            [("client_certificates", entry.client_certificates.is_some()), ("client_crl", entry.client_crl.is_some())];
        let unused = unused.into_iter().filter(|(_, is_set)| *is_set);
        problems.extend(unused.map(|(member, _)| {
            let message = "has no effect without client_ca, the authorities of client certificates";
            ConfigProblem::new(format!("server.tls.{member}"), message)
        }));
    }
    if let Err(error) = Tls::load(&to_tls_options(entry, loaded)) {
        problems.push(ConfigProblem::new("server.tls", error.to_string()));
    }
}

pub(crate) fn tls_options(loaded: &LoadedConfig) -> Option<TlsOptions> {
    loaded.config.server.tls.as_ref().map(|entry| to_tls_options(entry, loaded))
}

fn to_tls_options(entry: &TlsConfig, loaded: &LoadedConfig) -> TlsOptions {
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
