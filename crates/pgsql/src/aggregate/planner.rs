//! Plans calls of aggregate and window functions that PostgreSQL interprets differently or refuses.
//!
//! DataFusion supports only a literal delimiter of `string_agg`. Other delimiters are collected with the values into a list
//! of pairs, which are then joined. It also implements only literal offsets of `lag` and `lead`; here they may come from a
//! column. `docs/decisions/upstream` has the text to be filed for both, and says when the code can go.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, GenericListArray, StringArray, new_null_array};
use arrow::compute;
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::utils::COUNT_STAR_EXPANSION;
use datafusion::logical_expr::{
    Case, Expr, PartitionEvaluator, Signature, Volatility, WindowFunctionDefinition, WindowUDF, WindowUDFImpl, cast,
    lit,
};
use datafusion::scalar::ScalarValue;

use super::{array_agg, ordered, sum, to_aggregate_expr, to_window_expr};
use crate::data_type::{is_text_or_null, postgres_type_name};
use crate::function::{ColumnarFunction, FunctionCall, keep_types};
use crate::number::{integer_value, plan_average};

#[derive(Debug)]
pub(crate) struct AggregatePlanner;

impl ExprPlanner for AggregatePlanner {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let name = call.func.name().to_owned();
        match name.as_str() {
            "avg" => {
                let visible = to_aggregate_expr(&call).schema_name().to_string();
                Ok(PlannerResult::Planned(plan_avg(&call).alias(visible)))
            }
            "count" if call.args.len() > 1 => {
                plan_err!("count takes one argument; count several columns as one row: count(DISTINCT (a, b))")
            }
            // Of this constant, DataFusion needs no column.
            "count" if !call.distinct && call.args.first().is_some_and(|value| integer_value(value).is_some()) => {
                let args = vec![lit(COUNT_STAR_EXPANSION)];
                Ok(PlannerResult::Original(RawAggregateExpr { args, ..call }))
            }
            "regr_count" => {
                let expr = to_aggregate_expr(&call);
                let visible = expr.schema_name().to_string();
                Ok(PlannerResult::Planned(cast(expr, DataType::Int64).alias(visible)))
            }
            "string_agg" => match plan_string_agg(&call)? {
                Some(planned) => {
                    let visible = to_aggregate_expr(&call).schema_name().to_string();
                    Ok(PlannerResult::Planned(planned.alias(visible)))
                }
                None => Ok(PlannerResult::Original(call)),
            },
            "percentile_cont" | "percentile_disc" | "mode" => {
                let visible = to_aggregate_expr(&call).schema_name().to_string();
                let planned = ordered::with_direction(call)?;
                Ok(PlannerResult::Planned(to_aggregate_expr(&planned).alias(visible)))
            }
            _ => Ok(PlannerResult::Original(call)),
        }
    }

    fn plan_window(&self, call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if call.distinct {
            return plan_err!(
                "DISTINCT is not implemented for window functions; aggregate in a subquery with GROUP BY and join it"
            );
        }
        let name = call.func_def.name().to_owned();
        if call.filter.is_some() && matches!(call.func_def, WindowFunctionDefinition::WindowUDF(_)) {
            return plan_err!(
                "FILTER is not implemented for non-aggregate window functions; use CASE in the argument instead"
            );
        }
        let expr = to_window_expr(&call);
        let visible = expr.schema_name().to_string();
        let planned = match name.as_str() {
            "avg" if call.null_treatment.is_none() => plan_window_avg(&call),
            "row_number" | "rank" | "dense_rank" => cast(expr, DataType::Int64),
            "regr_count" => cast(expr, DataType::Int64),
            "bool_and" | "bool_or" if !is_from_start(&call) => plan_bool_aggregate(&name, &call),
            "string_agg" if !is_from_start(&call) => plan_string_agg_window(&call)?,
            "bit_and" | "bit_or" if !is_from_start(&call) => {
                return plan_err!(
                    "{name} over a frame with a moving start is not supported; start it at UNBOUNDED PRECEDING, or \
                     join the table with itself and use GROUP BY"
                );
            }
            "ntile" => {
                check_positive(&name, call.args.first())?;
                cast(expr, DataType::Int32)
            }
            "lag" | "lead" if call.args.iter().skip(1).any(|arg| !is_constant(arg)) => plan_shift(&name, &call)?,
            "nth_value" => {
                check_positive(&name, call.args.get(1))?;
                return Ok(PlannerResult::Original(call));
            }
            "percentile_cont" | "percentile_disc" | "mode" => {
                return plan_err!(
                    "OVER is not supported for ordered-set aggregate {name}; aggregate in a subquery with GROUP BY \
                     and join it"
                );
            }
            "count" if call.args.len() > 1 => {
                return plan_err!("count takes one argument; count several columns as one row: count((a, b))");
            }
            _ => return Ok(PlannerResult::Original(call)),
        };
        Ok(PlannerResult::Planned(planned.alias(visible)))
    }
}

fn is_constant(argument: &Expr) -> bool {
    match argument {
        Expr::Literal(..) => true,
        Expr::Negative(operand) => is_constant(operand),
        _ => false,
    }
}

/// Plans `lag(x, n, otherwise)` where an argument after the first is not constant.
///
/// There is no such row where `lag(true, n)` is NULL. A NULL offset gives NULL.
fn plan_shift(name: &str, call: &RawWindowExpr) -> Result<Expr> {
    let (value, offset, otherwise) = match call.args.as_slice() {
        [value, offset] => (value, offset, None),
        [value, offset, otherwise] => (value, offset, Some(otherwise)),
        _ => return plan_err!("{name} takes a value, an offset and a default"),
    };
    let func_def = if is_constant(offset) { call.func_def.clone() } else { lag_lead_function(name == "lead") };
    let of = |value: Expr| {
        to_window_expr(&RawWindowExpr { func_def: func_def.clone(), args: vec![value, offset.clone()], ..call.clone() })
    };
    let Some(otherwise) = otherwise else { return Ok(of(value.clone())) };
    let cases = vec![
        (Box::new(offset.clone().is_null()), Box::new(lit(ScalarValue::Null))),
        (Box::new(of(lit(true)).is_null()), Box::new(otherwise.clone())),
    ];
    Ok(Expr::Case(Case::new(None, cases, Some(Box::new(of(value.clone()))))))
}

/// Whether the frame of `call` starts at UNBOUNDED PRECEDING, so that no row leaves it.
fn is_from_start(call: &RawWindowExpr) -> bool {
    call.window_frame.start_bound.is_unbounded()
}

/// Plans `bool_and` or `bool_or` as the minimum or maximum of 0 and 1, from which rows can be retracted.
fn plan_bool_aggregate(name: &str, call: &RawWindowExpr) -> Expr {
    let func = if name == "bool_and" { min_udaf() } else { max_udaf() };
    let args = call.args.iter().map(|arg| cast(arg.clone(), DataType::Int32)).collect();
    let func_def = WindowFunctionDefinition::AggregateUDF(func);
    to_window_expr(&RawWindowExpr { func_def, args, ..call.clone() }).gt(lit(0_i32))
}

/// Refuses arguments below one, as PostgreSQL does; DataFusion would count from the end.
fn check_positive(name: &str, argument: Option<&Expr>) -> Result<()> {
    let is_negative = match argument {
        Some(Expr::Negative(_)) => true,
        Some(argument) => integer_value(argument).is_some_and(|value| value <= 0),
        None => false,
    };
    if is_negative { plan_err!("argument of {name} must be greater than zero") } else { Ok(()) }
}

/// Plans `avg(x)` over the rows of a group as a sum and a count, so that averages of integers and numerics are exact.
fn plan_avg(call: &RawAggregateExpr) -> Expr {
    let part = |func| {
        let order_by = Vec::new();
        to_aggregate_expr(&RawAggregateExpr { func, order_by, null_treatment: None, ..call.clone() })
    };
    plan_average(part(sum::function().into()), part(count_udaf()))
}

/// Plans `avg(x)` over a window.
fn plan_window_avg(call: &RawWindowExpr) -> Expr {
    let part = |func| {
        let func_def = WindowFunctionDefinition::AggregateUDF(func);
        to_window_expr(&RawWindowExpr { func_def, ..call.clone() })
    };
    plan_average(part(sum::function().into()), part(count_udaf()))
}

/// Plans the call with a delimiter for each row; `None` for a literal delimiter, which DataFusion supports.
fn plan_string_agg(call: &RawAggregateExpr) -> Result<Option<Expr>> {
    let [value, delimiter] = call.args.as_slice() else {
        return plan_err!("string_agg takes a value and a delimiter: string_agg(x, ', ')");
    };
    if matches!(delimiter, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _)) {
        return Ok(None);
    }
    if call.distinct {
        return plan_err!(
            "string_agg(DISTINCT …) takes a literal as its delimiter: string_agg(DISTINCT x, ', ' ORDER BY x)"
        );
    }
    let (pair, filter) = build_pairs(value, delimiter, call.filter.as_deref());
    let pairs = to_aggregate_expr(&RawAggregateExpr {
        func: array_agg::function().into(),
        args: vec![pair],
        filter: Some(Box::new(filter)),
        null_treatment: None,
        ..call.clone()
    });
    Ok(Some(call_join_pairs(pairs)))
}

/// Plans the call over a moving window, because DataFusion's function cannot retract values.
fn plan_string_agg_window(call: &RawWindowExpr) -> Result<Expr> {
    let [value, delimiter] = call.args.as_slice() else {
        return plan_err!("string_agg takes a value and a delimiter: string_agg(x, ', ')");
    };
    let (pair, filter) = build_pairs(value, delimiter, call.filter.as_deref());
    Ok(call_join_pairs(to_window_expr(&RawWindowExpr {
        func_def: WindowFunctionDefinition::AggregateUDF(array_agg::function().into()),
        args: vec![pair],
        filter: Some(Box::new(filter)),
        null_treatment: None,
        distinct: false,
        ..call.clone()
    })))
}

/// Builds the pair to collect and the condition for rows.
fn build_pairs(value: &Expr, delimiter: &Expr, filter: Option<&Expr>) -> (Expr, Expr) {
    let pair = named_struct(vec![lit("delimiter"), delimiter.clone(), lit("value"), value.clone()]);
    let is_value = value.clone().is_not_null();
    let filter = match filter {
        Some(filter) => is_value.and(filter.clone()),
        None => is_value,
    };
    (pair, filter)
}

/// Joins the values of a list of pairs, each but the first preceded by its delimiter.
fn call_join_pairs(pairs: Expr) -> Expr {
    ColumnarFunction::new("string_agg_join", keep_types, joined_type, join_pairs).call(vec![pairs])
}

fn joined_type(fields: &[FieldRef]) -> Result<DataType> {
    let DataType::List(pair) = fields[0].data_type() else { return plan_err!("string_agg joins a list") };
    let DataType::Struct(fields) = pair.data_type() else { return plan_err!("string_agg joins pairs") };
    let [delimiter, value] = fields.as_ref() else { return plan_err!("string_agg joins pairs") };
    match (delimiter.data_type(), value.data_type()) {
        (delimiter, value) if is_text_or_null(delimiter) && is_text_or_null(value) => Ok(DataType::Utf8),
        (delimiter, value) if value.is_binary() && (delimiter.is_binary() || delimiter.is_null()) => {
            Ok(DataType::Binary)
        }
        (delimiter, value) => {
            let (value, delimiter) = (postgres_type_name(value), postgres_type_name(delimiter));
            plan_err!(
                "function string_agg({value}, {delimiter}) does not exist; cast both to text: \
                 string_agg(x::text, ', ')"
            )
        }
    }
}

fn join_pairs(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let lists = call.array(0)?;
    let lists: &GenericListArray<i32> = lists.as_list();
    let pairs = lists.values().as_struct();
    let bytes = |column: usize| compute::cast(pairs.column(column), &DataType::Binary);
    let (delimiters, values) = (bytes(0)?, bytes(1)?);
    let (delimiters, values) = (delimiters.as_binary::<i32>(), values.as_binary::<i32>());
    let joined: BinaryArray = (0..lists.len()).map(|row| join_row(lists, row, delimiters, values)).collect();
    match call.returns {
        DataType::Utf8 => Ok(Arc::new(StringArray::try_from_binary(joined)?)),
        _ => Ok(Arc::new(joined)),
    }
}

fn join_row(
    lists: &GenericListArray<i32>,
    row: usize,
    delimiters: &BinaryArray,
    values: &BinaryArray,
) -> Option<Vec<u8>> {
    if lists.is_null(row) {
        return None;
    }
    let bound = |index: usize| usize::try_from(lists.value_offsets()[index]).unwrap_or(0);
    let (start, end) = (bound(row), bound(row + 1));
    let mut joined = Vec::new();
    for index in start..end {
        if index > start && delimiters.is_valid(index) {
            joined.extend_from_slice(delimiters.value(index));
        }
        joined.extend_from_slice(values.value(index));
    }
    Some(joined)
}

/// Returns `lag(value, offset)`, or `lead`, with any expression as offset.
fn lag_lead_function(is_ahead: bool) -> WindowFunctionDefinition {
    let function = LagLead { is_ahead, signature: Signature::user_defined(Volatility::Immutable) };
    WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function)))
}

/// Returns the value of the row at an offset before or after the current one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LagLead {
    is_ahead: bool,
    signature: Signature,
}

impl WindowUDFImpl for LagLead {
    fn name(&self) -> &str {
        if self.is_ahead { "lead" } else { "lag" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, _] => Ok(vec![value.clone(), DataType::Int64]),
            _ => plan_err!("{} takes a value and an offset", self.name()),
        }
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        match args.get_input_field(0) {
            Some(field) => Ok(Field::clone(&field).with_name(args.name()).with_nullable(true).into()),
            None => plan_err!("{} takes a value", self.name()),
        }
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(LagLeadEvaluator { is_ahead: self.is_ahead }))
    }
}

#[derive(Debug)]
struct LagLeadEvaluator {
    is_ahead: bool,
}

impl PartitionEvaluator for LagLeadEvaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let (value, offsets) = (&values[0], values[1].as_primitive::<Int64Type>());
        let nulls = new_null_array(value.data_type(), 1);
        let null = (1, 0);
        let rows = (0..num_rows).map(|row| {
            if offsets.is_null(row) {
                return null;
            }
            let offset = i128::from(offsets.value(row));
            let position = i128::try_from(row).map(|row| if self.is_ahead { row + offset } else { row - offset });
            match position
                .ok()
                .and_then(|position| usize::try_from(position).ok())
                .filter(|position| *position < num_rows)
            {
                Some(position) => (0, position),
                None => null,
            }
        });
        Ok(interleave(&[value.as_ref(), nulls.as_ref()], &rows.collect::<Vec<_>>())?)
    }
}
