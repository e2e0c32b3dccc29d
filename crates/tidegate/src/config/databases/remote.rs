//! What servers of Flight SQL and networks of nodes have in common: their tables are on other servers.

#[cfg(feature = "network")]
pub(super) mod servers;

use std::path::PathBuf;

use super::{DatabaseConfig, OpenedDatabase, Opening};
use crate::config::LoadedConfig;
use crate::config::problem::ConfigProblem;
use crate::config::problems::Problems;
use crate::config::types::ClientTlsConfig;

pub(super) const POLICIES_MESSAGE: &str =
    "is for files, SQLite and MySQL; put policies into the configuration of the server that has the tables";

#[cfg(not(feature = "network"))]
pub(super) fn not_built(path: &str, key: &str) -> Vec<ConfigProblem> {
    super::key_problem(path, key, "this program was built without Flight SQL; build it with the feature `full`")
}

/// The files that the databases of `entries` read when they are opened.
pub(in crate::config) fn client_tls_files(entries: &[DatabaseConfig]) -> impl Iterator<Item = &PathBuf> {
    entries.iter().filter_map(|entry| entry.used_keys().tls).flat_map(ClientTlsConfig::files)
}

/// The content of the files of a [`ClientTlsConfig`], so that a database is opened again when they change.
#[derive(PartialEq, Eq)]
pub(super) struct ClientTlsFiles {
    pub(super) authorities: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
}

impl ClientTlsFiles {
    /// Reads the files of `tls` at `path`.
    pub(super) fn read(tls: &ClientTlsConfig, path: &str, loaded: &LoadedConfig) -> Result<Self, Vec<ConfigProblem>> {
        let problems = Problems::at_path(path);
        let read = |member: &str, file: &Option<PathBuf>| {
            let file = loaded.resolve(file.as_ref()?);
            let text = std::fs::read_to_string(&file);
            let add = |error| problems.add(member, format!("{} cannot be read: {error}", file.display()));
            text.map_err(add).ok()
        };
        let files = Self {
            authorities: read("authorities", &tls.authorities),
            certificate: read("certificate", &tls.certificate),
            key: read("key", &tls.key),
        };
        if tls.certificate.is_some() != tls.key.is_some() {
            let message = "needs both certificate and key, the one that this server presents and its private key";
            problems.add("", message);
        }
        problems.checked(files)
    }

    /// Whether `old` was opened with the files of `tls` as they are now.
    pub(super) fn are_unchanged(tls: &ClientTlsConfig, old: &OpenedDatabase, opening: &Opening<'_>) -> bool {
        // What cannot be read is reported when the database is opened again.
        Self::read(tls, "", opening.loaded).is_ok_and(|files| old.parts.tls_files.as_deref() == Some(&files))
    }
}
