//! The same statements in PostgreSQL and over files: what the engine answers is what PostgreSQL answers.
//!
//! `tests/differential/README.md` says how to run it and what its words mean.

mod answer;
mod columns;
mod compare;
mod corpus;
mod federated;
mod from_arrow;
mod from_text;
mod functions;
mod generated;
mod generator;
mod number;
mod report;
mod server;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tidegate_core::Principal;
use tidegate_engines::FileLimits;
use tidegate_query::Database;
use tidegate_sql::Statement;

use self::answer::Answer;
use self::compare::{EngineAnswer, Outcome, outcome};
use self::corpus::{CorpusStatement, is_ordered};
use self::report::Report;
use self::server::{STATEMENT_SECONDS_MAX, Server, ServerError};
use self::tables::Tables;
use crate::support::{TestJob, TestNode, two_thread_options};

/// The share of the corpus that must be answered as PostgreSQL answers it; it may only grow.
const ANSWERED_SHARE_MIN: f64 = 0.98;
/// Statements that run at a time.
const PARALLEL: usize = 4;

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// An environment variable for developers: what to run and how to report it.
fn setting(name: &str) -> Option<String> {
    std::env::var(format!("TIDEGATE_DIFFERENTIAL{name}")).ok().filter(|value| !value.is_empty())
}

/// PostgreSQL and the files, with the same tables.
struct ComparedEngines {
    server: Server,
    node: TestNode,
}

impl ComparedEngines {
    async fn open() -> Self {
        let tables = Tables::prepare().await;
        let server = Server::open(&tables.database, PARALLEL).await;
        Self { server, node: TestNode::open_with(vec![tables.folder], two_thread_options(), FileLimits::default()) }
    }

    async fn judge_statement(&self, index: usize, statement: CorpusStatement) -> JudgedStatement {
        let theirs = self.server.query(index, &statement.sql).await;
        let ours = query_engine(self.node.database.clone(), &statement.sql).await;
        let outcome = outcome(&theirs, &ours, is_ordered(&statement.sql));
        JudgedStatement { statement, theirs, ours, outcome }
    }
}

/// What `database` answers to `sql`, whatever happens.
async fn query_engine(database: Arc<dyn Database>, sql: &str) -> EngineAnswer {
    let sql = sql.to_owned();
    let answer = tokio::spawn(async move { query_database(database.as_ref(), &sql).await });
    match tokio::time::timeout(Duration::from_secs(STATEMENT_SECONDS_MAX), answer).await {
        Ok(Ok(Ok(answer))) => EngineAnswer::Answer(answer),
        Ok(Ok(Err(error))) => EngineAnswer::Error(error),
        Ok(Err(panic)) => EngineAnswer::Broken(panic.to_string()),
        Err(_) => EngineAnswer::Broken(format!("no answer within {STATEMENT_SECONDS_MAX} seconds")),
    }
}

/// The answer of a database to `sql`.
async fn query_database(database: &dyn Database, sql: &str) -> Result<Answer, tidegate_core::Error> {
    let statement = Statement::parse(sql, database.dialect())?;
    let plan = database.plan(&statement, &Principal::anonymous()).await?;
    let job = TestJob::start().await;
    let rows = plan.run(&job.job).await?;
    let schema = rows.schema.clone();
    let (mut batches, mut stream) = (Vec::new(), rows.batches);
    while let Some(batch) = stream.next().await {
        batches.push(batch?);
    }
    Ok(from_arrow::answer_of(&schema, &batches))
}

/// A statement with both answers.
struct JudgedStatement {
    statement: CorpusStatement,
    theirs: Result<Answer, ServerError>,
    ours: EngineAnswer,
    outcome: Outcome,
}

impl JudgedStatement {
    fn fails(&self) -> bool {
        match &self.outcome {
            Outcome::Different(_) | Outcome::Internal | Outcome::EqualExceptNames | Outcome::RefusedWithoutHint => true,
            Outcome::Refused => false,
            Outcome::Equal | Outcome::BothFail | Outcome::Wider | Outcome::OnlyEngineAnswers => {
                self.statement.refused.is_some()
            }
        }
    }

    /// The names of the columns, where they differ though the values are equal.
    fn names(&self) -> Option<String> {
        let (Outcome::EqualExceptNames, Ok(theirs), EngineAnswer::Answer(ours)) =
            (&self.outcome, &self.theirs, &self.ours)
        else {
            return None;
        };
        let pairs = theirs.columns.iter().zip(&ours.columns).filter(|(theirs, ours)| theirs.name != ours.name);
        let pairs: Vec<String> = pairs.map(|(theirs, ours)| format!("{} is {:?}", theirs.name, ours.name)).collect();
        Some(format!("{}:{}  {}", self.statement.area, self.statement.line, pairs.join(", ")))
    }

    fn describe(&self) -> String {
        let CorpusStatement { area, line, sql, refused } = &self.statement;
        let theirs = match &self.theirs {
            Ok(answer) => answer.to_string(),
            Err(error) => format!("{} {}", error.code, error.message),
        };
        let mark = match (refused, &self.outcome) {
            (Some(reason), outcome) if !matches!(outcome, Outcome::Refused | Outcome::RefusedWithoutHint) => {
                format!(" (it is marked as refused, {reason:?}: take the mark away)")
            }
            _ => String::new(),
        };
        format!(
            "{:?}{mark}\n  {area}:{line}  {sql}\n    PostgreSQL: {theirs}\n    files: {}\n",
            self.outcome, self.ours
        )
    }
}

/// Judges `statements`, several at a time.
async fn judge_all(sides: &ComparedEngines, statements: Vec<CorpusStatement>) -> Vec<JudgedStatement> {
    let judged = statements.into_iter().enumerate().map(|(index, statement)| sides.judge_statement(index, statement));
    stream::iter(judged).buffered(PARALLEL).collect().await
}

/// Writes a report where a developer finds it, and says where.
#[allow(clippy::print_stderr, reason = "a developer reads it")]
fn publish(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = setting("_OUTPUT").map_or_else(|| folder.join(format!("{name}.txt")), PathBuf::from);
    fs::write(&path, text).unwrap();
    eprintln!("{text}\nthe report is in {}", path.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_corpus_is_answered_as_postgresql_answers_it() {
    let typed = setting("_SQL");
    let statements = match &typed {
        Some(sql) => corpus::parse("typed", &format!("{};", sql.trim().trim_end_matches(';'))),
        None => corpus::statements("corpus", setting("").as_deref()),
    };
    let sides = ComparedEngines::open().await;
    let judged = judge_all(&sides, statements).await;
    if typed.is_some() {
        return print_judged(&judged);
    }
    let report = Report::new(&judged);
    publish("differential", &report.text);
    if setting("_REPORT").is_some() {
        return;
    }
    assert!(report.failures.is_empty(), "{} statements fail; the list is above", report.failures.len());
    let is_whole = setting("").is_none();
    assert!(!is_whole || report.total.share() >= ANSWERED_SHARE_MIN, "too much of the corpus is refused");
}

#[allow(clippy::print_stderr, reason = "a developer reads it")]
fn print_judged(judged: &[JudgedStatement]) {
    judged.iter().for_each(|judged| eprintln!("{}", judged.describe()));
}
