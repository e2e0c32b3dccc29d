//! `min` and `max`: intervals by their length, NaN as the greatest `real` or `double precision`, booleans refused.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, FieldRef, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{Result, ScalarValue, exec_err, not_impl_err, plan_err};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

use super::ordered::interval_length;

pub(super) fn functions() -> Vec<AggregateUDF> {
    let function =
        |inner: Arc<AggregateUDF>, ordering| AggregateUDF::new_from_impl(MinMax { inner, replaces_when: ordering });
    vec![function(min_udaf(), Ordering::Less), function(max_udaf(), Ordering::Greater)]
}

/// DataFusion's function, with PostgreSQL's semantics for intervals, floats and booleans.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MinMax {
    inner: Arc<AggregateUDF>,
    /// How a value must compare with the current extreme to replace it.
    replaces_when: Ordering,
}

fn is_interval(args: &AccumulatorArgs) -> bool {
    matches!(args.return_field.data_type(), DataType::Interval(_))
}

fn is_float(args: &AccumulatorArgs) -> bool {
    is_float_type(args.return_field.data_type())
}

impl AggregateUDFImpl for MinMax {
    crate::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn is_nullable(&self) -> bool;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn is_descending(&self) -> Option<bool>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match types {
            [DataType::Boolean] => {
                let instead = if self.replaces_when == Ordering::Less { "bool_and" } else { "bool_or" };
                plan_err!("function {name}(boolean) does not exist; use {instead}(x)")
            }
            [DataType::Interval(_)] => Ok(vec![DataType::Interval(IntervalUnit::MonthDayNano)]),
            [_] => self.inner.coerce_types(types),
            _ => plan_err!("{name} takes one argument; for several columns of a row use least or greatest"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_interval(&args) {
            Ok(ExtremeValue::<IntervalMonthDayNanoType>::create(
                self.replaces_when,
                |extreme, value| keep_interval(extreme, value, Ordering::Less),
                |extreme, value| keep_interval(extreme, value, Ordering::Greater),
            ))
        } else if is_float(&args) {
            Ok(create_accumulator(args.return_field.data_type(), self.replaces_when))
        } else {
            self.inner.accumulator(args)
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_interval(&args) {
            return not_impl_err!(
                "{} of intervals over a frame with a moving start is not supported; use extract(epoch FROM x)",
                self.name()
            );
        }
        self.inner.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_interval(&args) && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if is_float(&args) {
            return Ok(create_groups_accumulator(args.return_field.data_type(), self.replaces_when));
        }
        self.inner.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        // DataFusion's statistics order intervals differently and ignore NaN.
        let is_left_out = self.replaces_when == Ordering::Greater && is_float_type(args.return_type);
        if is_left_out || matches!(args.return_type, DataType::Interval(_)) {
            None
        } else {
            self.inner.value_from_stats(args)
        }
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

fn keep_interval(extreme: &mut IntervalMonthDayNano, value: IntervalMonthDayNano, replaces_when: Ordering) {
    if interval_length(value).cmp(&interval_length(*extreme)) == replaces_when {
        *extreme = value;
    }
}

/// Puts a value in the place of the extreme one if it must.
type Keep<T> = fn(&mut T, T);

/// The extreme of all values.
#[derive(Debug)]
struct ExtremeValue<T: ArrowPrimitiveType> {
    keep: Keep<T::Native>,
    extreme: Option<T::Native>,
}

impl<T: ArrowPrimitiveType + Debug> ExtremeValue<T> {
    /// Creates an accumulator that keeps the value that compares as `ordering` with all others.
    fn create(
        ordering: Ordering,
        keep_smaller: Keep<T::Native>,
        keep_greater: Keep<T::Native>,
    ) -> Box<dyn Accumulator> {
        let keep = if ordering == Ordering::Less { keep_smaller } else { keep_greater };
        Box::new(Self { keep, extreme: None })
    }
}

impl<T: ArrowPrimitiveType + Debug> Accumulator for ExtremeValue<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("min and max have one argument") };
        let values = values.as_primitive::<T>();
        let keep = self.keep;
        let fold = |extreme: Option<T::Native>, value: T::Native| {
            let mut extreme = extreme.unwrap_or(value);
            keep(&mut extreme, value);
            Some(extreme)
        };
        self.extreme = if values.null_count() == 0 {
            values.values().iter().copied().fold(self.extreme, fold)
        } else {
            values.iter().flatten().fold(self.extreme, fold)
        };
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let extreme: ArrayRef = Arc::new(PrimitiveArray::<T>::from_iter([self.extreme]));
        ScalarValue::try_from_array(&extreme, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Whether `data_type` has NaN, its greatest value.
fn is_float_type(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Creates an accumulator that keeps the value that compares as `ordering` with all others.
fn create_accumulator(data_type: &DataType, ordering: Ordering) -> Box<dyn Accumulator> {
    if *data_type == DataType::Float32 {
        ExtremeValue::<Float32Type>::create(ordering, keep_smaller, keep_greater)
    } else {
        ExtremeValue::<Float64Type>::create(ordering, keep_smaller, keep_greater)
    }
}

/// Creates an accumulator of extreme values for many groups.
fn create_groups_accumulator(data_type: &DataType, ordering: Ordering) -> Box<dyn GroupsAccumulator> {
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
