//! Window frames: RANGE over types that DataFusion does not support, values of different types, and frames that exclude
//! rows, `EXCLUDE CURRENT ROW`, `GROUP` and `TIES`.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{filter, partition};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, LogicalPlan, PartitionEvaluator, Signature, Volatility, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, WindowUDF, WindowUDFImpl, cast,
};
use datafusion::physical_plan::PhysicalExpr;

use crate::data_type::postgres_type_name;
use crate::plan_walk::{for_each_part, rewrite_named};
use crate::time;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Adapts windows to types.
///
/// A RANGE without offsets equals GROUPS, which works for any type: both frames end with a group of peers. This rule
/// runs before DataFusion's type coercion, which supports RANGE only for numbers, text, dates and timestamps.
pub(crate) fn adapt_windows(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !matches!(node, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    for_each_part(&node, |part| check_string_agg(part, &schema))?;
    if matches!(node, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(node));
    }
    let rewritten = rewrite_named(node, |expression| {
        expression.transform_up(|expression| rewrite_expression(expression, &schema))
    })?;
    if rewritten.transformed { rewritten.map_data(LogicalPlan::recompute_schema) } else { Ok(rewritten) }
}

/// Refuses `string_agg` of values that are not text, which DataFusion would convert to text.
fn check_string_agg(expression: &Expr, schema: &DFSchema) -> Result<()> {
    let args = match expression {
        Expr::AggregateFunction(call) if call.func.name() == "string_agg" => &call.params.args,
        Expr::WindowFunction(call) if call.fun.name() == "string_agg" => &call.params.args,
        _ => return Ok(()),
    };
    let Some(value) = args.first() else { return Ok(()) };
    match value.get_type(schema)? {
        text if text.is_string() || text.is_null() => Ok(()),
        DataType::Dictionary(_, text) if text.is_string() => Ok(()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            plan_err!("string_agg of bytea takes a delimiter that is bytea: string_agg(x, ','::bytea)")
        }
        other => {
            let name = postgres_type_name(&other);
            plan_err!("function string_agg({name}, text) does not exist; cast the value: string_agg(x::text, ', ')")
        }
    }
}

fn rewrite_expression(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expression else { return Ok(Transformed::no(expression)) };
    let is_widened = widen_shift_values(&mut call, schema)?;
    let is_reframed = range_to_groups(&mut call, schema)?;
    let is_excluded = apply_exclusion(&mut call)?;
    Ok(Transformed::new_transformed(Expr::WindowFunction(call), is_widened || is_reframed || is_excluded))
}

/// Widens the type of `lag` and `lead` so that it holds both the values and the default.
fn widen_shift_values(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let name = call.fun.name();
    let [value, _, default] = call.params.args.as_mut_slice() else { return Ok(false) };
    if !matches!(name, "lag" | "lead") {
        return Ok(false);
    }
    let (value_type, default_type) = (value.get_type(schema)?, default.get_type(schema)?);
    if let Some(advice) = time::number_advice(&value_type, &default_type) {
        let (value, default) = (postgres_type_name(&value_type), postgres_type_name(&default_type));
        return plan_err!("function {name}({value}, integer, {default}) does not exist; {advice}");
    }
    let Some(common) = common_type(&value_type, &default_type) else { return Ok(false) };
    for operand in [value, default] {
        *operand = cast(operand.clone(), common.clone());
    }
    Ok(true)
}

/// Turns a RANGE that DataFusion does not support into GROUPS. Returns whether it did.
fn range_to_groups(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let frame = &call.params.window_frame;
    let (WindowFrameUnits::Range, Some(key)) = (frame.units, call.params.order_by.first()) else { return Ok(false) };
    let key = key.expr.get_type(schema)?;
    if has_range(&key) {
        return Ok(false);
    }
    if !is_peer_bound(&frame.start_bound) || !is_peer_bound(&frame.end_bound) {
        if let (DataType::Time64(_) | DataType::Time32(_), Some(bounds)) = (&key, bounds_in_microseconds(frame)?) {
            let [start, end] = bounds;
            call.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
            for key in &mut call.params.order_by {
                let time = cast(key.expr.clone(), DataType::Time64(TimeUnit::Microsecond));
                key.expr = cast(time, DataType::Int64);
            }
            return Ok(true);
        }
        let name = postgres_type_name(&key);
        return plan_err!(
            "RANGE with an offset over {name} is not supported; order by a number or a timestamp instead, for \
             instance extract(epoch FROM x) with an offset in seconds"
        );
    }
    let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
    call.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Ok(true)
}

/// Converts the bounds of a frame over times, whose offsets are intervals, to microseconds.
fn bounds_in_microseconds(frame: &WindowFrame) -> Result<Option<[WindowFrameBound; 2]>> {
    let microseconds = |offset: &ScalarValue| -> Result<Option<ScalarValue>> {
        let ScalarValue::IntervalMonthDayNano(Some(interval)) = offset.cast_to(&INTERVAL)? else { return Ok(None) };
        if interval.nanoseconds < 0 {
            return plan_err!("invalid preceding or following size in window function");
        }
        // PostgreSQL uses only the time part of the interval.
        Ok(Some(ScalarValue::Int64(Some(interval.nanoseconds / 1_000))))
    };
    let mut bounds = Vec::new();
    for bound in [&frame.start_bound, &frame.end_bound] {
        let offset = match bound {
            WindowFrameBound::CurrentRow => None,
            WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) if offset.is_null() => None,
            WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => Some(offset),
        };
        let offset = match offset.map(microseconds).transpose()? {
            None => ScalarValue::Int64(None),
            Some(Some(offset)) => offset,
            Some(None) => return Ok(None),
        };
        bounds.push(match bound {
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(offset),
            WindowFrameBound::Following(_) => WindowFrameBound::Following(offset),
        });
    }
    Ok(<[WindowFrameBound; 2]>::try_from(bounds).ok())
}

/// Returns a type that holds both the column's values and the default; `None` if the column's type does.
fn common_type(value: &DataType, default: &DataType) -> Option<DataType> {
    let is_held = value == default || !value.is_numeric() || !default.is_numeric();
    if is_held || value.is_floating() || (value.is_integer() && default.is_integer()) {
        return None;
    }
    comparison_coercion(value, default)
}

fn is_peer_bound(bound: &WindowFrameBound) -> bool {
    matches!(bound, WindowFrameBound::CurrentRow) || bound.is_unbounded()
}

/// Whether DataFusion supports RANGE over the type.
fn has_range(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => has_range(value),
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Boolean
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..) => true,
        other => other.is_numeric() || other.is_string() || other.is_null(),
    }
}

/// Marks an exclusion in PARTITION BY, where the parser puts it; its kind follows.
const EXCLUSION_MARK: &str = "exclude\u{1}";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Exclusion {
    CurrentRow,
    Group,
    Ties,
}

/// Whether `expression` is the mark of an exclusion.
pub(crate) fn is_exclusion_mark(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(text)), _) if text.starts_with(EXCLUSION_MARK))
}

/// Replaces the function of `call` with one that skips the rows that its window excludes. Returns whether it did.
fn apply_exclusion(call: &mut WindowFunction) -> Result<bool> {
    let Some(position) = call.params.partition_by.iter().position(is_exclusion_mark) else { return Ok(false) };
    let kind = match call.params.partition_by.remove(position) {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => text,
        _ => return Ok(false),
    };
    let exclusion = match kind.strip_prefix(EXCLUSION_MARK) {
        Some("current row") => Exclusion::CurrentRow,
        Some("group") => Exclusion::Group,
        _ => Exclusion::Ties,
    };
    let inner = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => function.clone(),
        WindowFunctionDefinition::WindowUDF(function) => match function.name() {
            "first_value" => first_value_udaf(),
            "last_value" => last_value_udaf(),
            "nth_value" => nth_value_udaf(),
            // The results of these functions do not depend on the frame.
            _ => return Ok(true),
        },
    };
    if call.params.distinct || call.params.null_treatment.is_some() {
        return plan_err!("EXCLUDE with DISTINCT or IGNORE NULLS is not supported; filter in a subquery");
    }
    let arguments = call.params.args.len();
    let has_filter = call.params.filter.is_some();
    call.params.args.extend(call.params.filter.take().map(|filter| *filter));
    let signature = Signature::user_defined(Volatility::Immutable);
    let function = ExclusionFunction { inner, exclusion, arguments, has_filter, signature };
    call.fun = WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function)));
    Ok(true)
}

/// An aggregate over frames that exclude rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExclusionFunction {
    inner: Arc<AggregateUDF>,
    exclusion: Exclusion,
    /// The number of arguments of the aggregate.
    arguments: usize,
    /// Whether a filter follows the arguments.
    has_filter: bool,
    signature: Signature,
}

impl WindowUDFImpl for ExclusionFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let fields: Vec<FieldRef> =
            types[..self.arguments].iter().map(|kind| Field::new("x", kind.clone(), true).into()).collect();
        let fields = fields_with_udf(&fields, self.inner.as_ref())?;
        let coerced = fields.iter().map(|field| field.data_type().clone());
        Ok(coerced.chain(types[self.arguments..].iter().cloned()).collect())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field(&args.input_fields()[..self.arguments])?;
        Ok(Field::clone(&field).with_name(args.name()).with_nullable(true).into())
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = args.input_fields()[..self.arguments].to_vec();
        Ok(Box::new(ExclusionEvaluator {
            return_field: self.inner.return_field(&fields)?,
            inner: self.inner.clone(),
            exclusion: self.exclusion,
            exprs: args.input_exprs()[..self.arguments].to_vec(),
            fields,
            has_filter: self.has_filter,
            row: 0,
            peers: Vec::new(),
        }))
    }
}

#[derive(Debug)]
struct ExclusionEvaluator {
    inner: Arc<AggregateUDF>,
    exclusion: Exclusion,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    return_field: FieldRef,
    has_filter: bool,
    /// The next row to evaluate.
    row: usize,
    /// The groups of peers.
    peers: Vec<Range<usize>>,
}

impl PartitionEvaluator for ExclusionEvaluator {
    fn uses_window_frame(&self) -> bool {
        true
    }

    /// Evaluates the frame of the next row. The columns of ORDER BY follow the arguments in `values`.
    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let arguments = self.fields.len();
        if self.row == 0 {
            let keys = &values[arguments + usize::from(self.has_filter)..];
            let rows = values.first().map_or(0, |column| column.len());
            self.peers = if keys.is_empty() { std::iter::once(0..rows).collect() } else { partition(keys)?.ranges() };
        }
        let row = self.row;
        self.row += 1;
        let group = self.peers.partition_point(|peers| peers.end <= row);
        let peers = self.peers.get(group).cloned().unwrap_or(row..row + 1);
        let parts = match self.exclusion {
            Exclusion::CurrentRow => vec![range.start..row, row + 1..range.end],
            Exclusion::Group => vec![range.start..peers.start, peers.end..range.end],
            Exclusion::Ties => vec![range.start..peers.start, row..row + 1, peers.end..range.end],
        };
        let mut accumulator = self.inner.accumulator(AccumulatorArgs {
            return_field: self.return_field.clone(),
            schema: &Schema::empty(),
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.inner.name(),
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })?;
        for part in parts {
            let (start, end) = (part.start.max(range.start), part.end.min(range.end));
            if start >= end {
                continue;
            }
            let mut columns: Vec<ArrayRef> =
                values[..arguments].iter().map(|column| column.slice(start, end - start)).collect();
            if self.has_filter {
                let condition = values[arguments].slice(start, end - start);
                for column in &mut columns {
                    *column = filter(column, condition.as_boolean())?;
                }
            }
            accumulator.update_batch(&columns)?;
        }
        accumulator.evaluate()
    }
}
