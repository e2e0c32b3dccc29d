//! PostgreSQL with the tables of the test: the server that `TIDEGATE_TEST_POSTGRES` names.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::answer::{Answer, Column};
use super::from_text::{class_of, value_of};

/// Longer than any statement may run.
pub(crate) const STATEMENT_SECONDS_MAX: u64 = 60;

/// Why PostgreSQL does not answer.
#[derive(Debug, Clone)]
pub(crate) struct ServerError {
    /// The five characters of SQLSTATE.
    pub(crate) code: String,
    pub(crate) message: String,
}

impl From<tokio_postgres::Error> for ServerError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => Self { code: error.code().code().to_owned(), message: error.message().to_owned() },
            None => Self { code: String::new(), message: format!("{error:?}") },
        }
    }
}

/// The connection string of the server's superuser.
pub(crate) fn superuser() -> String {
    std::env::var("TIDEGATE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("TIDEGATE_TEST_POSTGRES is not set; run the tests as scripts/postgres run -- cargo nextest run")
    })
}

/// Connects to `database`.
pub(crate) async fn connect(database: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&format!("{} dbname={database}", superuser()), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Connections to one database.
pub(crate) struct Server {
    clients: Vec<Mutex<Client>>,
}

impl Server {
    /// `connections` to `database`, in which nothing can be written.
    pub(crate) async fn open(database: &str, connections: usize) -> Self {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = connect(database).await;
            let milliseconds = Duration::from_secs(STATEMENT_SECONDS_MAX).as_millis();
            let settings = format!("SET default_transaction_read_only = on; SET statement_timeout = {milliseconds}");
            client.batch_execute(&settings).await.unwrap();
            clients.push(Mutex::new(client));
        }
        Self { clients }
    }

    /// The answer to `sql`, through connection number `index`, counted round.
    pub(crate) async fn query(&self, index: usize, sql: &str) -> Result<Answer, ServerError> {
        let client = self.clients[index % self.clients.len()].lock().await;
        let statement = client.prepare(sql).await?;
        let columns = statement
            .columns()
            .iter()
            .map(|column| Column { name: column.name().to_owned(), class: class_of(column.type_()) })
            .collect();
        let mut rows = Vec::new();
        for message in client.simple_query(sql).await? {
            if let SimpleQueryMessage::Row(row) = message {
                let value =
                    |(index, column): (usize, &tokio_postgres::Column)| value_of(row.get(index), column.type_());
                rows.push(statement.columns().iter().enumerate().map(value).collect());
            }
        }
        Ok(Answer { columns, rows })
    }
}
