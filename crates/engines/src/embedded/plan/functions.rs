//! Limits for functions whose result or work is much larger than their arguments.
//!
//! The result of a function does not count against the memory of a query, so `repeat('x', 2000000000)` or `range(1,
//! 1000000000)` could use all memory of the machine. And a function cannot be interrupted: `levenshtein` of two texts
//! of a million letters would occupy a thread for half an hour.
//!
//! Functions that search for all matches of a pattern are measured. One search is linear in the length of the text,
//! but there may be as many searches as the text has letters. The total time cannot be predicted. So for long texts
//! the search is run first, and stops after the steps of one evaluation.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{cast, concat as concat_arrays};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Like, ScalarFunction, WindowFunction};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Documentation, Expr, ExpressionPlacement, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, StructFieldMapping, Volatility,
};
use regex::Regex;
use tidegate_core::{Error, ErrorKind};
use tidegate_pgsql::rewrite_named;

use super::errors::{VALUES_HINT, WORK_HINT};
use super::function_costs::{self, argument_bytes, row_count, text_sizes};
use super::windows;
use crate::embedded::query_cancellation::{check_function_cancelled, session_cancellation};

const FUNCTION_BYTES_MAX: f64 = (64 << 20) as f64;
/// Maximum number of steps of one evaluation. A step takes about a nanosecond.
const FUNCTION_STEPS_MAX: f64 = 1e9;

/// Estimates the bytes of a result. `None` if unknown.
type EstimateBytes = fn(&ScalarFunctionArgs) -> Option<f64>;

/// Estimates the steps for each row. `None` if they are few.
type EstimateSteps = fn(&ScalarFunctionArgs) -> Option<Vec<f64>>;

pub(crate) fn limit_functions(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let bound = |inner: Arc<ScalarUDF>| match cost_estimates(inner.name()) {
        (None, None) => inner,
        (bytes, steps) => Arc::new(ScalarUDF::new_from_impl(BoundedFunction { inner, bytes, steps })),
    };
    functions.into_iter().map(bound).collect()
}

/// Adds limits to operators, to window functions for the query of `session`, and to functions that the planner uses for
/// SQL syntax such as `position(a IN b)` and `a @> b`.
///
/// The planner writes most operators with patterns as functions. Only `LIKE` with a constant pattern is left.
pub(crate) fn limit_plan(plan: LogicalPlan, session: &SessionState) -> Result<LogicalPlan> {
    let (cancellation, text_like) = (session_cancellation(session), session.scalar_functions().get("text_like*"));
    let bound = |expression: Expr| {
        let bounded = match expression {
            Expr::ScalarFunction(call) => return Ok(bound_call(call)),
            Expr::WindowFunction(ref call) => {
                let function = cancellation.as_ref().and_then(|query| windows::limit_window_function(call, query));
                function.map(|fun| Expr::from(WindowFunction { fun, ..(**call).clone() }))
            }
            Expr::Like(Like { negated: false, ref expr, ref pattern, escape_char: None, case_insensitive: false })
                if function_costs::has_costly_pattern(&expression) =>
            {
                text_like.map(|function| function.call(vec![(**expr).clone(), (**pattern).clone()]))
            }
            ref other => bound_concat(other),
        };
        Ok(bounded.map_or_else(|| Transformed::no(expression), Transformed::yes))
    };
    let rewritten = plan.transform_up_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Window(_)) {
            return node.map_expressions(|expression| expression.transform_up(bound));
        }
        // The name of a window function shows the functions in its order.
        rewrite_named(node, |expression| expression.transform_up(bound))
    });
    rewritten.data()
}

fn bound_call(mut call: ScalarFunction) -> Transformed<Expr> {
    let is_bound = call.func.inner().is::<BoundedFunction>();
    let function = limit_functions(vec![call.func.clone()]).pop().filter(|_| !is_bound);
    let is_changed = function.is_some();
    call.func = function.unwrap_or(call.func);
    Transformed::new_transformed(Expr::ScalarFunction(call), is_changed)
}

/// The estimates for a function whose result or work may be much larger than its arguments.
fn cost_estimates(name: &str) -> (Option<EstimateBytes>, Option<EstimateSteps>) {
    match name {
        "repeat" | "array_repeat" => (Some(function_costs::repeat_bytes), None),
        "lpad" | "rpad" => (Some(function_costs::pad_bytes), None),
        "range" | "generate_series" => (Some(function_costs::range_bytes), None),
        "replace" => (Some(function_costs::replace_bytes), None),
        "regexp_like"
        | "regexp_match"
        | "regexp_matches*"
        | "regexp_split_to_array"
        | "regexp_split_to_table*"
        | "regexp_substr"
        | "regex_match*"
        | "regex_imatch*" => (None, Some(function_costs::regex_steps)),
        // (text, pattern, to, flags): replaces all places only with the flag `g`.
        "regexp_replace" => (Some(function_costs::replace_bytes), Some(|args| measure_searches(args, 3, true))),
        // (text, pattern, start, flags)
        "regexp_count" => (None, Some(|args| measure_searches(args, 3, false))),
        // (text, pattern, start, n, flags, group)
        "regexp_instr" => (None, Some(|args| measure_searches(args, 4, false))),
        "concat" | "array_concat" | "array_append" | "array_prepend" | "array_union" | "arrays_zip" | "make_array"
        | "struct" | "named_struct" | "map" | "encode" => (Some(function_costs::concat_bytes), None),
        "concat_ws" => (Some(function_costs::concat_ws_bytes), None),
        "array_to_string" => (Some(function_costs::array_to_string_bytes), None),
        "to_char" => (Some(function_costs::to_char_bytes), None),
        // Each letter of one text is compared with each of the other, in two steps.
        "levenshtein" => (None, Some(|args| function_costs::text_product_steps(args, 2.0))),
        // Each letter of the text is searched for in the letters; the part of a pattern after a `%` is compared at each
        // position of the text.
        "btrim" | "ltrim" | "rtrim" | "text_like*" => {
            (None, Some(|args| function_costs::text_product_steps(args, 1.0)))
        }
        "strpos" => (None, Some(function_costs::strpos_steps)),
        "array_has_all" => (None, Some(function_costs::array_has_all_steps)),
        "array_has_any" => (None, Some(function_costs::array_has_any_steps)),
        _ => (None, None),
    }
}

#[derive(Debug, Clone)]
struct BoundedFunction {
    inner: Arc<ScalarUDF>,
    bytes: Option<EstimateBytes>,
    steps: Option<EstimateSteps>,
}

impl BoundedFunction {
    fn check_bytes(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let bytes = self.bytes.and_then(|measure| measure(args));
        if bytes.is_some_and(|bytes| bytes > FUNCTION_BYTES_MAX) {
            return Err(result_too_large_error(&format!("{}()", self.name()), FUNCTION_BYTES_MAX));
        }
        Ok(())
    }

    /// Computes the result in parts, each with as many rows as the step limit allows. The query can be cancelled
    /// between parts.
    fn invoke_in_parts(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(steps) = self.steps.and_then(|measure| measure(&args)) else {
            return self.inner.invoke_with_args(args);
        };
        if let Some(most) = steps.iter().copied().find(|steps| *steps > FUNCTION_STEPS_MAX) {
            let message = format!(
                "{}() exceeds the work limit for one row: {most:.0e} steps; the limit is {FUNCTION_STEPS_MAX:.0e}",
                self.name()
            );
            let error = Error::new(ErrorKind::TooLarge, message).with_hint(WORK_HINT);
            return Err(DataFusionError::External(Box::new(error)));
        }
        if steps.iter().sum::<f64>() <= FUNCTION_STEPS_MAX || steps.len() != args.number_rows {
            return self.inner.invoke_with_args(args);
        }
        let mut parts = Vec::new();
        let mut start = 0;
        while start < steps.len() {
            check_function_cancelled(&args)?;
            let mut sum = 0.0;
            let fits = |steps: &&f64| {
                sum += **steps;
                sum <= FUNCTION_STEPS_MAX
            };
            let rows = steps[start..].iter().take_while(fits).count().max(1);
            let part = self.inner.invoke_with_args(slice_args(&args, start, rows))?;
            parts.push(part.into_array(rows)?);
            start += rows;
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat_arrays(&parts)?))
    }
}

fn result_too_large_error(subject: &str, bytes_max: f64) -> DataFusionError {
    let message = format!("the result of {subject} exceeds the limit of {} MiB", (bytes_max as u64) >> 20);
    DataFusionError::External(Box::new(Error::new(ErrorKind::TooLarge, message).with_hint(VALUES_HINT)))
}

fn slice_args(args: &ScalarFunctionArgs, start: usize, rows: usize) -> ScalarFunctionArgs {
    let part = |arg: &ColumnarValue| match arg {
        ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(scalar.clone()),
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, rows)),
    };
    ScalarFunctionArgs { args: args.args.iter().map(part).collect(), number_rows: rows, ..args.clone() }
}

tidegate_pgsql::compare_by!(BoundedFunction { inner });

// Delegates every method, so that the function is unchanged except for its limit.
#[warn(clippy::missing_trait_methods)]
impl ScalarUDFImpl for BoundedFunction {
    tidegate_pgsql::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn schema_name(&self, args: &[Expr]) -> Result<String>;
        fn signature(&self) -> &Signature;
        fn return_type(&self, arg_types: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef>;
        fn is_strict(&self) -> bool;
        fn preimage(&self, args: &[Expr], lit_expr: &Expr, info: &SimplifyContext) -> Result<PreimageResult>;
        fn short_circuits(&self) -> bool;
        fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval>;
        fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>>;
        fn struct_field_mapping(&self, literal_args: &[Option<ScalarValue>]) -> Option<StructFieldMapping>;
        fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties>;
        fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool>;
        fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool>;
        fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
        fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement;
    }

    #[allow(deprecated, reason = "callers of the old method must read what the function says")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.inner().display_name(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = self.inner.inner().with_updated_config(config)?;
        Some(ScalarUDF::new_from_impl(Self { inner: Arc::new(inner), ..self.clone() }))
    }

    #[allow(deprecated, reason = "callers of the old method must read what the function says")]
    fn is_nullable(&self, args: &[Expr], schema: &dyn ExprSchema) -> bool {
        self.inner.inner().is_nullable(args, schema)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        check_function_cancelled(&args)?;
        self.check_bytes(&args)?;
        self.invoke_in_parts(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let ExprSimplifyResult::Simplified(simple) = self.inner.simplify(args.clone(), info)? else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        Ok(match simple {
            // The same function with simplified arguments must keep its limit.
            Expr::ScalarFunction(mut call) if call.func.name() == self.name() => {
                call.func = Arc::new(ScalarUDF::new_from_impl(self.clone()));
                ExprSimplifyResult::Simplified(Expr::ScalarFunction(call))
            }
            operator if function_costs::has_costly_pattern(&operator) || bound_concat(&operator).is_some() => {
                ExprSimplifyResult::Original(args)
            }
            other => ExprSimplifyResult::Simplified(other),
        })
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }
}

/// Maximum number of bytes of all results of `||` in a batch.
const JOINED_BYTES_MAX: f64 = (256 << 20) as f64;

/// `expr` with a limit, if it is a concatenation that needs one. A literal only adds its own length.
fn bound_concat(expr: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) = expr else { return None };
    if matches!(**left, Expr::Literal(..)) || matches!(**right, Expr::Literal(..)) {
        return None;
    }
    let joined = BoundedConcat { signature: Signature::any(1, Volatility::Immutable) };
    Some(ScalarUDF::new_from_impl(joined).call(vec![expr.clone()]))
}

/// The result of `||`. It is refused if it is too long, after it is computed: each `||` may double the length.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BoundedConcat {
    signature: Signature,
}

impl ScalarUDFImpl for BoundedConcat {
    tidegate_pgsql::name_and_signature!("joined");

    #[allow(deprecated, reason = "it must read what the operator says")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("|| has a result".to_owned()))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let joined = args.args.pop().ok_or_else(|| DataFusionError::Internal("|| has a result".to_owned()))?;
        // A constant result is repeated only where it is used.
        if argument_bytes(&joined, 1) > JOINED_BYTES_MAX {
            return Err(result_too_large_error("||", JOINED_BYTES_MAX));
        }
        Ok(joined)
    }
}

/// The nanoseconds that a search for all matches takes, for texts that are long enough to matter. With `needs_flag_g`,
/// there is only one match without the flag `g`.
fn measure_searches(args: &ScalarFunctionArgs, flags_position: usize, needs_flag_g: bool) -> Option<Vec<f64>> {
    let (lengths, rows) = (text_sizes(args, 0)?, row_count(args));
    let one_search = function_costs::regex_steps(args)?;
    let is_long = |row: usize| lengths.at(row) * lengths.at(row) > FUNCTION_STEPS_MAX;
    if one_search.iter().any(|steps| *steps > FUNCTION_STEPS_MAX) || !(0..rows).any(is_long) {
        return Some(one_search);
    }
    let column = |position: usize| cast(&args.args.get(position)?.to_array(rows).ok()?, &DataType::Utf8).ok();
    let (all_texts, patterns, flags) = (column(0)?, column(1)?, column(flags_position));
    let (all_texts, patterns) = (all_texts.as_string::<i32>(), patterns.as_string::<i32>());
    let steps = |row: usize| {
        let flags = flags.as_ref().map_or("", |flags| flags.as_string::<i32>().value(row));
        if !is_long(row) || (needs_flag_g && !flags.contains('g')) {
            return 0.0;
        }
        let flags = flags.replace('g', "");
        let pattern = patterns.value(row);
        let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
        // The function itself refuses an invalid pattern.
        Regex::new(&pattern).map_or(0.0, |pattern| time_all_matches(&pattern, all_texts.value(row)))
    };
    let mut measured = Vec::with_capacity(rows);
    while measured.len() < rows && measured.last().is_none_or(|steps| *steps <= FUNCTION_STEPS_MAX) {
        measured.push(steps(measured.len()));
    }
    Some(measured)
}

fn time_all_matches(pattern: &Regex, text: &str) -> f64 {
    let start = Instant::now();
    let nanoseconds = || start.elapsed().as_nanos() as f64;
    let mut matches = pattern.find_iter(text);
    while matches.next().is_some() && nanoseconds() <= FUNCTION_STEPS_MAX {}
    nanoseconds()
}
