//! Converts arguments of functions to values of PostgreSQL's types, whatever Arrow's type is, and builds results.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion::common::Result;

use super::calendar::{self, DAY};
use super::input;
use super::kind::TimeKind;
use crate::function::{ArgumentColumn, FunctionCall};

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
