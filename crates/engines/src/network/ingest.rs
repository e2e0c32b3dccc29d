//! Rows for the tables of a network: each goes to the node whose declared rows it is one of, and is stored there.
//!
//! Each write has the identity of the caller, and nodes apply their own rights, limits and stamps. The rows for one
//! node are stored as a whole. Rows for several nodes are stored node by node, and need a key, so that a repeat after
//! a failure stores none twice.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DFSchema, Result as DataFusionResult, TableReference};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_query::{
    Database, IngestTable, NodeDatabase, NodeWrite, RowWriter, WriteMode, WriteReceipt, WriteRequest, WriteStart,
    WriteTarget,
};

use super::network_database::NetworkDatabase;
use super::options::{HeldRows, NetworkNode, held_condition};
use super::tables::{KnownTables, NODE_COLUMN, UnitedTable, nodes_failed_error};

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
impl WriteTarget for NetworkIngest {
    fn database(&self) -> &str {
        self.network.name()
    }

    fn tables(&self) -> Vec<String> {
        self.tables.to_vec()
    }

    fn for_caller(&self, caller: &Principal) -> Option<Arc<dyn WriteTarget>> {
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

/// A node that may take rows of a table.
struct Route {
    node: Arc<dyn NodeDatabase>,
    /// Its declared rows; `None`: any row.
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// The columns of its table; why it takes no rows, if they are not known.
    columns: Result<SchemaRef, Error>,
}

/// The nodes that may take rows of a table, in the order of the configuration.
struct Routes {
    network: String,
    table: String,
    /// The columns of rows that are sent, the name of the node last.
    columns: SchemaRef,
    routes: Vec<Route>,
    /// The columns that the declared rows of nodes are about.
    deciding: Vec<usize>,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").field("table", &self.table).field("nodes", &self.names()).finish_non_exhaustive()
    }
}

impl Routes {
    /// The routes for `table`. A node that does not answer is one, because the rows may be its own.
    ///
    /// # Errors
    /// A fault of the server, if a condition cannot be evaluated.
    fn new(
        network: &str,
        table: &str,
        columns: SchemaRef,
        united: &UnitedTable,
        known: &KnownTables,
        nodes: &[NetworkNode],
    ) -> Result<Self, Error> {
        let mut routes = Vec::new();
        for node in nodes {
            let name = node.database.name();
            let condition = node.holds.as_ref().map(|holds| condition_of(holds, &columns)).transpose();
            let condition = condition.map_err(|error| Error::internal(error.to_string()))?.flatten();
            let part = united.parts.iter().find(|part| part.node.name() == name);
            let failed = known.unknown.iter().chain(known.unreadable_on(table, network));
            let failure = failed.into_iter().find(|missing| missing.name == name);
            let own = match (part, failure) {
                (Some(part), _) => Ok(part.table.schema.clone()),
                (None, Some(missing)) => Err(without_answer(name, &missing.reason)),
                // Its declared rows must not go to another node.
                (None, None) if condition.is_some() => Err(without_table(name, table)),
                (None, None) => continue,
            };
            routes.push(Route { node: node.database.clone(), condition, columns: own });
        }
        let is_deciding = |name: &str| {
            nodes.iter().any(|node| node.holds.as_ref().is_some_and(|holds| holds.columns.contains_key(name)))
        };
        let deciding = columns.fields().iter().enumerate().filter(|(_, field)| is_deciding(field.name()));
        let deciding = deciding.map(|(position, _)| position).collect();
        Ok(Self { network: network.to_owned(), table: table.to_owned(), columns, routes, deciding })
    }

    /// The columns of rows that are sent.
    fn columns(&self) -> &SchemaRef {
        &self.columns
    }

    fn route(&self, position: usize) -> &Route {
        &self.routes[position]
    }

    fn network(&self) -> &str {
        &self.network
    }

    fn len(&self) -> usize {
        self.routes.len()
    }

    fn names(&self) -> Vec<&str> {
        self.routes.iter().map(|route| route.node.name()).collect()
    }

    /// The position of the route of each row: that of the node that the row names; else the first node whose declared rows
    /// it is one of; else the only node without declared rows.
    ///
    /// # Errors
    /// `InvalidArguments` if a row has no route, or several.
    fn assign(&self, batch: &RecordBatch) -> Result<Vec<usize>, Error> {
        let fitting = self.routes.iter().map(|route| match &route.condition {
            Some(condition) => matches_of(condition, batch).map(Some),
            None => Ok(None),
        });
        let fitting: Vec<Option<BooleanArray>> =
            fitting.collect::<DataFusionResult<_>>().map_err(|error| Error::internal(error.to_string()))?;
        let open: Vec<usize> = (0..self.routes.len()).filter(|route| fitting[*route].is_none()).collect();
        let fits =
            |route: usize, row: usize| fitting[route].as_ref().is_none_or(|rows| rows.is_valid(row) && rows.value(row));
        let named = batch.columns().last().and_then(|column| column.as_string_opt::<i32>());
        let named = |row: usize| named.filter(|names| names.is_valid(row)).map(|names| names.value(row));
        let route_of = |row: usize| {
            if let Some(name) = named(row) {
                let route = self.routes.iter().position(|route| route.node.name() == name);
                let route = route.ok_or_else(|| self.no_such_node(name))?;
                return if fits(route, row) { Ok(route) } else { Err(self.not_held(batch, row, name)) };
            }
            let declared = (0..self.routes.len()).find(|route| fitting[*route].is_some() && fits(*route, row));
            match (declared, &open[..]) {
                (Some(route), _) => Ok(route),
                (None, [only]) => Ok(*only),
                (None, []) => Err(self.no_route(batch, row)),
                (None, several) => Err(self.several_routes(several)),
            }
        };
        (0..batch.num_rows()).map(route_of).collect()
    }

    fn no_such_node(&self, name: &str) -> Error {
        let message =
            format!("no node {name:?} of {} has the table {:?}; nothing was stored", self.network, self.table);
        invalid(message).with_choices(self.names().into_iter().map(str::to_owned))
    }

    fn not_held(&self, batch: &RecordBatch, row: usize, node: &str) -> Error {
        let values = self.describe(batch, row);
        invalid(format!("a row for the node {node} with {values} is not among its declared rows; nothing was stored"))
    }

    fn no_route(&self, batch: &RecordBatch, row: usize) -> Error {
        let (values, network) = (self.describe(batch, row), &self.network);
        invalid(format!("a row with {values} is among the declared rows of no node of {network}; nothing was stored"))
    }

    fn several_routes(&self, routes: &[usize]) -> Error {
        let names: Vec<&str> = routes.iter().map(|route| self.routes[*route].node.name()).collect();
        let message =
            format!("a row of {:?} could go to each of the nodes {}; nothing was stored", self.table, names.join(", "));
        invalid(message).with_hint("Name the node of each row in the column _node.")
    }

    /// The values of the columns that decide, such as `site = "oslo"`.
    fn describe(&self, batch: &RecordBatch, row: usize) -> String {
        let options = FormatOptions::default().with_null("null");
        let values = self.deciding.iter().map(|position| {
            let column = batch.column(*position);
            let value = ArrayFormatter::try_new(column, &options).map(|formatter| formatter.value(row).to_string());
            format!("{} = {}", self.columns.field(*position).name(), value.unwrap_or_default())
        });
        values.collect::<Vec<_>>().join(", ")
    }
}

/// `holds` as a condition over `columns`; `None` if it is about none of them.
fn condition_of(holds: &HeldRows, columns: &SchemaRef) -> DataFusionResult<Option<Arc<dyn PhysicalExpr>>> {
    let Some(condition) = held_condition(holds, columns, &TableReference::bare("rows")) else { return Ok(None) };
    let schema = DFSchema::try_from(columns.clone())?;
    let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    create_physical_expr(&unnormalize_col(condition), &schema, &properties, &context).map(Some)
}

fn matches_of(condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> DataFusionResult<BooleanArray> {
    let rows = condition.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(rows.as_boolean().clone())
}

fn without_answer(node: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the node {node} takes no rows now: {reason}; nothing was stored"))
}

fn without_table(node: &str, table: &str) -> Error {
    let reason = "it has no such table, or the caller has no right to it there";
    Error::new(
        ErrorKind::Forbidden,
        format!("the node {node} takes no rows of {table:?}: {reason}; nothing was stored"),
    )
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, message)
}

/// A write to the nodes of a network. The write to a node begins with its first row.
#[derive(Debug)]
struct RoutedWriter {
    routes: Routes,
    table: String,
    key: Option<String>,
    caller: Principal,
    /// By the position of the route.
    writers: BTreeMap<usize, NodeRows>,
}

/// The rows for one node.
#[derive(Debug)]
struct NodeRows {
    node: String,
    writer: Box<dyn RowWriter>,
    schema: SchemaRef,
    /// Positions of its columns among those of the network.
    columns: Vec<usize>,
}

impl RoutedWriter {
    fn new(routes: Routes, table: String, key: Option<String>, caller: Principal) -> Self {
        Self { routes, table, key, caller, writers: BTreeMap::new() }
    }

    async fn write_to(&mut self, route: usize, rows: &RecordBatch) -> Result<(), Error> {
        if !self.writers.contains_key(&route) {
            if !self.writers.is_empty() && self.key.is_none() {
                return Err(without_key(&self.table));
            }
            let opened = NodeRows::open(self.routes.route(route), &self.routes, self.node_write(), &self.caller);
            self.writers.insert(route, opened.await?);
        }
        match self.writers.get_mut(&route) {
            Some(node) => node.write(rows).await,
            None => Err(Error::internal("a node has no writer")),
        }
    }

    fn node_write(&self) -> NodeWrite {
        let schema = self.routes.columns().clone();
        // Two networks may have the same node.
        let network = self.routes.network();
        let key = self.key.as_ref().map(|key| format!("{}:{network}{key}", network.len()));
        NodeWrite { table: self.table.clone(), schema, key }
    }
}

#[async_trait]
impl RowWriter for RoutedWriter {
    async fn write(&mut self, _table: usize, rows: RecordBatch) -> Result<(), Error> {
        let assigned = self.routes.assign(&rows)?;
        for route in 0..self.routes.len() {
            let own: BooleanArray = assigned.iter().map(|of_row| Some(*of_row == route)).collect();
            match own.true_count() {
                0 => {}
                count if count == rows.num_rows() => self.write_to(route, &rows).await?,
                _ => {
                    let own = filter_record_batch(&rows, &own).map_err(|error| Error::internal(error.to_string()))?;
                    self.write_to(route, &own).await?;
                }
            }
        }
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<WriteReceipt, Error> {
        let mut stored: Vec<String> = Vec::new();
        let (mut rows, mut sequence) = (0, 0);
        for (_, NodeRows { node, writer, .. }) in self.writers {
            let receipt = writer.commit().await.map_err(|error| after_others(&error, &node, &stored))?;
            rows += receipt.rows.first().copied().unwrap_or_default();
            sequence = sequence.max(receipt.sequence);
            stored.push(node);
        }
        Ok(WriteReceipt { sequence, rows: vec![rows] })
    }
}

impl NodeRows {
    async fn open(route: &Route, routes: &Routes, write: NodeWrite, caller: &Principal) -> Result<Self, Error> {
        let node = route.node.name().to_owned();
        let own = route.columns.as_ref().map_err(Error::clone)?;
        let sent = routes.columns().fields().iter().enumerate();
        let sent = sent.filter_map(|(position, field)| {
            let own = own.field_with_name(field.name()).ok().filter(|_| field.name() != NODE_COLUMN)?;
            let field = field.as_ref().clone().with_metadata(own.metadata().clone());
            Some((position, Arc::new(field) as FieldRef))
        });
        let (columns, fields): (Vec<usize>, Vec<FieldRef>) = sent.unzip();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let writer = route.node.begin_write(NodeWrite { schema: schema.clone(), ..write }, caller).await?;
        Ok(Self { node, writer, schema, columns })
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.check_absent_columns(rows)?;
        let columns = self.columns.iter().map(|position| rows.column(*position).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        self.writer.write(0, rows.map_err(|error| Error::internal(error.to_string()))?).await
    }

    /// A value for a column that the node does not have would be lost.
    fn check_absent_columns(&self, rows: &RecordBatch) -> Result<(), Error> {
        let schema = rows.schema();
        let absent = (0..rows.num_columns()).filter(|position| !self.columns.contains(position));
        for position in absent.filter(|position| schema.field(*position).name() != NODE_COLUMN) {
            let column = rows.column(position);
            if column.logical_null_count() < column.len() {
                let (node, name) = (&self.node, schema.field(position).name());
                let message = format!("the node {node} has no column {name:?}, and a row for it has a value there");
                return Err(Error::new(ErrorKind::InvalidArguments, format!("{message}; nothing was stored")));
            }
        }
        Ok(())
    }
}

fn without_key(table: &str) -> Error {
    let message = format!("the rows for {table:?} belong to several nodes, and have no key; nothing was stored");
    Error::new(ErrorKind::InvalidArguments, message).with_hint(
        "The nodes store them one after the other. Send a key, so that they can be sent again after a failure, or send \
         the rows of each node by themselves.",
    )
}

/// The error of a node, after `stored` have stored their rows.
fn after_others(error: &Error, node: &str, stored: &[String]) -> Error {
    if stored.is_empty() {
        return error.clone();
    }
    let message = format!(
        "{}; the rows for {} are stored, those for nodes after {node} are not",
        error.message(),
        stored.join(", ")
    );
    let described = Error::new(error.kind(), message)
        .with_hint("Send exactly the same rows with the same key again: rows that are stored are not stored twice.");
    match error.retry_after() {
        Some(retry_after) => described.with_retry_after(retry_after),
        None => described,
    }
}
