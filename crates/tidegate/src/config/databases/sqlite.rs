//! Files of SQLite.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_query::CountedTarget;
use tidegate_sqlite::{SqliteDatabase, SqliteIngest, SqliteIngestOptions, SqliteOptions};

use super::kinds::keys_of_kind;
use super::{ConfiguredDatabase, KindParts, Opening, OpeningResult, key_problem};
use crate::config::ingest::engine_tables;
use crate::config::quantities::{OneOrMany, Time};
use crate::config::types::{PolicyConfig, TableConfig};
use crate::node_tables::ConnectionPool;

keys_of_kind! {
    struct SqliteConfig {
        sqlite: OneOrMany,
        connections: Option<usize>,
        cache: Option<Time>,
        policies: Vec<PolicyConfig>,
        ingest: Option<OneOrMany>,
        tables: BTreeMap<String, TableConfig>,
    }
    elsewhere {}
}

impl ConfiguredDatabase for SqliteConfig {
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
        if let Some(tables) = engine_tables(self.ingest.as_ref(), &self.tables, path)? {
            let options = SqliteIngestOptions { tables, stores_keys: true, ..SqliteIngestOptions::default() };
            let opened =
                SqliteIngest::open(name, files, options).map_err(|error| key_problem(path, "ingest", error))?;
            target = Some(Arc::new(CountedTarget::new(Arc::new(opened))));
        }
        let connections = Some(ConnectionPool::Sqlite(database.clone()));
        Ok((database, KindParts { connections, target, ..KindParts::default() }))
    }
}
