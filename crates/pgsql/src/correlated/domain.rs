//! Evaluates a correlated plan for all rows of the outer query at once.
//!
//! The method is that of Neumann and Kemper, "Unnesting Arbitrary Queries". The **domain** of a plan is a table of the
//! distinct values of the outer columns that the plan uses. It is joined at the leaves of the plan. Each operator above
//! also returns the columns of the domain, and processes the rows of each outer value separately.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{Column, DFSchema, NullHandling, Result, TableReference, UnnestOptions, plan_err};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, Projection,
    SkipType, SortExpr, Union, Values, Window, cast, lit, when,
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
    pub(super) fn refuse<T>(&self, clause: &str) -> Result<T> {
        // Generated names contain a character that no statement can contain.
        let named = self.columns.iter().map(|(column, _)| column).find(|column| !column.name.contains('\u{1}'));
        let column = named.map_or_else(|| "columns".to_owned(), Column::flat_name);
        plan_err!(
            "a subquery with {clause} is not supported where it uses {column} of an outer query; write it as a query in \
             FROM without that column, and join it"
        )
    }

    pub(super) fn carried_columns(&self) -> impl Iterator<Item = Expr> + '_ {
        self.carried.iter().cloned().map(Expr::Column)
    }

    fn push_projection(&self, projection: &Projection) -> Result<LogicalPlan> {
        let named = self.replace_outputs(&projection.expr, projection.schema.iter(), projection.input.schema())?;
        let output: Vec<Expr> = self.carried_columns().chain(named).collect();
        LogicalPlanBuilder::from(self.push(&projection.input)?).project(output)?.build()
    }

    /// Replaces the outer columns in `expressions`, over rows of `inner`. Their names, those of `outputs`, stay.
    pub(super) fn replace_outputs<'a>(
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
}
