//! Flight SQL: statements in each database, and rows for tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use tidegate_core::{Error, Principal};
use tidegate_network::{FlightSqlDatabase, FlightSqlOptions, NodeCredential};
use tidegate_query::{Database, NodeDatabase, NodeWrite};
use tidegate_sql::{SqlDialect, Statement};

use super::client_connection::Transport;
use super::{Matrix, MatrixNode, ROLES, databases_of};

const DATABASES: [&str; 9] = ["shop", "other", "sales", "vault", "crm", "both", "machine", "sites", "plant"];
/// Databases whose SQL is not that of files.
const SQLITE: &str = "crm";

/// A database of the node, as a program with the key of a role opens it.
fn open(matrix_node: &MatrixNode, role: usize, database: &str, dialect: SqlDialect) -> FlightSqlDatabase {
    let key = matrix_node.key(ROLES[role]);
    let credential = key.map_or(NodeCredential::None, |key| NodeCredential::Token(key.to_owned()));
    let options = FlightSqlOptions {
        database: Some(database.to_owned()),
        dialect,
        credential,
        ..FlightSqlOptions::new(vec![matrix_node.flight.clone()])
    };
    FlightSqlDatabase::new("node", options).unwrap()
}

/// The result of a statement without a table.
async fn select(matrix_node: &MatrixNode, role: usize, database: &str, dialect: SqlDialect) -> Result<(), Error> {
    let statement = Statement::parse("SELECT 1 AS one", dialect).unwrap();
    let database = open(matrix_node, role, database, dialect);
    let described = database.describe(&statement, &Principal::process_user()).await;
    database.close().await;
    described.map(drop)
}

/// Sends a statement to each database, and marks those that answer.
pub(super) async fn try_databases(matrix_node: &MatrixNode, matrix: &mut Matrix, role: usize) {
    for database in DATABASES {
        let dialect = if database == SQLITE { SqlDialect::Sqlite } else { SqlDialect::DataFusion };
        let label = format!("door Flight SQL of {database}");
        let answer = select(matrix_node, role, database, dialect).await;
        matrix.add_mark(&label, role, if answer.is_ok() { '+' } else { '-' });
        let at = format!("{label} for {}", ROLES[role]);
        let Err(refused) = answer else {
            if !databases_of(ROLES[role], Transport::Modern).contains(&database) {
                matrix.violations.push(format!("{at}: answered, and not listed over HTTP"));
            }
            continue;
        };
        let name = format!("{}~", &database[..database.len() - 1]);
        let absent = select(matrix_node, role, &name, dialect).await.unwrap_err();
        let refused = (refused.kind(), refused.message().to_owned());
        if refused != (absent.kind(), absent.message().replace(&name, database)) {
            matrix.violations.push(format!("{at}: refused with {refused:?}, and an absent one with {absent}"));
        }
    }
}

/// Sends a row to a table, and marks who stores it.
pub(super) async fn try_rows(matrix_node: &MatrixNode, matrix: &mut Matrix, role: usize) {
    let label = "door rows over Flight SQL for plant.readings";
    let stored = send(matrix_node, role, "readings").await;
    matrix.add_mark(label, role, if stored.is_ok() { '+' } else { '-' });
    let Err(refused) = stored else { return };
    let absent = send(matrix_node, role, "readingz").await.unwrap_err();
    if refused.message() != absent.message().replace("readingz", "readings") {
        let at = format!("{label} for {}", ROLES[role]);
        matrix.violations.push(format!("{at}: refused with {refused}, and an absent one with {absent}"));
    }
}

async fn send(matrix_node: &MatrixNode, role: usize, table: &str) -> Result<(), Error> {
    let database = open(matrix_node, role, "plant", SqlDialect::DataFusion);
    let id: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let rows = RecordBatch::try_from_iter([("id", id)]).unwrap();
    let write = NodeWrite { table: table.to_owned(), schema: rows.schema(), key: None };
    let mut writer = database.begin_write(write, &Principal::process_user()).await?;
    writer.write(0, rows).await?;
    writer.commit().await.map(drop)
}
