//! Rows for the tables of a network: each goes to the node whose declared rows it is one of, and is stored there.
//!
//! Each write has the identity of the caller, and nodes apply their own rights, limits and stamps. The rows for one node are stored as a whole. Rows
//! for several nodes are stored node by node, and need a key, so that a repeat after a failure stores none twice.

mod routes;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{Database, IngestTable, IngestTarget, WriteMode, WriteRequest, WriteStart};

use self::routes::Routes;
use self::writer::RoutedWriter;
use super::database::NetworkDatabase;
use super::nodes::nodes_failed_error;
use super::united_table::{NODE_COLUMN, UnitedTable};

/// The tables of a network that take rows.
#[derive(Debug)]
pub struct NetworkIngest {
    network: Arc<NetworkDatabase>,
    /// Sorted.
    tables: Arc<[String]>,
    /// Whose rows they are. The nodes take rows from callers only.
    caller: Option<Principal>,
}

impl NetworkIngest {
    /// The tables called `tables` of `network` take rows, if the nodes take them.
    pub fn new(network: Arc<NetworkDatabase>, mut tables: Vec<String>) -> Self {
        tables.sort();
        tables.dedup();
        Self { network, tables: tables.into(), caller: None }
    }
}

#[async_trait]
impl IngestTarget for NetworkIngest {
    fn database(&self) -> &str {
        self.network.name()
    }

    fn tables(&self) -> Vec<String> {
        self.tables.to_vec()
    }

    fn for_caller(&self, caller: &Principal) -> Option<Arc<dyn IngestTarget>> {
        let (network, tables) = (self.network.clone(), self.tables.clone());
        Some(Arc::new(Self { network, tables, caller: Some(caller.clone()) }))
    }

    async fn table(&self, table: &str) -> Result<IngestTable, Error> {
        let routes = self.routes(table).await?;
        Ok(IngestTable {
            name: table.to_owned(),
            schema: Some(routes.columns().clone()),
            adds_columns: false,
            stamps: Vec::new(),
        })
    }

    async fn begin(&self, request: WriteRequest) -> Result<WriteStart, Error> {
        let [write] = &request.tables[..] else {
            let message = "a network keeps no rejected rows; with on_reject=all, a row that does not fit refuses all";
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        };
        if request.mode == WriteMode::Replace {
            let message = "the rows of a network cannot be replaced; replace those of each node at the node";
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let routes = self.routes(&write.table).await?;
        let caller = self.caller.clone().ok_or_else(without_caller)?;
        let writer = RoutedWriter::new(routes, write.table.clone(), request.key, caller);
        Ok(WriteStart::Writer(Box::new(writer)))
    }

    async fn drop_table(&self, _table: &str) -> Result<(), Error> {
        Err(not_dropped())
    }
}

impl NetworkIngest {
    async fn routes(&self, table: &str) -> Result<Routes, Error> {
        let network = self.network.name();
        if !self.tables.iter().any(|declared| declared == table) {
            let near = nearest_names(table, self.tables.iter().map(String::as_str));
            return Err(Error::takes_no_rows(network, table).with_choices(near));
        }
        let caller = self.caller.as_ref().ok_or_else(without_caller)?;
        let known = self.network.known_tables_with(table, caller).await?;
        let united = match known.table(table, network) {
            // A node that does not answer may have it.
            Err(error) if error.kind() == ErrorKind::NotFound && !known.unknown.is_empty() => {
                return Err(nodes_failed_error(network, &known.unknown));
            }
            found => found?,
        };
        united.check_holds(network)?;
        Routes::new(network, table, columns_of(united), united, &known, &self.network.nodes)
    }
}

/// The columns of rows that are sent: those of the nodes, and the name of the node, all of them optional. The nodes know
/// which of theirs are not null.
fn columns_of(united: &UnitedTable) -> SchemaRef {
    let own = united.schema.fields().iter().filter(|field| field.name() != NODE_COLUMN);
    let node = Arc::new(Field::new(NODE_COLUMN, DataType::Utf8, true));
    let columns = own.map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
    Arc::new(Schema::new(columns.chain([node]).collect::<Vec<FieldRef>>()))
}

fn without_caller() -> Error {
    Error::new(ErrorKind::Unavailable, "the nodes of a network take rows from callers only")
}

fn not_dropped() -> Error {
    Error::new(ErrorKind::InvalidArguments, "the tables of a network are those of its nodes; drop them there")
}
