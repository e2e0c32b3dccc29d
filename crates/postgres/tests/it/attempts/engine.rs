//! A caller of the engine, through all three walls.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_postgres::connect::{Surroundings, Target};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};

use super::caller::{Caller, Said, secrets_of};
use super::traces::Traces;
use crate::scene::{Node, of_caller};

/// A caller of the engine. All calls share one connection, so that each would meet what another left in it.
pub(crate) struct EngineCaller(Node);

impl EngineCaller {
    pub(crate) fn new(server: &str) -> Self {
        let target = Target::read(server, &Surroundings::of_process()).unwrap();
        let options = PostgresOptions { connections_max: 1, ..PostgresOptions::default() };
        Self(Node { database: Arc::new(PostgresDatabase::open("scene", target, options).unwrap()) })
    }

    /// Waits until the connection is back.
    pub(crate) async fn idle(&self) {
        self.0.idle().await;
    }

    async fn ask(&self, sql: &str) -> Result<String, Error> {
        self.0.lines(&of_caller(sql)?).await
    }
}

impl Caller for EngineCaller {
    async fn say(&self, sql: &str) -> Said {
        let answer = self.ask(sql).await.map(String::into_bytes).map_err(|error| error.to_string());
        let left = answer.as_ref().map_or_else(|_| Traces::new(), |bytes| secrets_of(bytes));
        Said { answer, left, process: None }
    }

    fn parses_nothing(&self) -> bool {
        false
    }
}
