//! A database of its own on the test server, which `scripts/postgres` starts.

use tokio_postgres::{Client, NoTls};

pub use crate::wait::{TEST_TIMEOUT, wait_until, within_timeout};

/// A variable that `scripts/postgres` sets.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set; run the tests as scripts/postgres run -- cargo nextest run -p tidegate-postgres")
    })
}

/// A database of its own, with a role that may log in. Both are named after the process and a number.
pub struct TestDatabase {
    pub name: String,
    /// The superuser, in that database.
    pub admin: Client,
    /// The superuser's connection string; `host` is for all other roles.
    superuser: String,
    pub host: String,
    /// Whether `host` is a pooler.
    pub pooler: bool,
}

impl TestDatabase {
    /// A database in which `sql` was run. `{login}` in it stands for the role that Tidegate logs in as.
    pub async fn new(sql: &str) -> Self {
        let superuser = variable("TIDEGATE_TEST_POSTGRES");
        match std::env::var("TIDEGATE_TEST_PGBOUNCER") {
            Ok(pooler) => Self::create_on(&superuser, &pooler, true, sql).await,
            Err(_) => Self::create_on(&superuser, &variable("TIDEGATE_TEST_POSTGRES_TCP"), false, sql).await,
        }
    }

    /// The same on the server of `superuser`; all other roles connect to `host`.
    pub async fn create_on(superuser: &str, host: &str, pooler: bool, sql: &str) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("t{}_{count}", std::process::id());
        let server = connect(superuser).await;
        server.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let login = format!("CREATE ROLE {name}_login LOGIN NOINHERIT PASSWORD 'right'");
        server.batch_execute(&login).await.unwrap();
        let admin = connect(&format!("{superuser} dbname={name}")).await;
        let database = Self { name, admin, superuser: superuser.to_owned(), host: host.to_owned(), pooler };
        database.run("REVOKE CREATE, TEMPORARY ON DATABASE {db} FROM PUBLIC").await;
        database.run(sql).await;
        database
    }

    /// Connects the superuser again.
    pub async fn reconnect_admin(&mut self) {
        self.admin = connect(&format!("{} dbname={}", self.superuser, self.name)).await;
    }

    /// Runs `sql` as the superuser. `{login}` and `{db}` in it stand for the names.
    pub async fn run(&self, sql: &str) {
        let sql = sql.replace("{login}", &self.login()).replace("{db}", &self.name);
        self.admin.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The role that Tidegate logs in as.
    pub fn login(&self) -> String {
        format!("{}_login", self.name)
    }

    /// One value of the server, as text.
    pub async fn value(&self, sql: &str) -> String {
        let row = self.admin.query_one(&format!("SELECT ({sql})::text"), &[]).await.unwrap();
        row.get::<_, Option<String>>(0).unwrap_or_else(|| "null".to_owned())
    }

    /// The number of backends that run a statement of Tidegate.
    pub async fn active(&self) -> String {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                      AND application_name LIKE 'tidegate%' AND state <> 'idle'";
        self.value(active).await
    }
}

/// A connection without Tidegate.
pub async fn connect(text: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(text, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
