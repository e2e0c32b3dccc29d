//! Evaluates a correlated plan for all rows of the outer query at once.
//!
//! The method is that of Neumann and Kemper, "Unnesting Arbitrary Queries". The **domain** of a plan is a table of the
//! distinct values of the outer columns that the plan uses. It is joined at the leaves of the plan. Each operator above
//! also returns the columns of the domain, and processes the rows of each outer value separately: each outer value has
//! groups of its own. Conditions of joins may have subqueries.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{
    Column, DFSchema, JoinType, NullEquality, NullHandling, Result, ScalarValue, TableReference, UnnestOptions,
    plan_err,
};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, FetchType, Filter, GroupingSet, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SkipType, SortExpr, Union, Values, Window, binary_expr, cast, lit, when,
};

use super::outer_columns::{is_lateral, outer_columns, subquery_of};
use super::subquery_value::{ValueRewriter, has_subquery};
use super::{SubqueryRewriter, key_conditions};

/// The outer columns that a plan uses, and the table that has them.
pub(super) struct Domain {
    pub(super) table: LogicalPlan,
    /// Each outer column, and its name in `table`.
    pub(super) columns: Vec<(Column, Column)>,
    /// The columns of `table`, which every operator carries along.
    pub(super) carried: Vec<Column>,
    /// Makes generated names unique.
    pub(super) number: usize,
    /// Whether a row stays if `unnest` returns no rows for it.
    pub(super) keeps_rows: bool,
}

impl Domain {
    /// Evaluates `plan` for each row of the domain, or refuses what is not supported.
    pub(super) fn push(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        if !self.is_used_by(plan)? {
            if matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row) {
                return Ok(self.table.clone());
            }
            return LogicalPlanBuilder::from(self.table.clone()).cross_join(plan.clone())?.build();
        }
        match plan {
            LogicalPlan::Projection(projection) => self.push_projection(projection),
            LogicalPlan::Filter(filter) => {
                let predicate = self.replace_outer_columns(filter.predicate.clone(), filter.input.schema())?;
                LogicalPlanBuilder::from(self.push(&filter.input)?).filter(predicate)?.build()
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let inner = alias.input.schema().columns();
                let named = inner.into_iter().zip(alias.schema.iter()).map(|(column, (qualifier, field))| {
                    Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
                });
                let output: Vec<Expr> = self.carried_columns().chain(named).collect();
                LogicalPlanBuilder::from(self.push(&alias.input)?).project(output)?.build()
            }
            // An order without a limit has no effect.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.push(&sort.input),
            LogicalPlan::Limit(limit) => self.push_limit(limit),
            LogicalPlan::Aggregate(aggregate) => self.push_aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                LogicalPlanBuilder::from(self.push(input)?).distinct()?.build()
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.push_distinct_on(distinct),
            LogicalPlan::Window(window) => self.push_window(window),
            LogicalPlan::Unnest(unnest) if unnest.struct_type_columns.is_empty() => {
                let mut options: UnnestOptions = unnest.options.clone();
                if self.keeps_rows {
                    options.null_handling = NullHandling::PreserveAndExpandEmpty;
                }
                let columns = unnest.exec_columns.clone();
                let input = LogicalPlanBuilder::from(self.push(&unnest.input)?);
                input.unnest_columns_with_options(columns, options)?.build()
            }
            LogicalPlan::Join(join) => self.push_join(join),
            LogicalPlan::Union(union) => self.push_union(union),
            LogicalPlan::Values(values) => self.push_values(values),
            LogicalPlan::Subquery(subquery) => self.push(&subquery.subquery),
            LogicalPlan::RecursiveQuery(_) => self.refuse("WITH RECURSIVE"),
            _ => self.refuse("a relation of this kind"),
        }
    }

    /// Refuses a subquery with `clause`, in words of the statement.
    fn refuse<T>(&self, clause: &str) -> Result<T> {
        // Generated names contain a character that no statement can contain.
        let named = self.columns.iter().map(|(column, _)| column).find(|column| !column.name.contains('\u{1}'));
        let column = named.map_or_else(|| "columns".to_owned(), Column::flat_name);
        plan_err!(
            "a subquery with {clause} is not supported where it uses {column} of an outer query; write it as a query in \
             FROM without that column, and join it"
        )
    }

    fn carried_columns(&self) -> impl Iterator<Item = Expr> + '_ {
        self.carried.iter().cloned().map(Expr::Column)
    }

    fn push_projection(&self, projection: &Projection) -> Result<LogicalPlan> {
        let named = self.replace_outputs(&projection.expr, projection.schema.iter(), projection.input.schema())?;
        let output: Vec<Expr> = self.carried_columns().chain(named).collect();
        LogicalPlanBuilder::from(self.push(&projection.input)?).project(output)?.build()
    }

    /// Replaces the outer columns in `expressions`, over rows of `inner`. Their names, those of `outputs`, stay.
    fn replace_outputs<'a>(
        &self,
        expressions: &[Expr],
        outputs: impl Iterator<Item = (Option<&'a TableReference>, &'a FieldRef)>,
        inner: &DFSchema,
    ) -> Result<Vec<Expr>> {
        let mut named = Vec::new();
        for (expression, (qualifier, field)) in expressions.iter().zip(outputs) {
            let replaced = self.replace_outer_columns(expression.clone(), inner)?;
            named.push(match replaced == *expression {
                true => replaced,
                false => replaced.unalias().alias_qualified(qualifier.cloned(), field.name()),
            });
        }
        Ok(named)
    }

    fn push_distinct_on(&self, distinct: &DistinctOn) -> Result<LogicalPlan> {
        let inner = distinct.input.schema();
        let replace = |expression: &Expr| self.replace_outer_columns(expression.clone(), inner);
        let keys = distinct.on_expr.iter().map(replace).collect::<Result<Vec<_>>>()?;
        let outputs = self.replace_outputs(&distinct.select_expr, distinct.schema.iter(), inner)?;
        let mut order: Vec<SortExpr> = self.carried_columns().map(|column| column.sort(true, false)).collect();
        for key in distinct.sort_expr.iter().flatten() {
            order.push(SortExpr::new(replace(&key.expr)?, key.asc, key.nulls_first));
        }
        let order = distinct.sort_expr.is_some().then_some(order);
        let keys = self.carried_columns().chain(keys).collect();
        let outputs = self.carried_columns().chain(outputs).collect();
        LogicalPlanBuilder::from(self.push(&distinct.input)?).distinct_on(keys, outputs, order)?.build()
    }

    fn push_union(&self, union: &Union) -> Result<LogicalPlan> {
        let mut inputs = Vec::new();
        for input in &union.inputs {
            let pushed = self.push(input)?;
            let columns: Vec<Column> = self.carried.iter().cloned().chain(input.schema().columns()).collect();
            let is_in_order = pushed.schema().columns() == columns;
            inputs.push(Arc::new(match is_in_order {
                true => pushed,
                false => LogicalPlanBuilder::from(pushed).project(columns.into_iter().map(Expr::Column))?.build()?,
            }));
        }
        Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union)
    }

    /// Joins the domain with row numbers, and selects the values by number. A union of the rows would not work:
    /// DataFusion would treat rows with constants as sorted.
    pub(super) fn push_values(&self, values: &Values) -> Result<LogicalPlan> {
        let number = format!("row\u{1}{}", self.number);
        let rows = (0_i64..).zip(&values.values).map(|(row, _)| vec![lit(row)]).collect();
        let rows = LogicalPlanBuilder::values(rows)?;
        let first = Expr::Column(rows.schema().columns().swap_remove(0));
        let rows = rows.project(vec![first.alias(&number)])?.build()?;
        let row_number = Expr::Column(Column::new_unqualified(&number));
        let mut output: Vec<Expr> = self.carried_columns().collect();
        for (index, field) in values.schema.fields().iter().enumerate() {
            let mut chosen = Vec::new();
            for row in &values.values {
                let Some(value) = row.get(index) else { return self.refuse("VALUES") };
                let value = self.replace_outer_columns(value.clone(), &DFSchema::empty())?;
                chosen.push(cast(value.unalias(), field.data_type().clone()));
            }
            let Some(last) = chosen.pop() else { return self.refuse("VALUES") };
            let mut chosen = (0_i64..).zip(chosen);
            let value = match chosen.next() {
                None => last,
                Some((row, value)) => {
                    let mut case = when(row_number.clone().eq(lit(row)), value);
                    for (row, value) in chosen {
                        case = case.when(row_number.clone().eq(lit(row)), value);
                    }
                    case.otherwise(last)?
                }
            };
            output.push(value.alias(field.name()));
        }
        LogicalPlanBuilder::from(self.table.clone()).cross_join(rows)?.project(output)?.build()
    }

    /// Limits the rows of each outer value by their row number.
    fn push_limit(&self, limit: &Limit) -> Result<LogicalPlan> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return self.refuse("LIMIT or OFFSET that is not a number");
        };
        let limited = |input: &LogicalPlan| {
            let limit = Limit { skip: limit.skip.clone(), fetch: limit.fetch.clone(), input: input.clone().into() };
            LogicalPlan::Limit(limit).into()
        };
        let (source, order) = match limit.input.as_ref() {
            // These nodes keep all rows; the order comes from below them.
            LogicalPlan::Projection(projection) => {
                let input = limited(&projection.input);
                return self.push_projection(&Projection::try_new(projection.expr.clone(), input)?);
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let mut alias = alias.clone();
                alias.input = limited(&alias.input);
                return self.push(&LogicalPlan::SubqueryAlias(alias));
            }
            LogicalPlan::Sort(sort) => (&sort.input, sort.expr.clone()),
            _ => (&limit.input, Vec::new()),
        };
        let input = self.push(source)?;
        let mut keys = Vec::new();
        for key in order {
            let expression = self.replace_outer_columns(key.expr.clone(), source.schema())?;
            keys.push(SortExpr::new(expression, key.asc, key.nulls_first));
        }
        let name = format!("position\u{1}{}", self.number);
        let mut position = row_number().partition_by(self.carried_columns().collect());
        if !keys.is_empty() {
            position = position.order_by(keys);
        }
        let column = Expr::Column(Column::new_unqualified(&name));
        let skip = u64::try_from(skip).unwrap_or(u64::MAX);
        let mut chosen = column.clone().gt(lit(skip));
        if let Some(fetch) = fetch {
            chosen = chosen.and(column.lt_eq(lit(skip.saturating_add(u64::try_from(fetch).unwrap_or(u64::MAX)))));
        }
        let output: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        LogicalPlanBuilder::from(input)
            .window(vec![position.build()?.alias(&name)])?
            .filter(chosen)?
            .project(output)?
            .build()
    }

    fn push_window(&self, window: &Window) -> Result<LogicalPlan> {
        let inner = window.input.schema();
        let fields = window.schema.iter().skip(inner.fields().len());
        let mut expressions = Vec::new();
        for (expression, (_, field)) in window.window_expr.iter().zip(fields) {
            expressions.push(self.partition_window(expression.clone(), inner)?.alias(field.name()));
        }
        LogicalPlanBuilder::from(self.push(&window.input)?).window(expressions)?.build()
    }

    /// Partitions a window by the domain's columns.
    fn partition_window(&self, expression: Expr, schema: &DFSchema) -> Result<Expr> {
        match self.replace_outer_columns(expression, schema)?.unalias() {
            Expr::WindowFunction(function) => {
                let WindowFunction { fun, mut params } = *function;
                params.partition_by.extend(self.carried_columns());
                Ok(Expr::from(WindowFunction { fun, params }))
            }
            _ => self.refuse("a window function of this kind"),
        }
    }

    fn push_aggregate(&self, aggregate: &Aggregate) -> Result<LogicalPlan> {
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

impl Domain {
    fn push_join(&self, join: &Join) -> Result<LogicalPlan> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftSemi, Right};
        if is_lateral(join) {
            return self.push_lateral(join);
        }
        let equality = match join.null_equality {
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
            NullEquality::NullEqualsNothing => Operator::Eq,
        };
        let schema = merge_schema(&[&join.left, &join.right]);
        let keys = join.on.iter().map(|(left, right)| binary_expr(left.clone(), equality, right.clone()));
        let conditions = keys.chain(join.filter.clone());
        let conditions: Vec<Expr> =
            conditions.map(|condition| self.replace_outer_columns(condition, &schema)).collect::<Result<_>>()?;
        let (left, right) = match (join.join_type, self.is_used_by(&join.left)?, self.is_used_by(&join.right)?) {
            (Inner | Left | LeftSemi | LeftAnti, _, false) => (self.push(&join.left)?, join.right.as_ref().clone()),
            (Inner | Right, false, _) => (join.left.as_ref().clone(), self.push(&join.right)?),
            (Inner | Left | Right | Full | LeftSemi | LeftAnti, ..) => return self.push_both(join, conditions),
            _ => return self.refuse("a join of this kind"),
        };
        LogicalPlanBuilder::from(left).join_on(right, join.join_type, conditions)?.build()
    }

    /// Evaluates both sides for each outer value, and joins the rows of equal ones.
    fn push_both(&self, join: &Join, mut conditions: Vec<Expr>) -> Result<LogicalPlan> {
        let left = self.push(&join.left)?;
        let (right, inner) = self.rename_carried(self.push(&join.right)?)?;
        conditions.extend(key_conditions((self.carried.clone(), inner.clone())));
        let mut output = Vec::new();
        for (column, other) in self.carried.iter().zip(inner) {
            let (own, other) = (Expr::Column(column.clone()), Expr::Column(other));
            output.push(match join.join_type {
                JoinType::Right => other.alias(&column.name),
                // Both are equal, or the one of a side without a row is NULL.
                JoinType::Full => when(own.clone().is_null(), other).otherwise(own)?.alias(&column.name),
                _ => own,
            });
        }
        output.extend(join.schema.columns().into_iter().map(Expr::Column));
        LogicalPlanBuilder::from(left).join_on(right, join.join_type, conditions)?.project(output)?.build()
    }

    /// Carries the domain along the left side, whose columns the right side may use.
    fn push_lateral(&self, join: &Join) -> Result<LogicalPlan> {
        if !join.on.is_empty() {
            return self.refuse("LATERAL with USING");
        }
        let left = self.push(&join.left)?.into();
        let right = self.rename_outer_columns(join.right.as_ref().clone(), join.left.schema())?.into();
        let schema = merge_schema(&[&join.left, &join.right]);
        let filter = join.filter.clone().map(|filter| self.replace_outer_columns(filter, &schema)).transpose()?;
        let (constraint, equality) = (join.join_constraint, join.null_equality);
        Join::try_new(left, right, Vec::new(), filter, join.join_type, constraint, equality, false)
            .map(LogicalPlan::Join)
    }

    /// Gives the columns of the domain in `plan` other names, and returns those.
    fn rename_carried(&self, plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Column>)> {
        let name = |column: &Column| format!("{}\u{1}inner {}", column.name, self.number);
        let output = plan.schema().columns().into_iter().map(|column| match self.carried.contains(&column) {
            true => Expr::Column(column.clone()).alias(name(&column)),
            false => Expr::Column(column),
        });
        let output: Vec<Expr> = output.collect();
        let names = self.carried.iter().map(|column| Column::new_unqualified(name(column))).collect();
        Ok((LogicalPlanBuilder::from(plan).project(output)?.build()?, names))
    }
}

impl SubqueryRewriter {
    /// Rewrites a join whose condition has subqueries that DataFusion does not plan there.
    pub(super) fn rewrite_join_condition(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        let Some(filter) = &join.filter else { return Ok(None) };
        if !filter.exists(needs_value)? {
            return Ok(None);
        }
        if join.join_type == JoinType::Inner {
            let conditions = split_conjunction(filter).into_iter();
            let (moved, kept): (Vec<&Expr>, Vec<&Expr>) =
                conditions.partition(|condition| has_subquery(condition).unwrap_or(true));
            let joined = Join { filter: conjunction(kept.into_iter().cloned()), ..join.clone() };
            let Some(moved) = conjunction(moved.into_iter().cloned()) else { return Ok(None) };
            let filter = LogicalPlan::Filter(Filter::try_new(moved, LogicalPlan::Join(joined).into())?);
            return Ok(Some(self.rewrite_subquery_values(&filter)?.unwrap_or(filter)));
        }
        let mut sides = [ValueRewriter::new(self, &join.left), ValueRewriter::new(self, &join.right)];
        let condition = filter.clone().transform_down(|expression| {
            if !needs_value(&expression)? {
                return Ok(Transformed::no(expression));
            }
            let used = columns_of(&expression, &join.schema)?;
            let is_of = |schema: &DFSchema| used.iter().all(|column| schema.has_column(column));
            let [left, right] = &mut sides;
            let side = if is_of(join.left.schema()) { left } else { right };
            if !is_of(side.joined.schema()) {
                return plan_err!(
                    "a subquery in ON of an outer join is not supported where it uses columns of both tables; \
                     join the tables in a query in FROM, and use the subquery there"
                );
            }
            Ok(Transformed::new(side.value_of(&expression)?, true, TreeNodeRecursion::Jump))
        });
        let condition = condition.data()?;
        let [left, right] = sides;
        let output: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let joined = LogicalPlanBuilder::from(left.joined);
        joined.join_on(right.joined, join.join_type, [condition])?.project(output)?.build().map(Some)
    }
}

/// Whether `expression` is a subquery that DataFusion does not plan in the condition of a join.
fn needs_value(expression: &Expr) -> Result<bool> {
    match expression {
        Expr::ScalarSubquery(subquery) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        other => Ok(subquery_of(other).is_some()),
    }
}

/// The columns of rows of `schema` that the subquery `expression` and its operand use.
fn columns_of(expression: &Expr, schema: &DFSchema) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = expression.column_refs().into_iter().cloned().collect();
    if let Some(subquery) = subquery_of(expression) {
        columns.extend(outer_columns(&subquery.subquery)?);
    }
    columns.retain(|column| schema.has_column(column));
    Ok(columns)
}
