//! A window function of a partition, such as `first_value`, with a limit for its results.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;
use tidegate_query::array_bytes;

use super::window_memory::count_values;
use super::{CancellationCheck, QueryCancellation, scalar_bytes};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BoundedWindow {
    pub(super) inner: Arc<WindowUDF>,
    pub(super) cancellation: QueryCancellation,
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
