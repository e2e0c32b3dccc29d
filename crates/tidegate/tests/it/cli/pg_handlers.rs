//! `tidegate pg`: handlers put into a real server and taken out of it.

use std::process::Command;

use insta::assert_snapshot;

use super::postgres::{psql, server};
use super::{CommandOutput, run, tidegate};

/// An empty database of its own, asked as the superuser.
struct Shop {
    name: String,
}

impl Shop {
    fn new(name: &str) -> Self {
        let name = format!("{name}_{}", std::process::id());
        psql("postgres", &format!("CREATE DATABASE {name}"));
        Self { name }
    }

    fn target(&self) -> String {
        format!("{} dbname={}", server(), self.name)
    }

    fn psql(&self, sql: &str) {
        psql(&self.name, sql);
    }

    /// What a verb says about this database, and its exit code where it fails.
    fn pg(&self, verb: &str, flags: &[&str]) -> String {
        let ran = run(&[&["pg", verb, &self.target()], flags].concat());
        self.stdout_of(&ran)
    }

    fn stdout_of(&self, ran: &CommandOutput) -> String {
        let failed = ran.code.filter(|code| *code != 0).map(|code| format!("exit code {code}\n")).unwrap_or_default();
        format!("{}{}{failed}", ran.stdout, ran.stderr).replace(&self.name, "shop")
    }
}

const GREET_HANDLER: &str = r#"
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "greet"}', 'BEGIN RETURN NULL; END');
    SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "leave"}', 'BEGIN RETURN NULL; END');
    SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "hello"}', 'BEGIN RETURN NULL; END')"#;

#[test]
fn installs_shows_and_uninstalls_handlers() {
    let shop = Shop::new("installed");
    assert_snapshot!(shop.pg("install", &[]), @r"
    handlers are installed in the schema api of the database shop, version 1
    a role that is to call them needs SELECT api.grant_mcp_access('ROLE')
    ");
    assert_snapshot!(shop.pg("install", &[]), @"the schema api of the database shop has the handlers of this program, version 1: there is nothing to change");
    assert_snapshot!(shop.pg("install", &["--dry-run"]), @"the schema api of the database shop has the handlers of this program, version 1: there is nothing to change");
    assert_snapshot!(shop.pg("status", &[]), @r"
    database      shop
    schema        api, owned by postgres
    version       1, as this program brings it
    handlers      none
    exchange log  off, 0 lines
    may call      nobody but postgres; SELECT api.grant_mcp_access('ROLE') lets a role in
    ");

    shop.psql(&format!(
        "{GREET_HANDLER}; CREATE ROLE {0}_caller; SELECT api.grant_mcp_access('{0}_caller')",
        shop.name
    ));
    shop.psql("SELECT api.set_mcp_exchange_log(true)");
    assert_snapshot!(shop.pg("status", &[]), @r"
    database      shop
    schema        api, owned by postgres
    version       1, as this program brings it
    handlers      3: 2 tools, 1 prompt
    exchange log  on, 0 lines
    may call      shop_caller
    ");

    assert_snapshot!(shop.pg("uninstall", &[]), @r"
    error: this would uninstall handlers from the schema api of the database shop, with the handlers in it (3: 2 tools, 1 prompt); without a terminal to confirm it, write --yes
    exit code 2
    ");
    assert_snapshot!(shop.pg("uninstall", &["--dry-run"]), @r"
    handlers would be uninstalled from the schema api of the database shop, with the handlers in it (3: 2 tools, 1 prompt)
    this was a dry run: nothing is changed
    ");
    assert_snapshot!(shop.pg("uninstall", &["--yes"]), @"handlers are uninstalled from the schema api of the database shop, with the handlers in it (3: 2 tools, 1 prompt)");
    assert_snapshot!(shop.pg("status", &[]), @r"
    error: the database shop has no schema api: nothing is installed there
    Create it with tidegate pg install.
    exit code 1
    ");
    assert_snapshot!(shop.pg("uninstall", &["--yes"]), @r"
    error: the database shop has no schema api: nothing is installed there
    Create it with tidegate pg install.
    exit code 1
    ");
}

#[test]
fn dry_run_changes_nothing() {
    let shop = Shop::new("dry");
    assert_snapshot!(shop.pg("install", &["--dry-run"]), @r"
    handlers would be installed in the schema api of the database shop, version 1
    this was a dry run: nothing is changed
    ");
    assert_snapshot!(shop.pg("status", &[]), @r"
    error: the database shop has no schema api: nothing is installed there
    Create it with tidegate pg install.
    exit code 1
    ");
}

#[test]
fn uninstall_reports_dependent_objects_first() {
    let shop = Shop::new("needed");
    shop.pg("install", &[]);
    shop.psql("CREATE VIEW greeting AS SELECT api.mcp_text('hello')");
    assert_snapshot!(shop.pg("uninstall", &[]), @r#"
    error: view public.greeting needs the schema "api"
    Drop it first, or let it do without.
    exit code 1
    "#);
}

#[test]
fn reports_connection_and_usage_errors() {
    let text = |arguments: &[&str]| {
        let ran = run(&[&["pg"], arguments].concat());
        assert_eq!(ran.stdout, "");
        format!("{}exit code {:?}", ran.stderr, ran.code)
    };
    assert_snapshot!(text(&["status", "host=127.0.0.1 port=1 user=ann dbname=shop sslmode=disable"]), @r"
    error: cannot connect to postgres at 127.0.0.1:1/shop as ann: connection refused
    exit code Some(1)
    ");
    assert_snapshot!(text(&["install", "postgres://db/shop?sslmod=require"]), @r#"
    error: the connection string has an unknown keyword "sslmod"; did you mean sslmode?
    exit code Some(2)
    "#);
    assert_snapshot!(text(&["install", "--schema", "Api", "host=db"]), @r#"
    error: invalid value 'Api' for '--schema <NAME>': "Api" cannot be the schema of handlers; it must be 1 to 41 lower-case letters, digits and _, and must not begin with a digit

    For more information, try '--help'.
    exit code Some(2)
    "#);
    assert_snapshot!(text(&["print", "--schema", "select"]), @r#"
    error: invalid value 'select' for '--schema <NAME>': "select" cannot be the schema of handlers; it is an SQL keyword

    For more information, try '--help'.
    exit code Some(2)
    "#);
}

#[test]
fn pg_variables_are_used_without_a_dsn() {
    let shop = Shop::new("variables");
    let with_variables = |verb: &str| {
        let mut command = tidegate();
        for setting in shop.target().split(' ') {
            let (name, value) = setting.split_once('=').unwrap();
            let name = if name == "dbname" { "DATABASE".to_owned() } else { name.to_uppercase() };
            command.env(format!("PG{name}"), value);
        }
        shop.stdout_of(&CommandOutput::from(command.args(["pg", verb, "--schema", "tools"]).output().unwrap()))
    };
    assert!(with_variables("install").starts_with("handlers are installed in the schema tools of the database shop"));
    assert!(with_variables("status").starts_with("database      shop\nschema        tools, owned by postgres\n"));
}

#[test]
fn printed_scripts_run_in_psql() {
    let shop = Shop::new("printed");
    let folder = tempfile::tempdir().unwrap();
    let programs = std::env::var("TIDEGATE_TEST_POSTGRES_BIN").unwrap();
    let apply = |flags: &[&str]| {
        let printed = run(&[&["pg", "print"], flags].concat());
        assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
        let file = folder.path().join("handlers.sql");
        std::fs::write(&file, &printed.stdout).unwrap();
        let mut command = Command::new(format!("{programs}/psql"));
        command.args(["--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&file).arg(shop.target());
        assert_eq!(
            CommandOutput::from(command.output().unwrap()),
            CommandOutput { code: Some(0), stdout: String::new(), stderr: String::new() }
        );
        printed.stdout
    };
    let script = apply(&[]);
    assert_eq!(run(&["pg", "install", "--print"]).stdout, script);
    assert!(shop.pg("install", &[]).contains("nothing to change"));
    assert_eq!(run(&["pg", "uninstall", "--print"]).stdout, apply(&["--uninstall"]));
    assert!(shop.pg("status", &[]).contains("has no schema api"));
}

#[test]
fn role_script_grants_handlers() {
    let with = run(&["pg", "role", "--handlers", "api"]).stdout;
    let without = run(&["pg", "role"]).stdout;
    let added: Vec<&str> = with.lines().filter(|line| !without.lines().any(|other| other == *line)).collect();
    assert_snapshot!(added.join("\n"), @r"
    -- Calling the handlers of the schema api.
    SELECT api.grant_mcp_access('tidegate_reader');
    -- A handler that writes runs in a READ WRITE transaction, whatever the default is. It has the rights of its caller:
    -- grant what it writes, as in GRANT INSERT, UPDATE ON some_table TO tidegate_reader;
    ");
}
