//! A database whose schema of handlers is made by a role that is no superuser.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};
use tidegate_postgres_handlers::{HandlerSchemaScripts, Installer, SchemaName};

use tidegate_testkit::test_database::{TestDatabase, variable};

/// A database of its own.
pub(super) struct InstalledDatabase {
    pub(super) scene: TestDatabase,
}

/// The layer for `schema`.
pub(super) fn layer_for(schema: &str) -> HandlerSchemaScripts {
    HandlerSchemaScripts::new(SchemaName::parse(schema).unwrap())
}

impl InstalledDatabase {
    /// The right that making a schema takes.
    pub(super) const MAY_CREATE: &str = "GRANT CREATE ON DATABASE {db} TO {login}";

    /// A database in which `sql` was run by the superuser.
    pub(super) async fn new(sql: &str) -> Self {
        Self { scene: TestDatabase::new(sql).await }
    }

    /// One whose handlers are installed.
    pub(super) async fn installed() -> Self {
        let ground = Self::new(Self::MAY_CREATE).await;
        ground.default_installer().install(tidegate_postgres_handlers::InstallMode::Commit).await.unwrap();
        ground
    }

    /// Works on the schema `api` as the role of the scene.
    pub(super) fn default_installer(&self) -> Installer {
        self.installer_for_schema("api")
    }

    pub(super) fn installer_for_schema(&self, schema: &str) -> Installer {
        self.installer_as_role(&self.scene.login(), schema)
    }

    pub(super) fn installer_as_role(&self, role: &str, schema: &str) -> Installer {
        make_installer(&connection_string(&self.scene.name, role), schema)
    }

    /// As the role of the scene in another database.
    pub(super) fn installer_in_database(&self, database: &str) -> Installer {
        make_installer(&connection_string(database, &self.scene.login()), "api")
    }

    /// The output of `pg_dump`, without the words that differ in each run.
    pub(super) fn dump(&self, options: &[&str]) -> String {
        let mut program = program("pg_dump");
        program.args(options).arg(format!("{} dbname={}", variable("TIDEGATE_TEST_POSTGRES"), self.scene.name));
        let ran = program.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let text = String::from_utf8(ran.stdout).unwrap();
        let is_kept = |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
        text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
    }

    /// Runs a script as the role of the scene, as a person does.
    pub(super) fn psql(&self, script: &str) {
        let mut program = program("psql");
        program
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"])
            .arg(connection_string(&self.scene.name, &self.scene.login()));
        let mut running = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let ran = running.wait_with_output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!((ran.status.code(), text.as_str()), (Some(0), ""));
    }

    /// Registers a handler and lets a role call it.
    pub(super) async fn create_and_call_handlers(&self) {
        self.run_as_login(
            r#"PERFORM api.create_or_replace_mcp_handler('{"type": "tool", "name": "greet", "requiresAuth": false}',
                'BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(''hello'')), (request).request_id); END')"#,
        )
        .await;
        self.scene.run("CREATE ROLE {db}_caller").await;
        self.run_as_login("PERFORM api.grant_mcp_access('{db}_caller')").await;
    }

    async fn run_as_login(&self, statement: &str) {
        self.scene.run(&format!("SET ROLE {{login}}; DO $do$ BEGIN {statement}; END $do$; RESET ROLE")).await;
    }

    /// The content that a tool answers with to the role that may call it.
    pub(super) async fn call(&self, tool: &str) -> String {
        self.scene.run("SET ROLE {db}_caller").await;
        let sql = format!("(api.mcp_call_tool('{tool}', '{{}}', NULL, '1')).envelope #> '{{result,content}}'");
        let answer = self.scene.value(&sql).await;
        self.scene.run("RESET ROLE").await;
        answer
    }
}

fn make_installer(text: &str, schema: &str) -> Installer {
    Installer::new(ConnectTarget::parse(text, &ConnectEnvironment::from_process()).unwrap(), layer_for(schema))
}

fn connection_string(database: &str, role: &str) -> String {
    let host = variable("TIDEGATE_TEST_POSTGRES_TCP");
    format!("{host} dbname={database} user={role} password=right sslmode=disable")
}

/// A program of the server's version, without the environment of the test.
fn program(name: &str) -> Command {
    let mut program = Command::new(format!("{}/{name}", variable("TIDEGATE_TEST_POSTGRES_BIN")));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        program.env_remove(name);
    }
    program
}
