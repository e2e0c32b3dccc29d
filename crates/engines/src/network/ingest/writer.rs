//! Rows on their way to several nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{NodeWrite, RowWriter, WriteReceipt};

use super::super::united_table::NODE_COLUMN;
use super::routes::{Route, Routes};

/// A write to the nodes of a network. The write to a node begins with its first row.
#[derive(Debug)]
pub(super) struct RoutedWriter {
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
    pub(super) fn new(routes: Routes, table: String, key: Option<String>, caller: Principal) -> Self {
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
