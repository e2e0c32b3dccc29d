//! Joins whose one side is small: the keys of its rows become a condition on the other side, as near to the tables of
//! the nodes as possible.
//!
//! The small side is read once, and the join uses the rows that were read. So the keys of the condition are those of
//! the join, whatever is written to the nodes meanwhile. Rows of the other side without one of these keys are in no
//! result of an inner join or of a semi-join, nor on the optional side of an outer join. Anti joins and `NOT IN` stay
//! as they are.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, NullEquality, Result, TableReference};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{
    Distinct, EmptyRelation, Expr, ExprSchemable, FetchType, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
    Projection, TableScan, TableScanBuilder, Union,
};
use datafusion::scalar::ScalarValue;

use super::branches::without_alias;
use super::tables::common_type;
use crate::federated::MemberTable;

/// Maximum number of rows of the small side.
pub(super) const KEY_ROWS_MAX: usize = 1_000;
/// Maximum number of keys of a condition. A statement may have 1,000 values, and has others.
pub(super) const KEYS_MAX: usize = 800;
/// Maximum number of bytes of the keys of a condition.
const KEY_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes of the rows of the small side.
pub(super) const ROW_BYTES_MAX: usize = 1 << 20;

/// A join whose one side may be small.
#[derive(Debug)]
pub(super) struct KeyJoin<'a> {
    join: &'a Join,
    is_left_small: bool,
}

impl<'a> KeyJoin<'a> {
    /// `None` if `plan` is no such join, or the other side has no rows to save.
    pub(super) fn of_plan(plan: &'a LogicalPlan) -> Option<Self> {
        let LogicalPlan::Join(join) = plan else { return None };
        if join.on.is_empty() || join.null_equality != NullEquality::NullEqualsNothing {
            return None;
        }
        let sides: &[bool] = match join.join_type {
            JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => &[false, true],
            JoinType::Left => &[true],
            JoinType::Right => &[false],
            _ => return None,
        };
        let sides = sides.iter().map(|is_left_small| Self { join, is_left_small: *is_left_small });
        let sides = sides.filter(|side| side.is_promising() && side.keys().next().is_some());
        // The smaller side, as far as that is known.
        sides.min_by_key(|side| rows_at_most(side.small_side()).unwrap_or(u64::MAX))
    }

    pub(super) fn small_side(&self) -> &'a LogicalPlan {
        if self.is_left_small { &self.join.left } else { &self.join.right }
    }

    fn other_side(&self) -> &'a LogicalPlan {
        if self.is_left_small { &self.join.right } else { &self.join.left }
    }

    fn is_promising(&self) -> bool {
        let is_small = |plan| rows_at_most(plan).is_some_and(|rows| rows <= KEY_ROWS_MAX as u64);
        let (small, other) = (self.small_side(), self.other_side());
        (is_small(small) || has_condition(small)) && has_member_table(other) && !is_small(other)
    }

    /// The pairs of keys: on the small side, and on the other side.
    fn keys(&self) -> impl Iterator<Item = (SmallKey, &'a Expr)> + use<'a> {
        let (small, is_left_small) = (self.small_side(), self.is_left_small);
        self.join.on.iter().filter_map(move |(left, right)| {
            let (key, other) = if is_left_small { (left, right) } else { (right, left) };
            Some((SmallKey::new(key, small)?, other))
        })
    }

    /// The expressions on the other side that the keys restrict.
    pub(super) fn restricted_keys(&self) -> Vec<String> {
        self.keys().map(|(_, other)| other.to_string()).collect()
    }

    /// The rows of the small side, and one more than their maximum number.
    pub(super) fn small_rows(&self) -> Result<LogicalPlan> {
        let small = Arc::new(self.small_side().clone());
        let is_semi = match self.join.join_type {
            JoinType::LeftSemi => !self.is_left_small,
            JoinType::RightSemi => self.is_left_small,
            _ => false,
        };
        // For a semi-join, a row is as good as the same row twice.
        let rows = if is_semi { Arc::new(LogicalPlan::Distinct(Distinct::All(small))) } else { small };
        LogicalPlanBuilder::from(rows).limit(0, Some(KEY_ROWS_MAX + 1))?.build()
    }

    /// The join with `batches` as the rows of the small side. `None` if it has too many keys, or the condition cannot be
    /// moved to the tables of the other side.
    pub(super) fn restrict(&self, batches: &[RecordBatch]) -> Result<Option<LogicalPlan>> {
        let mut other = self.other_side().clone();
        let mut is_restricted = false;
        for (small, key) in self.keys() {
            let keys = small.values(batches)?;
            let bytes: usize = keys.iter().map(|key| key.to_string().len()).sum();
            if keys.len() > KEYS_MAX || bytes > KEY_BYTES_MAX {
                continue;
            }
            let restricted =
                if keys.is_empty() { Some(empty_of(&other)) } else { restrict_to_keys(&other, key, &keys)? };
            if let Some(restricted) = restricted {
                (other, is_restricted) = (restricted, true);
            }
        }
        if !is_restricted {
            return Ok(None);
        }
        let small = table_of_rows(self.small_side(), batches)?;
        let (left, right) = if self.is_left_small { (small, other) } else { (other, small) };
        let (left, right) = (Arc::new(left), Arc::new(right));
        Ok(Some(LogicalPlan::Join(Join { left, right, ..self.join.clone() })))
    }
}

/// A key on the small side: one of its columns, perhaps cast to a type that holds all of its values.
struct SmallKey {
    position: usize,
    data_type: DataType,
}

impl SmallKey {
    fn new(key: &Expr, plan: &LogicalPlan) -> Option<Self> {
        let (column, cast_type) = match key {
            Expr::Column(column) => (column, None),
            Expr::Cast(Cast { expr, field }) => match &**expr {
                Expr::Column(column) => (column, Some(field.data_type())),
                _ => return None,
            },
            _ => return None,
        };
        let position = plan.schema().maybe_index_of_column(column)?;
        let own = plan.schema().field(position).data_type();
        let data_type = cast_type.unwrap_or(own);
        // Floats are compared by their values in some places and by their bits in others.
        let is_exact = !data_type.is_floating() && !data_type.is_nested() && !own.is_floating();
        let is_lossless = common_type(own, data_type).as_ref() == Some(data_type);
        (is_exact && is_lossless).then(|| Self { position, data_type: data_type.clone() })
    }

    fn values(&self, batches: &[RecordBatch]) -> Result<Vec<ScalarValue>> {
        let mut values = Vec::new();
        for batch in batches {
            let column = batch.column(self.position);
            for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
                values.push(ScalarValue::try_from_array(column, row)?.cast_to(&self.data_type)?);
            }
        }
        Ok(distinct_keys(values.into_iter()))
    }
}

/// `batches` as a table in place of `plan`, whose columns they have.
fn table_of_rows(plan: &LogicalPlan, batches: &[RecordBatch]) -> Result<LogicalPlan> {
    let fields = plan.schema().fields().iter().enumerate();
    let fields = fields.map(|(position, field)| {
        // The join above counts on columns that are never NULL.
        let has_nulls = batches.iter().any(|batch| batch.column(position).null_count() > 0);
        let named = field.as_ref().clone().with_name(format!("c{position}"));
        named.with_nullable(field.is_nullable() || has_nulls)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let rows = batches.iter().map(|batch| {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
    });
    let rows = rows.collect::<std::result::Result<Vec<_>, _>>()?;
    let table = MemTable::try_new(schema, vec![rows])?;
    let name = TableReference::bare("keys");
    let scan = TableScanBuilder::new(name.clone(), provider_as_source(Arc::new(table))).build()?;
    let columns = plan.schema().iter().enumerate().map(|(position, (qualifier, field))| {
        let column = Expr::Column(Column::new(Some(name.clone()), format!("c{position}")));
        column.alias_qualified(qualifier.cloned(), field.name())
    });
    Projection::try_new(columns.collect(), Arc::new(LogicalPlan::TableScan(scan))).map(LogicalPlan::Projection)
}

/// The maximum number of rows of `plan`, as the catalogs of the nodes have it. `None`: not known.
fn rows_at_most(plan: &LogicalPlan) -> Option<u64> {
    let fewer = |rows: Option<u64>, fetch: Option<u64>| rows.into_iter().chain(fetch).min();
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let rows = match provider.downcast_ref::<MemberTable>() {
                Some(table) => table.rows,
                // It is in memory.
                None => Some(0),
            };
            fewer(rows, scan.fetch.map(|rows| rows as u64))
        }
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            rows_at_most(plan.inputs().first()?)
        }
        LogicalPlan::Distinct(_) => rows_at_most(plan.inputs().first()?),
        LogicalPlan::Sort(sort) => fewer(rows_at_most(&sort.input), sort.fetch.map(|rows| rows as u64)),
        LogicalPlan::Limit(limit) => {
            let fetch = match limit.get_fetch_type().ok()? {
                FetchType::Literal(rows) => rows.map(|rows| rows as u64),
                FetchType::UnsupportedExpr => None,
            };
            fewer(rows_at_most(&limit.input), fetch)
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => Some(1),
        LogicalPlan::Aggregate(aggregate) => rows_at_most(&aggregate.input),
        LogicalPlan::Union(union) => union.inputs.iter().map(|input| rows_at_most(input)).sum(),
        LogicalPlan::Join(join) if matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) => {
            rows_at_most(&join.left)
        }
        LogicalPlan::Values(values) => Some(values.values.len() as u64),
        LogicalPlan::EmptyRelation(empty) => Some(u64::from(empty.produce_one_row)),
        _ => None,
    }
}

/// Whether something in `plan` may leave few rows.
fn has_condition(plan: &LogicalPlan) -> bool {
    let is_condition = match plan {
        LogicalPlan::TableScan(scan) => !scan.filters.is_empty() || scan.fetch.is_some(),
        LogicalPlan::Filter(_) | LogicalPlan::Limit(_) => true,
        _ => false,
    };
    is_condition || plan.inputs().into_iter().any(has_condition)
}

pub(super) fn has_member_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => {
            source_as_provider(&scan.source).is_ok_and(|provider| provider.downcast_ref::<MemberTable>().is_some())
        }
        plan => plan.inputs().into_iter().any(has_member_table),
    }
}

/// `plan` without rows of tables that cannot lead to one of `keys` as the value of `key`. `None` if the condition cannot
/// be moved to the tables.
fn restrict_to_keys(plan: &LogicalPlan, key: &Expr, keys: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
    if let Expr::Literal(value, _) = key {
        // A column that a node lacks, or the name of the node.
        return Ok(Some(if keys.contains(value) { plan.clone() } else { empty_of(plan) }));
    }
    match plan {
        LogicalPlan::TableScan(scan) => restrict_table(scan, key, keys),
        LogicalPlan::EmptyRelation(_) => Ok(Some(plan.clone())),
        LogicalPlan::SubqueryAlias(alias) => {
            let inputs = alias.input.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            restrict_input(plan, &alias.input, key, &inputs, keys)
        }
        LogicalPlan::Projection(projection) => restrict_input(plan, &projection.input, key, &projection.expr, keys),
        LogicalPlan::Aggregate(aggregate) => {
            let has_sets = aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
            if has_sets {
                return Ok(None);
            }
            // Only the columns of the keys of the groups have an expression below.
            restrict_input(plan, &aggregate.input, key, &aggregate.group_expr, keys)
        }
        LogicalPlan::Filter(filter) => replace_input(plan, restrict_to_keys(&filter.input, key, keys)?),
        LogicalPlan::Distinct(_) => match plan.inputs().as_slice() {
            [input] => replace_input(plan, restrict_to_keys(input, key, keys)?),
            _ => Ok(None),
        },
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            replace_input(plan, restrict_to_keys(&sort.input, key, keys)?)
        }
        LogicalPlan::Union(union) => {
            let mut inputs = Vec::with_capacity(union.inputs.len());
            for input in &union.inputs {
                let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
                let Some(key) = replace_columns(key, &union.schema, &columns) else { return Ok(None) };
                // A branch that cannot be restricted has its other rows, too, which the join drops.
                let restricted = restrict_to_keys(input, &key, keys)?;
                inputs.push(restricted.map_or_else(|| input.clone(), Arc::new));
            }
            inputs.retain(|input| !is_empty(input));
            Ok(Some(match inputs.is_empty() {
                true => empty_of(plan),
                // The union keeps its names, even with one input.
                false => LogicalPlan::Union(Union { inputs, schema: union.schema.clone() }),
            }))
        }
        LogicalPlan::Join(join) => restrict_join(join, key, keys),
        _ => Ok(None),
    }
}

fn restrict_input(
    plan: &LogicalPlan,
    input: &LogicalPlan,
    key: &Expr,
    expressions: &[Expr],
    keys: &[ScalarValue],
) -> Result<Option<LogicalPlan>> {
    let Some(key) = replace_columns(key, plan.schema(), expressions) else { return Ok(None) };
    replace_input(plan, restrict_to_keys(input, &key, keys)?)
}

fn replace_input(plan: &LogicalPlan, input: Option<LogicalPlan>) -> Result<Option<LogicalPlan>> {
    let Some(input) = input else { return Ok(None) };
    let is_of_rows =
        matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_));
    if is_of_rows && is_empty(&input) {
        return Ok(Some(empty_of(plan)));
    }
    plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
}

/// Restricts the side of a join that has the key, if each row of it is needed only for its own rows.
fn restrict_join(join: &Join, key: &Expr, keys: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
    let has_key = |schema: &DFSchema| key.column_refs().into_iter().all(|column| schema.has_column(column));
    let may_left = matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti);
    let may_right =
        matches!(join.join_type, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti);
    let (left, right) = if may_left && has_key(join.left.schema()) {
        (restrict_to_keys(&join.left, key, keys)?, Some(join.right.as_ref().clone()))
    } else if may_right && has_key(join.right.schema()) {
        (Some(join.left.as_ref().clone()), restrict_to_keys(&join.right, key, keys)?)
    } else {
        return Ok(None);
    };
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    Ok(Some(LogicalPlan::Join(Join { left: Arc::new(left), right: Arc::new(right), ..join.clone() })))
}

fn restrict_table(scan: &TableScan, key: &Expr, keys: &[ScalarValue]) -> Result<Option<LogicalPlan>> {
    let plan = LogicalPlan::TableScan(scan.clone());
    let Some((column, keys)) = unwrap_casts(key, keys, plan.schema()) else { return Ok(None) };
    if scan.fetch.is_some() {
        return Ok(None);
    }
    if keys.is_empty() {
        return Ok(Some(empty_of(&plan)));
    }
    let list = keys.into_iter().map(|key| Expr::Literal(key, None)).collect();
    let condition = Expr::InList(InList::new(Box::new(column), list, false));
    Filter::try_new(condition, Arc::new(plan)).map(LogicalPlan::Filter).map(Some)
}

/// The column below casts that lose nothing, and the keys that are values of its type.
fn unwrap_casts(key: &Expr, keys: &[ScalarValue], schema: &DFSchema) -> Option<(Expr, Vec<ScalarValue>)> {
    match key {
        Expr::Column(_) => Some((key.clone(), keys.to_vec())),
        Expr::Cast(Cast { expr, field }) => {
            let (from, to) = (expr.get_type(schema).ok()?, field.data_type());
            if common_type(&from, to).as_ref() != Some(to) {
                return None;
            }
            let as_source = |key: &ScalarValue| {
                let value = key.cast_to(&from).ok().filter(|value| !value.is_null())?;
                (value.cast_to(to).ok()? == *key).then_some(value)
            };
            unwrap_casts(expr, &keys.iter().filter_map(as_source).collect::<Vec<_>>(), schema)
        }
        _ => None,
    }
}

/// `key` over the columns of `schema`, whose expressions over other columns are `expressions`.
fn replace_columns(key: &Expr, schema: &DFSchema, expressions: &[Expr]) -> Option<Expr> {
    let mut is_known = true;
    let replaced = key.clone().transform(|node| {
        let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
        let position = schema.maybe_index_of_column(column);
        let expression = position.and_then(|position| expressions.get(position)).map(without_alias);
        match expression.filter(|expression| !expression.is_volatile()) {
            Some(expression) => Ok(Transformed::new(expression.clone(), true, TreeNodeRecursion::Jump)),
            None => {
                is_known = false;
                Ok(Transformed::no(node))
            }
        }
    });
    replaced.ok().filter(|_| is_known).map(|replaced| replaced.data)
}

pub(super) fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, .. }))
}

pub(super) fn empty_of(plan: &LogicalPlan) -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: plan.schema().clone() })
}

/// The different values of `keys` that are not null.
fn distinct_keys(keys: impl Iterator<Item = ScalarValue>) -> Vec<ScalarValue> {
    let mut known = HashSet::new();
    keys.filter(|key| !key.is_null() && known.insert(key.clone())).collect()
}
