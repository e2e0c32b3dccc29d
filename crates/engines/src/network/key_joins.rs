//! Joins whose one side is small: the keys of its rows become a condition on the tables of the other side.
//!
//! The small side is read once, and the join uses the rows that were read. So the keys of the condition are those of the
//! join, whatever is written to the nodes meanwhile. Rows of the other side without one of these keys are in no result of
//! an inner join or of a semi-join, nor on the optional side of an outer join. Anti joins and `NOT IN` stay as they are.

use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::{Column, NullEquality, Result, TableReference};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, TableScanBuilder,
};
use datafusion::scalar::ScalarValue;

use super::key_condition::{distinct_keys, empty_of, restrict_to_keys};
use super::united_table::common_type;
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
