//! The corpus over a federated database: some tables are those of PostgreSQL, the others are files.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use tidegate_engines::{EmbeddedDatabase, FederatedDatabase, FileLimits};
use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres::{PostgresDatabase, PostgresOptions};
use tidegate_query::Database;

use super::compare::outcome;
use super::corpus::{self, CorpusStatement, is_ordered};
use super::report::Report;
use super::tables::reader_of;
use super::{ComparedEngines, JudgedStatement, PARALLEL, Tables, publish, query_engine, setting};

/// The tables that are PostgreSQL's; the others are files.
const OF_POSTGRES: &[&str] = &["airlines", "customers", "employees", "nums", "orders"];
const OF_FILES: &[&str] = &["airports", "events", "flights", "planes", "products", "t_types", "texts", "weather"];
/// Of the statements that fit, each so many-th is run.
const STRIDE: usize = 3;

/// `sql` with the member's name before each table, where FROM or JOIN stand before it and nothing else is called so.
fn federated(sql: &str, table: &Regex) -> Option<String> {
    let with_members = table.replace_all(sql, |found: &regex::Captures<'_>| {
        let (before, name) = (&found[1], &found[2]);
        let member = if OF_POSTGRES.contains(&name) { "pg" } else { "files" };
        format!("{before}{member}.{name}")
    });
    (with_members != sql).then(|| with_members.into_owned())
}

async fn open(sides: &ComparedEngines, tables: &Tables) -> Arc<FederatedDatabase> {
    let engine = &sides.node.engine;
    let files = EmbeddedDatabase::open_with(
        "files",
        vec![tables.folder.clone()],
        engine,
        FileLimits::default(),
        BTreeMap::new(),
    )
    .unwrap();
    let target = ConnectTarget::parse(&reader_of(&tables.database), &ConnectEnvironment::from_process()).unwrap();
    let postgres = PostgresDatabase::open("pg", target, PostgresOptions::default()).unwrap();
    let members: [Arc<dyn Database>; 2] = [Arc::new(files), Arc::new(postgres)];
    Arc::new(FederatedDatabase::new("all", members, engine).unwrap())
}

async fn judge(
    sides: &ComparedEngines,
    database: Arc<dyn Database>,
    index: usize,
    statement: CorpusStatement,
    sql: String,
) -> JudgedStatement {
    let theirs = sides.server.query(index, &statement.sql).await;
    let ours = query_engine(database, &sql).await;
    let outcome = outcome(&theirs, &ours, is_ordered(&statement.sql));
    JudgedStatement { statement: CorpusStatement { sql, refused: None, ..statement }, theirs, ours, outcome }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_corpus_is_answered_by_a_federated_database() {
    use futures::{StreamExt, stream};
    let (sides, tables) = (ComparedEngines::open().await, Tables::prepare().await);
    let database = open(&sides, &tables).await;
    let names = [OF_POSTGRES, OF_FILES].concat().join("|");
    let table = Regex::new(&format!(r"(?i)\b((?:FROM|JOIN)\s+)({names})\b")).unwrap();
    // Beside tables that the expression does not find, a statement would name some without a member.
    let other =
        Regex::new(&format!(r"(?i),\s*(?:{names})\b|\bWITH\s+(?:{names})\b|\b(?:{names})\.\w|information_schema|pg_"))
            .unwrap();
    let statements = corpus::statements("corpus", setting("").as_deref());
    let fitting = statements.into_iter().filter(|statement| !other.is_match(&statement.sql));
    let fitting = fitting.filter_map(|statement| federated(&statement.sql, &table).map(|sql| (statement, sql)));
    let judged = fitting.step_by(STRIDE).enumerate();
    let judged = judged.map(|(index, (statement, sql))| judge(&sides, database.clone(), index, statement, sql));
    let judged: Vec<JudgedStatement> = stream::iter(judged).buffered(PARALLEL).collect().await;
    let report = Report::new(&judged);
    publish("differential-federated", &report.text);
    assert!(judged.len() > 20 || setting("").is_some(), "only {} statements fit", judged.len());
    if setting("_REPORT").is_none() {
        assert!(report.failures.is_empty(), "{} statements fail; the list is above", report.failures.len());
    }
}
