//! Networks of nodes, whose tables of the same name are one table.

#[cfg(feature = "network")]
mod holds;
#[cfg(feature = "network")]
mod nodes;
#[cfg(feature = "network")]
mod trust;

use schemars::JsonSchema;
use serde::Deserialize;

use super::remote::{ClientTlsFiles, POLICIES_MESSAGE};
use super::{ConfiguredDatabase, Opening, OpeningResult, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::types::ClientTlsConfig;
use crate::config::types::network::NetworkConfig;

/// Tidegate servers whose tables of the same name are one table. They need server.flight.
#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct NodesConfig {
    /// Tidegate servers whose tables of the same name are one table. They need server.flight. Without trust and token,
    /// they receive no credentials.
    network: NetworkConfig,
    /// Names of tables that take rows. Roles grant the right to write. Default: none.
    ingest: Option<OneOrMany>,
}

impl ConfiguredDatabase for NodesConfig {
    fn advice(key: &str) -> Option<&'static str> {
        match key {
            "policies" => Some(POLICIES_MESSAGE),
            "token" | "timeout" | "tls" => Some("is for flight_sql; the one of a network is a key within network"),
            "tables" => Some("is for tables of this server; the nodes of the network have the options of theirs"),
            _ => None,
        }
    }

    fn tls(&self) -> Option<&ClientTlsConfig> {
        Some(&self.network.tls)
    }

    fn ingest_tables(&self) -> Option<Vec<String>> {
        self.ingest.clone().map(OneOrMany::into_vec)
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        if let Some(OneOrMany::One(_)) = self.ingest {
            let message = "names the tables of the network that take rows, as a list: [readings]";
            return Err(key_problem(path, "ingest", message));
        }
        let tls_files = ClientTlsFiles::read(&self.network.tls, &format!("{path}.network.tls"), opening.loaded)?;
        imp::open(self, name, path, tls_files, opening)
    }
}

#[cfg(not(feature = "network"))]
mod imp {
    use super::*;

    pub(super) fn open(_: &NodesConfig, _: &str, path: &str, _: ClientTlsFiles, _: &Opening<'_>) -> OpeningResult {
        Err(super::super::remote::not_built(path, "network"))
    }
}

#[cfg(feature = "network")]
mod imp {
    use std::sync::Arc;

    use tidegate_engines::NetworkIngest;

    use super::super::KindParts;
    use super::super::remote::servers::to_flight_tls;
    use super::nodes::PreviousNetwork;
    use super::*;

    pub(super) fn open(
        entry: &NodesConfig,
        name: &str,
        path: &str,
        tls_files: ClientTlsFiles,
        opening: &Opening<'_>,
    ) -> OpeningResult {
        let previous = opening.previous.by_name.get(name);
        let previous = previous.filter(|old| old.parts.tls_files.as_deref() == Some(&tls_files));
        let previous = previous.and_then(PreviousNetwork::of_database);
        let (tls, path) = (to_flight_tls(&tls_files), format!("{path}.network"));
        let network = nodes::open(name, &entry.network, tls, &path, previous, opening.engine())?;
        let target = entry.ingest_tables().map(|tables| NetworkIngest::new(network.clone(), tables));
        let target = target.map(|target| opening.counted(name, target));
        Ok((network, KindParts { tls_files: Some(Arc::new(tls_files)), target, ..KindParts::default() }))
    }
}
