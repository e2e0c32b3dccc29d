//! Networks of nodes, whose tables of the same name are one table.

#[cfg(feature = "network")]
mod holds;
#[cfg(feature = "network")]
mod nodes;
#[cfg(feature = "network")]
mod trust;

use super::kinds::keys_of_kind;
use super::remote::{ClientTlsFiles, POLICIES_MESSAGE};
use super::{ConfiguredDatabase, OpenedDatabase, Opening, OpeningResult, key_problem};
use crate::config::quantities::OneOrMany;
use crate::config::types::DatabaseConfig;
use crate::config::types::network::NetworkConfig;

keys_of_kind! {
    struct NodesConfig {
        network: NetworkConfig,
        ingest: Option<OneOrMany>,
    }
    elsewhere {}
}

impl ConfiguredDatabase for NodesConfig {
    fn advice(&self, key: &str, entry: &DatabaseConfig) -> Option<&'static str> {
        match key {
            "policies" => Some(POLICIES_MESSAGE),
            "token" | "timeout" | "tls" => Some("is for flight_sql; the one of a network is a key within network"),
            "tables" if entry.ingest.is_some() => {
                Some("is for tables of this server; the nodes of the network have the options of theirs")
            }
            _ => None,
        }
    }

    fn may_keep(&self, old: &OpenedDatabase, path: &str, opening: &Opening<'_>) -> bool {
        ClientTlsFiles::are_unchanged(&self.network.tls, &format!("{path}.network.tls"), old, opening)
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
    use tidegate_query::CountedTarget;

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
        let target = entry.ingest.clone().map(|tables| NetworkIngest::new(network.clone(), tables.into_vec()));
        let target = target.map(|target| Arc::new(CountedTarget::new(Arc::new(target))));
        Ok((network, KindParts { tls_files: Some(Arc::new(tls_files)), target, ..KindParts::default() }))
    }
}
