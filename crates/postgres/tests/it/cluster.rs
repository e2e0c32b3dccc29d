//! A server of a test's own, for what would harm the tests beside it.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A throw-away cluster of the version that the tests run beside. It ends with this value, and with the process of the
/// test, however that ends.
pub(crate) struct Cluster {
    script: Child,
    variables: HashMap<String, String>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let programs = env::var("TIDEGATE_TEST_POSTGRES_BIN").unwrap_or_else(|_| {
            panic!("this test needs PostgreSQL: scripts/postgres run -- cargo nextest run -p tidegate-postgres")
        });
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
        // `cat` ends when nobody holds the other end of its input any more.
        let held = "env | grep ^TIDEGATE_TEST_POSTGRES; echo; exec cat";
        let mut script = Command::new(path)
            .args(["run", "--bin", &programs, "--", "sh", "-c", held])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(script.stdout.as_mut().unwrap()).lines();
        let variables: HashMap<String, String> = lines
            .map_while(|line| line.unwrap().split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        assert!(variables.contains_key("TIDEGATE_TEST_POSTGRES"), "the cluster does not start");
        Self { script, variables }
    }

    /// The connection string of the superuser, over the socket, to `database`.
    pub(crate) fn superuser_of(&self, database: &str) -> String {
        format!("{} dbname={database}", self.variables["TIDEGATE_TEST_POSTGRES"])
    }

    /// The folder that the server writes to.
    pub(crate) fn data(&self) -> String {
        format!("{}/data", self.variables["TIDEGATE_TEST_POSTGRES_FOLDER"])
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        self.script.wait().unwrap();
    }
}
