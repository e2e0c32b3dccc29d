//! What the owner declares about a network; and the rows that are declared as a node's part of a table, as a
//! condition, and to know which nodes have no matching rows.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::scalar::ScalarValue;
use tidegate_query::{NodeDatabase, type_name};

/// How a network is queried.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// What happens when a node does not answer.
    pub partial: PartialAnswers,
    /// How long a node may take for its first rows.
    pub timeout: Duration,
    /// The columns whose smallest and largest values `locate` shows.
    pub ranges: Vec<String>,
}

/// What happens when a node does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialAnswers {
    /// The statement fails, and the error names the nodes.
    Forbid,
    /// The answer lacks the rows of these nodes, and names them.
    Allow,
}

/// A node of a network.
pub struct NetworkNode {
    /// Its database. The name of the database is the name of the node.
    pub database: Arc<dyn NodeDatabase>,
    /// Which of its rows are part of the tables of the network; `None`: all.
    pub holds: Option<HeldRows>,
}

impl fmt::Debug for NetworkNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkNode").field("name", &self.database.name()).field("holds", &self.holds).finish()
    }
}

/// The rows of a node that are part of the tables of a network: those whose columns have these values. A table without
/// one of the columns is not restricted by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldRows {
    /// Values by column.
    pub columns: BTreeMap<String, HeldValues>,
}

/// Values of a column, as text that its type reads. Null is not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldValues {
    /// The smallest value.
    pub from: Option<String>,
    /// The value that all are below.
    pub before: Option<String>,
    /// The values; empty: no list.
    pub values: Vec<String>,
}

impl fmt::Display for HeldRows {
    /// As a condition: `time >= 2026-01-01 and site in (oslo, bergen)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut conditions = Vec::new();
        for (column, values) in &self.columns {
            conditions.extend(values.from.as_ref().map(|from| format!("{column} >= {from}")));
            conditions.extend(values.before.as_ref().map(|before| format!("{column} < {before}")));
            if !values.values.is_empty() {
                conditions.push(format!("{column} in ({})", values.values.join(", ")));
            }
        }
        f.write_str(&conditions.join(" and "))
    }
}

/// The rows of `holds` in the table `table` as a condition; `None`: all.
pub(super) fn held_condition(holds: &HeldRows, schema: &Schema, table: &TableReference) -> Option<Expr> {
    let mut conditions = Vec::new();
    for (name, values) in &holds.columns {
        let Ok(field) = schema.field_with_name(name) else { continue };
        let column = || Expr::Column(Column::new(Some(table.clone()), name));
        let value = |text: &String| read_value(text, field.data_type()).map(lit);
        // A value that the type cannot have matches no row.
        let never = || lit(false);
        conditions.extend(values.from.as_ref().map(|from| value(from).map_or_else(never, |from| column().gt_eq(from))));
        let before = values.before.as_ref();
        conditions.extend(before.map(|before| value(before).map_or_else(never, |before| column().lt(before))));
        if !values.values.is_empty() {
            let list = values.values.iter().filter_map(value).collect();
            conditions.push(Expr::InList(InList::new(Box::new(column()), list, false)));
        }
    }
    conjunction(conditions)
}

/// Whether rows of `holds` may match all of `filters`, which are over the columns of `schema`.
pub(super) fn may_match(holds: &HeldRows, schema: &SchemaRef, filters: &[Expr]) -> bool {
    let Some(condition) = conjunction(filters.iter().cloned().map(without_qualifiers)) else { return true };
    let Ok(can_match) = evaluate(holds, schema, &condition) else { return true };
    can_match
}

fn evaluate(holds: &HeldRows, schema: &SchemaRef, condition: &Expr) -> Result<bool> {
    let columns = DFSchema::try_from(schema.clone())?;
    let physical =
        create_physical_expr(condition, &columns, &ExecutionProps::new(), &PhysicalPlanningContext::default())?;
    let predicate = PruningPredicateBuilder::new().with_file_schema(schema.clone()).try_build(physical)?;
    let kept = predicate.prune(&HeldStatistics { holds, schema })?;
    Ok(kept.first().copied().unwrap_or(true))
}

fn without_qualifiers(filter: Expr) -> Expr {
    datafusion::logical_expr::expr_rewriter::unnormalize_col(filter)
}

/// The value of `text` in a column of this type; `None` if the type has no such value.
fn read_value(text: &str, data_type: &DataType) -> Option<ScalarValue> {
    let text = ScalarValue::Utf8(Some(text.to_owned())).to_array().ok()?;
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(&text, data_type, &options).ok()?;
    ScalarValue::try_from_array(&cast, 0).ok()
}

/// What is wrong with `holds` for a table with these columns: one sentence each.
pub(super) fn check_holds(holds: &HeldRows, schema: &Schema) -> Vec<String> {
    let of_column = |(name, values): (&String, &HeldValues)| {
        let field = schema.field_with_name(name).ok()?;
        let declared = values.from.iter().chain(&values.before).chain(&values.values);
        let unreadable = declared.filter(|text| read_value(text, field.data_type()).is_none());
        let list: Vec<&str> = unreadable.map(String::as_str).collect();
        let kind = type_name(field.data_type());
        (!list.is_empty())
            .then(|| format!("holds: {} cannot be a value of the column {name} ({kind})", list.join(", ")))
    };
    holds.columns.iter().filter_map(of_column).collect()
}

/// The declared values as the statistics of one container.
struct HeldStatistics<'a> {
    holds: &'a HeldRows,
    schema: &'a SchemaRef,
}

impl HeldStatistics<'_> {
    fn column(&self, column: &Column) -> Option<(&HeldValues, &DataType)> {
        let values = self.holds.columns.get(&column.name)?;
        Some((values, self.schema.field_with_name(&column.name).ok()?.data_type()))
    }

    fn values(&self, column: &Column) -> Option<Vec<ScalarValue>> {
        let (values, data_type) = self.column(column)?;
        let values: Option<Vec<_>> = values.values.iter().map(|text| read_value(text, data_type)).collect();
        values.filter(|values| !values.is_empty())
    }

    /// The end of the range of `column`: `bound`, or the extreme value of its list.
    fn bound(&self, column: &Column, bound: impl Fn(&HeldValues) -> Option<&String>, is_min: bool) -> Option<ArrayRef> {
        let (values, data_type) = self.column(column)?;
        let declared = bound(values).and_then(|text| read_value(text, data_type));
        let listed = self.values(column).and_then(|values| {
            values.into_iter().reduce(|one, other| {
                let is_less = one.partial_cmp(&other).is_some_and(std::cmp::Ordering::is_le);
                if is_less == is_min { one } else { other }
            })
        });
        declared.or(listed)?.to_array().ok()
    }
}

impl PruningStatistics for HeldStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, |values| values.from.as_ref(), true)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, |values| values.before.as_ref(), false)
    }

    fn num_containers(&self) -> usize {
        1
    }

    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let held = self.values(column)?;
        let is_none = held.iter().all(|value| !values.contains(value));
        let is_all = held.iter().all(|value| values.contains(value));
        Some(BooleanArray::from(vec![if is_none { Some(false) } else { is_all.then_some(true) }]))
    }
}
