//! The functions of a database that the SQL of a caller may call.

use insta::assert_snapshot;
use tidegate_postgres::PostgresOptions;

use crate::test_database::{OpenDatabase as _, OpenedDatabase, TestDatabase, owner_statement};

const FUNCTIONS: &str = r#"
    CREATE TABLE vault (secret text); INSERT INTO vault VALUES ('hidden');
    CREATE TABLE notes (id int, kind text); INSERT INTO notes VALUES (1, 'a'), (2, 'c'); GRANT SELECT ON notes TO {login};
    CREATE FUNCTION seen() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM notes';
    CREATE FUNCTION opened() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT secret FROM vault';
    CREATE FUNCTION locked() RETURNS integer LANGUAGE sql AS 'SELECT 1 FROM pg_advisory_lock(1)';
    CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 2 * n';
    CREATE FUNCTION report(n integer) RETURNS TABLE (id int, label text) LANGUAGE sql STABLE AS
        'SELECT notes.id, kind || n FROM notes ORDER BY 1';
    CREATE FUNCTION mixed(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n';
    CREATE FUNCTION mixed(n text) RETURNS text LANGUAGE sql AS 'SELECT n';
    CREATE FUNCTION gen_random_uuid() RETURNS uuid LANGUAGE sql AS 'SELECT pg_catalog.gen_random_uuid()';
    CREATE FUNCTION "coalesce"(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n';
    CREATE FUNCTION state(notes) RETURNS text LANGUAGE sql AS 'SELECT $1.kind';
    CREATE SCHEMA inner_schema;
    CREATE FUNCTION inner_schema.floor(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 1.0';
    CREATE FUNCTION same(text, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
    CREATE OPERATOR = (LEFTARG = text, RIGHTARG = integer, FUNCTION = same);
    CREATE TYPE shape AS (n int); CREATE TABLE shapes AS SELECT ROW(7)::shape AS shape;
    GRANT SELECT ON shapes TO {login};
    CREATE FUNCTION shape_number(shape) RETURNS bigint LANGUAGE sql AS 'SELECT 8::bigint';
    CREATE CAST (shape AS bigint) WITH FUNCTION shape_number(shape);
"#;

async fn open(options: PostgresOptions) -> (TestDatabase, OpenedDatabase) {
    let scene = TestDatabase::new(FUNCTIONS).await;
    let node = scene.open(options);
    (scene, node)
}

#[tokio::test]
async fn volatile_and_definer_functions_are_refused() {
    let (_scene, node) = open(PostgresOptions::default()).await;
    assert_snapshot!(node.run_to_text("SELECT seen()").await, @r"
    invalid_arguments: the function public.seen is refused: it is VOLATILE, so it may have side effects
    Leave it out, or ask the owner of the node to list the function in allow_functions of the database.
    ");
    assert_snapshot!(node.run_to_text("SELECT * FROM opened()").await, @r"
    invalid_arguments: the function public.opened is refused: it is SECURITY DEFINER, so it runs with the rights of its owner
    Leave it out, or ask the owner of the node to list the function in allow_functions of the database.
    ");
    for sql in [
        "SELECT \"locked\"()",
        "SELECT public.locked()",
        "SELECT * FROM notes, LATERAL locked() x",
        "SELECT 1 WHERE EXISTS (SELECT locked())",
        "SELECT mixed(1)",
        "SELECT public.gen_random_uuid()",
        "SELECT \"coalesce\"(1)",
        "SELECT state(n) FROM notes n",
        "SELECT n.state FROM notes n",
        "SELECT (n).state FROM notes n",
        "SELECT shape::bigint FROM shapes",
    ] {
        let answer = node.run_to_text(sql).await;
        assert!(answer.contains(" is refused: it "), "{sql}: {answer}");
    }
    // Each use of `=` counts as one of the strictest operator of that name.
    for sql in ["SELECT 1 = 1", "SELECT id FROM notes WHERE id IN (1)", "SELECT * FROM notes a JOIN notes b USING (id)"]
    {
        let answer = node.run_to_text(sql).await;
        assert!(answer.contains("the operator = is refused: it may call the function public.same"), "{sql}: {answer}");
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn functions_that_only_read_are_allowed_everywhere() {
    let (scene, node) = open(PostgresOptions::default()).await;
    assert_eq!(node.run_to_text("SELECT twice(id) FROM notes ORDER BY 1").await, "2\n4");
    assert_eq!(node.run_to_text("SELECT * FROM report(7) ORDER BY 1").await, "1|a7\n2|c7");
    assert_eq!(node.run_to_text("SELECT (report(7)).label ORDER BY 1").await, "a7\nc7");
    assert_eq!(node.run_to_text("SELECT * FROM upper('x') u, round(2.4) r, twice(4) t").await, "X|2|8");
    assert_eq!(node.run_to_text("SELECT count(*) FROM ROWS FROM (twice(1), report(2)) AS t").await, "2");
    // The names of restricted functions, where they mean something else.
    let others = "SELECT gen_random_uuid() IS NOT NULL, coalesce(NULL, 1), floor(2.7)";
    assert_eq!(node.run_to_text(others).await, "true|1|2");
    assert_eq!(node.run_to_text("SELECT kind AS seen FROM notes ORDER BY id").await, "a\nc");
    assert_eq!(node.run_to_text("SELECT shape FROM shapes").await, "{n: 7}");
    // The check does not apply to the owner.
    assert_eq!(node.lines(&owner_statement("SELECT seen()", Vec::new())).await.unwrap(), "2");
    scene.run("ALTER FUNCTION seen() STABLE").await;
    assert_eq!(scene.open(PostgresOptions::default()).run_to_text("SELECT seen()").await, "2");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn errors_of_functions_have_the_message_of_the_server() {
    let scene = TestDatabase::new("").await;
    let mut errors =
        vec![("SELECT has_database_privilege('nowhere', 'connect')", "database \"nowhere\" does not exist")];
    // The package of PostgreSQL 18 from PyPI has no pgcrypto.
    if scene.value("EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgcrypto')").await == "true" {
        scene.run("CREATE EXTENSION pgcrypto").await;
        errors.push(("SELECT dearmor('no armor')", "Corrupt ascii-armor"));
        errors.push((r"SELECT pgp_sym_decrypt('\x00'::bytea, 'key')", "Wrong key or corrupt data"));
    }
    let node = scene.open(PostgresOptions::default());
    for (sql, message) in errors {
        let answer = node.run_to_text(sql).await;
        assert!(answer.starts_with(&format!("invalid_arguments: {message}")), "{sql}: {answer}");
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn configuration_allows_functions() {
    let allowed_functions = ["seen", "public.opened", "other.locked", "same"].map(str::to_owned).to_vec();
    let (_scene, node) = open(PostgresOptions { allowed_functions, ..PostgresOptions::default() }).await;
    assert_eq!(node.run_to_text("SELECT seen(), opened() WHERE 1 = 1").await, "2|hidden");
    let answer = node.run_to_text("SELECT locked()").await;
    assert!(answer.contains("the function public.locked is refused"), "{answer}");
    node.wait_until_idle().await;
}
