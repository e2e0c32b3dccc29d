//! Test files of handlers: what they report, and that nothing of them stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres_handlers::{HandlerSchemaScripts, SchemaName, TestError, TestOptions, TestReport, run_test_file};
use tokio_util::sync::CancellationToken;

use tidegate_testkit::test_database::{TestDatabase, variable, wait_until, within_timeout};

/// The test files of the SQL layer, in the order of their names.
fn own_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/tests");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "sql")).collect();
    files.sort();
    files
}

/// A database with the SQL layer and a table that tests try to change.
async fn install_schema(schema: &str) -> TestDatabase {
    let scene = TestDatabase::new("CREATE TABLE kept (n integer); INSERT INTO kept VALUES (1)").await;
    let layer = HandlerSchemaScripts::new(SchemaName::parse(schema).unwrap());
    scene.admin.batch_execute(&layer.install_sql()).await.unwrap();
    scene
}

fn target(scene: &TestDatabase) -> ConnectTarget {
    let text = format!("{} dbname={}", variable("TIDEGATE_TEST_POSTGRES"), scene.name);
    ConnectTarget::parse(&text, &ConnectEnvironment::from_process()).unwrap()
}

fn options(schema: &str) -> TestOptions {
    TestOptions { schema: SchemaName::parse(schema).unwrap(), statement_timeout: Duration::from_secs(60) }
}

async fn run(scene: &TestDatabase, text: &str, options: &TestOptions) -> Result<TestReport, TestError> {
    within_timeout("a test file", run_test_file(&target(scene), text, options, &CancellationToken::new())).await
}

/// What a test file reports, a line each.
fn report_text(report: &TestReport) -> String {
    let mut lines = Vec::new();
    for result in &report.results {
        let line = result.line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        lines.push(format!("{line}: {} {}", if result.is_ok { "ok" } else { "NOT OK" }, result.name));
        lines.extend(result.notes.iter().map(|note| format!("    {note}")));
    }
    lines.join("\n")
}

/// Runs `text` in a database of its own, where it must leave nothing.
async fn run_and_report(text: &str) -> String {
    run_and_report_within(text, Duration::from_secs(60)).await
}

async fn run_and_report_within(text: &str, statement_timeout: Duration) -> String {
    let scene = install_schema("api").await;
    let before = table_contents(&scene).await;
    let report = run(&scene, text, &TestOptions { statement_timeout, ..options("api") }).await.unwrap();
    assert_eq!(table_contents(&scene).await, before);
    wait_until_disconnected(&scene).await;
    report_text(&report)
}

/// What is in the database, as far as a test might change it.
async fn table_contents(scene: &TestDatabase) -> String {
    let sql = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_class WHERE relpersistence <> 't'),
        (SELECT count(*) FROM pg_proc WHERE pronamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\\_temp%')),
        (SELECT string_agg(nspname, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'),
        (SELECT string_agg(n::text, ',' ORDER BY n) FROM kept), (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'kit\\_%'))";
    scene.value(sql).await
}

/// Waits until no test is connected any more.
async fn wait_until_disconnected(scene: &TestDatabase) {
    let count = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name = 'tidegate pg test'";
    wait_until("the end of the test's connection", || async { scene.value(count).await == "0" }).await;
}

#[tokio::test]
async fn test_files_of_the_layer_pass() {
    let scene = install_schema("api").await;
    for file in own_files() {
        let report = run(&scene, &fs::read_to_string(&file).unwrap(), &options("api")).await.unwrap();
        assert!(report.failed() == 0 && report.passed() > 0, "{}:\n{}", file.display(), report_text(&report));
    }
}

#[tokio::test]
async fn failing_assertion_reports_actual_value() {
    let message = run_and_report(
        "INSERT INTO kept VALUES (2);
-- What is there
SELECT pg_temp.ok(count(*) = 2, 'two rows') FROM kept;
SELECT pg_temp.same('{\"a\": 1}', '{\"a\": 2}', 'the same'), pg_temp.ok(NULL, 'unknown');
SELECT pg_temp.matches('abc', '^x', 'begins with x');
SELECT pg_temp.refused('SELECT 1', '', 'fails');
DO $$ BEGIN PERFORM pg_temp.ok(false, 'in a block'); END $$;",
    );
    insta::assert_snapshot!(message.await, @r#"
    3: ok two rows
    4: NOT OK the same
        got    {"a": 1}
        wanted {"a": 2}
    4: NOT OK unknown
    5: NOT OK begins with x
        got    abc
        wanted ^x
    6: NOT OK fails
        got    1
        wanted ^ERROR .*
    -: NOT OK in a block
    "#);
}

#[tokio::test]
async fn notices_are_attached_to_the_failure() {
    let message = run_and_report(
        "SELECT pg_temp.tool('breaks', 'BEGIN RAISE NOTICE ''on the way''; PERFORM 1 / 0; END');
SELECT pg_temp.same(pg_temp.call('breaks') #> '{result,isError}', 'true', 'it fails');
SELECT pg_temp.ok(pg_temp.call('breaks') #> '{result,isError}' IS NULL, 'it works');
SELECT pg_temp.ok(false, 'another thing');",
    );
    let message = message.await;
    insta::assert_snapshot!(message, @r"
    2: ok it fails
    3: NOT OK it works
        notice: on the way
    4: NOT OK another thing
    ");
}

#[tokio::test]
async fn error_does_not_hide_later_results() {
    let message = run_and_report(
        "CREATE ROLE kit_reader;
SELECT pg_temp.ok(true, 'before');
SELECT
    no_such_column FROM kept;
SELECT no_such_function(1);
DO $$
BEGIN
    RAISE EXCEPTION 'raised' USING DETAIL = 'the detail', HINT = 'the hint';
END $$;
INSERT INTO kept VALUES (2), (1 / 0);
SELECT pg_temp.ok(count(*) = 1, 'after') FROM kept;
SELECT 1 +;",
    );
    insta::assert_snapshot!(message.await, @r#"
    2: ok before
    4: NOT OK ERROR 42703: column "no_such_column" does not exist
    5: NOT OK ERROR 42883: function no_such_function(integer) does not exist
        hint: No function matches the given name and argument types. You might need to add explicit type casts.
    6: NOT OK ERROR P0001: raised
        detail: the detail
        hint: the hint
        context: PL/pgSQL function inline_code_block line 3 at RAISE
    10: NOT OK ERROR 22012: division by zero
    11: ok after
    12: NOT OK ERROR 42601: syntax error at or near ";"
    "#);
}

#[tokio::test]
async fn files_may_use_savepoints() {
    let message = run_and_report(
        "SAVEPOINT one;
INSERT INTO kept VALUES (2);
SELECT pg_temp.ok(count(*) = 2, 'in it') FROM kept;
SAVEPOINT two;
SELECT 1 / 0;
ROLLBACK TO one;
SELECT pg_temp.ok(count(*) = 1, 'undone') FROM kept;
RELEASE one;
ROLLBACK TO one;
INSERT INTO kept VALUES (3);
SAVEPOINT left_open;
SELECT pg_temp.ok(count(*) = 2, 'and on') FROM kept;",
    );
    insta::assert_snapshot!(message.await, @r#"
    3: ok in it
    5: NOT OK ERROR 22012: division by zero
    7: ok undone
    9: NOT OK ERROR 3B001: savepoint "one" does not exist
    12: ok and on
    "#);
}

#[tokio::test]
async fn transaction_commands_are_rejected() {
    let message = run_and_report("INSERT INTO kept VALUES (2);\nSELECT pg_temp.ok(true, 'x');\nCOMMIT;\nBEGIN;\n");
    insta::assert_snapshot!(message.await, @r#"
    3: NOT OK COMMIT is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
    4: NOT OK BEGIN is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
    "#);
    let message = run_and_report("DO $$ BEGIN COMMIT; END $$;\nSELECT pg_temp.ok(true, 'it goes on');");
    insta::assert_snapshot!(message.await, @r#"
    1: NOT OK ERROR 2D000: invalid transaction termination
        context: PL/pgSQL function inline_code_block line 1 at COMMIT
    2: ok it goes on
    "#);
}

#[tokio::test]
async fn file_without_results_is_reported() {
    insta::assert_snapshot!(run_and_report("SELECT 1;\n").await, @"-: NOT OK the file has no result; SELECT pg_temp.ok(condition, 'name') creates one");
    insta::assert_snapshot!(run_and_report("").await, @"-: NOT OK the file has no result; SELECT pg_temp.ok(condition, 'name') creates one");
    insta::assert_snapshot!(run_and_report("SELECT 1;\n\\ir other.sql\n").await, @r#"2: NOT OK \ir is a psql meta-command, which is not supported; use SQL statements only"#);
    insta::assert_snapshot!(run_and_report("SELECT 'endless;\n").await, @"1: NOT OK the string that begins here is not terminated");
}

#[tokio::test]
async fn statement_times_out() {
    let limit = Duration::from_secs(2);
    let message = run_and_report_within(
        "INSERT INTO kept VALUES (2);\nSELECT pg_sleep(600);\nSELECT pg_temp.ok(true, 'after');",
        limit,
    );
    insta::assert_snapshot!(message.await, @r#"
    2: NOT OK the statement exceeded the time limit of 2s and was cancelled
    3: ok after
    "#);
    // The server's own limit can be switched off, ours cannot.
    let message = run_and_report_within(
        "SET statement_timeout = 0;\nSELECT pg_sleep(600);\nSELECT pg_temp.ok(true, 'after');",
        limit,
    );
    insta::assert_snapshot!(message.await, @r#"
    2: NOT OK the statement exceeded the time limit of 2s and was cancelled
        the rest of the file was not run
    "#);
}

#[tokio::test]
async fn large_results_are_not_buffered() {
    let notices =
        run_and_report("SELECT repeat('x', 10000) FROM generate_series(1, 100000);\nSELECT pg_temp.ok(true, 'after');");
    insta::assert_snapshot!(notices.await, @"2: ok after");
}

#[tokio::test]
async fn terminated_connection_ends_the_run() {
    let notices =
        run_and_report("SELECT pg_temp.ok(true, 'before');\nSELECT pg_terminate_backend(pg_backend_pid());\nSELECT 1;");
    insta::assert_snapshot!(notices.await, @r#"
    1: ok before
    2: NOT OK FATAL 57P01: terminating connection due to administrator command
        the rest of the file was not run
    "#);
}

#[tokio::test]
async fn test_may_change_role() {
    let message = run_and_report(
        "CREATE ROLE kit_reader;
SET LOCAL ROLE kit_reader;
SELECT pg_temp.ok(current_user = 'kit_reader', 'as another');
SELECT n FROM kept;
DO $$ BEGIN PERFORM pg_temp.ok(true, 'unseen'); END $$;",
    );
    insta::assert_snapshot!(message.await, @r#"
    3: ok as another
    4: NOT OK ERROR 42501: permission denied for table kept
    -: ok unseen
    "#);
}

#[tokio::test]
async fn custom_schema_name_works() {
    let scene = install_schema("other").await;
    let text = "SELECT pg_temp.tool('t', 'BEGIN RETURN other.mcp_tool_result(''[]'', (request).request_id); END');
SELECT pg_temp.ok(pg_temp.call('t') ? 'result', 'it answers');";
    insta::assert_snapshot!(report_text(&run(&scene, text, &options("other")).await.unwrap()), @"2: ok it answers");
    let missing = run(&scene, text, &options("api")).await.unwrap_err();
    insta::assert_snapshot!(missing, @"the schema api has no handlers; create it with tidegate pg install, or set another schema with --schema");
}

#[tokio::test]
async fn cancelled_run_changes_nothing() {
    let scene = install_schema("api").await;
    let before = table_contents(&scene).await;
    let text = "INSERT INTO kept VALUES (2);\nSELECT pg_sleep(600);";
    let sleeps =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%'";
    let cancellation = CancellationToken::new();
    let (target, options) = (target(&scene), options("api"));
    let running = run_test_file(&target, text, &options, &cancellation);
    let cancelling = async {
        wait_until("the sleep", || async { scene.value(sleeps).await == "1" }).await;
        cancellation.cancel();
    };
    let (ended, ()) = within_timeout("the run that is called off", futures::future::join(running, cancelling)).await;
    insta::assert_snapshot!(ended.unwrap_err(), @"the run was cancelled and its changes were rolled back");
    wait_until_disconnected(&scene).await;
    assert_eq!(table_contents(&scene).await, before);

    // Dropping the future ends the run too.
    let task = tokio::spawn(async move { run_test_file(&target, text, &options, &CancellationToken::new()).await });
    wait_until("the sleep", || async { scene.value(sleeps).await == "1" }).await;
    task.abort();
    wait_until_disconnected(&scene).await;
    assert_eq!(table_contents(&scene).await, before);
}
