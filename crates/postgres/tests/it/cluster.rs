//! A server of a test's own, for what would harm the tests beside it.

use std::env;

use crate::held_script::HeldScript;

/// A throw-away cluster of the version that the tests run beside. It ends with this value.
pub(crate) struct Cluster {
    script: HeldScript,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let programs = env::var("TIDEGATE_TEST_POSTGRES_BIN").unwrap_or_else(|_| {
            panic!("this test needs PostgreSQL: scripts/postgres run -- cargo nextest run -p tidegate-postgres")
        });
        Self { script: HeldScript::start(&[], &["run", "--bin", &programs]) }
    }

    /// The connection string of the superuser, over the socket, to `database`.
    pub(crate) fn superuser_of(&self, database: &str) -> String {
        format!("{} dbname={database}", self.script.variable("TIDEGATE_TEST_POSTGRES"))
    }

    /// The folder that the server writes to.
    pub(crate) fn data(&self) -> String {
        format!("{}/data", self.script.variable("TIDEGATE_TEST_POSTGRES_FOLDER"))
    }
}
