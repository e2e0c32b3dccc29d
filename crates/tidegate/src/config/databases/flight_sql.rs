//! Servers of Arrow Flight SQL.

use schemars::JsonSchema;
use serde::Deserialize;
#[cfg(feature = "network")]
use {
    super::KindParts,
    super::remote::ClientTlsFiles,
    super::remote::servers::{check_urls, to_dialect, to_flight_tls},
    crate::config::{problem::ConfigProblem, problems::Problems},
    std::sync::Arc,
    tidegate_network::{FlightSqlDatabase, FlightSqlOptions, NodeCredential},
};

use super::remote::POLICIES_MESSAGE;
use super::{ConfiguredDatabase, Opening, OpeningResult, UsedKeys};
use crate::config::quantities::{OneOrMany, SecretText, Time};
use crate::config::types::ClientTlsConfig;
use crate::config::types::network::DialectConfig;

/// A server of Arrow Flight SQL.
#[derive(Deserialize, JsonSchema)]
#[cfg_attr(not(feature = "network"), expect(dead_code, reason = "nothing is opened"))]
pub(super) struct FlightSqlConfig {
    /// grpc+tls://host:443, or grpc://127.0.0.1:7071 on this machine. Further addresses are replicas, tried in order.
    flight_sql: OneOrMany,
    /// Bearer token, sent for all callers. Default: none.
    token: Option<SecretText>,
    /// Database of that server. Default: that of the server.
    catalog: Option<String>,
    /// SQL of the server. Default: datafusion.
    dialect: Option<DialectConfig>,
    /// Maximum time to the first row. Default: 20s.
    timeout: Option<Time>,
    /// TLS to the server.
    #[serde(default)]
    tls: ClientTlsConfig,
    /// Whether /ready fails without this database. Default: true.
    required: Option<bool>,
}

impl ConfiguredDatabase for FlightSqlConfig {
    fn advice(key: &str) -> Option<&'static str> {
        (key == "policies").then_some(POLICIES_MESSAGE)
    }

    fn used_keys(&self) -> UsedKeys<'_> {
        UsedKeys { required: self.required, tls: Some(&self.tls), ..UsedKeys::default() }
    }

    #[cfg(not(feature = "network"))]
    fn open(&self, _: &str, path: &str, _: &mut Opening<'_>) -> OpeningResult {
        Err(super::remote::not_built(path, "flight_sql"))
    }

    #[cfg(feature = "network")]
    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let tls_files = ClientTlsFiles::read(&self.tls, &format!("{path}.tls"), opening.loaded)?;
        let path = format!("{path}.flight_sql");
        let problems = Problems::at_path(&path);
        let (urls, is_list) = (self.flight_sql.clone().into_vec(), matches!(self.flight_sql, OneOrMany::Many(_)));
        if urls.is_empty() {
            problems.add("", "is empty; write the address of a server: grpc+tls://host:443");
        }
        let at = |index: usize| if is_list { format!("[{index}]") } else { String::new() };
        let urls = check_urls(urls.iter().enumerate().map(|(index, url)| (at(index), url)), &problems);
        let urls = problems.checked(urls)?;
        let default = FlightSqlOptions::new(urls);
        let token = self.token.as_ref().map(|token| NodeCredential::Token(token.0.expose().to_owned()));
        let options = FlightSqlOptions {
            database: self.catalog.clone(),
            dialect: to_dialect(self.dialect),
            credential: token.unwrap_or(NodeCredential::None),
            tls: to_flight_tls(&tls_files),
            timeout: self.timeout.map_or(default.timeout, |time| time.0),
            ..default
        };
        let opened = FlightSqlDatabase::new(name, options);
        let opened = opened.map_err(|error| vec![ConfigProblem::new(path, error.to_string())])?;
        Ok((Arc::new(opened), KindParts { tls_files: Some(Arc::new(tls_files)), ..KindParts::default() }))
    }
}
