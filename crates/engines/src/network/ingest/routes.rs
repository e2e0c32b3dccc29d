//! Which node a row is sent to.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DFSchema, Result as DataFusionResult, TableReference};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::NodeDatabase;

use super::super::held_rows::held_condition;
use super::super::nodes::KnownTables;
use super::super::options::{HeldRows, NetworkNode};
use super::super::united_table::UnitedTable;

/// A node that may take rows of a table.
pub(super) struct Route {
    pub(super) node: Arc<dyn NodeDatabase>,
    /// Its declared rows; `None`: any row.
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// The columns of its table; why it takes no rows, if they are not known.
    pub(super) columns: Result<SchemaRef, Error>,
}

/// The nodes that may take rows of a table, in the order of the configuration.
pub(super) struct Routes {
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
    pub(super) fn new(
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
    pub(super) fn columns(&self) -> &SchemaRef {
        &self.columns
    }

    pub(super) fn route(&self, position: usize) -> &Route {
        &self.routes[position]
    }

    pub(super) fn network(&self) -> &str {
        &self.network
    }

    pub(super) fn len(&self) -> usize {
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
    pub(super) fn assign(&self, batch: &RecordBatch) -> Result<Vec<usize>, Error> {
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
