//! Row policies: what a principal sees of a table, and that nothing reveals the rest.

mod attacks;
mod catalogs;
mod copy_equivalence;
mod generated_queries;
mod logs;
mod visibility;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use serde_json::Value;
use tidegate_core::{AuthMethod, Error, Grants, Principal};
use tidegate_engines::{EmbeddedDatabase, Engine};
use tidegate_query::{Database, HashKey, Mask, RowCondition, RowPolicies, RowPolicy};
use tidegate_sql::{SqlDialect, Statement};

use crate::support::{TestJob, lines, no_delay_limits, with_timeout};

/// The key of hashes in all tests here.
fn key() -> HashKey {
    HashKey::from_secret(b"a secret of tests")
}

fn policy(table: &str, rows: &str, columns: &[(&str, Mask)]) -> RowPolicy {
    let columns: BTreeMap<String, Mask> = columns.iter().map(|(name, mask)| ((*name).to_owned(), *mask)).collect();
    let rows = Some(RowCondition::parse(rows).unwrap());
    RowPolicy { table: table.to_owned(), rows, columns, except_roles: BTreeSet::from(["auditor".to_owned()]) }
}

fn test_principal(claims: &Value) -> Principal {
    let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::for_anonymous()));
    principal.claims = claims.as_object().cloned().unwrap_or_default();
    principal
}

/// A database under policies, and its principal.
struct RestrictedDatabase {
    database: EmbeddedDatabase,
    principal: Principal,
}

/// The outcome of a statement.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    /// The rows, or the kind of the error and its complete text.
    answer: Result<String, String>,
    explain: Option<String>,
    estimates: Option<(Option<u64>, Option<u64>, Option<bool>)>,
}

impl RestrictedDatabase {
    fn open(folder: &Path, engine: &Engine, policies: Vec<RowPolicy>, principal: Principal) -> Self {
        let database =
            EmbeddedDatabase::open_with("db", vec![folder.to_owned()], engine, no_delay_limits(), BTreeMap::new())
                .unwrap();
        Self { database: database.with_row_policies(RowPolicies::new(policies, key())), principal }
    }

    async fn query(&self, sql: &str) -> Outcome {
        run_statement(&self.database, sql, &self.principal).await
    }

    async fn rows(&self, sql: &str) -> String {
        self.query(sql).await.answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    async fn refusal(&self, sql: &str) -> String {
        match self.query(sql).await.answer {
            Ok(rows) => panic!("{sql} answered: {rows}"),
            Err(error) => error,
        }
    }

    async fn columns(&self, table: &str) -> String {
        let columns = self.database.columns(table, &self.principal).await.unwrap();
        columns.iter().map(|column| format!("{} {}", column.name, column.type_name)).collect::<Vec<_>>().join(", ")
    }
}

/// The outcome of `sql` when `principal` queries `database`.
async fn run_statement(database: &dyn Database, sql: &str, principal: &Principal) -> Outcome {
    let plan = match Statement::parse(sql, SqlDialect::DataFusion) {
        Ok(statement) => database.plan(&statement, principal).await,
        Err(error) => Err(error),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return Outcome { answer: Err(error_text(&error)), explain: None, estimates: None },
    };
    let explain = Some(plan.explain().await.unwrap());
    let estimates = Some((plan.estimated_rows(), plan.estimated_bytes(), plan.is_pipeline_breaking()));
    let job = TestJob::start().await;
    let mut stream = plan.run(&job.job).await.unwrap().batches;
    let mut batches = Vec::new();
    let answer = loop {
        match with_timeout("a batch", stream.next()).await {
            None => break Ok(lines(&batches)),
            Some(Ok(batch)) => batches.push(batch),
            Some(Err(error)) => break Err(error_text(&error)),
        }
    };
    Outcome { answer, explain, estimates }
}

fn error_text(error: &Error) -> String {
    let message = error.to_string();
    // An internal error has a random identifier that refers to the log.
    let message = message.split_once(" under id ").map_or(message.as_str(), |(message, _)| message);
    format!("{}: {message}", error.kind().name())
}
