//! The database identity of callers: roles, claims, and row-level security that depends on them.

use std::sync::Arc;

use insta::assert_snapshot;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use tidegate_core::{AuthMethod, ErrorKind, Grants, Principal};
use tidegate_postgres::{ClaimSettings, PostgresOptions, RunAs};
use tidegate_query::Database;

use crate::test_database::{
    OpenDatabase as _, OpenedDatabase, TestDatabase, TestJob, caller_statement, collect_batches, owner_statement,
    wait_until, writing_statement,
};

const TENANTS: &str = "
    CREATE TABLE notes (tenant text, id int, text text);
    INSERT INTO notes SELECT CASE i % 2 WHEN 0 THEN 'acme' ELSE 'bolt' END, i, 'note ' || i FROM generate_series(1, 2000) i;
    ALTER TABLE notes ENABLE ROW LEVEL SECURITY; ALTER TABLE notes FORCE ROW LEVEL SECURITY;
    CREATE POLICY own ON notes USING (tenant = current_setting('app.tenant', true));
    CREATE ROLE {db}_reader; CREATE ROLE {db}_analyst; CREATE ROLE {db}_stranger;
    GRANT {db}_reader, {db}_analyst TO {login};
    GRANT SELECT ON notes TO {db}_reader, {db}_analyst;";

fn caller(tenant: &str, role: &str) -> Principal {
    let mut principal = Principal::new(format!("user of {tenant}"), AuthMethod::Token, Arc::new(Grants::everything()));
    principal.claims = json!({"tenant": tenant, "db_role": role}).as_object().unwrap().clone();
    principal
}

fn options(scene: &TestDatabase) -> PostgresOptions {
    let of_db = |role: &str| format!("{}_{role}", scene.name);
    PostgresOptions {
        run_as: RunAs::Claim {
            claim: "db_role".into(),
            allow: vec![of_db("reader"), of_db("analyst"), of_db("stranger")],
            default: None,
        },
        claims: ClaimSettings {
            combined: Some("request.jwt.claims".into()),
            per_claim: [("app.tenant".to_owned(), "tenant".to_owned())].into(),
            for_handlers: false,
        },
        connections_max: 3,
        // Longer than a hundred callers on three connections need on any machine.
        acquire_timeout: std::time::Duration::from_secs(300),
        ..PostgresOptions::default()
    }
}

#[tokio::test]
async fn call_uses_role_and_claims_of_caller() {
    let scene = TestDatabase::new(TENANTS).await;
    let node = scene.open(options(&scene));
    let principal = owner_statement(
        "SELECT current_user, session_user, current_setting('app.tenant'), \
         current_setting('request.jwt.claims')::json ->> 'sub', current_setting('transaction_read_only')",
        Vec::new(),
    );
    let reader = caller("acme", &format!("{}_reader", scene.name));
    let expected = format!("{0}_reader|{0}_login|acme|user of acme|on", scene.name);
    assert_eq!(node.lines_as(&principal, &reader).await.unwrap(), expected);
    // No state of it is left for the next caller.
    let analyst = caller("bolt", &format!("{}_analyst", scene.name));
    let expected = format!("{0}_analyst|{0}_login|bolt|user of bolt|on", scene.name);
    assert_eq!(node.lines_as(&principal, &analyst).await.unwrap(), expected);
    for (role, kind) in [("postgres", ErrorKind::Forbidden), ("", ErrorKind::Forbidden)] {
        assert_eq!(node.lines_as(&principal, &caller("acme", role)).await.unwrap_err().kind(), kind, "{role}");
    }
    // It is in the list, but the login role is not a member of it.
    let stranger = node.lines_as(&principal, &caller("acme", &format!("{}_stranger", scene.name))).await.unwrap_err();
    assert_eq!(stranger.kind(), ErrorKind::Internal);
    assert_snapshot!(stranger, @r"
    the database shop refuses the role that the configuration has for your identity
    The owner of the node finds the reason in its log and with tidegate doctor.
    ");
    let detail = format!(
        "database shop: cannot run as the role {0}_stranger: permission denied to set role \"{0}_stranger\"",
        scene.name
    );
    assert_eq!(stranger.detail(), Some(detail.as_str()));
    assert_eq!(node.lines_as(&principal, &Principal::anonymous()).await.unwrap_err().kind(), ErrorKind::Forbidden);
    node.wait_until_idle().await;
}

#[tokio::test]
async fn a_role_sees_its_own_catalog() {
    let scene = TestDatabase::new(TENANTS).await;
    scene.run("CREATE TABLE ledger (x int); GRANT SELECT ON ledger TO {db}_analyst").await;
    let node = scene.open(options(&scene));
    for (role, tables) in [("reader", vec!["notes"]), ("analyst", vec!["ledger", "notes"])] {
        let caller = caller("acme", &format!("{}_{role}", scene.name));
        let catalog = node.database.catalog(&caller).await.unwrap();
        assert_eq!(catalog.tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), tables);
    }
    // The same text is a different statement for another role.
    let sql = caller_statement("SELECT count(*) FROM ledger").unwrap();
    let reader = caller("acme", &format!("{}_reader", scene.name));
    let analyst = caller("acme", &format!("{}_analyst", scene.name));
    for _ in 0..3 {
        assert_eq!(node.lines_as(&sql, &analyst).await.unwrap(), "0");
        assert_eq!(node.lines_as(&sql, &reader).await.unwrap_err().kind(), ErrorKind::Forbidden);
    }
    node.wait_until_idle().await;
}

/// Two tenants with a hundred concurrent callers on three connections, with failures, dropped answers and cancelled jobs:
/// each caller receives only rows of its tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_callers_see_only_their_rows() {
    let scene = TestDatabase::new(TENANTS).await;
    let node = scene.open(options(&scene));
    let role = format!("{}_reader", scene.name);
    let callers = (0..100).map(|number| {
        let (node, tenant) = (node.clone(), if number % 2 == 0 { "acme" } else { "bolt" });
        let caller = caller(tenant, &role);
        tokio::spawn(async move {
            for round in 0..3 {
                let sql = match (number + round) % 5 {
                    0 => "SELECT tenant, id, 1 / (id - 1500) FROM notes",
                    1 => "SELECT tenant, id, pg_sleep(CASE WHEN id > 1000 THEN 100 ELSE 0 END) FROM notes",
                    _ => "SELECT tenant, id, text FROM notes",
                };
                let job = TestJob::start().await;
                let statement = owner_statement(sql, Vec::new());
                let plan = node.database.plan(&statement, &caller).await.unwrap();
                let rows = match (number + round) % 5 {
                    1 => {
                        let canceller = job.job.clone();
                        tokio::spawn(async move {
                            tokio::task::yield_now().await;
                            canceller.cancel();
                        });
                        plan.run(&job.job).await
                    }
                    _ => plan.run(&job.job).await,
                };
                let Ok(rows) = rows else { continue };
                if (number + round) % 5 == 3 {
                    drop(rows);
                    continue;
                }
                let Ok(batches) = collect_batches(rows).await else { continue };
                let lines = crate::test_database::format_rows(&batches);
                assert_eq!(lines.lines().count(), 1000, "{sql}");
                assert!(lines.lines().all(|line| line.starts_with(tenant)), "{tenant} saw {lines}");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    node.wait_until_idle().await;
    wait_until("the end of what was cancelled", || async { scene.active().await == "0" }).await;
}

/// What a step does on the only connection, before the next caller uses it.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Needs no transaction around it.
    Lone,
    /// Its side effects are rolled back.
    InTransaction,
    Caller,
    Failing,
    /// Changes role and claims of the session, and commits.
    Committing,
    /// Its role is not granted to the login role.
    Stranger,
    Dropped,
}

const STEPS: [Step; 7] =
    [Step::Lone, Step::InTransaction, Step::Caller, Step::Failing, Step::Committing, Step::Stranger, Step::Dropped];

const WHO: &str = "current_user, current_setting('app.tenant'), current_setting('request.jwt.claims')::json ->> 'sub', \
    (SELECT string_agg(DISTINCT tenant, ' ') FROM notes), current_setting('transaction_read_only')";

impl Step {
    async fn run(self, node: &OpenedDatabase, scene: &TestDatabase, tenant: &str, role: &str) {
        let as_role = |role: &str| caller(tenant, &format!("{}_{role}", scene.name));
        let who = |sql: String| owner_statement(&sql, Vec::new());
        let (principal, lone) = (as_role(role), who(format!("SELECT {WHO}")));
        let expected = format!("{}_{role}|{tenant}|user of {tenant}|{tenant}|on", scene.name);
        match self {
            Self::Lone => assert_eq!(node.lines_as(&lone, &principal).await.unwrap(), expected),
            Self::InTransaction => {
                let marks = "set_config('app.tenant', 'nobody', false), set_config('role', 'none', false)";
                let marked = node.lines_as(&who(format!("SELECT {WHO}, {marks}")), &principal).await.unwrap();
                assert_eq!(marked, format!("{expected}|nobody|none"));
            }
            Self::Caller => {
                let statement = caller_statement(&format!("SELECT {WHO}")).unwrap();
                assert_eq!(node.lines_as(&statement, &principal).await.unwrap(), expected);
            }
            Self::Failing => {
                let failing = who(format!("SELECT 1 / (count(*) - 1000), {WHO} FROM notes"));
                let error = node.lines_as(&failing, &principal).await.unwrap_err();
                assert!(error.to_string().contains("division by zero"), "{error}");
            }
            Self::Committing => {
                let changes = "UPDATE notes SET text = text WHERE id <= 2 RETURNING \
                               set_config('app.tenant', 'nobody', false), set_config('role', 'none', false)";
                node.lines_as(&writing_statement(changes, Vec::new()), &principal).await.unwrap();
            }
            Self::Stranger => {
                node.lines_as(&lone, &as_role("stranger")).await.unwrap_err();
            }
            Self::Dropped => {
                let job = TestJob::start().await;
                let many = who("SELECT tenant, repeat(text, 10000) FROM notes".to_owned());
                drop(node.database.plan(&many, &principal).await.unwrap().run(&job.job).await.unwrap());
            }
        }
    }
}

/// Whatever ran on a connection before, a statement has the role, the claims and the rows of its own caller.
#[test]
fn no_step_leaves_its_identity_to_the_next_caller() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let scene = runtime.block_on(TestDatabase::new(TENANTS));
    runtime.block_on(scene.run("GRANT UPDATE ON notes TO {db}_reader, {db}_analyst"));
    let steps = (prop::sample::select(&STEPS[..]), prop::bool::ANY, prop::bool::ANY);
    let mut runner = TestRunner::new(Config {
        cases: Config::default().cases.div_ceil(32),
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&prop::collection::vec(steps, 1..30), |steps| {
            let node = scene.open(PostgresOptions { connections_max: 1, ..options(&scene) });
            for (step, is_acme, is_reader) in steps {
                let (tenant, role) =
                    (if is_acme { "acme" } else { "bolt" }, if is_reader { "reader" } else { "analyst" });
                runtime.block_on(async {
                    step.run(&node, &scene, tenant, role).await;
                    Step::Lone.run(&node, &scene, tenant, role).await;
                });
            }
            runtime.block_on(node.wait_until_idle());
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn revoked_role_is_refused_soon_on_open_connections() {
    let scene = TestDatabase::new(TENANTS).await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..options(&scene) });
    let (node, scene) = (&node, &scene);
    let reader = &caller("acme", &format!("{}_reader", scene.name));
    let count = &owner_statement("SELECT count(*) FROM notes", Vec::new());
    for _ in 0..3 {
        assert_eq!(node.lines_as(count, reader).await.unwrap(), "1000");
    }
    scene.run("REVOKE {db}_reader FROM {login}").await;
    wait_until("the refusal", || async { node.lines_as(count, reader).await.is_err() }).await;
    scene.run("GRANT {db}_reader TO {login}").await;
    assert_eq!(node.lines_as(count, reader).await.unwrap(), "1000");
}
