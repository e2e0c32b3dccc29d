//! A table of a network: the tables of the same name on its nodes, with common columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::{Column, Result as DataFusionResult, TableReference};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Union, lit};
use datafusion::scalar::ScalarValue;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{NodeTable, type_name};

use super::held_rows::{check_holds, held_condition};
use super::options::HeldRows;
use crate::federated::{Member, MemberQueryContext, MemberTable};

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
