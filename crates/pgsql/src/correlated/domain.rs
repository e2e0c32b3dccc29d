//! Evaluates a correlated plan for all rows of the outer query at once.
//!
//! The method is that of Neumann and Kemper, "Unnesting Arbitrary Queries". The **domain** of a plan is a table of the
//! distinct values of the outer columns that the plan uses. It is joined at the leaves of the plan. Each operator above
//! also returns the columns of the domain, and processes the rows of each outer value separately.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, NullHandling, Result, ScalarValue, UnnestOptions};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, FetchType, Join, Limit, LogicalPlan, LogicalPlanBuilder, Projection,
    SkipType, SortExpr, Subquery, Values, cast, lit, when,
};

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
    /// Evaluates `plan` for each row of the domain; `None` if that is not supported.
    pub(super) fn push(&self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !self.is_used_by(plan)? {
            if matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row) {
                return Ok(Some(self.table.clone()));
            }
            return LogicalPlanBuilder::from(self.table.clone()).cross_join(plan.clone())?.build().map(Some);
        }
        match plan {
            LogicalPlan::Projection(projection) => self.push_projection(projection),
            LogicalPlan::Filter(filter) => {
                let Some(input) = self.push(&filter.input)? else { return Ok(None) };
                let predicate = self.replace_outer_columns(filter.predicate.clone(), filter.input.schema())?;
                LogicalPlanBuilder::from(input).filter(predicate)?.build().map(Some)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = self.push(&alias.input)? else { return Ok(None) };
                let inner = alias.input.schema().columns();
                let named = inner.into_iter().zip(alias.schema.iter()).map(|(column, (qualifier, field))| {
                    Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
                });
                let output: Vec<Expr> = self.carried_columns().chain(named).collect();
                LogicalPlanBuilder::from(input).project(output)?.build().map(Some)
            }
            // An order without a limit has no effect.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.push(&sort.input),
            LogicalPlan::Limit(limit) => self.push_limit(limit),
            LogicalPlan::Aggregate(aggregate) => self.push_aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(input) = self.push(input)? else { return Ok(None) };
                LogicalPlanBuilder::from(input).distinct()?.build().map(Some)
            }
            LogicalPlan::Window(window) => {
                let Some(input) = self.push(&window.input)? else { return Ok(None) };
                let fields = window.schema.iter().skip(window.input.schema().fields().len());
                let mut expressions = Vec::new();
                for (expression, (_, field)) in window.window_expr.iter().zip(fields) {
                    let Some(divided) = self.partition_window(expression.clone(), window.input.schema())? else {
                        return Ok(None);
                    };
                    expressions.push(divided.alias(field.name()));
                }
                LogicalPlanBuilder::from(input).window(expressions)?.build().map(Some)
            }
            LogicalPlan::Unnest(unnest) if unnest.struct_type_columns.is_empty() => {
                let Some(input) = self.push(&unnest.input)? else { return Ok(None) };
                let mut options: UnnestOptions = unnest.options.clone();
                if self.keeps_rows {
                    options.null_handling = NullHandling::PreserveAndExpandEmpty;
                }
                let columns = unnest.exec_columns.clone();
                LogicalPlanBuilder::from(input).unnest_columns_with_options(columns, options)?.build().map(Some)
            }
            LogicalPlan::Join(join) => self.push_join(join),
            LogicalPlan::Values(values) => self.push_values(values),
            LogicalPlan::Subquery(subquery) => self.push(&subquery.subquery),
            _ => Ok(None),
        }
    }

    fn carried_columns(&self) -> impl Iterator<Item = Expr> + '_ {
        self.carried.iter().cloned().map(Expr::Column)
    }

    fn push_projection(&self, projection: &Projection) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.push(&projection.input)? else { return Ok(None) };
        let mut output: Vec<Expr> = self.carried_columns().collect();
        for (expression, (qualifier, field)) in projection.expr.iter().zip(projection.schema.iter()) {
            let replaced = self.replace_outer_columns(expression.clone(), projection.input.schema())?;
            let keeps_name = replaced == *expression;
            let named = replaced.unalias().alias_qualified(qualifier.cloned(), field.name());
            output.push(if keeps_name { expression.clone() } else { named });
        }
        LogicalPlanBuilder::from(input).project(output)?.build().map(Some)
    }

    /// Joins the domain with row numbers, and selects the values by number. A union of the rows would not work:
    /// DataFusion would treat rows with constants as sorted.
    fn push_values(&self, values: &Values) -> Result<Option<LogicalPlan>> {
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
                let Some(value) = row.get(index) else { return Ok(None) };
                let value = self.replace_outer_columns(value.clone(), &values.schema)?;
                chosen.push(cast(value.unalias(), field.data_type().clone()));
            }
            let Some(last) = chosen.pop() else { return Ok(None) };
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
        LogicalPlanBuilder::from(self.table.clone()).cross_join(rows)?.project(output)?.build().map(Some)
    }

    /// Limits the rows of each outer value by their row number.
    fn push_limit(&self, limit: &Limit) -> Result<Option<LogicalPlan>> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
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
        let Some(input) = self.push(source)? else { return Ok(None) };
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
            .map(Some)
    }

    fn push_aggregate(&self, aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
        if aggregate.group_expr.iter().any(|expression| matches!(expression, Expr::GroupingSet(_))) {
            return Ok(None);
        }
        let Some(input) = self.push(&aggregate.input)? else { return Ok(None) };
        let inner = aggregate.input.schema();
        let named = |expression: &Expr, index: usize| -> Result<Expr> {
            let (qualifier, field) = aggregate.schema.qualified_field(index);
            let replaced = self.replace_outer_columns(expression.clone(), inner)?;
            let keeps_name = replaced == *expression;
            let named = replaced.unalias().alias_qualified(qualifier.cloned(), field.name());
            Ok(if keeps_name { expression.clone() } else { named })
        };
        let mut groups: Vec<Expr> = self.carried_columns().collect();
        let count = aggregate.group_expr.len();
        for (index, expression) in aggregate.group_expr.iter().enumerate() {
            groups.push(named(expression, index)?);
        }
        let mut values = Vec::new();
        for (index, expression) in aggregate.aggr_expr.iter().enumerate() {
            values.push(named(expression, count + index)?);
        }
        let grouped = LogicalPlanBuilder::from(input).aggregate(groups, values)?.build()?;
        if count > 0 { Ok(Some(grouped)) } else { self.with_empty_groups(aggregate, grouped).map(Some) }
    }

    /// Adds a row to `grouped` for each outer value without rows, because an aggregate without GROUP BY always has one.
    fn with_empty_groups(&self, aggregate: &Aggregate, grouped: LogicalPlan) -> Result<LogicalPlan> {
        let marker = format!("is there\u{1}{}", self.number);
        let inner_name = |column: &Column| format!("{}\u{1}inner {}", column.name, self.number);
        let mut output: Vec<Expr> =
            self.carried.iter().map(|column| Expr::Column(column.clone()).alias(inner_name(column))).collect();
        output.push(lit(true).alias(&marker));
        output.extend(aggregate.schema.columns().into_iter().map(Expr::Column));
        let grouped = LogicalPlanBuilder::from(grouped).project(output)?.build()?;
        let inner: Vec<Column> =
            self.carried.iter().map(|column| Column::new_unqualified(inner_name(column))).collect();
        let joined = self.join_on_keys(self.table.clone(), grouped, (self.carried.clone(), inner), JoinType::Left)?;
        let mut output: Vec<Expr> = self.carried_columns().collect();
        for (expression, (qualifier, field)) in aggregate.aggr_expr.iter().zip(aggregate.schema.iter()) {
            let of_none = match expression.clone().unalias() {
                Expr::AggregateFunction(function) => function.func.default_value(field.data_type())?,
                _ => ScalarValue::try_from(field.data_type())?,
            };
            let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            let is_none = Expr::Column(Column::new_unqualified(&marker)).is_null();
            let value = when(is_none, lit(of_none)).otherwise(value)?;
            output.push(value.alias_qualified(qualifier.cloned(), field.name()));
        }
        LogicalPlanBuilder::from(joined).project(output)?.build()
    }

    /// Joins `left` with `right` on equal `keys`; NULL equals NULL.
    pub(super) fn join_on_keys(
        &self,
        left: LogicalPlan,
        right: LogicalPlan,
        keys: (Vec<Column>, Vec<Column>),
        join_type: JoinType,
    ) -> Result<LogicalPlan> {
        let left = LogicalPlanBuilder::from(left);
        if keys.0.is_empty() {
            return left.join_on(right, join_type, [lit(true)])?.build();
        }
        left.join_detailed(right, join_type, keys, None, NullEquality::NullEqualsNull)?.build()
    }

    /// Evaluates a join of which only one side uses the domain. The other side and the condition take its columns from
    /// there.
    fn push_join(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        let is_lateral = matches!(join.right.as_ref(), LogicalPlan::Subquery(_));
        if !matches!(join.join_type, JoinType::Inner | JoinType::Left)
            || is_lateral
            || (self.is_used_by(&join.right)? && join.join_type == JoinType::Left)
        {
            return Ok(None);
        }
        let (first, second) = if self.is_used_by(&join.right)? {
            if self.is_used_by(&join.left)? {
                return Ok(None);
            }
            (&join.right, &join.left)
        } else {
            (&join.left, &join.right)
        };
        let Some(pushed) = self.push(first)? else { return Ok(None) };
        let mut conditions = Vec::new();
        for (left, right) in &join.on {
            conditions.push(left.clone().eq(right.clone()));
        }
        conditions.extend(join.filter.clone());
        if join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty() {
            return Ok(None);
        }
        let schema = merge_schema(&[&join.left, &join.right]);
        let conditions = conditions
            .into_iter()
            .map(|condition| self.replace_outer_columns(condition, &schema))
            .collect::<Result<Vec<_>>>()?;
        LogicalPlanBuilder::from(pushed).join_on(second.as_ref().clone(), join.join_type, conditions)?.build().map(Some)
    }

    /// Partitions a window by the domain's columns.
    fn partition_window(&self, expression: Expr, schema: &DFSchema) -> Result<Option<Expr>> {
        Ok(match self.replace_outer_columns(expression, schema)?.unalias() {
            Expr::WindowFunction(function) => {
                let WindowFunction { fun, mut params } = *function;
                params.partition_by.extend(self.carried_columns());
                Some(Expr::from(WindowFunction { fun, params }))
            }
            _ => None,
        })
    }

    /// Whether `plan` uses columns of the domain.
    fn is_used_by(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut used = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expression| {
                expression.apply(|expression| {
                    used |=
                        matches!(expression, Expr::OuterReferenceColumn(_, column) if self.domain_column(column).is_some());
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
            Ok(if used { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(used)
    }

    fn domain_column(&self, column: &Column) -> Option<&Column> {
        self.columns.iter().find(|(outer, _)| outer == column).map(|(_, name)| name)
    }

    /// Replaces the outer query's columns in `expression`, over rows of `schema`, with the domain's columns.
    fn replace_outer_columns(&self, expression: Expr, schema: &DFSchema) -> Result<Expr> {
        expression
            .transform_down(|expression| {
                Ok(match expression {
                    Expr::OuterReferenceColumn(_, ref column) => match self.domain_column(column) {
                        Some(name) => Transformed::yes(Expr::Column(name.clone())),
                        None => Transformed::no(expression),
                    },
                    Expr::ScalarSubquery(subquery) => {
                        Transformed::yes(Expr::ScalarSubquery(self.rewrite_subquery(subquery, schema)?))
                    }
                    Expr::Exists(mut exists) => {
                        exists.subquery = self.rewrite_subquery(exists.subquery, schema)?;
                        Transformed::yes(Expr::Exists(exists))
                    }
                    Expr::InSubquery(mut contained) => {
                        contained.subquery = self.rewrite_subquery(contained.subquery, schema)?;
                        Transformed::yes(Expr::InSubquery(contained))
                    }
                    Expr::SetComparison(mut comparison) => {
                        comparison.subquery = self.rewrite_subquery(comparison.subquery, schema)?;
                        Transformed::yes(Expr::SetComparison(comparison))
                    }
                    other => Transformed::no(other),
                })
            })
            .data()
    }

    /// Rewrites a subquery of an inner query, whose outer columns now belong to the next outer query.
    fn rewrite_subquery(&self, subquery: Subquery, schema: &DFSchema) -> Result<Subquery> {
        let plan = subquery.subquery.as_ref().clone().transform_up_with_subqueries(|node| {
            node.map_expressions(|expression| {
                expression.transform_up(|expression| {
                    Ok(match expression {
                        Expr::OuterReferenceColumn(ref field, ref column) if !schema.has_column(column) => {
                            match self.domain_column(column) {
                                Some(name) => Transformed::yes(Expr::OuterReferenceColumn(field.clone(), name.clone())),
                                None => Transformed::no(expression),
                            }
                        }
                        other => Transformed::no(other),
                    })
                })
            })
        });
        let plan = plan.data()?;
        Ok(Subquery { outer_ref_columns: plan.all_out_ref_exprs(), subquery: plan.into(), spans: subquery.spans })
    }
}
