//! A caller of the engine, behind all three defence layers.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};

use super::caller::{RunOutcome, StatementRunner, find_secrets};
use super::state_diff::StateDiff;
use crate::test_database::{OpenedDatabase, caller_statement};

/// A caller of the engine. All calls share one connection, so that each would meet what another left in it.
pub(crate) struct EngineRunner(OpenedDatabase);

impl EngineRunner {
    pub(crate) fn new(server: &str) -> Self {
        let target = ConnectTarget::parse(server, &ConnectEnvironment::from_process()).unwrap();
        let options = PostgresOptions { connections_max: 1, ..PostgresOptions::default() };
        Self(OpenedDatabase { database: Arc::new(PostgresDatabase::open("scene", target, options).unwrap()) })
    }

    /// Waits until the connection is back.
    pub(crate) async fn wait_until_idle(&self) {
        self.0.wait_until_idle().await;
    }

    async fn run_sql(&self, sql: &str) -> Result<String, Error> {
        self.0.lines(&caller_statement(sql)?).await
    }
}

impl StatementRunner for EngineRunner {
    async fn run_statement(&self, sql: &str) -> RunOutcome {
        let answer = self.run_sql(sql).await.map(String::into_bytes).map_err(|error| error.to_string());
        let left = answer.as_ref().map_or_else(|_| StateDiff::new(), |bytes| find_secrets(bytes));
        RunOutcome { answer, left, process: None }
    }

    fn has_no_parser(&self) -> bool {
        false
    }
}
