//! Ordered-set aggregates: `percentile_cont`, `percentile_disc` and `mode`, each `WITHIN GROUP (ORDER BY x)`.
//!
//! Their arguments are the value, the fraction or fractions (not for `mode`), and whether the order is descending. The
//! values of each group are collected, then sorted and evaluated.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, IntervalMonthDayNanoArray, ListArray,
    RecordBatch, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, concat, filter, is_not_null, partition, sort_to_indices, take};
use arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::planner::RawAggregateExpr;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, EmitTo, GroupsAccumulator, Signature, Volatility, lit,
};
use datafusion::physical_plan::PhysicalExpr;

use super::apply_filter;
use crate::data_type::postgres_type_name;
use crate::time::multiply_interval;

pub(super) fn functions() -> Vec<AggregateUDF> {
    let function = |kind, aliases: &[&str]| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        AggregateUDF::new_from_impl(OrderedSet { kind, aliases, signature })
    };
    vec![
        function(OrderedSetKind::Continuous, &["quantile_cont"]),
        function(OrderedSetKind::Discrete, &[]),
        function(OrderedSetKind::Mode, &[]),
    ]
}

/// Adds the sort direction to the arguments of the call.
pub(super) fn with_direction(mut call: RawAggregateExpr) -> Result<RawAggregateExpr> {
    if call.distinct {
        return plan_err!("cannot use DISTINCT with WITHIN GROUP; select the distinct values in a subquery");
    }
    let is_descending = call.order_by.first().is_some_and(|order| !order.asc);
    call.order_by.clear();
    call.args.push(lit(is_descending));
    Ok(call)
}

/// Returns the length of an interval as PostgreSQL compares it: months have 30 days, and days 24 hours.
pub(super) fn interval_length(interval: IntervalMonthDayNano) -> i128 {
    const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * NANOSECONDS_PER_DAY + i128::from(interval.nanoseconds)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedSet {
    kind: OrderedSetKind,
    aliases: Vec<String>,
    signature: Signature,
}

impl OrderedSet {
    fn group_values(&self, args: &AccumulatorArgs) -> Result<GroupValues> {
        let [value, rest @ ..] = args.expr_fields else { return exec_err!("{} has no value", self.name()) };
        let constants: Vec<ScalarValue> =
            args.exprs.iter().skip(1).map(|expr| constant(expr, args, self.name())).collect::<Result<_>>()?;
        let is_descending = matches!(constants.last(), Some(ScalarValue::Boolean(Some(true))));
        let fractions = match (self.kind, constants.first()) {
            (OrderedSetKind::Mode, _) => Fractions::One(Some(0.0)),
            (_, Some(fractions)) if rest.len() > 1 => fractions_of(fractions)?,
            _ => return exec_err!("{} has no fraction", self.name()),
        };
        let result = args.return_field.data_type().clone();
        let answer = OrderedSetSpec { kind: self.kind, fractions, is_descending, result };
        Ok(GroupValues::new(value.data_type().clone(), answer))
    }

    fn value_type(&self, value: &DataType) -> Result<DataType> {
        Ok(match (self.kind, value) {
            (_, DataType::Interval(_)) => DataType::Interval(IntervalUnit::MonthDayNano),
            (_, DataType::Dictionary(_, value)) => value.as_ref().clone(),
            (OrderedSetKind::Continuous, number) if number.is_numeric() || number.is_null() => DataType::Float64,
            (OrderedSetKind::Continuous, other) => {
                let name = postgres_type_name(other);
                return plan_err!(
                    "function percentile_cont(double precision, {name}) does not exist; for values that are not \
                     numbers use percentile_disc"
                );
            }
            (_, DataType::Struct(_) | DataType::Map(..) | DataType::Union(..)) => {
                return plan_err!("{} cannot order values of type {}", self.name(), postgres_type_name(value));
            }
            (_, other) => other.clone(),
        })
    }
}

fn constant(expr: &Arc<dyn PhysicalExpr>, args: &AccumulatorArgs, name: &str) -> Result<ScalarValue> {
    match constant_value(expr, args)? {
        Some(value) => Ok(value),
        None => exec_err!("the fraction of {name} must be a constant, such as 0.5; it cannot depend on a column"),
    }
}

/// Returns the value of an argument that must be the same for all rows; `None` if it depends on a column.
pub(super) fn constant_value(expr: &Arc<dyn PhysicalExpr>, args: &AccumulatorArgs) -> Result<Option<ScalarValue>> {
    let nothing = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    Ok(match expr.evaluate(&nothing)? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    })
}

fn fractions_of(value: &ScalarValue) -> Result<Fractions> {
    let check = |fraction: Option<f64>| match fraction {
        Some(fraction) if !(0.0..=1.0).contains(&fraction) => {
            exec_err!("percentile value {fraction} is not between 0 and 1")
        }
        fraction => Ok(fraction),
    };
    match value {
        ScalarValue::Float64(fraction) => Ok(Fractions::One(check(*fraction)?)),
        ScalarValue::List(list) if list.is_null(0) => Ok(Fractions::NullList),
        ScalarValue::List(list) => {
            let fractions = list.value(0);
            let fractions = fractions.as_primitive::<Float64Type>().iter().map(check);
            Ok(Fractions::List(fractions.collect::<Result<_>>()?))
        }
        other => exec_err!("{other} is not a fraction"),
    }
}

fn fraction_type(data_type: &DataType) -> Result<DataType> {
    match data_type {
        number if number.is_numeric() || number.is_null() => Ok(DataType::Float64),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _)
            if element.data_type().is_numeric() || element.data_type().is_null() =>
        {
            Ok(DataType::new_list(DataType::Float64, true))
        }
        other => {
            plan_err!(
                "{} is not a fraction: write a number between 0 and 1, or an array of them",
                postgres_type_name(other)
            )
        }
    }
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        match self.kind {
            OrderedSetKind::Continuous => "percentile_cont",
            OrderedSetKind::Discrete => "percentile_disc",
            OrderedSetKind::Mode => "mode",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match (self.kind, types) {
            (OrderedSetKind::Mode, [value, direction]) => Ok(vec![self.value_type(value)?, direction.clone()]),
            (OrderedSetKind::Mode, _) => plan_err!("mode is written mode() WITHIN GROUP (ORDER BY x)"),
            (_, [value, fraction, direction]) => {
                Ok(vec![self.value_type(value)?, fraction_type(fraction)?, direction.clone()])
            }
            _ => plan_err!("{name} is written {name}(0.5) WITHIN GROUP (ORDER BY x)"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, DataType::List(_), _] => Ok(DataType::new_list(value.clone(), true)),
            [value, ..] => Ok(value.clone()),
            [] => plan_err!("{} is written WITHIN GROUP (ORDER BY x)", self.name()),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let values = Field::new_list_field(value, true);
        Ok(vec![Arc::new(Field::new_list(format_state_name(args.name, "values"), values, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OrderedSetAccumulator(self.group_values(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.group_values(&args)?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// Which ordered-set aggregate to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OrderedSetKind {
    /// Interpolates between the two values around a fraction.
    Continuous,
    /// Takes the first value at or after a fraction.
    Discrete,
    /// Takes the most frequent value.
    Mode,
}

/// The fractions to compute a value for.
#[derive(Debug, Clone)]
enum Fractions {
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
struct OrderedSetSpec {
    kind: OrderedSetKind,
    fractions: Fractions,
    is_descending: bool,
    result: DataType,
}

impl OrderedSetSpec {
    /// Computes the result of each group. The values of a group lie between two adjacent `bounds`.
    fn evaluate_groups(&self, values: &ArrayRef, bounds: &[usize]) -> Result<ArrayRef> {
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

/// The values of all groups, in order of arrival.
#[derive(Debug)]
struct GroupValues {
    data_type: DataType,
    batches: Vec<ArrayRef>,
    /// The group of each value.
    groups: Vec<u32>,
    batch_bytes: usize,
    group_count: usize,
    spec: OrderedSetSpec,
}

impl GroupValues {
    fn new(data_type: DataType, spec: OrderedSetSpec) -> Self {
        Self { data_type, batches: Vec::new(), groups: Vec::new(), batch_bytes: 0, group_count: 0, spec }
    }

    /// Adds the values that are not NULL.
    fn add(&mut self, values: &ArrayRef, group_indices: &[usize]) -> Result<()> {
        let mask = is_not_null(values.as_ref())?;
        let filtered = if values.logical_null_count() == 0 { values.clone() } else { filter(values, &mask)? };
        // `gc` frees the strings that were filtered out.
        let filtered: ArrayRef = match filtered.as_string_view_opt() {
            Some(views) => Arc::new(views.gc()),
            None => filtered,
        };
        let groups = group_indices.iter().zip(mask.values().iter()).filter(|(_, is_value)| *is_value);
        for (group, _) in groups {
            self.groups.push(u32::try_from(*group).map_err(|_| too_many_values_error())?);
        }
        if !filtered.is_empty() {
            self.batch_bytes += filtered.get_array_memory_size();
            self.batches.push(filtered);
        }
        Ok(())
    }

    /// Takes the collected values, group by group, with the bounds of each group.
    fn sorted_by_group(&mut self) -> Result<(ArrayRef, Vec<usize>)> {
        let batches: Vec<&dyn Array> = self.batches.iter().map(AsRef::as_ref).collect();
        let values = match batches.as_slice() {
            [] => arrow::array::new_empty_array(&self.data_type),
            batches => concat(batches)?,
        };
        self.batches.clear();
        self.batch_bytes = 0;
        let mut bounds = vec![0_usize; self.group_count + 1];
        for group in &self.groups {
            bounds[*group as usize + 1] += 1;
        }
        for group in 0..self.group_count {
            bounds[group + 1] += bounds[group];
        }
        if self.group_count < 2 {
            return Ok((values, bounds));
        }
        let mut next = bounds.clone();
        let mut order = vec![0_u32; self.groups.len()];
        for (row, group) in self.groups.iter().enumerate() {
            let position = &mut next[*group as usize];
            order[*position] = u32::try_from(row).map_err(|_| too_many_values_error())?;
            *position += 1;
        }
        Ok((take(&values, &UInt32Array::from(order), None)?, bounds))
    }

    /// Takes the values and bounds of the groups to emit. The other groups stay.
    fn emit(&mut self, emit_to: EmitTo) -> Result<(ArrayRef, Vec<usize>)> {
        let (values, bounds) = self.sorted_by_group()?;
        let EmitTo::First(count) = emit_to else {
            self.groups = Vec::new();
            self.group_count = 0;
            return Ok((values, bounds));
        };
        let emitted = bounds[count];
        self.groups.clear();
        for (group, [start, end]) in bounds.array_windows().skip(count).enumerate() {
            let group = u32::try_from(group).map_err(|_| too_many_values_error())?;
            self.groups.extend(std::iter::repeat_n(group, end - start));
        }
        self.group_count -= count;
        let rest = values.slice(emitted, values.len() - emitted);
        if !rest.is_empty() {
            self.batch_bytes = rest.get_array_memory_size();
            self.batches.push(rest);
        }
        Ok((values.slice(0, emitted), bounds[..=count].to_vec()))
    }

    fn to_lists(&self, values: ArrayRef, bounds: &[usize]) -> Result<ListArray> {
        let lengths = bounds.array_windows().map(|[start, end]| end - start);
        if i32::try_from(values.len()).is_err() {
            return Err(too_many_values_error());
        }
        let field = Arc::new(Field::new_list_field(self.data_type.clone(), true));
        Ok(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, None)?)
    }
}

fn too_many_values_error() -> DataFusionError {
    DataFusionError::Execution("too many values for an ordered-set aggregate; group or filter them first".to_owned())
}

impl GroupsAccumulator for GroupValues {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.group_count = total_num_groups;
        let Some(values) = values.first() else { return exec_err!("an ordered-set aggregate has a value") };
        match opt_filter {
            Some(_) => self.add(&apply_filter(values, opt_filter)?, group_indices),
            None => self.add(values, group_indices),
        }
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.group_count = total_num_groups;
        let Some(lists) = values.first() else { return exec_err!("an ordered-set aggregate has a state") };
        let lists = lists.as_list::<i32>();
        let mut groups = Vec::new();
        for (row, group) in group_indices.iter().enumerate() {
            groups.extend(std::iter::repeat_n(*group, lists.value_length(row).try_into().unwrap_or(0)));
        }
        let bound = |row: usize| usize::try_from(lists.value_offsets()[row]).unwrap_or(0);
        let (start, end) = (bound(0), bound(lists.len()));
        self.add(&lists.values().slice(start, end - start), &groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (values, bounds) = self.emit(emit_to)?;
        self.spec.evaluate_groups(&values, &bounds)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (values, bounds) = self.emit(emit_to)?;
        Ok(vec![Arc::new(self.to_lists(values, &bounds)?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let Some(values) = values.first() else { return exec_err!("an ordered-set aggregate has a value") };
        let values = apply_filter(values, opt_filter)?;
        let bounds: Vec<usize> = (0..=values.len()).collect();
        Ok(vec![Arc::new(self.to_lists(values, &bounds)?)])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.batch_bytes + self.groups.capacity() * size_of::<u32>()
    }
}

/// The values of all rows.
#[derive(Debug)]
struct OrderedSetAccumulator(GroupValues);

impl Accumulator for OrderedSetAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |values| values.len());
        self.0.update_batch(values, &vec![0; rows], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |states| states.len());
        self.0.merge_batch(states, &vec![0; rows], 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.group_count = 1;
        let states = self.0.state(EmitTo::All)?;
        states.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.group_count = 1;
        ScalarValue::try_from_array(&self.0.evaluate(EmitTo::All)?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.0)
    }
}
