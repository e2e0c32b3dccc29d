//! The type of the functions of times: PostgreSQL's types as Arrow has them, arguments converted to values of these types,
//! whatever Arrow's type is, and results.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calendar::{self, DAY};
use super::input;
use crate::function::{ArgumentColumn, FunctionCall, Invoke, invoke_columnar};

/// Returns the type of the result for arguments of these kinds; `None` if PostgreSQL has no such function.
type Returns = fn(&[TimeKind]) -> Option<DataType>;

/// Returns the type of the result, which also depends on constant arguments.
type ReturnsOfValues = fn(&[TimeKind], &[Option<&ScalarValue>]) -> Result<Option<DataType>>;

/// A function that consists of plain functions. Two functions of one name are equal.
#[derive(Debug)]
struct TimeFunction {
    name: &'static str,
    signature: Signature,
    returns: ReturnType,
    compute: Invoke,
}

/// How the type of the result is determined.
#[derive(Debug, Clone, Copy)]
enum ReturnType {
    FromTypes(Returns),
    FromValues(ReturnsOfValues),
}

/// Builds a function whose value depends only on its arguments.
pub(super) fn function(name: &'static str, returns: Returns, compute: Invoke) -> ScalarUDF {
    new_function(name, Volatility::Immutable, ReturnType::FromTypes(returns), compute)
}

/// Builds a function whose result type depends on constant arguments.
pub(super) fn function_with_constant_args(name: &'static str, returns: ReturnsOfValues, compute: Invoke) -> ScalarUDF {
    new_function(name, Volatility::Immutable, ReturnType::FromValues(returns), compute)
}

/// Builds a function whose value depends on the current time if it has fewer arguments.
pub(super) fn stable_function(name: &'static str, returns: Returns, compute: Invoke) -> ScalarUDF {
    new_function(name, Volatility::Stable, ReturnType::FromTypes(returns), compute)
}

fn new_function(name: &'static str, volatility: Volatility, returns: ReturnType, compute: Invoke) -> ScalarUDF {
    ScalarUDF::new_from_impl(TimeFunction { name, signature: Signature::user_defined(volatility), returns, compute })
}

/// Returns PostgreSQL's error for a function that does not exist.
fn undefined_function_error(name: &str, types: &[DataType]) -> DataFusionError {
    let types: Vec<String> =
        types.iter().map(|data_type| TimeKind::from_data_type(data_type).name(data_type)).collect();
    DataFusionError::Plan(format!("function {name}({}) does not exist", types.join(", ")))
}

/// Plans the call of a function of this module.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    static FUNCTIONS: OnceLock<HashMap<String, Arc<ScalarUDF>>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| {
        super::functions().into_iter().map(|function| (function.name().to_owned(), Arc::new(function))).collect()
    });
    let function = functions.get(name);
    let function = function.ok_or_else(|| DataFusionError::Internal(format!("there is no function {name}")))?;
    Ok(function.call(args))
}

impl TimeFunction {
    fn result_type(&self, types: &[DataType], values: &[Option<&ScalarValue>]) -> Result<DataType> {
        let kinds: Vec<TimeKind> = types.iter().map(TimeKind::from_data_type).collect();
        let result = match self.returns {
            ReturnType::FromTypes(returns) => returns(&kinds),
            ReturnType::FromValues(returns) => returns(&kinds, values)?,
        };
        result.ok_or_else(|| undefined_function_error(self.name, types))
    }
}

crate::compare_by!(TimeFunction { name });

impl ScalarUDFImpl for TimeFunction {
    crate::name_and_signature!(.name);

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.return_type(types)?;
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result_type(types, &[])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name, self.result_type(&types, args.scalar_arguments)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        invoke_columnar(&args, self.compute)
    }
}

/// The kind of a value for the functions of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeKind {
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Integer,
    /// A number that may have a fraction.
    Number,
    Text,
    Null,
    Other,
}

impl TimeKind {
    pub(super) fn from_data_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Time32(_) | DataType::Time64(_) => Self::Time,
            DataType::Timestamp(_, None) => Self::Timestamp,
            DataType::Timestamp(_, Some(_)) => Self::Timestamptz,
            DataType::Interval(_) | DataType::Duration(_) => Self::Interval,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Dictionary(_, values) if matches!(Self::from_data_type(values), Self::Text) => Self::Text,
            DataType::Null => Self::Null,
            integer if integer.is_integer() => Self::Integer,
            number if number.is_numeric() => Self::Number,
            _ => Self::Other,
        }
    }

    /// Whether it is a point in time with a date.
    pub(super) fn is_moment(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::Timestamptz)
    }

    /// Whether the value may be an untyped literal.
    pub(super) fn accepts_untyped_literal(self) -> bool {
        matches!(self, Self::Text | Self::Null)
    }

    /// Returns the type's name in PostgreSQL.
    pub(super) fn name(self, data_type: &DataType) -> String {
        let name = match self {
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Integer => "integer",
            Self::Text => "text",
            Self::Null => "unknown",
            Self::Number if data_type.is_floating() => "double precision",
            Self::Number => "numeric",
            Self::Other => return data_type.to_string(),
        };
        name.to_owned()
    }
}

/// The values of an argument.
pub(super) type TimeColumn<P> = ArgumentColumn<PrimitiveArray<P>>;

/// The texts of an argument.
pub(super) type TextColumn = ArgumentColumn<StringArray>;

/// Computes a value of each row from a column. NULL stays NULL.
pub(super) fn map<A: ArrowPrimitiveType, R>(
    values: TimeColumn<A>,
    compute: impl Fn(A::Native) -> Result<R>,
) -> impl Fn(usize) -> Result<Option<R>> {
    move |row| values.get(row).map(&compute).transpose()
}

/// Computes a value of each row from two columns. It is NULL if one of them is NULL.
pub(super) fn zip<A: ArrowPrimitiveType, B: ArrowPrimitiveType, R>(
    left: TimeColumn<A>,
    right: TimeColumn<B>,
    compute: impl Fn(A::Native, B::Native) -> Result<R>,
) -> impl Fn(usize) -> Result<Option<R>> {
    move |row| left.get(row).zip(right.get(row)).map(|(left, right)| compute(left, right)).transpose()
}

impl FunctionCall<'_> {
    pub(super) fn time_kind(&self, position: usize) -> TimeKind {
        TimeKind::from_data_type(&self.args[position].data_type())
    }

    /// Returns timestamps as microseconds. A date is its start, and a text is parsed as a `timestamptz`.
    pub(super) fn moments(&self, position: usize) -> Result<TimeColumn<Int64Type>> {
        self.column(position, |array| moments(&array, input::parse_timestamptz))
    }

    /// Returns timestamps as microseconds. The zone of a text is ignored.
    pub(super) fn local_moments(&self, position: usize) -> Result<TimeColumn<Int64Type>> {
        self.column(position, |array| moments(&array, input::parse_timestamp))
    }

    pub(super) fn dates(&self, position: usize) -> Result<TimeColumn<Date32Type>> {
        self.column(position, |array| dates(&array))
    }

    /// Returns times as microseconds of the day.
    pub(super) fn times(&self, position: usize) -> Result<TimeColumn<Int64Type>> {
        self.column(position, |array| times(&array))
    }

    pub(super) fn intervals(&self, position: usize) -> Result<TimeColumn<IntervalMonthDayNanoType>> {
        self.column(position, |array| intervals(&array))
    }

    pub(super) fn integers(&self, position: usize) -> Result<TimeColumn<Int64Type>> {
        self.column(position, |array| Ok(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
    }

    pub(super) fn floats(&self, position: usize) -> Result<TimeColumn<Float64Type>> {
        self.column(position, |array| Ok(cast(&array, &DataType::Float64)?.as_primitive::<Float64Type>().clone()))
    }

    fn build<P: ArrowPrimitiveType>(
        &self,
        value: impl Fn(usize) -> Result<Option<P::Native>>,
    ) -> Result<PrimitiveArray<P>> {
        let mut builder = PrimitiveArray::<P>::builder(self.rows);
        for row in 0..self.rows {
            builder.append_option(value(row)?);
        }
        Ok(builder.finish())
    }

    /// Builds the result, NULL where `value` returns `None`.
    pub(super) fn collect<P: ArrowPrimitiveType>(
        &self,
        value: impl Fn(usize) -> Result<Option<P::Native>>,
    ) -> Result<ArrayRef> {
        Ok(Arc::new(self.build::<P>(value)?.with_data_type(self.returns.clone())))
    }

    /// Builds the result from microseconds, NULL where `value` returns `None`.
    pub(super) fn collect_micros(&self, value: impl Fn(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
        Ok(cast(&self.build::<Int64Type>(value)?, self.returns)?)
    }

    /// Builds a result of intervals, NULL where `value` returns `None`.
    pub(super) fn collect_intervals(
        &self,
        value: impl Fn(usize) -> Result<Option<IntervalMonthDayNano>>,
    ) -> Result<ArrayRef> {
        self.collect::<IntervalMonthDayNanoType>(value)
    }

    /// Builds a result of texts, NULL where `write` returns `false`.
    pub(super) fn collect_texts(&self, write: impl Fn(usize, &mut String) -> Result<bool>) -> Result<ArrayRef> {
        let mut builder = StringBuilder::with_capacity(self.rows, self.rows * 16);
        let mut text = String::new();
        for row in 0..self.rows {
            text.clear();
            let is_valid = write(row, &mut text)?;
            builder.append_option(is_valid.then_some(&text));
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// Parses each text of `array`.
fn parse<P: ArrowPrimitiveType>(
    array: &ArrayRef,
    parse: impl Fn(&str) -> Result<P::Native>,
) -> Result<PrimitiveArray<P>> {
    let texts = cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    texts.iter().map(|text| text.map(&parse).transpose()).collect()
}

fn moments(array: &ArrayRef, parse_text: impl Fn(&str) -> Result<i64>) -> Result<PrimitiveArray<Int64Type>> {
    match array.data_type() {
        DataType::Timestamp(unit, _) => {
            let ticks = cast(array, &DataType::Int64)?;
            let ticks = ticks.as_primitive::<Int64Type>();
            let times = |factor: i64| {
                ticks.try_unary::<_, Int64Type, _>(|ticks| {
                    let micros = ticks.checked_mul(factor).ok_or_else(|| calendar::out_of_range_error("timestamp"));
                    micros.and_then(calendar::checked_timestamp)
                })
            };
            match unit {
                TimeUnit::Second => times(1_000_000),
                TimeUnit::Millisecond => times(1_000),
                TimeUnit::Microsecond => times(1),
                TimeUnit::Nanosecond => Ok(ticks.unary(|ticks| ticks.div_euclid(1_000))),
            }
        }
        text if TimeKind::from_data_type(text) == TimeKind::Text => parse(array, parse_text),
        DataType::Null => Ok(PrimitiveArray::new_null(array.len())),
        _ => dates(array)?.try_unary(|days| calendar::checked_date(i64::from(days)).map(|days| i64::from(days) * DAY)),
    }
}

fn dates(array: &ArrayRef) -> Result<PrimitiveArray<Date32Type>> {
    if TimeKind::from_data_type(array.data_type()) == TimeKind::Text {
        return parse(array, input::parse_date);
    }
    if matches!(array.data_type(), DataType::Timestamp(..)) {
        let moments = moments(array, input::parse_timestamp)?;
        return moments.try_unary(|micros| calendar::checked_date(micros.div_euclid(DAY)));
    }
    Ok(cast(array, &DataType::Date32)?.as_primitive::<Date32Type>().clone())
}

fn times(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>> {
    match array.data_type() {
        text if TimeKind::from_data_type(text) == TimeKind::Text => parse(array, input::parse_time),
        DataType::Timestamp(..) => Ok(moments(array, input::parse_timestamp)?.unary(|micros| micros.rem_euclid(DAY))),
        _ => {
            let times = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
            cast(&times, &DataType::Int64)?.as_primitive::<Int64Type>().try_unary(calendar::checked_time)
        }
    }
}

fn intervals(array: &ArrayRef) -> Result<PrimitiveArray<IntervalMonthDayNanoType>> {
    if TimeKind::from_data_type(array.data_type()) == TimeKind::Text {
        return parse(array, input::parse_interval);
    }
    let data_type = DataType::Interval(IntervalUnit::MonthDayNano);
    Ok(cast(array, &data_type)?.as_primitive::<IntervalMonthDayNanoType>().clone())
}
