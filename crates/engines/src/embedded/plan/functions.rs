//! Functions that make much out of little, with a bound on how much.
//!
//! What a function returns is not counted against a query's memory, so `repeat('x', 2000000000)`
//! or `range(1, 1000000000)` could take all of the machine's.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::cast::as_int64_array;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Bytes that one evaluation of a function may make.
const FUNCTION_BYTES_MAX: f64 = (64 << 20) as f64;
/// Bytes of a value whose size is not known.
const VALUE_BYTES: f64 = 16.0;

/// How much an evaluation would make.
type Measure = fn(&ScalarFunctionArgs) -> Option<f64>;

/// `functions`, those that multiply with a bound.
pub(crate) fn bounded(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    functions
        .into_iter()
        .map(|function| match measure_of(function.name()) {
            Some(measure) => Arc::new(ScalarUDF::new_from_impl(Bounded { inner: function, measure })),
            None => function,
        })
        .collect()
}

fn measure_of(name: &str) -> Option<Measure> {
    Some(match name {
        "repeat" | "array_repeat" => repeated,
        "lpad" | "rpad" | "array_resize" => padded,
        "range" | "generate_series" => counted,
        "replace" | "regexp_replace" => replaced,
        "concat" | "concat_ws" | "array_concat" => joined,
        _ => return None,
    })
}

/// `repeat(value, times)`; for `array_repeat` the value comes first too.
fn repeated(args: &ScalarFunctionArgs) -> Option<f64> {
    let times = integers(args, 1)?;
    let value = args.args.first()?;
    let rows = args.number_rows.max(1) as f64;
    let bytes = match value {
        ColumnarValue::Scalar(scalar) => scalar.size() as f64,
        ColumnarValue::Array(array) => array.get_array_memory_size() as f64 / rows,
    };
    Some(times.iter().flatten().map(|times| times.max(0) as f64 * bytes.max(1.0)).sum())
}

/// `lpad(text, length)`, `array_resize(array, length)`.
fn padded(args: &ScalarFunctionArgs) -> Option<f64> {
    Some(integers(args, 1)?.iter().flatten().map(|length| length.max(0) as f64 * 4.0).sum())
}

/// `replace(text, from, to)`: at most each character becomes the longest `to`.
fn replaced(args: &ScalarFunctionArgs) -> Option<f64> {
    let from = match args.args.get(1)? {
        ColumnarValue::Scalar(ScalarValue::Utf8(Some(from))) if args.args.len() == 3 => from.len().max(1),
        _ => 1,
    };
    let to = match args.args.get(2)? {
        ColumnarValue::Scalar(ScalarValue::Utf8(Some(to)) | ScalarValue::Utf8View(Some(to))) => to.len(),
        // A column of replacements: the usual case has short ones.
        _ => return None,
    };
    Some(bytes_of(args.args.first()?, args.number_rows) * (to as f64 / from as f64).max(1.0))
}

/// `concat(a, b, …)`.
fn joined(args: &ScalarFunctionArgs) -> Option<f64> {
    Some(args.args.iter().map(|arg| bytes_of(arg, args.number_rows)).sum())
}

/// Bytes of an argument, a constant one repeated for each row.
fn bytes_of(arg: &ColumnarValue, rows: usize) -> f64 {
    match arg {
        ColumnarValue::Scalar(scalar) => (scalar.size() - size_of::<ScalarValue>()) as f64 * rows as f64,
        ColumnarValue::Array(array) => array.to_data().get_slice_memory_size().unwrap_or(0) as f64,
    }
}

/// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`; of other types than integers
/// nothing is known.
fn counted(args: &ScalarFunctionArgs) -> Option<f64> {
    let (starts, stops) = match args.args.len() {
        1 => (None, integers(args, 0)?),
        _ => (Some(integers(args, 0)?), integers(args, 1)?),
    };
    let steps = if args.args.len() > 2 { Some(integers(args, 2)?) } else { None };
    let at = |values: &Option<Int64Array>, row: usize, default: i64| {
        values.as_ref().map_or(default, |values| if values.is_null(row) { default } else { values.value(row) })
    };
    let elements = |row: usize| {
        if stops.is_null(row) {
            return 0.0;
        }
        let span = stops.value(row) as f64 - at(&starts, row, 0) as f64;
        (span / at(&steps, row, 1) as f64).max(0.0)
    };
    Some((0..stops.len()).map(|row| elements(row) * VALUE_BYTES).sum())
}

fn integers(args: &ScalarFunctionArgs, position: usize) -> Option<Int64Array> {
    let rows = if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) { 1 } else { args.number_rows };
    let array = args.args.get(position)?.to_array(rows).ok()?;
    if !array.data_type().is_integer() {
        return None;
    }
    let array = cast(&array, &DataType::Int64).ok()?;
    as_int64_array(&array).ok().cloned()
}

#[derive(Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    measure: Measure,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(bytes) = (self.measure)(&args)
            && bytes > FUNCTION_BYTES_MAX
        {
            let mebibytes = (FUNCTION_BYTES_MAX as u64) >> 20;
            let name = self.inner.name();
            let message = format!("{name}() would make more than {mebibytes} MiB at once");
            return Err(DataFusionError::ResourcesExhausted(message));
        }
        self.inner.invoke_with_args(args)
    }
}
