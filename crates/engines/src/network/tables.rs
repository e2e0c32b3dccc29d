//! The tables of a network: those of all nodes, as one caller sees them. Tables of the same name are one, with common
//! columns.
//!
//! A statement names them as `table`, `public.table`, `network.table`; and `schema.table` if the nodes have schemas or
//! folders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::view::ViewTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result as DataFusionResult, TableReference};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Union, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use futures::future::join_all;
use tidegate_core::{Error, ErrorKind, Principal, nearest_names};
use tidegate_pgsql::{PUBLIC_SCHEMA, VisibleObjects, VisibleTable};
use tidegate_query::{MissingNode, NodeTable, NodeTables, type_name};
use tidegate_sql::Statement;

use super::options::{HeldRows, NetworkNode, NetworkOptions, PartialAnswers, check_holds, held_condition};
use crate::embedded::{CATALOG, StatementScope, SystemCatalogs, to_core_error};
use crate::federated::{Member, MemberExec, MemberQueryContext, MemberTable};

/// The tables of a network, for one statement.
#[derive(Debug, Clone)]
pub(super) struct NetworkTables {
    pub(super) network: Arc<str>,
    pub(super) known: Arc<KnownTables>,
    pub(super) catalogs: SystemCatalogs,
    pub(super) context: MemberQueryContext,
}

impl NetworkTables {
    pub(super) fn new(
        network: &Arc<str>,
        known: Arc<KnownTables>,
        statement: &Statement,
        context: MemberQueryContext,
        principal: &Principal,
    ) -> Result<Self, Error> {
        let catalogs = match SystemCatalogs::find_needs(statement) {
            Some(needs) => {
                let objects = visible_objects(network, &known, principal);
                SystemCatalogs::new(&needs, objects).map_err(|error| to_core_error(&error, network))?
            }
            None => SystemCatalogs::default(),
        };
        Ok(Self { network: network.clone(), known, catalogs, context })
    }

    /// The full name of the table of `reference` in the network.
    pub(super) fn table_name(&self, reference: &TableReference) -> String {
        let is_own = |schema: &str| schema == PUBLIC_SCHEMA || *schema == *self.network;
        match reference.schema().filter(|schema| !is_own(schema)) {
            Some(schema) => format!("{schema}.{}", reference.table()),
            None => reference.table().to_owned(),
        }
    }

    pub(super) fn find(&self, reference: &TableReference) -> Result<&UnitedTable, Error> {
        self.known.table(&self.table_name(reference), &self.network)
    }

    fn relation(&self, reference: &TableReference) -> Option<Arc<dyn TableProvider>> {
        let schema = reference.schema().filter(|schema| **schema != *self.network);
        self.catalogs.relation(schema, reference.table())
    }
}

fn visible_objects(network: &str, known: &KnownTables, principal: &Principal) -> VisibleObjects {
    let tables = known.tables.iter().map(|(name, united)| VisibleTable {
        schema: PUBLIC_SCHEMA.to_owned(),
        name: name.clone(),
        columns: united.schema.fields().to_vec(),
    });
    VisibleObjects::new(network, &principal.subject, tables.collect())
}

/// The leaves of `plan`.
pub(super) fn node_queries(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let mut leaves = Vec::new();
    // The visitor never fails.
    let _ = plan.apply(|node| {
        if node.downcast_ref::<MemberExec>().is_some() {
            leaves.push(node.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    leaves
}

impl StatementScope for NetworkTables {
    fn database(&self) -> &Arc<str> {
        &self.network
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.schema().is_none() && self.find(reference).is_err()
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        match (self.find(reference), self.relation(reference)) {
            (Ok(table), _) => table.check_holds(&self.network).map(|()| table.schema.clone()),
            (Err(_), Some(relation)) => Ok(relation.schema()),
            (Err(error), None) => Err(error),
        }
    }

    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        if catalog != CATALOG && *catalog != *self.network {
            return None;
        }
        let reference = match *schema == *self.network {
            true => TableReference::bare(table),
            false => TableReference::partial(schema, table),
        };
        match self.find(&reference) {
            // The plan was built for these columns.
            Ok(table) => Some(Arc::new(ViewTable::new(table.plan(&self.context).ok()?, None))),
            Err(_) => self.relation(&reference),
        }
    }

    fn member_queries(&self, plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        let queries = node_queries(plan);
        queries.iter().filter_map(|leaf| Some(leaf.downcast_ref::<MemberExec>()?.describe_query())).collect()
    }
}

/// The column with the name of the node.
pub(super) const NODE_COLUMN: &str = "_node";

/// The table of one node.
#[derive(Debug, Clone)]
pub(super) struct NodePart {
    pub(super) node: Member,
    pub(super) table: NodeTable,
    pub(super) holds: Option<HeldRows>,
}

/// The tables of the same name on several nodes.
#[derive(Debug, Clone)]
pub(super) struct UnitedTable {
    /// The columns that all callers of the network see, the name of the node last.
    pub(super) schema: SchemaRef,
    pub(super) parts: Vec<NodePart>,
    /// What was done with columns that differ, by node: one sentence each.
    pub(super) notes: Vec<(String, String)>,
}

impl UnitedTable {
    /// Unites `parts`, of which there is at least one. Columns of the same name have the narrowest type that holds the
    /// values of all nodes. A column whose types have no such type is left out.
    pub(super) fn new(parts: Vec<NodePart>) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for field in parts.iter().flat_map(|part| part.table.schema.fields()) {
            if field.name() != NODE_COLUMN && !names.contains(&field.name().as_str()) {
                names.push(field.name());
            }
        }
        let mut notes = Vec::new();
        let fields = names.into_iter().filter_map(|name| unite_column(name, &parts, &mut notes));
        let node = Arc::new(Field::new(NODE_COLUMN, DataType::Utf8, false));
        let schema = Arc::new(Schema::new(fields.chain([node]).collect::<Vec<FieldRef>>()));
        Self { schema, parts, notes }
    }

    /// The number of rows, if each node knows its own.
    pub(super) fn rows(&self) -> Option<u64> {
        // A part of the rows of a node may be part of the network only.
        self.parts.iter().map(|part| part.table.rows.filter(|_| part.holds.is_none())).sum()
    }

    /// Checks that the declared rows of each node can be rows of its table.
    ///
    /// # Errors
    /// `Unavailable` with the declarations that must be corrected.
    pub(super) fn check_holds(&self, network: &str) -> Result<(), Error> {
        let problems: Vec<String> = self.parts.iter().flat_map(NodePart::holds_problems).collect();
        if problems.is_empty() {
            return Ok(());
        }
        let message = format!("the configuration of {network} does not fit its nodes: {}", problems.join("; "));
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// The union of the tables of the nodes.
    pub(super) fn plan(&self, context: &MemberQueryContext) -> DataFusionResult<LogicalPlan> {
        let branches = self.parts.iter().map(|part| part.plan(&self.schema, context).map(Arc::new));
        let mut branches = branches.collect::<DataFusionResult<Vec<_>>>()?;
        match branches.pop() {
            Some(only) if branches.is_empty() => Ok(Arc::unwrap_or_clone(only)),
            last => {
                branches.extend(last);
                Union::try_new_with_loose_types(branches).map(LogicalPlan::Union)
            }
        }
    }
}

impl NodePart {
    pub(super) fn column(&self, name: &str) -> Option<&FieldRef> {
        self.table.schema.fields().iter().find(|field| field.name() == name)
    }

    /// What is wrong with the declared rows: one sentence each.
    pub(super) fn holds_problems(&self) -> Vec<String> {
        let problems = self.holds.iter().flat_map(|holds| check_holds(holds, &self.table.schema));
        problems.map(|problem| format!("{problem} of {}", self.node.name())).collect()
    }

    fn plan(&self, united: &SchemaRef, context: &MemberQueryContext) -> DataFusionResult<LogicalPlan> {
        let name = TableReference::partial(self.node.name(), self.table.name.as_str());
        let table = MemberTable {
            member: self.node.clone(),
            name: self.table.name.clone(),
            schema: self.table.schema.clone(),
            rows: self.table.rows,
            context: context.clone(),
        };
        let mut plan = LogicalPlanBuilder::scan(name.clone(), provider_as_source(Arc::new(table)), None)?.build()?;
        if let Some(condition) = self.holds.as_ref().and_then(|holds| held_condition(holds, &self.table.schema, &name))
        {
            plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?);
        }
        let columns = united.fields().iter().map(|field| {
            if field.name() == NODE_COLUMN {
                return Ok(lit(self.node.name()).alias(NODE_COLUMN));
            }
            let Some(own) = self.column(field.name()) else {
                return Ok(lit(ScalarValue::try_from(field.data_type())?).alias(field.name()));
            };
            let column = Expr::Column(Column::new(Some(name.clone()), field.name()));
            Ok(match own.data_type() == field.data_type() {
                true => column.alias(field.name()),
                false => Expr::Cast(Cast::new(Box::new(column), field.data_type().clone())).alias(field.name()),
            })
        });
        let columns = columns.collect::<DataFusionResult<Vec<Expr>>>()?;
        Projection::try_new(columns, Arc::new(plan)).map(LogicalPlan::Projection)
    }
}

/// The column `name` of all parts as one; `None` if its types are not compatible.
fn unite_column(name: &str, parts: &[NodePart], notes: &mut Vec<(String, String)>) -> Option<FieldRef> {
    let found: Vec<(&NodePart, &FieldRef)> = parts.iter().filter_map(|part| Some((part, part.column(name)?))).collect();
    let (first, rest) = found.split_first()?;
    let mut data_type = first.1.data_type().clone();
    for (part, field) in rest {
        let Some(common) = common_type(&data_type, field.data_type()) else {
            let (node, own) = (part.node.name(), type_name(field.data_type()));
            let message = format!(
                "the column {name} is left out of the network: it is {} on {} and {own} on {node}, which have no common type",
                type_name(&data_type),
                first.0.node.name(),
            );
            notes.push((node.to_owned(), message));
            return None;
        };
        data_type = common;
    }
    for part in parts {
        match part.column(name) {
            None => notes.push((part.node.name().to_owned(), format!("the column {name} is absent, and null"))),
            Some(field) if *field.data_type() != data_type => {
                let (own, common) = (type_name(field.data_type()), type_name(&data_type));
                notes.push((part.node.name().to_owned(), format!("the column {name} is {own}, and read as {common}")));
            }
            Some(_) => {}
        }
    }
    let is_nullable = found.len() < parts.len() || found.iter().any(|(_, field)| field.is_nullable());
    let is_same = found.iter().all(|(_, field)| field.metadata() == first.1.metadata());
    let field = Field::new(name, data_type, is_nullable);
    Some(Arc::new(if is_same { field.with_metadata(first.1.metadata().clone()) } else { field }))
}

/// The narrowest type that holds the values of both types exactly.
pub(super) fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as Type;
    if left == right {
        return Some(left.clone());
    }
    match (left, right) {
        (Type::Null, other) | (other, Type::Null) => Some(other.clone()),
        (left, right) if left.is_string() && right.is_string() => Some(Type::Utf8),
        (Type::Dictionary(_, values), other) | (other, Type::Dictionary(_, values)) => common_type(values, other),
        (left, right) if left.is_signed_integer() && right.is_signed_integer() => {
            let is_left = left.primitive_width() >= right.primitive_width();
            Some(if is_left { left.clone() } else { right.clone() })
        }
        (Type::Float32, Type::Float64) | (Type::Float64, Type::Float32) => Some(Type::Float64),
        // Up to 32 bits, each integer is a double.
        (Type::Int8 | Type::Int16 | Type::Int32, Type::Float64)
        | (Type::Float64, Type::Int8 | Type::Int16 | Type::Int32) => Some(Type::Float64),
        (Type::Timestamp(one, zone), Type::Timestamp(other, other_zone)) if zone == other_zone => {
            // Nanoseconds end in 2262: a later time is an error when it is read.
            Some(Type::Timestamp(*one.max(other), zone.clone()))
        }
        (Type::Decimal128(precision, scale), Type::Decimal128(other_precision, other_scale)) => {
            let whole = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
            let digits = whole(*precision, *scale).max(whole(*other_precision, *other_scale));
            let scale = *scale.max(other_scale);
            let precision = u8::try_from(digits + i16::from(scale)).ok().filter(|precision| *precision <= 38)?;
            Some(Type::Decimal128(precision, scale))
        }
        _ => None,
    }
}

/// What is known of the tables of the nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownTables {
    pub(super) tables: BTreeMap<String, UnitedTable>,
    /// By the name of the node.
    pub(super) known: BTreeMap<String, Arc<NodeTables>>,
    /// The nodes whose tables were never known, and why.
    pub(super) unknown: Vec<MissingNode>,
    /// The nodes that cannot read a table, by its name.
    pub(super) unreadable: BTreeMap<String, Vec<MissingNode>>,
}

impl KnownTables {
    /// Asks each node, which answers from memory if it can; with `are_newer` only if its list is new.
    ///
    /// # Errors
    /// `Cancelled`.
    pub(super) async fn load(
        nodes: &[NetworkNode],
        options: &NetworkOptions,
        principal: &Principal,
        are_newer: bool,
    ) -> Result<Self, Error> {
        let asking = nodes.iter().map(|node| {
            let node = &node.database;
            tokio::time::timeout(
                options.timeout,
                if are_newer { node.newer_tables(principal) } else { node.tables(principal) },
            )
        });
        let mut found = Self::default();
        let mut parts: BTreeMap<String, Vec<NodePart>> = BTreeMap::new();
        for (node, answer) in nodes.iter().zip(join_all(asking).await) {
            let name = node.database.name().to_owned();
            let tables = match answer {
                Ok(Ok(tables)) => tables,
                // A list of tables has nothing of a statement: every error is about the node, or the caller there.
                Ok(Err(error)) if error.kind() != ErrorKind::Cancelled => {
                    found.unknown.push(MissingNode { name, reason: error.message().to_owned(), rows: None });
                    continue;
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let reason = format!("it did not answer within {} ms", options.timeout.as_millis());
                    found.unknown.push(MissingNode { name, reason, rows: None });
                    continue;
                }
            };
            for table in &tables.tables {
                if let Some(reason) = &table.unreadable {
                    let reason = format!("it cannot read the table {:?}: {reason}", table.name);
                    let missing = MissingNode { name: name.clone(), reason, rows: table.rows };
                    found.unreadable.entry(table.name.clone()).or_default().push(missing);
                    continue;
                }
                let part = NodePart {
                    node: Member::Node(node.database.clone()),
                    table: table.clone(),
                    holds: node.holds.clone(),
                };
                parts.entry(table.name.clone()).or_default().push(part);
            }
            found.known.insert(name, tables);
        }
        found.tables = parts.into_iter().map(|(name, parts)| (name, UnitedTable::new(parts))).collect();
        Ok(found)
    }

    /// The table that a statement calls `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; if a node may have it, the error names this node.
    pub(super) fn table(&self, name: &str, network: &str) -> Result<&UnitedTable, Error> {
        let found = self.tables.get(name).or_else(|| self.tables.get(without_network(name, network)));
        found.ok_or_else(|| {
            let unreadable = self.unreadable_on(name, network);
            if !unreadable.is_empty() {
                return nodes_failed_error(network, unreadable);
            }
            let names: BTreeSet<&str> = self.tables.keys().map(String::as_str).collect();
            let near = nearest_names(name, names.iter().copied());
            let choices: Vec<String> =
                if near.is_empty() { names.iter().take(20).map(|name| (*name).to_owned()).collect() } else { near };
            let mut message = format!("there is no table {name:?} on the nodes of {network}");
            if !self.unknown.is_empty() {
                message.push_str("; these nodes did not answer: ");
                message.push_str(&describe_failures(&self.unknown));
            }
            Error::new(ErrorKind::NotFound, message).with_choices(choices)
        })
    }

    /// Whether no node has the table that a statement calls `name`, as far as is known.
    pub(super) fn lacks(&self, name: &str, network: &str) -> bool {
        self.table(name, network).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The nodes that cannot read the table that a statement calls `name`.
    pub(super) fn unreadable_on(&self, name: &str, network: &str) -> &[MissingNode] {
        let found = self.unreadable.get(name).or_else(|| self.unreadable.get(without_network(name, network)));
        found.map_or(&[], Vec::as_slice)
    }

    /// Fails if nodes did not answer, unless answers may be partial.
    pub(super) fn check_complete(&self, partial: PartialAnswers, network: &str) -> Result<(), Error> {
        if self.unknown.is_empty() || partial == PartialAnswers::Allow && !self.known.is_empty() {
            return Ok(());
        }
        Err(nodes_failed_error(network, &self.unknown))
    }
}

/// `name` without the name of the network before it.
fn without_network<'a>(name: &'a str, network: &str) -> &'a str {
    name.strip_prefix(network).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name)
}

/// The error of a statement that needs nodes that did not answer.
pub(super) fn nodes_failed_error(network: &str, failed: &[MissingNode]) -> Error {
    let count = if failed.len() == 1 { "a node" } else { "nodes" };
    let message = format!("{count} of {network} did not answer: {}", describe_failures(failed));
    Error::new(ErrorKind::Unavailable, message)
}

fn describe_failures(failed: &[MissingNode]) -> String {
    let described: Vec<String> = failed.iter().map(|node| format!("{} ({})", node.name, node.reason)).collect();
    described.join(", ")
}
