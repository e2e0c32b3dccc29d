//! The function `generate_series*`, which returns the list of numbers or times from one to another.

use std::sync::Arc;

use chrono::{DateTime, Days, Months, TimeDelta};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, ListBuilder, PrimitiveBuilder,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::data_type::is_text_or_null;
use crate::function::ColumnarFunction;

/// Rows that one call may return; a series of constant integers in FROM has no such bound.
const ROWS_MAX: usize = 10_000_000;

pub(super) fn series_function() -> ScalarUDF {
    ColumnarFunction::new(
        "generate_series*",
        coerce_types,
        |fields| Ok(DataType::List(Arc::new(Field::new_list_field(fields[0].data_type().clone(), true)))),
        |call| {
            let columns = call.arrays()?;
            match columns[0].data_type() {
                DataType::Int32 => numbers::<Int32Type>(&columns, 1),
                DataType::Int64 => numbers::<Int64Type>(&columns, 1),
                DataType::Decimal128(_, scale) => {
                    numbers::<Decimal128Type>(&columns, 10_i128.pow(u32::from(scale.unsigned_abs())))
                }
                _ => times(&columns),
            }
        },
    )
}

fn coerce_types(types: &[DataType]) -> Result<Vec<DataType>> {
    if !(2..=3).contains(&types.len()) {
        return plan_err!("generate_series takes a start, an end and a step");
    }
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let is_text = is_text_or_null;
    let bounds = &types[..2];
    let of_times = |zone: Option<Arc<str>>| {
        let time = DataType::Timestamp(TimeUnit::Microsecond, zone);
        [time.clone(), time, interval.clone()][..types.len()].to_vec()
    };
    if bounds.iter().any(|kind| matches!(kind, DataType::Timestamp(_, Some(_)) | DataType::Date32)) {
        return if types.len() == 3 { Ok(of_times(Some("UTC".into()))) } else { zero_step_error() };
    }
    if bounds.iter().any(|kind| matches!(kind, DataType::Timestamp(..))) {
        return if types.len() == 3 { Ok(of_times(None)) } else { zero_step_error() };
    }
    if types.iter().all(|kind| kind.is_integer() || is_text(kind)) {
        let is_narrow = |kind: &DataType| {
            matches!(kind, DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 | DataType::Int32)
        };
        let is_integer = types.iter().any(is_narrow) && types.iter().all(|kind| is_narrow(kind) || is_text(kind));
        return Ok(vec![if is_integer { DataType::Int32 } else { DataType::Int64 }; types.len()]);
    }
    let scale = types.iter().map(|kind| if let DataType::Decimal128(_, scale) = kind { *scale } else { 0 }).max();
    if types.iter().all(|kind| kind.is_integer() || is_text(kind) || matches!(kind, DataType::Decimal128(..))) {
        return Ok(vec![DataType::Decimal128(38, scale.unwrap_or(0)); types.len()]);
    }
    plan_err!("generate_series takes integers, numerics, or timestamps and an interval; cast its arguments")
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

/// Builds the list of each row. `row_step` returns whether the values of a row ascend, and the function that
/// computes the next value. The list of a row with NULL is empty.
fn build_lists<T: ArrowPrimitiveType, Next: Fn(T::Native) -> Option<T::Native>>(
    columns: &[ArrayRef],
    row_step: impl Fn(usize) -> Result<(bool, Next)>,
) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(PrimitiveBuilder::<T>::new().with_data_type(columns[0].data_type().clone()));
    let (starts, ends) = (columns[0].as_primitive::<T>(), columns[1].as_primitive::<T>());
    let mut bound = RowLimit(0);
    for row in 0..starts.len() {
        if columns.iter().all(|column| column.is_valid(row)) {
            let (ascends, step) = row_step(row)?;
            let end = ends.value(row);
            let mut next = Some(starts.value(row));
            while let Some(current) =
                next.filter(|current| if ascends { current.is_le(end) } else { current.is_ge(end) })
            {
                bound.count()?;
                lists.values().append_value(current);
                next = step(current);
            }
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// Builds series of integers, or of the units of numerics.
fn numbers<T: ArrowPrimitiveType>(columns: &[ArrayRef], default_step: T::Native) -> Result<ArrayRef> {
    build_lists::<T, _>(columns, |row| {
        let step = columns.get(2).map_or(default_step, |steps| steps.as_primitive::<T>().value(row));
        check_step(step.is_zero())?;
        Ok((step.is_gt(T::Native::ZERO), move |current: T::Native| current.add_checked(step).ok()))
    })
}

fn times(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let steps = columns[2].as_primitive::<IntervalMonthDayNanoType>();
    build_lists::<TimestampMicrosecondType, _>(columns, |row| {
        let step = steps.value(row);
        Ok((is_forward(step)?, move |current| add_step(current, step)))
    })
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
