//! Evaluates ordered-set aggregates over the values of each group.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, IntervalMonthDayNanoArray, ListArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, partition, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{Result, exec_err};

use super::interval_length;
use crate::time::multiply_interval;

/// Which ordered-set aggregate to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OrderedSetKind {
    /// Interpolates between the two values around a fraction.
    Continuous,
    /// Takes the first value at or after a fraction.
    Discrete,
    /// Takes the most frequent value.
    Mode,
}

/// The fractions to compute a value for.
#[derive(Debug, Clone)]
pub(super) enum Fractions {
    One(Option<f64>),
    List(Vec<Option<f64>>),
    /// NULL instead of a list.
    NullList,
}

impl Fractions {
    fn as_slice(&self) -> &[Option<f64>] {
        match self {
            Self::One(fraction) => std::slice::from_ref(fraction),
            Self::List(fractions) => fractions,
            Self::NullList => &[],
        }
    }
}

/// The function to compute for each group.
#[derive(Debug, Clone)]
pub(super) struct OrderedSetSpec {
    pub(super) kind: OrderedSetKind,
    pub(super) fractions: Fractions,
    pub(super) is_descending: bool,
    pub(super) result: DataType,
}

impl OrderedSetSpec {
    /// Computes the result of each group. The values of a group lie between two adjacent `bounds`.
    pub(super) fn evaluate_groups(&self, values: &ArrayRef, bounds: &[usize]) -> Result<ArrayRef> {
        let groups = bounds.array_windows().map(|[start, end]| values.slice(*start, end - start));
        let flat = match (self.kind, values.data_type()) {
            (OrderedSetKind::Continuous, DataType::Interval(_)) => self.interpolate_intervals(groups)?,
            (OrderedSetKind::Continuous, _) => self.interpolate_numbers(groups)?,
            _ => self.take_values(values, groups, bounds)?,
        };
        if matches!(self.fractions, Fractions::One(_)) {
            return Ok(flat);
        }
        let DataType::List(element) = &self.result else { return exec_err!("fractions of a list give a list") };
        let has_values: Vec<bool> = bounds
            .array_windows()
            .map(|[start, end]| start < end && !matches!(self.fractions, Fractions::NullList))
            .collect();
        let lengths = has_values.iter().map(|_| self.fractions.as_slice().len());
        let element = Arc::new(Field::new(element.name(), element.data_type().clone(), true));
        let nulls = NullBuffer::from(has_values.clone());
        Ok(Arc::new(ListArray::try_new(element, OffsetBuffer::from_lengths(lengths), flat, Some(nulls))?))
    }

    /// Picks existing values, for `percentile_disc` and `mode`.
    fn take_values(
        &self,
        values: &ArrayRef,
        groups: impl Iterator<Item = ArrayRef>,
        bounds: &[usize],
    ) -> Result<ArrayRef> {
        let mut rows: Vec<Option<u32>> = Vec::new();
        for (group, start) in groups.zip(bounds) {
            let start = u32::try_from(*start).unwrap_or(u32::MAX);
            let order = self.sort_group(&group)?;
            match self.kind {
                OrderedSetKind::Mode => rows.push(most_frequent(&group, &order)?.map(|row| start + row)),
                _ => {
                    for fraction in self.fractions.as_slice() {
                        let position = fraction.and_then(|fraction| discrete_position(fraction, order.len()));
                        rows.push(position.map(|position| start + order.value(position)));
                    }
                }
            }
        }
        Ok(take(values, &UInt32Array::from(rows), None)?)
    }

    fn sort_group(&self, group: &ArrayRef) -> Result<UInt32Array> {
        let options = SortOptions { descending: self.is_descending, nulls_first: false };
        Ok(sort_to_indices(&to_comparable(group), Some(options), None)?)
    }

    fn interpolate_numbers(&self, groups: impl Iterator<Item = ArrayRef>) -> Result<ArrayRef> {
        let mut answers = Vec::new();
        for group in groups {
            let mut sorted = group.as_primitive::<Float64Type>().values().to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            if self.is_descending {
                sorted.reverse();
            }
            for fraction in self.fractions.as_slice() {
                let (Some(fraction), false) = (fraction, sorted.is_empty()) else {
                    answers.push(None);
                    continue;
                };
                let (first, second, share) = surrounding_positions(*fraction, sorted.len());
                let (low, high) = (sorted[first], sorted[second]);
                answers.push(Some(if first == second { low } else { low + share * (high - low) }));
            }
        }
        Ok(Arc::new(Float64Array::from(answers)))
    }

    fn interpolate_intervals(&self, groups: impl Iterator<Item = ArrayRef>) -> Result<ArrayRef> {
        let mut answers = Vec::new();
        for group in groups {
            let order = self.sort_group(&group)?;
            let values = group.as_primitive::<IntervalMonthDayNanoType>();
            let at = |position: usize| values.value(order.value(position) as usize);
            for fraction in self.fractions.as_slice() {
                let (Some(fraction), false) = (fraction, order.is_empty()) else {
                    answers.push(None);
                    continue;
                };
                let (first, second, share) = surrounding_positions(*fraction, order.len());
                let answer =
                    if first == second { at(first) } else { interpolate_interval(at(first), at(second), share)? };
                answers.push(Some(answer));
            }
        }
        Ok(Arc::new(IntervalMonthDayNanoArray::from(answers)))
    }
}

/// Converts the values to the representation that defines their order.
fn to_comparable(group: &ArrayRef) -> ArrayRef {
    match group.as_primitive_opt::<IntervalMonthDayNanoType>() {
        Some(intervals) => {
            let lengths = intervals.iter().map(|interval| interval.map(interval_length));
            Arc::new(lengths.collect::<Decimal128Array>())
        }
        None => group.clone(),
    }
}

/// Returns the row of the most frequent value; of several, the first in `order`.
fn most_frequent(group: &ArrayRef, order: &UInt32Array) -> Result<Option<u32>> {
    if order.is_empty() {
        return Ok(None);
    }
    let sorted = take(&to_comparable(group), order, None)?;
    let mut best = 0..0;
    for range in partition(&[sorted])?.ranges() {
        if range.len() > best.len() {
            best = range;
        }
    }
    Ok(Some(order.value(best.start)))
}

/// Returns the index of the first of `count` values at or after `fraction`.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a number of rows"
)]
fn discrete_position(fraction: f64, count: usize) -> Option<usize> {
    let row = (fraction * count as f64).ceil() as usize;
    (count > 0).then(|| row.max(1).min(count) - 1)
}

/// Returns the indexes before and after `fraction`, and how far it lies between them.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a number of rows"
)]
fn surrounding_positions(fraction: f64, count: usize) -> (usize, usize, f64) {
    let position = fraction * (count - 1) as f64;
    (position.floor() as usize, (position.ceil() as usize).min(count - 1), position - position.floor())
}

fn interpolate_interval(
    low: IntervalMonthDayNano,
    high: IntervalMonthDayNano,
    share: f64,
) -> Result<IntervalMonthDayNano> {
    let difference = |high: i32, low: i32| high.checked_sub(low);
    let span = difference(high.months, low.months)
        .zip(difference(high.days, low.days))
        .zip(high.nanoseconds.checked_sub(low.nanoseconds));
    let Some(((months, days), nanoseconds)) = span else { return exec_err!("interval out of range") };
    let part = multiply_interval(IntervalMonthDayNano::new(months, days, nanoseconds), share)?;
    let sum = low.months.checked_add(part.months).zip(low.days.checked_add(part.days));
    match sum.zip(low.nanoseconds.checked_add(part.nanoseconds)) {
        Some(((months, days), nanoseconds)) => Ok(IntervalMonthDayNano::new(months, days, nanoseconds)),
        None => exec_err!("interval out of range"),
    }
}
