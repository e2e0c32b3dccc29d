//! How a server is reached: its addresses and those of its replicas, its TLS and its SQL.

use std::collections::BTreeMap;

use tidegate_network::{FlightTls, normalized_flight_url};
use tidegate_sql::SqlDialect;

use super::ClientTlsFiles;
use crate::config::problems::Problems;
use crate::config::types::network::DialectConfig;

/// The normal form of each of `urls`, with their keys. An address that is none, or that occurs twice, is a problem.
pub(in crate::config::databases) fn check_urls<'a>(
    urls: impl IntoIterator<Item = (String, &'a String)>,
    problems: &Problems,
) -> Vec<String> {
    let mut first_keys: BTreeMap<String, String> = BTreeMap::new();
    let mut normalized = Vec::new();
    for (key, url) in urls {
        match normalized_flight_url(url) {
            Err(error) => problems.add(key, error.to_string()),
            Ok(url) => match first_keys.get(&url) {
                Some(first) => {
                    let message =
                        format!("{url} stands here a second time; a replica is another server with the same rows");
                    problems.add_related(key, first, message);
                }
                None => {
                    first_keys.insert(url.clone(), key);
                    normalized.push(url);
                }
            },
        }
    }
    normalized
}

pub(in crate::config::databases) fn to_dialect(entry: Option<DialectConfig>) -> SqlDialect {
    match entry {
        None | Some(DialectConfig::DataFusion) => SqlDialect::DataFusion,
        Some(DialectConfig::Postgres) => SqlDialect::Postgres,
        Some(DialectConfig::Sqlite) => SqlDialect::Sqlite,
    }
}

pub(in crate::config::databases) fn to_flight_tls(files: &ClientTlsFiles) -> FlightTls {
    FlightTls { authorities: files.authorities.clone(), certificate: files.certificate.clone().zip(files.key.clone()) }
}
