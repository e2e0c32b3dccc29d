//! `min` and `max` of `real` and `double precision`, where NaN is the greatest value.

use std::cmp::Ordering;

use arrow::array::ArrowPrimitiveType;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::logical_expr::{Accumulator, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

use super::min_max::ExtremeValue;

/// Whether this module implements `min` and `max` of `data_type`.
pub(super) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Creates an accumulator that keeps the value that compares as `ordering` with all others.
pub(super) fn create_accumulator(data_type: &DataType, ordering: Ordering) -> Box<dyn Accumulator> {
    if *data_type == DataType::Float32 {
        ExtremeValue::<Float32Type>::create(ordering, keep_smaller, keep_greater)
    } else {
        ExtremeValue::<Float64Type>::create(ordering, keep_smaller, keep_greater)
    }
}

/// Creates an accumulator of extreme values for many groups.
pub(super) fn create_groups_accumulator(data_type: &DataType, ordering: Ordering) -> Box<dyn GroupsAccumulator> {
    match data_type {
        DataType::Float32 => create_groups::<Float32Type>(ordering, f32::NAN, f32::NEG_INFINITY),
        _ => create_groups::<Float64Type>(ordering, f64::NAN, f64::NEG_INFINITY),
    }
}

fn create_groups<T: ArrowPrimitiveType<Native: PartialOrd> + Send>(
    ordering: Ordering,
    greatest: T::Native,
    smallest: T::Native,
) -> Box<dyn GroupsAccumulator> {
    if ordering == Ordering::Less {
        let groups = PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, keep_smaller);
        Box::new(groups.with_starting_value(greatest))
    } else {
        let groups = PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, keep_greater);
        Box::new(groups.with_starting_value(smallest))
    }
}

/// Whether `value` is NaN, the only value that is not equal to itself.
#[allow(clippy::eq_op, reason = "this distinguishes NaN from numbers of both types")]
fn is_nan<T: PartialOrd + Copy>(value: T) -> bool {
    value != value
}

fn keep_greater<T: PartialOrd + Copy>(extreme: &mut T, value: T) {
    if value > *extreme || is_nan(value) {
        *extreme = value;
    }
}

fn keep_smaller<T: PartialOrd + Copy>(extreme: &mut T, value: T) {
    if value < *extreme || is_nan(*extreme) {
        *extreme = value;
    }
}
