//! Attempts to do more than read, with our parser switched off: what is left of them is looked for in the database.
//!
//! Each wall stands alone once: the role in a transaction that may write, the read-only transaction of a superuser.
//! What a wall does not hold by itself stands in `tests/limits`, entry by entry, and is tested to be so.

mod caller;
mod corpus;
mod engine;
mod scene;
mod traces;
mod watcher;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::Duration;

use caller::{Caller, PlainCaller};
use corpus::{Entry, entries};
use engine::EngineCaller;
use scene::Scene;
use traces::{Traces, between};

/// What came of an entry of a corpus.
struct Outcome {
    entry: Entry,
    answer: Result<(), String>,
    left: Traces,
}

/// Longer than anything may take that is waited for here, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `future`, and fails when it takes forever.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("no end of: {what}"))
}

/// Has `caller` say each entry in turn. Ends early where nothing is left to compare with.
async fn outcomes(scene: &mut Scene, caller: &impl Caller, entries: Vec<Entry>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut before = soon("the first look", scene.state(None)).await.unwrap();
    for entry in entries {
        let said = soon(&entry.sql, caller.say(&scene.localized(&entry.sql))).await;
        let mut left = said.left;
        let after = soon(&entry.sql, scene.state(said.process)).await;
        match &after {
            Ok(after) => left.extend(between(&before, after)),
            Err(error) => drop(left.insert("everything".to_owned(), vec![error.to_string()])),
        }
        outcomes.push(Outcome { entry, answer: said.answer.map(drop), left });
        let Ok(after) = after else { break };
        before = if scene.mend().await { scene.state(None).await.unwrap() } else { after };
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
    fn of(entry: &Entry, version: u32) -> Self {
        let told = entry.comment.split_once(':').and_then(|(told, _)| {
            let certain = told.strip_prefix("leaves ").map(|left| (left, false));
            certain.or_else(|| told.strip_prefix("may leave ").map(|left| (left, true)))
        });
        let (left, is_uncertain) = told.unwrap_or_else(|| panic!("not of the form \"leaves this: why\": {entry:?}"));
        let (left, until) = left.split_once(" until ").map_or((left, None), |(left, until)| (left, Some(until)));
        let is_over = until.is_some_and(|until| version > until.parse().unwrap());
        let left = left.split(", ").filter(|_| !is_over).map(str::to_owned).collect();
        Self { left, is_uncertain }
    }

    fn allows(&self, found: &BTreeSet<String>) -> bool {
        if self.is_uncertain { found.is_subset(&self.left) } else { *found == self.left }
    }
}

/// Fails with every entry that left something else than `limits` say.
fn expect_only(limits: &[Entry], version: u32, outcomes: &[Outcome]) {
    let limits: HashMap<&str, Limit> = limits.iter().map(|limit| (&*limit.sql, Limit::of(limit, version))).collect();
    let mut unattempted: BTreeSet<&str> = limits.keys().copied().collect();
    let nothing = Limit { left: BTreeSet::new(), is_uncertain: false };
    let mut failures = String::new();
    for Outcome { entry, answer, left } in outcomes {
        unattempted.remove(&*entry.sql);
        let limit = limits.get(&*entry.sql).unwrap_or(&nothing);
        if !limit.allows(&left.keys().cloned().collect()) {
            let (Entry { comment, sql }, expected) = (entry, &limit.left);
            write!(failures, "\n-- {comment}\n{sql}\n=> {answer:?}\n   expected {expected:?}, left {left:#?}\n")
                .unwrap();
        }
    }
    for sql in unattempted {
        write!(failures, "\nthe limits name what nobody attempts: {sql}\n").unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}

async fn attempt_all(wall: &str, caller_of: impl Fn(&Scene) -> PlainCaller) {
    let mut scene = Scene::new().await;
    let caller = caller_of(&scene);
    let outcomes = outcomes(&mut scene, &caller, entries(&corpus::shared("attempts"))).await;
    expect_only(&entries(&corpus::limits(wall)), scene.version(), &outcomes);
}

#[tokio::test]
async fn role_and_transaction_hold_without_the_parser() {
    attempt_all("role_and_transaction", |scene| PlainCaller { server: scene.reader(), begin: "BEGIN READ ONLY" }).await;
}

#[tokio::test]
async fn the_role_holds_alone() {
    attempt_all("role", |scene| PlainCaller { server: scene.reader(), begin: "BEGIN READ WRITE" }).await;
}

#[tokio::test]
async fn the_transaction_holds_alone() {
    attempt_all("transaction", |scene| PlainCaller { server: scene.superuser(), begin: "BEGIN READ ONLY" }).await;
}

/// All three walls, as a caller of the tool `sql` meets them.
#[tokio::test]
async fn nothing_gets_through_the_engine() {
    let mut scene = Scene::new().await;
    let caller = EngineCaller::new(&scene.reader());
    let outcomes = outcomes(&mut scene, &caller, entries(&corpus::shared("attempts"))).await;
    expect_only(&[], scene.version(), &outcomes);
    let passed = |outcome: &&Outcome| outcome.entry.comment.starts_with("refused") && outcome.answer.is_ok();
    let passed: Vec<&str> = outcomes.iter().filter(passed).map(|outcome| outcome.entry.sql.as_str()).collect();
    assert!(passed.is_empty(), "these ran: {passed:#?}");
    caller.idle().await;
}

#[tokio::test]
async fn honest_sql_passes_and_leaves_nothing() {
    let mut scene = Scene::new().await;
    let caller = PlainCaller { server: scene.reader(), begin: "BEGIN READ ONLY" };
    honest(&mut scene, &caller).await;
}

#[tokio::test]
async fn honest_sql_passes_through_the_engine() {
    let mut scene = Scene::new().await;
    let caller = EngineCaller::new(&scene.reader());
    honest(&mut scene, &caller).await;
    caller.idle().await;
}

async fn honest(scene: &mut Scene, caller: &impl Caller) {
    let version = scene.version();
    // What needs parameters, or tables of an extension, is for the parser alone.
    let mut honest = entries(&corpus::shared("honest"));
    honest.retain(|entry| match entry.comment.strip_prefix("needs: ") {
        Some(need) => need.strip_prefix("PostgreSQL ").is_some_and(|needed| needed.parse::<u32>().unwrap() <= version),
        None => true,
    });
    honest.retain(|entry| !entry.comment.starts_with("not understood") || caller.parses_nothing());
    let outcomes = outcomes(scene, caller, honest).await;
    // A server may be built without XML.
    let is_excused =
        |answer: &Result<(), String>| answer.as_ref().is_err_and(|words| words.contains("unsupported XML feature"));
    let failed = outcomes.iter().filter(|outcome| outcome.answer.is_err() && !is_excused(&outcome.answer));
    let told: String = failed.map(|outcome| format!("\n{}\n=> {:?}\n", outcome.entry.sql, outcome.answer)).collect();
    assert!(told.is_empty(), "{told}");
    expect_only(&[], version, &outcomes);
}

/// As a superuser who may write, each of these leaves its trace: a watch that never barks proves nothing.
#[tokio::test]
async fn every_kind_of_trace_is_seen() {
    let mut scene = Scene::new().await;
    let caller = PlainCaller { server: scene.superuser(), begin: "BEGIN READ WRITE" };
    let acts = entries(&corpus::limits("nothing"));
    let outcomes = outcomes(&mut scene, &caller, entries(&corpus::limits("nothing"))).await;
    expect_only(&acts, scene.version(), &outcomes);
}
