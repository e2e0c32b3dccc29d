//! `tidegate pg new` and `tidegate pg test`: what authors of handlers read.

use std::fs;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::postgres::{psql, server};
use super::{CommandOutput, run, run_in};

/// A database with the SQL layer, and its connection string.
fn installed_database(name: &str, schema: &str) -> String {
    let name = format!("{name}_{}", std::process::id());
    psql("postgres", &format!("CREATE DATABASE {name}"));
    let dsn = format!("{} dbname={name}", server());
    let ran = run(&["pg", "install", &dsn, "--schema", schema]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    dsn
}

/// A run of which nothing differs from the next one.
fn output_of(ran: &CommandOutput) -> String {
    let line = |line: &str| match line.rsplit_once("  ") {
        Some((before, time)) if time.ends_with(" ms") => format!("{before}  N ms"),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = ran.stdout.lines().chain(ran.stderr.lines()).map(line).collect();
    format!("{}\n(exit code {})", lines.join("\n"), ran.code.unwrap_or(-1))
}

/// A folder of tests.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn passing_tests_print_one_line_per_file() {
    let dsn = installed_database("kit_passes", "api");
    let tests = folder(&[
        ("tests/b.sql", "SELECT pg_temp.ok(true, 'b');"),
        ("tests/a.sql", "SELECT pg_temp.ok(true, 'a'); SELECT pg_temp.same('1', '1', 'one');"),
        ("tests/notes.txt", "no test"),
        ("other.sql", "SELECT pg_temp.ok(true, 'c');"),
    ]);
    assert_snapshot!(output_of(&run_in(tests.path(), &["pg", "test", &dsn, "tests", "other.sql"])), @r#"
    ok    tests/a.sql  2 passed  N ms
    ok    tests/b.sql  1 passed  N ms
    ok    other.sql  1 passed  N ms

    4 passed, 0 failed
    (exit code 0)
    "#);
}

#[test]
fn failures_are_printed_in_full() {
    let dsn = installed_database("kit_fails", "api");
    let tests = folder(&[
        ("ok.sql", "SELECT pg_temp.ok(true, 'fine');"),
        (
            "mixed.sql",
            "SELECT pg_temp.ok(true, 'fine');\nSELECT pg_temp.same('{\"a\": 1}', '{\"a\": 2}', 'the same');\nSELECT\n  1 / 0;\nSELECT upper(1);\n",
        ),
        ("psql.sql", "\\set x 1\nSELECT :x;\n"),
        ("ends.sql", "SELECT pg_temp.ok(true, 'fine');\nCOMMIT;\n"),
        ("empty.sql", "-- nothing yet\n"),
        ("slow.sql", "SELECT pg_sleep(600);\n"),
    ]);
    let files = ["mixed.sql", "ok.sql", "psql.sql", "ends.sql", "empty.sql"];
    let arguments = [&["pg", "test", dsn.as_str(), "--junit", "results.xml"][..], &files].concat();
    assert_snapshot!(output_of(&run_in(tests.path(), &arguments)), @r#"
    FAIL  mixed.sql  1 passed, 3 failed  N ms
          mixed.sql:2: the same
              got    {"a": 1}
              wanted {"a": 2}
          mixed.sql:3: ERROR 22012: division by zero
          mixed.sql:5: ERROR 42883: function upper(integer) does not exist
              hint: No function matches the given name and argument types. You might need to add explicit type casts.
    ok    ok.sql  1 passed  N ms
    FAIL  psql.sql  0 passed, 1 failed  N ms
          psql.sql:1: \set is a psql meta-command, which is not supported; use SQL statements only
    FAIL  ends.sql  0 passed, 1 failed  N ms
          ends.sql:2: COMMIT is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
    FAIL  empty.sql  0 passed, 1 failed  N ms
          empty.sql: the file has no result; SELECT pg_temp.ok(condition, 'name') creates one

    2 passed, 6 failed
    error: 6 tests failed
    (exit code 1)
    "#);
    let xml = fs::read_to_string(tests.path().join("results.xml")).unwrap();
    assert!(xml.contains("tests=\"8\" failures=\"6\""), "{xml}");
    // The limit also applies to the statements that prepare the run.
    let slow = run_in(tests.path(), &["pg", "test", &dsn, "slow.sql", "--timeout", "2s"]);
    assert_snapshot!(output_of(&slow), @r#"
    FAIL  slow.sql  0 passed, 1 failed  N ms
          slow.sql:1: the statement exceeded the time limit of 2s and was cancelled

    0 passed, 1 failed
    error: 1 test failed
    (exit code 1)
    "#);
}

#[test]
fn reports_files_that_cannot_run() {
    let dsn = installed_database("kit_cannot", "other");
    let tests = folder(&[("a.sql", "SELECT pg_temp.ok(true, 'a');"), ("empty/x.txt", "")]);
    let message = |arguments: &[&str]| output_of(&run_in(tests.path(), &[&["pg", "test"], arguments].concat()));
    assert_snapshot!(message(&[&dsn, "a.sql"]), @r#"
    error: the schema api has no handlers; create it with tidegate pg install, or set another schema with --schema
    (exit code 1)
    "#);
    assert_snapshot!(message(&[&dsn, "a.sql", "--schema", "other"]), @r#"
    ok    a.sql  1 passed  N ms

    1 passed, 0 failed
    (exit code 0)
    "#);
    assert_snapshot!(message(&[&dsn, "b.sql"]), @r#"
    error: cannot read b.sql: No such file or directory (os error 2)
    (exit code 2)
    "#);
    assert_snapshot!(message(&[&dsn, "empty"]), @r#"
    error: there is no *.sql file in empty
    (exit code 2)
    "#);
    assert_snapshot!(message(&[&dsn, "a.sql", "--schema", "Api"]), @r#"
    error: invalid value 'Api' for '--schema <NAME>': "Api" cannot be the schema of handlers; it must be 1 to 41 lower-case letters, digits and _, and must not begin with a digit

    For more information, try '--help'.
    (exit code 2)
    "#);
    assert_snapshot!(message(&["postgres://db/x?sslmod=require", "a.sql"]), @r#"
    error: the connection string has an unknown keyword "sslmod"; did you mean sslmode?
    (exit code 2)
    "#);
    let unreachable = message(&["host=127.0.0.1 port=1 user=nobody dbname=x sslmode=disable", "a.sql"]);
    assert!(unreachable.starts_with("error: cannot connect to postgres at 127.0.0.1:1"), "{unreachable}");
    assert!(unreachable.ends_with("\n(exit code 1)"), "{unreachable}");
}

#[test]
fn scaffolded_handler_passes_its_test() {
    for (schema, database) in [("api", "kit_new"), ("tools_2", "kit_new_other")] {
        let dsn = installed_database(database, schema);
        let work = tempfile::tempdir().unwrap();
        let run_there = |arguments: &[&str]| run_in(work.path(), &[arguments, &["--schema", schema]].concat());
        let function = "CREATE SCHEMA shop; CREATE FUNCTION shop.twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE \
                        RETURN 2 * n; CREATE FUNCTION shop.twice(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE RETURN 2 * n; \
                        CREATE FUNCTION shop.once(n integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN n";
        let name = dsn.rsplit_once("dbname=").unwrap().1;
        psql(name, function);
        for arguments in [
            &["tool", "greet"][..],
            &["resource", "order-1.x"],
            &["prompt", "sum_up"],
            &["tool", "once", "--function", "shop.once"],
            &["tool", "twice", "--function", "shop.twice(integer)"],
        ] {
            let ran = run_there(&[&["pg", "new"], arguments].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let file = work.path().join("handlers").join(format!("{}.sql", arguments[1]));
            psql(name, &fs::read_to_string(file).unwrap());
        }
        let ran = run_there(&["pg", "test", &dsn, "handlers/tests"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.ends_with("\n16 passed, 0 failed\n"), "{}", ran.stdout);
    }
}

#[test]
fn pg_new_prints_next_steps() {
    let work = tempfile::tempdir().unwrap();
    let message = |arguments: &[&str]| output_of(&run_in(work.path(), &[&["pg", "new"], arguments].concat()));
    assert_snapshot!(message(&["tool", "greet"]), @r#"
    wrote handlers/greet.sql
    wrote handlers/tests/greet.sql

    Next, where DSN is the connection string of your database:
        tidegate pg install "$DSN"    # once
        psql "$DSN" -v ON_ERROR_STOP=1 -f handlers/greet.sql
        tidegate pg test "$DSN" handlers/tests/greet.sql
    (exit code 0)
    "#);
    assert_snapshot!(message(&["prompt", "greet"]), @r#"
    error: handlers/greet.sql exists already and is not overwritten
    (exit code 2)
    "#);
    assert_snapshot!(message(&["prompt", "greet", "--folder", "sql/mcp", "--schema", "tools"]), @r#"
    wrote sql/mcp/greet.sql
    wrote sql/mcp/tests/greet.sql

    Next, where DSN is the connection string of your database:
        tidegate pg install "$DSN" --schema tools    # once
        psql "$DSN" -v ON_ERROR_STOP=1 -f sql/mcp/greet.sql
        tidegate pg test "$DSN" sql/mcp/tests/greet.sql --schema tools
    (exit code 0)
    "#);
    assert_snapshot!(message(&["tool", "greet somebody"]), @r#"
    error: invalid value 'greet somebody' for '<NAME>': a name is 1 to 128 letters, digits, _, - and ., and begins with a letter, a digit or _

    For more information, try '--help'.
    (exit code 2)
    "#);
    assert_snapshot!(message(&["tool", "../greet"]), @r#"
    error: invalid value '../greet' for '<NAME>': a name is 1 to 128 letters, digits, _, - and ., and begins with a letter, a digit or _

    For more information, try '--help'.
    (exit code 2)
    "#);
    assert_snapshot!(message(&["tol", "greet"]), @r#"
    error: invalid value 'tol' for '<KIND>'
      [possible values: tool, resource, prompt]

      tip: a similar value exists: 'tool'

    For more information, try '--help'.
    (exit code 2)
    "#);
    assert_snapshot!(message(&["prompt", "twice", "--function", "shop.twice"]), @r#"
    error: only tools can be made of functions: tidegate pg new tool NAME --function …
    (exit code 2)
    "#);
    assert_snapshot!(message(&["tool", "twice", "--function", "twice"]), @r#"
    error: invalid value 'twice' for '--function <FUNCTION>': write it as schema.name, or as schema.name(integer, text) where there are several of that name

    For more information, try '--help'.
    (exit code 2)
    "#);
}
