//! Opens a server of Flight SQL as a database.

use std::sync::Arc;

use tidegate_network::{FlightSqlDatabase, FlightSqlOptions, FlightTls, NodeCredential};
use tidegate_query::Database;
use tidegate_sql::SqlDialect;

use super::super::problem::ConfigProblem;
use super::super::problems::Problems;
use super::super::quantities::OneOrMany;
use super::super::types::DatabaseConfig;
use super::super::types::network::DialectConfig;
use super::urls::check_urls;

pub(super) fn open(
    entry: &DatabaseConfig,
    addresses: &OneOrMany,
    tls: FlightTls,
    path: &str,
) -> Result<Arc<dyn Database>, Vec<ConfigProblem>> {
    let path = format!("{path}.flight_sql");
    let problems = Problems::at_path(&path);
    let (urls, is_list) = (addresses.clone().into_vec(), matches!(addresses, OneOrMany::Many(_)));
    if urls.is_empty() {
        problems.add("", "is empty; write the address of a server: grpc+tls://host:443");
    }
    let at = |index: usize| if is_list { format!("[{index}]") } else { String::new() };
    let urls = check_urls(urls.iter().enumerate().map(|(index, url)| (at(index), url)), &problems);
    let urls = problems.checked(urls)?;
    let default = FlightSqlOptions::new(urls);
    let options = FlightSqlOptions {
        database: entry.catalog.clone(),
        dialect: to_dialect(entry.dialect),
        credential: entry
            .token
            .as_ref()
            .map_or(NodeCredential::None, |token| NodeCredential::Token(token.0.expose().to_owned())),
        tls,
        timeout: entry.timeout.map_or(default.timeout, |time| time.0),
        ..default
    };
    let opened = FlightSqlDatabase::new(entry.name.clone(), options);
    let opened = opened.map_err(|error| vec![ConfigProblem::new(path, error.to_string())])?;
    Ok(Arc::new(opened))
}

pub(super) fn to_dialect(entry: Option<DialectConfig>) -> SqlDialect {
    match entry {
        None | Some(DialectConfig::DataFusion) => SqlDialect::DataFusion,
        Some(DialectConfig::Postgres) => SqlDialect::Postgres,
        Some(DialectConfig::Sqlite) => SqlDialect::Sqlite,
    }
}
