//! `generate_series*`: the list of numbers or times from one to another.

use std::sync::Arc;

use chrono::{DateTime, Days, Months, TimeDelta};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Builder, Int64Builder, ListBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// Rows that one call may return; a series of constant integers in FROM has no such bound.
const ROWS_MAX: usize = 10_000_000;

/// The function.
pub(super) fn series_function() -> ScalarUDF {
    ScalarUDF::from(Series { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Series {
    signature: Signature,
}

impl ScalarUDFImpl for Series {
    fn name(&self) -> &str {
        "generate_series*"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if !(2..=3).contains(&types.len()) {
            return plan_err!("generate_series takes a start, an end and a step");
        }
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let is_text = |kind: &DataType| {
            matches!(kind, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null)
        };
        let known: Vec<&DataType> = types[..2].iter().filter(|kind| !is_text(kind)).collect();
        let of_times = |zone: Option<Arc<str>>| {
            let time = DataType::Timestamp(TimeUnit::Microsecond, zone);
            [time.clone(), time, interval.clone()][..types.len()].to_vec()
        };
        if known.iter().any(|kind| matches!(kind, DataType::Timestamp(_, Some(_)) | DataType::Date32)) {
            return if types.len() == 3 { Ok(of_times(Some("UTC".into()))) } else { zero_step_error() };
        }
        if known.iter().any(|kind| matches!(kind, DataType::Timestamp(..))) {
            return if types.len() == 3 { Ok(of_times(None)) } else { zero_step_error() };
        }
        if types.iter().all(|kind| kind.is_integer() || is_text(kind)) {
            return Ok(vec![DataType::Int64; types.len()]);
        }
        let scale = types.iter().map(|kind| if let DataType::Decimal128(_, scale) = kind { *scale } else { 0 }).max();
        if types.iter().all(|kind| kind.is_integer() || is_text(kind) || matches!(kind, DataType::Decimal128(..))) {
            return Ok(vec![DataType::Decimal128(38, scale.unwrap_or(0)); types.len()]);
        }
        plan_err!("generate_series takes integers, numerics, or timestamps and an interval; cast its arguments")
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(types[0].clone(), true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let lists: ArrayRef = match columns[0].data_type() {
            DataType::Int64 => integers(&columns)?,
            DataType::Decimal128(_, scale) => decimals(&columns, *scale)?,
            _ => times(&columns)?,
        };
        Ok(ColumnarValue::Array(lists))
    }
}

fn zero_step_error<T>() -> Result<T> {
    plan_err!("generate_series of times takes a step: generate_series(a, b, interval '1 day')")
}

/// Fails before the rows of all calls exceed the limit.
struct RowLimit(usize);

impl RowLimit {
    fn count(&mut self) -> Result<()> {
        self.0 += 1;
        if self.0 > ROWS_MAX {
            return exec_err!(
                "generate_series would make more than {ROWS_MAX} rows; choose nearer ends or a larger step"
            );
        }
        Ok(())
    }
}

fn check_step(is_zero: bool) -> Result<()> {
    if is_zero { exec_err!("step size cannot equal zero") } else { Ok(()) }
}

fn is_null(columns: &[ArrayRef], row: usize) -> bool {
    columns.iter().any(|column| column.is_null(row))
}

fn integers(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(Int64Builder::new());
    let mut bound = RowLimit(0);
    for row in 0..columns[0].len() {
        if !is_null(columns, row) {
            let value = |column: &ArrayRef| column.as_primitive::<Int64Type>().value(row);
            let (start, end, step) = (value(&columns[0]), value(&columns[1]), columns.get(2).map_or(1, value));
            check_step(step == 0)?;
            let mut next = Some(start);
            while let Some(current) = next.filter(|current| if step > 0 { *current <= end } else { *current >= end }) {
                bound.count()?;
                lists.values().append_value(current);
                next = current.checked_add(step);
            }
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

fn decimals(columns: &[ArrayRef], scale: i8) -> Result<ArrayRef> {
    let one = 10_i128.pow(u32::try_from(scale).unwrap_or(0));
    let mut lists = ListBuilder::new(Decimal128Builder::new().with_data_type(DataType::Decimal128(38, scale)));
    let mut bound = RowLimit(0);
    for row in 0..columns[0].len() {
        if !is_null(columns, row) {
            let value = |column: &ArrayRef| column.as_primitive::<Decimal128Type>().value(row);
            let (start, end, step) = (value(&columns[0]), value(&columns[1]), columns.get(2).map_or(one, value));
            check_step(step == 0)?;
            let mut next = Some(start);
            while let Some(current) = next.filter(|current| if step > 0 { *current <= end } else { *current >= end }) {
                bound.count()?;
                lists.values().append_value(current);
                next = current.checked_add(step);
            }
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

fn times(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let data_type = columns[0].data_type().clone();
    let mut lists = ListBuilder::new(TimestampMicrosecondBuilder::new().with_data_type(data_type));
    let mut bound = RowLimit(0);
    for row in 0..columns[0].len() {
        if !is_null(columns, row) {
            let value = |column: &ArrayRef| column.as_primitive::<TimestampMicrosecondType>().value(row);
            let (start, end) = (value(&columns[0]), value(&columns[1]));
            let step = columns[2].as_primitive::<IntervalMonthDayNanoType>().value(row);
            let ascends = is_forward(step)?;
            let mut next = Some(start);
            while let Some(current) = next.filter(|current| if ascends { *current <= end } else { *current >= end }) {
                bound.count()?;
                lists.values().append_value(current);
                next = add_step(current, step);
            }
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// Whether `step` is positive. A month counts 30 days, as in PostgreSQL's comparison of intervals.
fn is_forward(step: IntervalMonthDayNano) -> Result<bool> {
    const DAY_NANOSECONDS: i128 = 86_400_000_000_000;
    let days = i128::from(step.months) * 30 + i128::from(step.days);
    let length = days * DAY_NANOSECONDS + i128::from(step.nanoseconds);
    check_step(length == 0)?;
    Ok(length > 0)
}

/// Adds `step` to `microseconds`: months first, then days, then the time.
fn add_step(microseconds: i64, step: IntervalMonthDayNano) -> Option<i64> {
    let time = DateTime::from_timestamp_micros(microseconds)?;
    let months = Months::new(step.months.unsigned_abs());
    let time = if step.months < 0 { time.checked_sub_months(months) } else { time.checked_add_months(months) }?;
    let days = Days::new(u64::from(step.days.unsigned_abs()));
    let time = if step.days < 0 { time.checked_sub_days(days) } else { time.checked_add_days(days) }?;
    Some(time.checked_add_signed(TimeDelta::nanoseconds(step.nanoseconds))?.timestamp_micros())
}
