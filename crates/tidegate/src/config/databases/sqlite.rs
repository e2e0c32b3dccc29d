//! Files of SQLite.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_sqlite::{SqliteDatabase, SqliteIngest, SqliteIngestOptions, SqliteOptions};

use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, UsedKeys, key_problem};
use crate::config::ingest::engine_tables;
use crate::config::quantities::{OneOrMany, Time};
use crate::config::types::{PolicyConfig, StampsConfig};

/// Files of SQLite.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SqliteConfig {
    /// SQLite files.
    sqlite: OneOrMany,
    /// Maximum number of connections. Default: 4.
    connections: Option<usize>,
    /// How long an answer is reused for the same caller. Default: never.
    cache: Option<Time>,
    /// Row and column policies. Default: none.
    #[serde(default)]
    policies: Vec<PolicyConfig>,
    /// Names of tables that take rows. Roles grant the right to write. Default: none.
    ingest: Option<OneOrMany>,
    /// Options of tables that take rows. Default: none.
    #[serde(default)]
    tables: BTreeMap<String, StampsConfig>,
}

impl ConfiguredDatabase for SqliteConfig {
    fn used_keys(&self) -> UsedKeys<'_> {
        let ingest_tables = self.ingest.clone().map(OneOrMany::into_vec);
        UsedKeys { policies: &self.policies, ingest_tables, ..UsedKeys::default() }
    }

    fn open(&self, name: &str, path: &str, opening: &mut Opening<'_>) -> OpeningResult {
        let (files, default) = (opening.resolve(&self.sqlite), SqliteOptions::default());
        let options = SqliteOptions {
            connections_max: self.connections.unwrap_or(default.connections_max),
            cached_answer_max_age: self.cache.map(|time| time.0),
            row_policies: opening.row_policies(&self.policies, path)?,
            ..default
        };
        let opened = SqliteDatabase::open(name, files.clone(), options);
        let database = Arc::new(opened.map_err(|error| key_problem(path, "sqlite", error))?);
        let mut target = None;
        if let Some(tables) = engine_tables(self.used_keys().ingest_tables, &self.tables, path)? {
            let options = SqliteIngestOptions { tables, stores_keys: true, ..SqliteIngestOptions::default() };
            let opened =
                SqliteIngest::open(name, files, options).map_err(|error| key_problem(path, "ingest", error))?;
            target = Some(opening.counted(name, opened));
        }
        Ok((database, KindParts { target, ..KindParts::default() }))
    }
}
