//! `sum`: a `bigint` for `smallint` and `integer`, a numeric for `bigint`; it never wraps around.
//!
//! Values are not cast before they are added: a cast would cost more than the sum. There are sums of all values, of all
//! distinct values, of a moving window, and of many groups.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, FieldRef, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, not_impl_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::NullState;
use datafusion_functions_aggregate_common::utils::GenericDistinctBuffer;

use super::moments::{FrameQueue, frame_methods};
use super::{apply_filter, argument_advice};
use crate::data_type::postgres_type_name;
use crate::number::{NUMERIC_UNITS_MAX, out_of_range_error};

/// How many more digits the sum of numerics has than its values.
const EXTRA_DIGITS: u8 = 10;

/// The largest precision whose values can be added for all rows of a batch without a check.
const NARROW_PRECISION: u8 = 28;

pub(super) fn function() -> AggregateUDF {
    AggregateUDF::new_from_impl(Sum { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

/// Code that is generic over the type of the values and the type of the totals.
trait SumTypeVisitor {
    type Output;
    fn visit<V: Summand<T>, T: TotalPrimitive>(self, total: TotalType) -> Result<Self::Output>;
}

fn dispatch_sum_types<F: SumTypeVisitor>(value: &DataType, result: &DataType, visitor: F) -> Result<F::Output> {
    let total = |data_type: &DataType, is_narrow: bool| TotalType {
        data_type: data_type.clone(),
        result: result.clone(),
        is_narrow,
    };
    let (whole, wide) = (total(result, true), total(result, false));
    match value {
        DataType::Int8 => visitor.visit::<Int8Type, Int64Type>(whole),
        DataType::Int16 => visitor.visit::<Int16Type, Int64Type>(whole),
        DataType::Int32 => visitor.visit::<Int32Type, Int64Type>(whole),
        DataType::UInt8 => visitor.visit::<UInt8Type, Int64Type>(whole),
        DataType::UInt16 => visitor.visit::<UInt16Type, Int64Type>(whole),
        DataType::UInt32 => visitor.visit::<UInt32Type, Int64Type>(whole),
        DataType::Int64 => visitor.visit::<Int64Type, Decimal128Type>(whole),
        DataType::UInt64 => visitor.visit::<UInt64Type, Decimal128Type>(whole),
        DataType::Decimal128(precision, _) => {
            visitor.visit::<Decimal128Type, Decimal128Type>(total(result, *precision <= NARROW_PRECISION))
        }
        DataType::Float32 => visitor.visit::<Float32Type, Float64Type>(total(&DataType::Float64, true)),
        DataType::Float64 => visitor.visit::<Float64Type, Float64Type>(whole),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            visitor.visit::<IntervalMonthDayNanoType, IntervalMonthDayNanoType>(wide)
        }
        DataType::Duration(TimeUnit::Second) => visitor.visit::<DurationSecondType, DurationSecondType>(wide),
        DataType::Duration(TimeUnit::Millisecond) => {
            visitor.visit::<DurationMillisecondType, DurationMillisecondType>(wide)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            visitor.visit::<DurationMicrosecondType, DurationMicrosecondType>(wide)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            visitor.visit::<DurationNanosecondType, DurationNanosecondType>(wide)
        }
        other => not_impl_err!("sum of {other}"),
    }
}

/// Returns the type that totals have during the addition.
fn total_type(result: &DataType) -> DataType {
    match result {
        DataType::Float32 => DataType::Float64,
        other => other.clone(),
    }
}

/// Creates an accumulator of one group.
enum MakeAccumulator {
    Plain,
    /// Of distinct values of this type.
    Distinct(DataType),
    Sliding,
}

impl SumTypeVisitor for MakeAccumulator {
    type Output = Box<dyn Accumulator>;

    fn visit<V: Summand<T>, T: TotalPrimitive>(self, total: TotalType) -> Result<Self::Output> {
        Ok(match self {
            Self::Plain => Box::new(PlainTotal::<V, T>::new(total)),
            Self::Distinct(value) => Box::new(DistinctTotal::<V, T>::new(value, total)),
            Self::Sliding if T::Native::IS_EXACT => Box::new(RetractingTotal::<V, T>::new(total)),
            Self::Sliding => Box::new(QueuedTotal::<V, T>::new(total)),
        })
    }
}

struct MakeGroups;

impl SumTypeVisitor for MakeGroups {
    type Output = Box<dyn GroupsAccumulator>;

    fn visit<V: Summand<T>, T: TotalPrimitive>(self, total: TotalType) -> Result<Self::Output> {
        Ok(Box::new(GroupTotals::<V, T>::new(total)))
    }
}

impl AggregateUDFImpl for Sum {
    crate::name_and_signature!("sum");

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value] = types else { return plan_err!("sum has one argument: sum(x)") };
        Ok(vec![match value {
            DataType::Dictionary(_, value) => return self.coerce_types(&[value.as_ref().clone()]),
            DataType::Float16 => DataType::Float32,
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                DataType::Decimal128(*precision, *scale)
            }
            DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::Decimal128(..) | DataType::Float32 | DataType::Float64 | DataType::Duration(_) => value.clone(),
            whole if whole.is_integer() => whole.clone(),
            // PostgreSQL refuses this too. A NULL that the planner created, such as in a CASE, has no other type.
            DataType::Null => DataType::Float64,
            other => {
                // An average is planned as a sum and a count.
                let (name, advice) = (postgres_type_name(other), argument_advice(other));
                return plan_err!("functions sum({name}) and avg({name}) do not exist; {advice}");
            }
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [value] = types else { return plan_err!("sum has one argument: sum(x)") };
        Ok(match value {
            DataType::Int64 => DataType::Decimal128(19 + EXTRA_DIGITS, 0),
            DataType::UInt64 => DataType::Decimal128(20 + EXTRA_DIGITS, 0),
            whole if whole.is_integer() => DataType::Int64,
            DataType::Decimal128(precision, scale) => DataType::Decimal128(38.min(precision + EXTRA_DIGITS), *scale),
            other => other.clone(),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            let value = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
            let values = Field::new_list_field(value, true);
            return Ok(vec![Arc::new(Field::new_list(format_state_name(args.name, "sum distinct"), values, false))]);
        }
        let total = total_type(args.return_type());
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sum"), total, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = value_type(&args)?;
        let visitor = if args.is_distinct { MakeAccumulator::Distinct(value.clone()) } else { MakeAccumulator::Plain };
        dispatch_sum_types(&value, args.return_field.data_type(), visitor)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        dispatch_sum_types(&value_type(&args)?, args.return_field.data_type(), MakeAccumulator::Sliding)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        dispatch_sum_types(&value_type(&args)?, args.return_field.data_type(), MakeGroups)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn value_type(args: &AccumulatorArgs) -> Result<DataType> {
    match args.expr_fields {
        [value] => Ok(value.data_type().clone()),
        _ => plan_err!("sum has one argument: sum(x)"),
    }
}

/// An Arrow type of totals.
trait TotalPrimitive: ArrowPrimitiveType<Native: Total> + Debug + Send + Sync {}

impl<P: ArrowPrimitiveType<Native: Total> + Debug + Send + Sync> TotalPrimitive for P {}

/// An Arrow type of values that are added to totals of the type `T`.
trait Summand<T: TotalPrimitive>: ArrowPrimitiveType<Native: Into<T::Native>> + Debug + Send + Sync {}

impl<T: TotalPrimitive, P: ArrowPrimitiveType<Native: Into<T::Native>> + Debug + Send + Sync> Summand<T> for P {}

/// A total that values are added to.
trait Total: Copy + Default + Debug + Send + Sync + 'static {
    /// Whether an added value can be subtracted again without an error.
    const IS_EXACT: bool;
    /// Returns `None` if the sum is out of range.
    fn checked_plus(self, other: Self) -> Option<Self>;
    /// Returns `None` if the difference is out of range.
    fn checked_minus(self, other: Self) -> Option<Self>;
    /// Whether a numeric of 38 digits can hold the total; true for other types.
    fn fits_numeric(self) -> bool {
        true
    }
}

impl Total for i64 {
    const IS_EXACT: bool = true;

    #[inline]
    fn checked_plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }
}

impl Total for i128 {
    const IS_EXACT: bool = true;

    #[inline]
    fn checked_plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }

    fn fits_numeric(self) -> bool {
        self.unsigned_abs() < NUMERIC_UNITS_MAX
    }
}

impl Total for f64 {
    const IS_EXACT: bool = false;

    #[inline]
    fn checked_plus(self, other: Self) -> Option<Self> {
        let sum = self + other;
        (sum.is_finite() || !self.is_finite() || !other.is_finite()).then_some(sum)
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        self.checked_plus(-other)
    }
}

impl Total for IntervalMonthDayNano {
    const IS_EXACT: bool = true;

    fn checked_plus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            nanoseconds: self.nanoseconds.checked_add(other.nanoseconds)?,
        })
    }

    fn checked_minus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_sub(other.months)?,
            days: self.days.checked_sub(other.days)?,
            nanoseconds: self.nanoseconds.checked_sub(other.nanoseconds)?,
        })
    }
}

/// The types of a sum.
#[derive(Debug, Clone)]
struct TotalType {
    /// The type of the totals during the addition.
    data_type: DataType,
    /// The type of the result.
    result: DataType,
    /// Whether the sum of the values of one batch always fits into a total.
    is_narrow: bool,
}

impl TotalType {
    /// Returns PostgreSQL's error for a sum that is out of range.
    fn overflow_error(&self) -> DataFusionError {
        match &self.result {
            DataType::Interval(_) | DataType::Duration(_) => {
                DataFusionError::Execution("interval out of range".to_owned())
            }
            DataType::Float32 | DataType::Float64 => {
                DataFusionError::Execution("value out of range: overflow".to_owned())
            }
            DataType::Decimal128(..) => DataFusionError::Execution(
                "numeric field overflow: a sum has more than 38 digits; round its values first, for instance \
                 sum(round(x, 4))"
                    .to_owned(),
            ),
            other => out_of_range_error(other),
        }
    }

    fn add<T: Total>(&self, left: T, right: T) -> Result<T> {
        left.checked_plus(right).ok_or_else(|| self.overflow_error())
    }

    /// Converts `total` to the type of the result.
    fn to_scalar<T: TotalPrimitive>(&self, total: Option<T::Native>) -> Result<ScalarValue> {
        if total.is_some_and(|total| !total.fits_numeric()) {
            return Err(self.overflow_error());
        }
        let total = ScalarValue::new_primitive::<T>(total, &self.data_type)?;
        if self.result == self.data_type { Ok(total) } else { self.narrow(total) }
    }

    fn narrow(&self, total: ScalarValue) -> Result<ScalarValue> {
        let narrow = total.cast_to(&self.result)?;
        let is_lost = |value: &ScalarValue| matches!(value, ScalarValue::Float32(Some(value)) if value.is_infinite());
        let was_finite = matches!(total, ScalarValue::Float64(Some(value)) if value.is_finite());
        if was_finite && is_lost(&narrow) { Err(self.overflow_error()) } else { Ok(narrow) }
    }
}

/// Returns the sum of the values of a batch; `None` if all are NULL.
fn batch_total<V: Summand<T>, T: TotalPrimitive>(
    values: &PrimitiveArray<V>,
    total_type: &TotalType,
) -> Result<Option<T::Native>> {
    if values.null_count() == values.len() {
        return Ok(None);
    }
    let overflow = || total_type.overflow_error();
    let add = |total: T::Native, value: V::Native| total.checked_plus(value.into());
    if values.null_count() > 0 {
        let total = values.iter().flatten().try_fold(T::Native::default(), add);
        return total.map(Some).ok_or_else(overflow);
    }
    if !total_type.is_narrow {
        let total = values.values().iter().copied().try_fold(T::Native::default(), add);
        return total.map(Some).ok_or_else(overflow);
    }
    // Several independent sums let the processor add in parallel.
    let mut pools = [T::Native::default(); 8];
    let chunks = values.values().chunks_exact(pools.len());
    for value in chunks.remainder() {
        pools[0] = add(pools[0], *value).ok_or_else(overflow)?;
    }
    for chunk in chunks {
        for (pool, value) in pools.iter_mut().zip(chunk) {
            *pool = pool.checked_plus((*value).into()).ok_or_else(overflow)?;
        }
    }
    let total = pools.into_iter().try_fold(T::Native::default(), T::Native::checked_plus);
    total.map(Some).ok_or_else(overflow)
}

/// A sum; `None` before the first value.
#[derive(Debug)]
struct PlainTotal<V, T: TotalPrimitive> {
    total: Option<T::Native>,
    total_type: TotalType,
    values: PhantomData<V>,
}

impl<V, T: TotalPrimitive> PlainTotal<V, T> {
    fn new(total_type: TotalType) -> Self {
        Self { total: None, total_type, values: PhantomData }
    }

    fn add(&mut self, more: Option<T::Native>) -> Result<()> {
        if let Some(more) = more {
            let total = self.total.unwrap_or_default().checked_plus(more);
            self.total = Some(total.ok_or_else(|| self.total_type.overflow_error())?);
        }
        Ok(())
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for PlainTotal<V, T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        self.add(batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)?)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [totals] = states else { return exec_err!("sum has one state") };
        let wide = TotalType { is_narrow: false, ..self.total_type.clone() };
        self.add(batch_total::<T, T>(totals.as_primitive::<T>(), &wide)?)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::new_primitive::<T>(self.total, &self.total_type.data_type)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total_type.to_scalar::<T>(self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Collects each value once and sums them at the end.
#[derive(Debug)]
struct DistinctTotal<V: Summand<T>, T: TotalPrimitive> {
    values: GenericDistinctBuffer<V>,
    total_type: TotalType,
    totals: PhantomData<T>,
}

impl<V: Summand<T>, T: TotalPrimitive> DistinctTotal<V, T> {
    fn new(value: DataType, total_type: TotalType) -> Self {
        Self { values: GenericDistinctBuffer::new(value), total_type, totals: PhantomData }
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for DistinctTotal<V, T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.values.is_empty() {
            return self.total_type.to_scalar::<T>(None);
        }
        let values = self.values.values.iter().map(|value| value.0.into());
        let total =
            values.into_iter().try_fold(T::Native::default(), |total: T::Native, value| total.checked_plus(value));
        self.total_type.to_scalar::<T>(Some(total.ok_or_else(|| self.total_type.overflow_error())?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}

/// The sum over a window. Values that leave the window are subtracted.
#[derive(Debug)]
struct RetractingTotal<V, T: TotalPrimitive> {
    total: T::Native,
    count: usize,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> RetractingTotal<V, T> {
    fn new(total_type: TotalType) -> Self {
        Self { total: T::Native::default(), count: 0, total_type, values: PhantomData }
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for RetractingTotal<V, T> {
    frame_methods!();

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        if let Some(more) = batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)? {
            self.total = self.total_type.add(self.total, more)?;
            self.count += values.len() - values.null_count();
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        if let Some(less) = batch_total::<V, T>(values.as_primitive::<V>(), &self.total_type)? {
            self.total = self.total.checked_minus(less).ok_or_else(|| self.total_type.overflow_error())?;
            self.count -= values.len() - values.null_count();
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total_type.to_scalar::<T>((self.count > 0).then_some(self.total))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum over a window of floating-point numbers.
#[derive(Debug)]
struct QueuedTotal<V, T: TotalPrimitive> {
    queue: FrameQueue<T::Native>,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> QueuedTotal<V, T> {
    fn new(total_type: TotalType) -> Self {
        Self { queue: FrameQueue::default(), total_type, values: PhantomData }
    }
}

impl<V: Summand<T>, T: TotalPrimitive> Accumulator for QueuedTotal<V, T> {
    frame_methods!();

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        let mut values = values.as_primitive::<V>().iter().flatten();
        values.try_for_each(|value| self.queue.push(value.into(), |left, right| self.total_type.add(left, right)))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        for _ in 0..values.len() - values.null_count() {
            self.queue.remove_oldest(|left, right| self.total_type.add(left, right))?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.queue.total(|left, right| self.total_type.add(left, right))?;
        self.total_type.to_scalar::<T>(total)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.queue.bytes()
    }
}

/// Keeps one sum for each group.
#[derive(Debug)]
struct GroupTotals<V, T: TotalPrimitive> {
    totals: Vec<T::Native>,
    nulls: NullState,
    total_type: TotalType,
    values: PhantomData<fn(V)>,
}

impl<V, T: TotalPrimitive> GroupTotals<V, T> {
    fn new(total_type: TotalType) -> Self {
        Self { totals: Vec::new(), nulls: NullState::new(), total_type, values: PhantomData }
    }

    fn add<A: Summand<T>>(
        &mut self,
        values: &PrimitiveArray<A>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.totals.resize(count, T::Native::default());
        let totals = &mut self.totals;
        let mut has_overflowed = false;
        self.nulls.accumulate(groups, values, filter, count, |group, value| {
            match totals[group].checked_plus(value.into()) {
                Some(total) => totals[group] = total,
                None => has_overflowed = true,
            }
        });
        if has_overflowed { Err(self.total_type.overflow_error()) } else { Ok(()) }
    }

    fn emit(&mut self, emit_to: EmitTo) -> PrimitiveArray<T> {
        let totals = emit_to.take_needed(&mut self.totals);
        let nulls = self.nulls.build(emit_to);
        PrimitiveArray::<T>::new(totals.into(), nulls).with_data_type(self.total_type.data_type.clone())
    }
}

impl<V: Summand<T>, T: TotalPrimitive> GroupsAccumulator for GroupTotals<V, T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let [values] = values else { return exec_err!("sum has one argument") };
        self.add(values.as_primitive::<V>(), group_indices, opt_filter, total_num_groups)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        let [totals] = values else { return exec_err!("sum has one state") };
        self.add(totals.as_primitive::<T>(), group_indices, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = self.emit(emit_to);
        if totals.values().iter().any(|total| !total.fits_numeric()) {
            return Err(self.total_type.overflow_error());
        }
        if self.total_type.result == self.total_type.data_type {
            return Ok(Arc::new(totals));
        }
        let narrow = arrow::compute::cast(&totals, &self.total_type.result)?;
        if let Some(narrow) = narrow.as_primitive_opt::<arrow::datatypes::Float32Type>() {
            let wide = arrow::compute::cast(&totals, &arrow::datatypes::DataType::Float64)?;
            let mut pairs = narrow.values().iter().zip(wide.as_primitive::<arrow::datatypes::Float64Type>().values());
            if pairs.any(|(narrow, wide)| narrow.is_infinite() && wide.is_finite()) {
                return Err(self.total_type.overflow_error());
            }
        }
        Ok(narrow)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.emit(emit_to))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return exec_err!("sum has one argument") };
        let values = apply_filter(values, opt_filter)?;
        let totals = values.as_primitive::<V>().unary::<_, T>(Into::into);
        Ok(vec![Arc::new(totals.with_data_type(self.total_type.data_type.clone()))])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<T::Native>() + self.nulls.size()
    }
}
