//! Limits for window functions whose results may be much larger than their arguments.
//!
//! A window function returns a value for each row, and each may be as large as the whole partition: `array_agg(x) OVER
//! (ORDER BY y)` of n rows returns n²/2 elements. DataFusion limits neither the memory nor the time, and does not
//! check for cancellation between two rows.
//!
//! A function does not know which operator it computes for, and only the operator knows when its results are passed
//! on. So the cancellation operator around it registers a [`WindowMemory`] for the thread while the window operator
//! computes.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, ExpressionArgs, PartitionEvaluatorArgs, StateFieldsArgs,
    WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, LimitEffect, Operator,
    PartitionEvaluator, ReversedUDAF, ReversedUDWF, SetMonotonicity, Signature, StatisticsArgs,
    WindowFunctionDefinition, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;
use parking_lot::Mutex;
use tidegate_query::array_bytes;

use crate::embedded::query_cancellation::QueryCancellation;

/// Number of calls of a function between two checks for cancellation.
const CHECK_EVERY: usize = 256;

/// The function of `call` with limits, for the query of `query_cancellation`. `None` if it already has them.
pub(super) fn limit_window_function(
    call: &WindowFunction,
    query_cancellation: &QueryCancellation,
) -> Option<WindowFunctionDefinition> {
    let cancellation = query_cancellation.clone();
    Some(match &call.fun {
        WindowFunctionDefinition::AggregateUDF(inner) if !inner.inner().is::<BoundedAggregate>() => {
            let frame = &call.params.window_frame;
            let reach = match frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded() {
                false => FrameReach::Rows,
                true if call.params.filter.is_some() => FrameReach::FilteredPartition,
                true => FrameReach::Partition,
            };
            let bounded = BoundedAggregate { inner: inner.clone(), cancellation, reach };
            WindowFunctionDefinition::AggregateUDF(Arc::new(AggregateUDF::new_from_impl(bounded)))
        }
        WindowFunctionDefinition::WindowUDF(inner) if !inner.inner().is::<BoundedWindow>() => {
            let bounded = WindowUDF::new_from_impl(BoundedWindow { inner: inner.clone(), cancellation });
            WindowFunctionDefinition::WindowUDF(Arc::new(bounded))
        }
        _ => return None,
    })
}

#[derive(Debug)]
struct CancellationCheck {
    cancellation: QueryCancellation,
    calls: usize,
}

impl CancellationCheck {
    fn new(query_cancellation: &QueryCancellation) -> Self {
        Self { cancellation: query_cancellation.clone(), calls: 0 }
    }

    fn check(&mut self) -> Result<()> {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(CHECK_EVERY) { self.cancellation.check_cancelled() } else { Ok(()) }
    }
}

/// Number of bytes of `value`; for lists, without unused parts of their buffers.
fn scalar_bytes(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::List(list) => array_bytes(list.as_ref()),
        ScalarValue::LargeList(list) => array_bytes(list.as_ref()),
        ScalarValue::FixedSizeList(list) => array_bytes(list.as_ref()),
        ScalarValue::Struct(values) => array_bytes(values.as_ref()),
        ScalarValue::Map(map) => array_bytes(map.as_ref()),
        other => other.size(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BoundedAggregate {
    inner: Arc<AggregateUDF>,
    cancellation: QueryCancellation,
    reach: FrameReach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FrameReach {
    /// Some rows, different for each row.
    Rows,
    /// The whole partition: all its rows share one value.
    Partition,
    /// The filtered rows of the whole partition: all its rows share one value.
    FilteredPartition,
}

impl BoundedAggregate {
    fn bound_accumulator(&self, accumulator: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        let check = CancellationCheck::new(&self.cancellation);
        Box::new(BoundedAccumulator { inner: accumulator, cancellation_check: check, reach: self.reach, rows: 0 })
    }

    fn with_inner(&self, inner: Arc<AggregateUDF>) -> Self {
        Self { inner, ..self.clone() }
    }
}

// Delegates every method, so that the function is unchanged except for its limit.
#[warn(clippy::missing_trait_methods)]
impl AggregateUDFImpl for BoundedAggregate {
    tidegate_pgsql::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String>;
        fn human_display(&self, params: &AggregateFunctionParams) -> Result<String>;
        fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String>;
        fn display_name(&self, params: &AggregateFunctionParams) -> Result<String>;
        fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String>;
        fn signature(&self) -> &Signature;
        fn return_type(&self, arg_types: &[DataType]) -> Result<DataType>;
        fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef>;
        fn is_nullable(&self) -> bool;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool;
        fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
        fn simplify(&self) -> Option<AggregateFunctionSimplification>;
        fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>>;
        fn is_descending(&self) -> Option<bool>;
        fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue>;
        fn default_value(&self, data_type: &DataType) -> Result<ScalarValue>;
        fn supports_null_handling_clause(&self) -> bool;
        fn supports_within_group_clause(&self) -> bool;
        fn documentation(&self) -> Option<&Documentation>;
        fn simplify_expr_op_literal(
            &self, function: &AggregateFunction, arg: &Expr, op: Operator, literal: &Expr, is_arg_left: bool
        ) -> Result<Option<Expr>>;
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.bound_accumulator(self.inner.accumulator(args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.bound_accumulator(self.inner.create_sliding_accumulator(args)?))
    }

    fn with_beneficial_ordering(self: Arc<Self>, is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = self.inner.inner().clone().with_beneficial_ordering(is_ordered)?;
        Ok(inner.map(|inner| {
            Arc::new(self.with_inner(Arc::new(AggregateUDF::new_from_shared_impl(inner)))) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Reversed(inner) => {
                ReversedUDAF::Reversed(Arc::new(AggregateUDF::new_from_impl(self.with_inner(inner))))
            }
            other => other,
        }
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

#[derive(Debug)]
struct BoundedAccumulator {
    inner: Box<dyn Accumulator>,
    cancellation_check: CancellationCheck,
    reach: FrameReach,
    rows: usize,
}

#[warn(clippy::missing_trait_methods)]
impl Accumulator for BoundedAccumulator {
    tidegate_pgsql::delegate_to! { inner =>
        fn size(&self) -> usize;
        fn supports_retract_batch(&self) -> bool;
    }

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.cancellation_check.check()?;
        self.rows += values.first().map_or(0, |column| column.len());
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        let bytes = scalar_bytes(&value);
        match self.reach {
            FrameReach::Rows => count_values(bytes, 1)?,
            FrameReach::Partition => count_repeated_value(bytes, Some(self.rows))?,
            FrameReach::FilteredPartition => count_repeated_value(bytes, None)?,
        }
        Ok(value)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.cancellation_check.check()?;
        self.inner.retract_batch(values)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BoundedWindow {
    inner: Arc<WindowUDF>,
    cancellation: QueryCancellation,
}

// Delegates every method, so that the function is unchanged except for its limit.
#[warn(clippy::missing_trait_methods)]
impl WindowUDFImpl for BoundedWindow {
    tidegate_pgsql::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>>;
        fn simplify(&self) -> Option<WindowFunctionSimplification>;
        fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef>;
        fn sort_options(&self) -> Option<SortOptions>;
        fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(Box::new(BoundedEvaluator { inner, cancellation_check: CancellationCheck::new(&self.cancellation) }))
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.inner.reverse_expr() {
            ReversedUDWF::Reversed(inner) => {
                let reversed = Self { inner, cancellation: self.cancellation.clone() };
                ReversedUDWF::Reversed(Arc::new(WindowUDF::new_from_impl(reversed)))
            }
            other => other,
        }
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}

#[derive(Debug)]
struct BoundedEvaluator {
    inner: Box<dyn PartitionEvaluator>,
    cancellation_check: CancellationCheck,
}

#[warn(clippy::missing_trait_methods)]
impl PartitionEvaluator for BoundedEvaluator {
    tidegate_pgsql::delegate_to! { inner =>
        fn get_range(&self, idx: usize, rows: usize) -> Result<Range<usize>>;
        fn is_causal(&self) -> bool;
        fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef>;
        fn supports_bounded_execution(&self) -> bool;
        fn uses_window_frame(&self) -> bool;
        fn include_rank(&self) -> bool;
    }

    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.cancellation_check.check()?;
        let results = self.inner.evaluate_all(values, rows)?;
        count_values(array_bytes(&results), rows)?;
        Ok(results)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.cancellation_check.check()?;
        let value = self.inner.evaluate(values, range)?;
        count_values(scalar_bytes(&value), 1)?;
        Ok(value)
    }
}

/// Number of bytes of a value that are not counted. The row of the value may be that large anyway.
const FREE_BYTES: usize = 256;

thread_local! {
    /// The memory accounts of the operators that compute on this thread, the innermost last.
    static ACTIVE: RefCell<Vec<Arc<WindowMemory>>> = const { RefCell::new(Vec::new()) };
}

/// The number of input rows of a window operator, in all its partitions.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowRows(Arc<AtomicUsize>);

impl WindowRows {
    pub(crate) fn add(&self, rows: usize) {
        self.0.fetch_add(rows, Ordering::Relaxed);
    }
}

/// The memory of the results that one partition of an operator holds.
#[derive(Debug)]
pub(crate) struct WindowMemory {
    rows: WindowRows,
    reservation: Mutex<MemoryReservation>,
}

impl WindowMemory {
    pub(crate) fn new(rows: WindowRows, memory: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("values of a window").register(memory);
        Self { rows, reservation: Mutex::new(reservation) }
    }

    pub(crate) fn run_counted<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        /// Unregisters the account, even if the work panics.
        struct Closing;
        impl Drop for Closing {
            fn drop(&mut self) {
                ACTIVE.with_borrow_mut(Vec::pop);
            }
        }
        ACTIVE.with_borrow_mut(|open| open.push(self.clone()));
        let _closing = Closing;
        work()
    }

    pub(crate) fn release(&self) {
        self.reservation.lock().free();
    }
}

/// Counts `bytes` of results for `rows` rows of the operator that computes on this thread.
fn count_values(bytes: usize, rows: usize) -> Result<()> {
    let bytes = bytes.saturating_sub(rows.saturating_mul(FREE_BYTES));
    if bytes == 0 {
        return Ok(());
    }
    ACTIVE.with_borrow(|open| open.last().map_or(Ok(()), |account| account.reservation.lock().try_grow(bytes)))
}

/// Counts one value of `bytes` that all `rows` rows of a partition share. `None`: a filter hides the number of rows,
/// and the number of all rows of the operator is used.
fn count_repeated_value(bytes: usize, rows: Option<usize>) -> Result<()> {
    let all = || ACTIVE.with_borrow(|open| open.last().map_or(1, |account| account.rows.0.load(Ordering::Relaxed)));
    let rows = rows.unwrap_or_else(all).max(1);
    count_values(bytes.saturating_mul(rows), rows)
}
