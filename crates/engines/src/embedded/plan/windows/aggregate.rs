//! An aggregate over a window, with a limit for its results.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use super::window_memory::{count_repeated_value, count_values};
use super::{CancellationCheck, QueryCancellation, scalar_bytes};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BoundedAggregate {
    pub(super) inner: Arc<AggregateUDF>,
    pub(super) cancellation: QueryCancellation,
    pub(super) reach: FrameReach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FrameReach {
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
