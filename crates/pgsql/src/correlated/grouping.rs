//! Aggregates of a correlated plan: each outer value has groups of its own.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder, lit, when};

use super::domain::Domain;

impl Domain {
    pub(super) fn push_aggregate(&self, aggregate: &Aggregate) -> Result<LogicalPlan> {
        let inner = aggregate.input.schema();
        let sets = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
        let mut groups: Vec<Expr> = self.carried_columns().collect();
        match aggregate.group_expr.as_slice() {
            [set @ Expr::GroupingSet(_)] => groups.push(self.replace_outer_columns(set.clone(), inner)?),
            keys => groups.extend(self.replace_outputs(keys, aggregate.schema.iter(), inner)?),
        }
        let fields = aggregate.schema.iter().skip(aggregate.schema.fields().len() - aggregate.aggr_expr.len());
        let values = self.replace_outputs(&aggregate.aggr_expr, fields, inner)?;
        let input = LogicalPlanBuilder::from(self.push(&aggregate.input)?);
        let grouped = input.aggregate(groups, values)?.build()?;
        let grouped = if sets { self.name_groups(aggregate, grouped)? } else { grouped };
        match empty_sets(&aggregate.group_expr) {
            0 => Ok(grouped),
            1 => self.with_empty_groups(aggregate, grouped),
            _ => self.refuse("several empty grouping sets"),
        }
    }

    /// `grouped`, with grouping sets, with the names that the columns of `aggregate` have, and without the column that
    /// numbers the sets: DataFusion removes it as it resolves `grouping(…)`.
    fn name_groups(&self, aggregate: &Aggregate, grouped: LogicalPlan) -> Result<LogicalPlan> {
        let new = grouped.schema().columns().into_iter().skip(self.carried.len());
        let named =
            new.zip(aggregate.schema.iter()).filter(|(column, _)| column.name != Aggregate::INTERNAL_GROUPING_ID);
        let named = named
            .map(|(column, (qualifier, field))| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()));
        let output: Vec<Expr> = self.carried_columns().chain(named).collect();
        LogicalPlanBuilder::from(grouped).project(output)?.build()
    }

    /// Adds a row to `grouped` for each outer value without rows, because an aggregate of no rows has the row of the
    /// empty grouping set.
    fn with_empty_groups(&self, aggregate: &Aggregate, grouped: LogicalPlan) -> Result<LogicalPlan> {
        let schema = grouped.schema().clone();
        let marker = format!("is there\u{1}{}", self.number);
        let (grouped, inner) = self.rename_carried(grouped)?;
        let marked = grouped.schema().columns().into_iter().map(Expr::Column).chain([lit(true).alias(&marker)]);
        let marked: Vec<Expr> = marked.collect();
        let grouped = LogicalPlanBuilder::from(grouped).project(marked)?.build()?;
        let keys = (self.carried.clone(), inner);
        let table = LogicalPlanBuilder::from(self.table.clone());
        let joined = table.join_detailed(grouped, JoinType::Left, keys, None, NullEquality::NullEqualsNull)?;
        let is_none = Expr::Column(Column::new_unqualified(&marker)).is_null();
        let first_value = schema.fields().len() - aggregate.aggr_expr.len();
        // The groups of a row of no rows are NULL.
        let groups = schema.columns().into_iter().take(first_value).skip(self.carried.len()).map(Expr::Column);
        let mut output: Vec<Expr> = self.carried_columns().chain(groups).collect();
        for (expression, (qualifier, field)) in aggregate.aggr_expr.iter().zip(schema.iter().skip(first_value)) {
            let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            let of_none = lit(value_of_none(expression, field.data_type())?);
            let value = when(is_none.clone(), of_none).otherwise(value)?;
            output.push(value.alias_qualified(qualifier.cloned(), field.name()));
        }
        joined.project(output)?.build()
    }
}

/// The number of empty grouping sets; `GROUP BY` of nothing is one.
fn empty_sets(groups: &[Expr]) -> usize {
    match groups {
        [] => 1,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().filter(|set| set.is_empty()).count(),
        [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_))] => 1,
        _ => 0,
    }
}

/// The value of the aggregate `expression` in the row of the empty grouping set, over no rows.
fn value_of_none(expression: &Expr, data_type: &DataType) -> Result<ScalarValue> {
    match expression.clone().unalias() {
        // Each argument is a bit, which is set because the argument is no key.
        Expr::AggregateFunction(call) if call.func.name() == "grouping" => {
            let bits = u32::try_from(call.params.args.len()).ok().and_then(|count| 1_i32.checked_shl(count));
            Ok(ScalarValue::Int32(bits.map(|bits| bits.wrapping_sub(1))))
        }
        Expr::AggregateFunction(call) => call.func.default_value(data_type),
        _ => ScalarValue::try_from(data_type),
    }
}
