//! A server of a test's own, for what would harm the tests beside it.

use std::path::Path;
use std::process::Command;

use crate::background_script::BackgroundScript;
use crate::test_database::{TestDatabase, variable};

/// A throw-away cluster of the version that the tests run beside. It ends with this value.
pub(crate) struct Cluster {
    script: BackgroundScript,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self { script: BackgroundScript::start(&[], &["run", "--bin", &program_directory()]) }
    }

    /// The same, with a tmpfs of so many MiB mounted on `folder`, which belongs to the server's user; none where that
    /// is not allowed. It goes with the cluster.
    pub(crate) fn start_beside_tmpfs(folder: &Path, mebibytes: u32) -> Option<Self> {
        let mount =
            format!("mount -t tmpfs -o size={mebibytes}m,mode=700 tmpfs {0} && chown postgres {0}", folder.display());
        let can_mount = Command::new("unshare").args(["--mount", "sh", "-c", &mount]).output();
        if !can_mount.is_ok_and(|tried| tried.status.success()) {
            return None;
        }
        let around = ["unshare", "--mount", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"];
        Some(Self { script: BackgroundScript::start(&around, &["run", "--bin", &program_directory()]) })
    }

    /// Stops the server in the mode `mode` and starts it again. Blocks.
    pub(crate) fn restart(&self, mode: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
        let folder = self.script.variable("TIDEGATE_TEST_POSTGRES_FOLDER");
        assert!(Command::new(path).args(["restart", folder, mode]).status().unwrap().success());
    }

    /// A standby of this server, which is restarted for it.
    pub(crate) fn start_standby(&self) -> BackgroundScript {
        self.start_with_script("standby")
    }

    /// A scene on this server behind a pooler, which lives as long as what is given with it.
    pub(crate) async fn create_database_behind_pooler(&self, sql: &str) -> (TestDatabase, BackgroundScript) {
        let pooler = self.start_with_script("pooler");
        let superuser = self.script.variable("TIDEGATE_TEST_POSTGRES");
        let scene = TestDatabase::create_on(superuser, pooler.variable("TIDEGATE_TEST_PGBOUNCER"), true, sql).await;
        (scene, pooler)
    }

    fn start_with_script(&self, subject: &str) -> BackgroundScript {
        let folder = self.script.variable("TIDEGATE_TEST_POSTGRES_FOLDER");
        BackgroundScript::start(&["env", &format!("TIDEGATE_TEST_POSTGRES_FOLDER={folder}")], &[subject])
    }

    /// A scene on this server.
    pub(crate) async fn create_database(&self, sql: &str) -> TestDatabase {
        let variable = |name| self.script.variable(name);
        TestDatabase::create_on(variable("TIDEGATE_TEST_POSTGRES"), variable("TIDEGATE_TEST_POSTGRES_TCP"), false, sql)
            .await
    }

    /// The connection string of the superuser, over the socket, to `database`.
    pub(crate) fn superuser_connection_string(&self, database: &str) -> String {
        format!("{} dbname={database}", self.script.variable("TIDEGATE_TEST_POSTGRES"))
    }

    /// The folder that the server writes to.
    pub(crate) fn data_directory(&self) -> String {
        format!("{}/data", self.script.variable("TIDEGATE_TEST_POSTGRES_FOLDER"))
    }
}

/// The folder of the programs that the tests run beside.
fn program_directory() -> String {
    variable("TIDEGATE_TEST_POSTGRES_BIN")
}
