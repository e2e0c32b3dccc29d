//! Networks of nodes, whose tables of the same name are one table.

#[cfg(feature = "network")]
mod nodes;

use schemars::JsonSchema;
use serde::Deserialize;
#[cfg(feature = "network")]
use {
    super::KindParts,
    super::remote::{ClientTlsFiles, servers::to_flight_tls},
    nodes::PreviousNetwork,
    std::sync::Arc,
    tidegate_engines::NetworkIngest,
};

use super::remote::POLICIES_MESSAGE;
use super::{ConfiguredDatabase, Opening, OpeningResult, UsedKeys};
use crate::config::quantities::OneOrMany;
use crate::config::types::network::NetworkConfig;

/// Tidegate servers whose tables of the same name are one table. They need server.flight.
#[derive(Deserialize, JsonSchema)]
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

    fn used_keys(&self) -> UsedKeys<'_> {
        let ingest_tables = self.ingest.clone().map(OneOrMany::into_vec);
        UsedKeys { tls: Some(&self.network.tls), ingest_tables, ..UsedKeys::default() }
    }

    #[cfg(not(feature = "network"))]
    fn open(&self, _: &str, path: &str, _: &mut Opening<'_>) -> OpeningResult {
        Err(super::remote::not_built(path, "network"))
    }

    #[cfg(feature = "network")]
    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let path = format!("{path}.network");
        let tls_files = ClientTlsFiles::read(&self.network.tls, &format!("{path}.tls"), opening.loaded)?;
        let previous = opening.previous.by_name.get(name);
        let previous = previous.filter(|old| old.parts.tls_files.as_deref() == Some(&tls_files));
        let previous = previous.and_then(PreviousNetwork::of_database);
        let network = nodes::open(name, &self.network, to_flight_tls(&tls_files), &path, previous, opening.engine())?;
        let target = self.used_keys().ingest_tables.map(|tables| NetworkIngest::new(network.clone(), tables));
        let target = target.map(|target| opening.counted(name, target));
        Ok((network, KindParts { tls_files: Some(Arc::new(tls_files)), target, ..KindParts::default() }))
    }
}
