//! Attempts to do more than read, with our parser switched off: what is left of them is looked for in the database.
//!
//! Each defence layer is tested alone: the role in a transaction that may write, the read-only transaction of a superuser.
//! The attempts that a single layer does not stop are listed in `tests/limits`, and the test checks each entry.

mod caller;
mod cluster_fixture;
mod corpus;
mod engine_runner;
mod state_diff;
mod watcher;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::Duration;

use caller::{PlainRunner, StatementRunner};
use cluster_fixture::ClusterFixture;
use corpus::{CorpusEntry, parse_entries};
use engine_runner::EngineRunner;
use state_diff::{StateDiff, diff_states};

use crate::test_database::caller_statement;

/// What came of an entry of a corpus.
struct Outcome {
    entry: CorpusEntry,
    answer: Result<(), String>,
    left: StateDiff,
}

/// Longer than anything may take that is waited for here, on any machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `future`; panics after the time limit.
async fn within_timeout<T>(subject: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.unwrap_or_else(|_| panic!("no end of: {subject}"))
}

/// Runs each entry as `caller`. Ends early if there is no state left to compare with.
async fn run_attempts(
    scene: &mut ClusterFixture,
    caller: &impl StatementRunner,
    entries: Vec<CorpusEntry>,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut before = within_timeout("the first look", scene.state(None)).await.unwrap();
    for entry in entries {
        let run_outcome = within_timeout(&entry.sql, caller.run_statement(&scene.localize_paths(&entry.sql))).await;
        let mut left = run_outcome.left;
        let after = within_timeout(&entry.sql, scene.state(run_outcome.process)).await;
        match &after {
            Ok(after) => left.extend(diff_states(&before, after)),
            Err(error) => drop(left.insert("everything".to_owned(), vec![error.to_string()])),
        }
        outcomes.push(Outcome { entry, answer: run_outcome.answer.map(drop), left });
        let Ok(after) = after else { break };
        before = if scene.restore().await { scene.state(None).await.unwrap() } else { after };
    }
    outcomes
}

/// An entry of `tests/limits`.
struct Limit {
    left: BTreeSet<String>,
    /// Whether it is left at all depends on the order in which a server happens to list things.
    is_uncertain: bool,
}

impl Limit {
    /// "leaves this, that: why"; of what a later version stops, "leaves this, that until 15: why"; of what only some
    /// runs show, "may leave this: why".
    fn parse(entry: &CorpusEntry, version: u32) -> Self {
        let message = entry.comment.split_once(':').and_then(|(message, _)| {
            let certain = message.strip_prefix("leaves ").map(|left| (left, false));
            certain.or_else(|| message.strip_prefix("may leave ").map(|left| (left, true)))
        });
        let (left, is_uncertain) = message.unwrap_or_else(|| panic!("not of the form \"leaves this: why\": {entry:?}"));
        let (left, until) = left.split_once(" until ").map_or((left, None), |(left, until)| (left, Some(until)));
        let is_over = until.is_some_and(|until| version > until.parse().unwrap());
        let left = left.split(", ").filter(|_| !is_over).map(str::to_owned).collect();
        Self { left, is_uncertain }
    }

    fn allows(&self, found: &BTreeSet<String>) -> bool {
        if self.is_uncertain { found.is_subset(&self.left) } else { *found == self.left }
    }
}

/// Fails with every entry that left another change than `expected_limits` list.
fn expect_only(limits: &[CorpusEntry], version: u32, outcomes: &[Outcome]) {
    let limits: HashMap<&str, Limit> = limits.iter().map(|limit| (&*limit.sql, Limit::parse(limit, version))).collect();
    let mut unattempted: BTreeSet<&str> = limits.keys().copied().collect();
    let nothing = Limit { left: BTreeSet::new(), is_uncertain: false };
    let mut failures = String::new();
    for Outcome { entry, answer, left } in outcomes {
        unattempted.remove(&*entry.sql);
        let limit = limits.get(&*entry.sql).unwrap_or(&nothing);
        if !limit.allows(&left.keys().cloned().collect()) {
            let (CorpusEntry { comment, sql }, expected) = (entry, &limit.left);
            write!(failures, "\n-- {comment}\n{sql}\n=> {answer:?}\n   expected {expected:?}, left {left:#?}\n")
                .unwrap();
        }
    }
    for sql in unattempted {
        write!(failures, "\nthe limits name what nobody attempts: {sql}\n").unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}

async fn check_attempts_against(sandbox: &str, caller_of: impl Fn(&ClusterFixture) -> PlainRunner) {
    let mut scene = ClusterFixture::new().await;
    let caller = caller_of(&scene);
    let outcomes = run_attempts(&mut scene, &caller, parse_entries(&corpus::shared_corpus("attempts"))).await;
    expect_only(&parse_entries(&corpus::expected_limits(sandbox)), scene.version(), &outcomes);
}

#[tokio::test]
async fn role_and_transaction_block_attempts_without_parser() {
    check_attempts_against("role_and_transaction", |scene| PlainRunner {
        server: scene.reader(),
        begin: "BEGIN READ ONLY",
    })
    .await;
}

#[tokio::test]
async fn role_alone_blocks_attempts() {
    check_attempts_against("role", |scene| PlainRunner { server: scene.reader(), begin: "BEGIN READ WRITE" }).await;
}

#[tokio::test]
async fn transaction_alone_blocks_attempts() {
    check_attempts_against("transaction", |scene| PlainRunner { server: scene.superuser(), begin: "BEGIN READ ONLY" })
        .await;
}

/// All three layers together, as for a caller of the tool `sql`. Both checks leave the server as it was, so that they
/// can share it.
#[tokio::test]
async fn engine_blocks_all_attempts_and_hides_statements_of_others() {
    let mut scene = ClusterFixture::new().await;
    let caller = EngineRunner::new(&scene.reader());
    let outcomes = run_attempts(&mut scene, &caller, parse_entries(&corpus::shared_corpus("attempts"))).await;
    expect_only(&[], scene.version(), &outcomes);
    let passed = |outcome: &&Outcome| outcome.entry.comment.starts_with("refused") && outcome.answer.is_ok();
    let passed: Vec<&str> = outcomes.iter().filter(passed).map(|outcome| outcome.entry.sql.as_str()).collect();
    assert!(passed.is_empty(), "these ran: {passed:#?}");
    // What only the catalog shows is refused before it runs.
    let is_refused = |outcome: &Outcome| outcome.answer.as_ref().is_err_and(|message| message.contains("is refused"));
    let looked_up = outcomes.iter().filter(|outcome| outcome.entry.comment.starts_with("looked up"));
    let passed: Vec<_> =
        looked_up.filter(|outcome| !is_refused(outcome)).map(|outcome| (&outcome.entry.sql, &outcome.answer)).collect();
    assert!(passed.is_empty(), "these passed the check of functions: {passed:#?}");
    caller.wait_until_idle().await;
    check_hidden_statements(&scene).await;
    check_privileged_relations(&scene).await;
}

/// Each view of the server, and each function of it that can be called without a value, or with a small number.
const SYSTEM_READS_SQL: &str = "
    SELECT format('SELECT * FROM %I.%I', relnamespace::regnamespace, relname) FROM pg_class
    WHERE relkind = 'v' AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    UNION ALL
    SELECT format(CASE WHEN pronargs - pronargdefaults = 0 THEN 'SELECT to_json(pg_catalog.%1$I())'
                       WHEN proargtypes[0] = 'oid'::regtype THEN 'SELECT to_json(pg_catalog.%1$I(1::oid))'
                       ELSE 'SELECT to_json(pg_catalog.%1$I(n)) FROM generate_series(0, 200) AS n' END, proname)
           || CASE WHEN pronargs = 1 AND proargtypes[0] = 'integer'::regtype AND proname LIKE '%activity'
                   THEN ' UNION ALL SELECT to_json(pg_catalog.' || proname || '(NULL))' ELSE '' END
    FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND pronargs - pronargdefaults <= 1
      AND (pronargs - pronargdefaults = 0 OR proargtypes[0] IN ('integer'::regtype, 'oid'::regtype))";

/// No view and no function of the server shows a caller what another caller asks, whatever its name is.
async fn check_hidden_statements(scene: &ClusterFixture) {
    let caller = EngineRunner::new(&scene.reader());
    let reads = scene.texts(SYSTEM_READS_SQL).await;
    assert!(reads.len() > 300, "{}", reads.len());
    let bare = PlainRunner { server: scene.reader(), begin: "BEGIN READ ONLY" };
    let (mut answered, mut revealing) = (0, Vec::new());
    for sql in &reads {
        let outcome = within_timeout(sql, caller.run_statement(sql)).await;
        answered += usize::from(outcome.answer.is_ok());
        if !outcome.left.is_empty() {
            revealing.push(sql.clone());
        }
    }
    assert!(revealing.is_empty(), "{revealing:#?}");
    // The policy must not refuse everything, and without it something is shown.
    assert!(answered > 150, "{answered}");
    assert!(!bare.run_statement("SELECT * FROM pg_stat_activity").await.left.is_empty());
}

const PRIVILEGED_RELATIONS_SQL: &str = "
    SELECT format('%s.%s', relnamespace::regnamespace, relname) FROM pg_class
    WHERE relnamespace IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace) AND relkind IN ('r', 'v', 't')
      AND NOT has_table_privilege('reader', oid, 'SELECT')";

/// A caller reads no relation of the server that only a superuser may read, since a node may have such a login.
async fn check_privileged_relations(scene: &ClusterFixture) {
    let mut relations = scene.texts(PRIVILEGED_RELATIONS_SQL).await;
    for expected in ["pg_catalog.pg_authid", "pg_toast.pg_toast_1255"] {
        assert!(relations.iter().any(|name| name == expected), "{relations:?}");
    }
    relations.retain(|name| caller_statement(&format!("SELECT * FROM {name}")).is_ok());
    assert!(relations.is_empty(), "{relations:?}");
}

/// In a transaction, and through the engine. Neither changes the server, so that they can share it.
#[tokio::test]
async fn harmless_sql_succeeds_without_side_effects() {
    let mut scene = ClusterFixture::new().await;
    let caller = PlainRunner { server: scene.reader(), begin: "BEGIN READ ONLY" };
    check_harmless_sql(&mut scene, &caller).await;
    let caller = EngineRunner::new(&scene.reader());
    check_harmless_sql(&mut scene, &caller).await;
    caller.wait_until_idle().await;
}

async fn check_harmless_sql(scene: &mut ClusterFixture, caller: &impl StatementRunner) {
    let version = scene.version();
    // What needs parameters, or tables of an extension, is for the parser alone.
    let mut honest = parse_entries(&corpus::shared_corpus("honest"));
    honest.retain(|entry| match entry.comment.strip_prefix("needs: ") {
        Some(need) => need.strip_prefix("PostgreSQL ").is_some_and(|needed| needed.parse::<u32>().unwrap() <= version),
        None => true,
    });
    honest.retain(|entry| !entry.comment.starts_with("not understood") || caller.has_no_parser());
    let outcomes = run_attempts(scene, caller, honest).await;
    // A server may be built without XML.
    let is_excused =
        |answer: &Result<(), String>| answer.as_ref().is_err_and(|words| words.contains("unsupported XML feature"));
    let failed = outcomes.iter().filter(|outcome| outcome.answer.is_err() && !is_excused(&outcome.answer));
    let message: String = failed.map(|outcome| format!("\n{}\n=> {:?}\n", outcome.entry.sql, outcome.answer)).collect();
    assert!(message.is_empty(), "{message}");
    expect_only(&[], version, &outcomes);
}

/// As a superuser with write access, each attempt must be detected: otherwise the monitor would prove nothing.
#[tokio::test]
async fn every_kind_of_side_effect_is_detected() {
    let mut scene = ClusterFixture::new().await;
    let caller = PlainRunner { server: scene.superuser(), begin: "BEGIN READ WRITE" };
    let acts = parse_entries(&corpus::expected_limits("nothing"));
    let outcomes = run_attempts(&mut scene, &caller, parse_entries(&corpus::expected_limits("nothing"))).await;
    expect_only(&acts, scene.version(), &outcomes);
}
