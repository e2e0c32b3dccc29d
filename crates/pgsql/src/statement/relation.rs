//! Plans items of FROM: set-returning functions, whose lists become rows; `TABLESAMPLE`, which selects rows at random, or by
//! their position and the seed; `EXCEPT ALL` and `INTERSECT ALL`, which count equal rows.
//!
//! In the syntax tree the last two are represented by a parenthesized join of the two sides with a special alias. The plan
//! groups the rows of both sides, counts the rows of each side, and repeats each group as often as the operation requires.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::common::{Column, DFSchema, NullHandling, Result, UnnestOptions, plan_err};
use datafusion::functions::core::expr_fn::{coalesce, get_field, greatest, least};
use datafusion::functions::math::expr_fn::random;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_nested::expr_fn::{array_length, gen_series, make_array};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, Ident, Join, JoinConstraint, JoinOperator, Query, SetExpr, SetOperator, SetQuantifier,
    TableAlias, TableFactor, TableSample, TableSampleKind, TableSampleMethod, TableWithJoins, Value,
};

use super::query_forms::ROWS_FROM;
use super::{rewrite_expressions, row_comparison, whole_row};
use crate::array;
use crate::function::{ColumnarFunction, FunctionCall, keep_types};
use crate::json::column_value;
use crate::number::integer_value;
use crate::set_returning::{find_set_returning, is_record_function, list_function};
use crate::syntax::{self, argument_value, call, folded, is_named, quoted};
use crate::untyped_literals::ARRAY;

/// Plans set-returning functions, samples, and aliases for some of a table's columns.
#[derive(Debug)]
pub(super) struct FromPlanner;

impl RelationPlanner for FromPlanner {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let Some((alias, is_beside_wildcard)) = whole_row::take_mark(&mut relation) {
            let is_value = is_value_function(&relation);
            let names = if alias.columns.is_empty() { None } else { original_names(&relation, context)? };
            let (plan, name) = (context.plan(relation)?, &alias.name.value);
            let plan = whole_row::with_row(plan, names, name, is_value, is_beside_wildcard)?;
            let alias = TableAlias { columns: Vec::new(), ..alias };
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, Some(alias)))));
        }
        if let Some(sample) = take_sample(&mut relation) {
            let plan = plan_sample(context.plan(relation)?, &sample)?;
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))));
        }
        if let Some(plan) = plan_multiset(&relation, context)? {
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))));
        }
        if let Some(alias) = take_partial_alias(&mut relation) {
            let plan = with_some_names(context.plan(relation)?, &alias)?;
            let alias = TableAlias { columns: Vec::new(), ..alias };
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, Some(alias)))));
        }
        let TableFactor::Function { name, args, with_ordinality, alias, lateral } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let function = name.to_string().to_lowercase();
        if function != "unnest" && function != ROWS_FROM && find_set_returning(&function).is_none() {
            let original = TableFactor::Function { lateral, name, args, with_ordinality, alias };
            return Ok(RelationPlanning::Original(Box::new(original)));
        }
        let args = args.into_iter().map(argument).collect::<Result<Vec<_>>>()?;
        let call = TableFunctionCall { function, args, with_ordinality, alias };
        let plan = if is_record_function(&call.function) {
            if call.with_ordinality {
                return plan_err!("WITH ORDINALITY cannot be used with a column definition list; leave it out");
            }
            plan_records(&call.function, call.args.clone(), call.alias.as_ref(), context)?
        } else {
            call.plan(context)?
        };
        let alias = call.alias.map_or_else(|| Ident::new(call.function), |alias| alias.name);
        let alias = TableAlias { name: alias, columns: Vec::new(), explicit: true, at: None };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, Some(alias)))))
    }
}

/// Returns the names that the columns of a table have without its alias, which are those of its row too. `None` if it is not a
/// table of the catalog, whose alias names the columns of the row.
fn original_names(relation: &TableFactor, context: &mut dyn RelationPlannerContext) -> Result<Option<Vec<String>>> {
    let mut plain = relation.clone();
    let TableFactor::Table { alias: Some(alias), args: None, .. } = &mut plain else { return Ok(None) };
    alias.columns.clear();
    let plan = context.plan(plain)?;
    let LogicalPlan::SubqueryAlias(aliased) = &plan else { return Ok(None) };
    let is_table = matches!(*aliased.input, LogicalPlan::TableScan(_));
    Ok(is_table.then(|| plan.schema().columns().into_iter().map(|column| column.name).collect()))
}

/// Whether `relation` is a function that returns plain values.
fn is_value_function(relation: &TableFactor) -> bool {
    matches!(relation, TableFactor::Function { name, .. } if !is_record_function(&name.to_string().to_lowercase()))
}

fn take_sample(relation: &mut TableFactor) -> Option<TableSample> {
    let sample = match relation {
        TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => sample.take()?,
        _ => return None,
    };
    match sample {
        TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample) => Some(*sample),
    }
}

/// Takes an alias that names only the first columns of a table; the other columns keep their names.
fn take_partial_alias(relation: &mut TableFactor) -> Option<TableAlias> {
    let alias = match relation {
        TableFactor::Table { alias, args: None, .. } | TableFactor::Derived { alias, lateral: false, .. } => alias,
        _ => return None,
    };
    if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) { alias.take() } else { None }
}

fn with_some_names(plan: LogicalPlan, alias: &TableAlias) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    row_comparison::check_columns(alias, columns.len())?;
    if alias.columns.len() > columns.len() {
        let (table, count, names) = (&alias.name, columns.len(), alias.columns.len());
        return plan_err!("{table} has {count} columns, but {names} names are given");
    }
    let named = columns.into_iter().enumerate().map(|(index, column)| {
        let name = alias.columns.get(index).map_or_else(|| column.name.clone(), |renamed| renamed.name.value.clone());
        Expr::Column(column).alias(name)
    });
    LogicalPlanBuilder::from(plan).project(named)?.build()
}

fn argument(argument: FunctionArg) -> Result<ast::Expr> {
    match argument_value(&argument) {
        Some(value) => Ok(value.clone()),
        None => plan_err!("a function in FROM takes values, not {argument}"),
    }
}

/// A function in FROM.
struct TableFunctionCall {
    function: String,
    args: Vec<ast::Expr>,
    with_ordinality: bool,
    alias: Option<TableAlias>,
}

impl TableFunctionCall {
    fn plan(&self, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        if let Some(plan) = self.plan_streamed_series(context)? {
            return Ok(plan);
        }
        let none = DFSchema::empty();
        let mut lists = Vec::new();
        if self.function == ROWS_FROM {
            return self.plan_functions(context);
        }
        if self.function == "unnest" {
            for array in &self.args {
                lists.push(array::with_one_dimension(context.sql_to_expr(array.clone(), &none)?));
            }
        } else {
            lists.push(context.sql_to_expr(call(&list_function(&self.function), self.args.clone()), &none)?);
        }
        let mut outputs: Vec<(String, Expr)> = Vec::new();
        for index in 0..lists.len() {
            let rows = rows_of(index);
            match find_set_returning(&self.function).map(|function| function.columns) {
                Some(columns @ [_, _, ..]) => {
                    outputs.extend(columns.iter().map(|name| ((*name).to_owned(), get_field(rows.clone(), *name))));
                }
                Some([only]) => outputs.push(((*only).to_owned(), rows)),
                _ => outputs.push((self.own_name(lists.len() == 1), rows)),
            }
        }
        self.plan_rows(lists, outputs)
    }

    /// Plans the rows of the functions in the arguments, side by side. Those that return rows are lists
    /// already.
    fn plan_functions(&self, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let none = DFSchema::empty();
        let mut lists = Vec::new();
        let mut outputs: Vec<(String, Expr)> = Vec::new();
        for argument in &self.args {
            let ast::Expr::Function(function) = argument else {
                return plan_err!("ROWS FROM takes functions, not {argument}");
            };
            let name = function.name.to_string().to_lowercase();
            let arrays: Vec<ast::Expr> = match &function.args {
                ast::FunctionArguments::List(list) if name == "unnest" => {
                    list.args.iter().cloned().map(self::argument).collect::<Result<_>>()?
                }
                _ => Vec::new(),
            };
            if arrays.is_empty() {
                let value = context.sql_to_expr(argument.clone(), &none)?;
                outputs.push((name.clone(), rows_of(lists.len())));
                lists.push(make_array(vec![value]));
            }
            for array in arrays {
                let list = match &array {
                    ast::Expr::Function(inner) if !is_named(&inner.name, ARRAY) => {
                        inner.name.to_string().strip_suffix('*').map(str::to_owned)
                    }
                    _ => None,
                };
                let planned = context.sql_to_expr(array, &none)?;
                outputs.push((list.clone().unwrap_or_else(|| name.clone()), rows_of(lists.len())));
                lists.push(if list.is_some() { planned } else { array::with_one_dimension(planned) });
            }
        }
        self.plan_rows(lists, outputs)
    }

    /// Plans the rows of `lists`, side by side, as `outputs`.
    fn plan_rows(&self, mut lists: Vec<Expr>, mut outputs: Vec<(String, Expr)>) -> Result<LogicalPlan> {
        if self.with_ordinality {
            outputs.push(("ordinality".to_owned(), rows_of(lists.len())));
            lists.push(positions(&lists));
        }
        let names: Vec<String> = (0..lists.len()).map(|index| format!("rows {index}")).collect();
        let columns = names.iter().map(Column::new_unqualified).collect();
        let lists = lists.into_iter().zip(&names).map(|(list, name)| list.alias(name));
        let options = UnnestOptions::new().with_null_handling(NullHandling::Drop);
        LogicalPlanBuilder::empty(true)
            .project(lists)?
            .unnest_columns_with_options(columns, options)?
            .project(self.rename_outputs(outputs)?)?
            .build()
    }

    /// Returns the name of a column without a name.
    fn own_name(&self, is_only: bool) -> String {
        match &self.alias {
            Some(alias) if is_only => alias.name.value.clone(),
            _ => self.function.clone(),
        }
    }

    /// Renames `outputs` by the column names of the alias, which may be fewer.
    fn rename_outputs(&self, outputs: Vec<(String, Expr)>) -> Result<Vec<Expr>> {
        let names = self.alias.as_ref().map_or(&[][..], |alias| alias.columns.as_slice());
        if names.len() > outputs.len() {
            return plan_err!("{} has {} columns, but {} names are given", self.function, outputs.len(), names.len());
        }
        let mut seen = std::collections::HashSet::new();
        let named = outputs.into_iter().enumerate().map(|(index, (name, output))| {
            let name = names.get(index).map_or(name, |column| column.name.value.clone());
            // Two arrays of one unnest have one name.
            let unique = seen.insert(name.clone());
            output.alias(if unique { name } else { super::aliases::hidden_name(&name, index) })
        });
        Ok(named.collect())
    }

    /// Plans a series of constant integers, which DataFusion computes one batch at a time.
    fn plan_streamed_series(&self, context: &mut dyn RelationPlannerContext) -> Result<Option<LogicalPlan>> {
        if self.function != "generate_series" || self.with_ordinality {
            return Ok(None);
        }
        let mut values = Vec::new();
        let mut is_bigint = false;
        for argument in &self.args {
            let literal = context.sql_to_expr(argument.clone(), &DFSchema::empty())?;
            let value = match &literal {
                Expr::Negative(inner) => integer_value(inner).and_then(i64::checked_neg),
                other => integer_value(other),
            };
            let Some(value) = value else { return Ok(None) };
            is_bigint |= literal.get_type(&DFSchema::empty())? == DataType::Int64;
            values.push(lit(value));
        }
        let source = context.context_provider().get_table_function_source(&self.function, values)?;
        let output = Expr::Column(Column::new(Some(self.function.clone()), "value"));
        let output = if is_bigint { output } else { cast(output, DataType::Int32) };
        let outputs = self.rename_outputs(vec![(self.own_name(true), output)])?;
        LogicalPlanBuilder::scan(self.function.as_str(), source, None)?.project(outputs)?.build().map(Some)
    }
}

/// Returns the column with the rows of a list.
fn rows_of(index: usize) -> Expr {
    Expr::Column(Column::new_unqualified(format!("rows {index}")))
}

/// Returns the positions of the longest of `lists`, from 1.
fn positions(lists: &[Expr]) -> Expr {
    // Not their cardinality, which counts the elements of elements too.
    let lengths =
        lists.iter().map(|list| coalesce(vec![cast(array_length(list.clone()), DataType::Int64), lit(0_i64)]));
    gen_series(lit(1_i64), greatest(lengths.collect()), lit(1_i64))
}

/// The column with the documents of the rows.
const RECORDS: &str = "rows 0";

/// Plans the rows that `json_to_record` and similar functions return. The alias defines their columns.
fn plan_records(
    function: &str,
    args: Vec<ast::Expr>,
    alias: Option<&TableAlias>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let columns = alias.map_or(&[][..], |alias| alias.columns.as_slice());
    if columns.is_empty() || columns.iter().any(|column| column.data_type.is_none()) {
        return plan_err!(
            "{function} needs the names and types of its columns; write FROM {function}(…) AS t(id int, name text)"
        );
    }
    let none = DFSchema::empty();
    let records = context.sql_to_expr(call(&list_function(function), args), &none)?;
    let options = UnnestOptions::new().with_null_handling(NullHandling::Drop);
    let rows = LogicalPlanBuilder::empty(true)
        .project([records.alias(RECORDS)])?
        .unnest_columns_with_options(vec![Column::new_unqualified(RECORDS)], options)?
        .build()?;
    let mut output = Vec::new();
    for column in columns {
        let Some(data_type) = &column.data_type else { continue };
        let records = ast::Expr::Identifier(quoted(RECORDS));
        let mut value = column_value(records, &folded(&column.name), data_type)?;
        rewrite_expressions(&mut value)?;
        output.push(context.sql_to_expr(value, rows.schema())?.alias(&column.name.value));
    }
    LogicalPlanBuilder::from(rows).project(output)?.build()
}

/// The column with the position of a row.
const POSITION: &str = "position\u{1}";

/// Selects rows of `plan` as `sample` defines.
fn plan_sample(plan: LogicalPlan, sample: &TableSample) -> Result<LogicalPlan> {
    if !matches!(sample.name, Some(TableSampleMethod::Bernoulli | TableSampleMethod::System)) {
        return plan_err!("TABLESAMPLE takes a method and a percentage: TABLESAMPLE BERNOULLI (10)");
    }
    let percentage = match &sample.quantity {
        Some(quantity) if quantity.unit.is_none() => number(&quantity.value),
        _ => None,
    };
    let Some(percentage) = percentage else {
        return plan_err!("TABLESAMPLE takes a percentage as a number: TABLESAMPLE BERNOULLI (10)");
    };
    if !(0.0..=100.0).contains(&percentage) {
        return plan_err!("the sample percentage must be between 0 and 100, not {percentage}");
    }
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let chance = lit(percentage / 100.0);
    let Some(seed) = &sample.seed else {
        return LogicalPlanBuilder::from(plan).filter(random().lt(chance))?.build();
    };
    let Some(seed) = number(&ast::Expr::Value(seed.value.clone())) else {
        return plan_err!("REPEATABLE takes a number: REPEATABLE (42)");
    };
    let position = Expr::Column(Column::new_unqualified(POSITION));
    let fraction = ColumnarFunction::new("sample*", keep_types, |_| Ok(DataType::Float64), sample_fractions);
    LogicalPlanBuilder::from(plan)
        .window(vec![row_number().alias(POSITION)])?
        .filter(fraction.call(vec![position, lit(seed)]).lt(chance))?
        .project(columns)?
        .build()
}

fn number(expression: &ast::Expr) -> Option<f64> {
    match expression {
        ast::Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse().ok(),
            _ => None,
        },
        ast::Expr::Nested(inner) => number(inner),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => number(expr).map(|number| -number),
        _ => None,
    }
}

/// Computes a number from 0 up to 1 from a position and a seed.
fn sample_fractions(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (positions, seeds) = (call.array(0)?, call.array(1)?);
    let pairs =
        positions.as_primitive::<UInt64Type>().values().iter().zip(seeds.as_primitive::<Float64Type>().values());
    Ok(Arc::new(pairs.map(|(position, seed)| Some(fraction(*position, *seed))).collect::<Float64Array>()))
}

/// Computes a fraction from the upper 53 bits of SplitMix64.
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
fn fraction(position: u64, seed: f64) -> f64 {
    let mix = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    (mix(mix(seed.to_bits()) ^ position) >> 11) as f64 / (1_u64 << 53) as f64
}

const EXCEPT: &str = "except all\u{1}";

const INTERSECT: &str = "intersect all\u{1}";

/// Replaces `body`, if it is such an operation, with a query of the join that represents it.
pub(super) fn rewrite_multiset(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier: SetQuantifier::All, left, right } = body else { return Ok(()) };
    let name = match op {
        SetOperator::Except | SetOperator::Minus => EXCEPT,
        SetOperator::Intersect => INTERSECT,
        SetOperator::Union => return Ok(()),
    };
    let side = |side: &SetExpr| -> Result<TableFactor> {
        let mut subquery = Box::new(syntax::parse_query("SELECT 1")?);
        match side {
            SetExpr::Query(query) => subquery = query.clone(),
            other => subquery.body = Box::new(other.clone()),
        }
        Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })
    };
    let join =
        Join { relation: side(right)?, global: false, join_operator: JoinOperator::CrossJoin(JoinConstraint::None) };
    let both = TableWithJoins { relation: side(left)?, joins: vec![join] };
    let alias = TableAlias { name: name.into(), columns: Vec::new(), explicit: true, at: None };
    let relation = TableFactor::NestedJoin { table_with_joins: Box::new(both), alias: Some(alias) };
    let Query { body: of_join, .. } = syntax::select_all(TableWithJoins { relation, joins: Vec::new() })?;
    *body = *of_join;
    Ok(())
}

/// Plans `relation` if it represents a set operation.
fn plan_multiset(relation: &TableFactor, context: &mut dyn RelationPlannerContext) -> Result<Option<LogicalPlan>> {
    let TableFactor::NestedJoin { table_with_joins: both, alias: Some(alias) } = relation else { return Ok(None) };
    let is_except = alias.name.value == EXCEPT;
    if !is_except && alias.name.value != INTERSECT {
        return Ok(None);
    }
    let [join] = both.joins.as_slice() else { return Ok(None) };
    let left = context.plan(both.relation.clone())?;
    let right = context.plan(join.relation.clone())?;
    let names: Vec<String> = left.schema().fields().iter().map(|field| field.name().clone()).collect();
    if right.schema().fields().len() != names.len() {
        let operation = if is_except { "EXCEPT" } else { "INTERSECT" };
        return plan_err!("each {operation} query must have the same number of columns");
    }
    let key = |index: usize| format!("key\u{1}{index}");
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    let numbered = |plan: LogicalPlan, of_left: i64| -> Result<LogicalPlan> {
        let keys = plan.schema().columns().into_iter().enumerate();
        let mut output: Vec<Expr> = keys.map(|(index, column)| Expr::Column(column).alias(key(index))).collect();
        output.push(lit(of_left).alias("left\u{1}"));
        output.push(lit(1 - of_left).alias("right\u{1}"));
        LogicalPlanBuilder::from(plan).project(output)?.build()
    };
    let keys: Vec<Expr> = (0..names.len()).map(|index| column(&key(index))).collect();
    let (of_left, of_right) = (column("lefts\u{1}"), column("rights\u{1}"));
    let copies = if is_except { of_left - of_right } else { least(vec![of_left, of_right]) };
    let counts = [sum(column("left\u{1}")).alias("lefts\u{1}"), sum(column("right\u{1}")).alias("rights\u{1}")];
    let mut repeated = keys.clone();
    repeated.push(gen_series(lit(1_i64), copies.clone(), lit(1_i64)).alias("copy\u{1}"));
    let output = keys.iter().cloned().zip(names).map(|(key, name)| key.alias(name));
    LogicalPlanBuilder::from(numbered(left, 1)?)
        .union(numbered(right, 0)?)?
        .aggregate(keys.clone(), counts)?
        .filter(copies.gt(lit(0_i64)))?
        .project(repeated)?
        .unnest_column("copy\u{1}")?
        .project(output)?
        .build()
        .map(Some)
}
