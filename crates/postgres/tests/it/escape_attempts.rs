//! Attempts to do more than read, with our parser switched off: what is left of them is looked for in the database.
//!
//! Each defence layer is tested alone once: the role in a transaction that may write, the read-only transaction of a
//! superuser.
//! The attempts that one layer alone does not stop are listed in `tests/limits`, which a test verifies.

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

/// What came of an entry of a corpus.
struct Outcome {
    entry: CorpusEntry,
    answer: Result<(), String>,
    left: StateDiff,
}

/// Longer than anything may take that is waited for here, on any machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `future`, and fails when it takes forever.
async fn within_timeout<T>(subject: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.unwrap_or_else(|_| panic!("no end of: {subject}"))
}

/// Has `caller` say each entry in turn. Ends early where nothing is left to compare with.
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

/// What an entry of `tests/limits` says.
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

/// Fails with every entry that left something else than `expected_limits` say.
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

/// All three defence layers, for a caller of the tool `sql`.
#[tokio::test]
async fn engine_blocks_all_attempts() {
    let mut scene = ClusterFixture::new().await;
    let caller = EngineRunner::new(&scene.reader());
    let outcomes = run_attempts(&mut scene, &caller, parse_entries(&corpus::shared_corpus("attempts"))).await;
    expect_only(&[], scene.version(), &outcomes);
    let passed = |outcome: &&Outcome| outcome.entry.comment.starts_with("refused") && outcome.answer.is_ok();
    let passed: Vec<&str> = outcomes.iter().filter(passed).map(|outcome| outcome.entry.sql.as_str()).collect();
    assert!(passed.is_empty(), "these ran: {passed:#?}");
    caller.wait_until_idle().await;
}

#[tokio::test]
async fn harmless_sql_succeeds_without_side_effects() {
    let mut scene = ClusterFixture::new().await;
    let caller = PlainRunner { server: scene.reader(), begin: "BEGIN READ ONLY" };
    check_harmless_sql(&mut scene, &caller).await;
}

#[tokio::test]
async fn harmless_sql_succeeds_through_the_engine() {
    let mut scene = ClusterFixture::new().await;
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

/// As a superuser who may write, each of these leaves its trace: a watch that never barks proves nothing.
#[tokio::test]
async fn every_kind_of_side_effect_is_detected() {
    let mut scene = ClusterFixture::new().await;
    let caller = PlainRunner { server: scene.superuser(), begin: "BEGIN READ WRITE" };
    let acts = parse_entries(&corpus::expected_limits("nothing"));
    let outcomes = run_attempts(&mut scene, &caller, parse_entries(&corpus::expected_limits("nothing"))).await;
    expect_only(&acts, scene.version(), &outcomes);
}
