//! `array_agg`, which reports the memory of texts and bytes.
//!
//! DataFusion's function keeps its arguments as they are. Of a view, it reports 16 bytes, however long the value is, so
//! that the values are not part of the memory of a query. And it keeps all buffers of a batch of which a filter selected
//! a few rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, GenericByteViewArray, OffsetSizeTrait};
use arrow::datatypes::{BinaryViewType, ByteViewType, DataType, FieldRef, StringViewType};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

pub(super) fn function() -> AggregateUDF {
    counted(array_agg_udaf())
}

fn counted(inner: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::new_from_impl(ArrayAgg { inner })
}

/// DataFusion's function, whose accumulators count the bytes of views.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayAgg {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for ArrayAgg {
    crate::delegate_to! { inner =>
        fn name(&self) -> &str;
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
        fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool;
        fn supports_null_handling_clause(&self) -> bool;
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        // With DISTINCT or ORDER BY, values are copied and counted; DISTINCT keeps a repeated value once.
        if args.is_distinct || !args.order_bys.is_empty() {
            return self.inner.accumulator(args);
        }
        Ok(Box::new(CountedValues { inner: self.inner.accumulator(args)?, view_bytes: 0 }))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(CountedValues { inner: self.inner.create_groups_accumulator(args)?, view_bytes: 0 }))
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = self.inner.as_ref().clone().with_beneficial_ordering(beneficial_ordering)?;
        Ok(inner.map(|inner| Arc::new(Self { inner: Arc::new(inner) }) as Arc<dyn AggregateUDFImpl>))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Reversed(inner) => ReversedUDAF::Reversed(Arc::new(counted(inner))),
            other => other,
        }
    }
}

/// An accumulator, and the bytes of the views that it keeps.
#[derive(Debug)]
struct CountedValues<A> {
    inner: A,
    view_bytes: usize,
}

impl<A> CountedValues<A> {
    /// Counts `arguments`, and copies those that refer to much more memory than their rows need.
    fn keep(&mut self, arguments: &[ArrayRef]) -> Vec<ArrayRef> {
        self.view_bytes += arguments.iter().map(view_bytes).sum::<usize>();
        arguments.iter().map(compact).collect()
    }

    fn release(&mut self, values: &ArrayRef) {
        self.view_bytes = self.view_bytes.saturating_sub(view_bytes(values));
    }
}

impl Accumulator for CountedValues<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.keep(values);
        self.inner.update_batch(&values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.inner.size() + self.view_bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = self.keep(states);
        self.inner.merge_batch(&states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.iter().for_each(|values| self.release(values));
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for CountedValues<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = self.keep(values);
        self.inner.update_batch(&values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let lists = self.inner.evaluate(emit_to)?;
        match emit_to {
            EmitTo::All => self.view_bytes = 0,
            EmitTo::First(_) => self.release(&lists),
        }
        Ok(lists)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        let values = self.keep(values);
        self.inner.merge_batch(&values, group_indices, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, opt_filter)
    }

    fn size(&self) -> usize {
        self.inner.size() + self.view_bytes
    }
}

/// The bytes of the texts and bytes of `values` that are views, however nested.
fn view_bytes(values: &ArrayRef) -> usize {
    match values.data_type() {
        DataType::Utf8View => values.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => values.as_binary_view().total_buffer_bytes_used(),
        DataType::Struct(_) => values.as_struct().columns().iter().map(view_bytes).sum(),
        DataType::List(_) => item_bytes(values.as_list::<i32>().values(), values.as_list::<i32>().value_offsets()),
        DataType::LargeList(_) => item_bytes(values.as_list::<i64>().values(), values.as_list::<i64>().value_offsets()),
        DataType::FixedSizeList(..) => view_bytes(values.as_fixed_size_list().values()),
        _ => 0,
    }
}

fn item_bytes<O: OffsetSizeTrait>(items: &ArrayRef, offsets: &[O]) -> usize {
    let [start, .., end] = offsets else { return 0 };
    view_bytes(&items.slice(start.as_usize(), end.as_usize() - start.as_usize()))
}

fn compact(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Utf8View if is_loose::<StringViewType>(values.as_string_view()) => {
            Arc::new(values.as_string_view().gc())
        }
        DataType::BinaryView if is_loose::<BinaryViewType>(values.as_binary_view()) => {
            Arc::new(values.as_binary_view().gc())
        }
        _ => values.clone(),
    }
}

/// Whether `views` refer to more than twice the memory of their values.
fn is_loose<T: ByteViewType + ?Sized>(views: &GenericByteViewArray<T>) -> bool {
    let buffers: usize = views.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    buffers > 2 * views.total_buffer_bytes_used()
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;
    use arrow::datatypes::{Field, Schema};
    use datafusion::physical_expr::expressions::Column;
    use datafusion::physical_plan::PhysicalExpr;

    use super::*;

    /// If the accumulators of DataFusion's function count so much, the module can go.
    #[test]
    fn texts_count_as_memory() {
        let field: FieldRef = Arc::new(Field::new("t", DataType::Utf8View, true));
        let schema = Schema::new(vec![field.clone()]);
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["x".repeat(1_000); 10]));
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("t", 0));
        let result: FieldRef = Arc::new(Field::new_list("l", Field::new_list_field(DataType::Utf8View, true), true));
        let args = |is_distinct| AccumulatorArgs {
            return_field: result.clone(),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: "l",
            is_distinct,
            exprs: std::slice::from_ref(&column),
            expr_fields: std::slice::from_ref(&field),
        };
        let sizes = |function: &AggregateUDF| {
            let mut values = function.accumulator(args(false)).unwrap();
            values.update_batch(std::slice::from_ref(&texts)).unwrap();
            let mut groups = function.create_groups_accumulator(args(false)).unwrap();
            groups.update_batch(std::slice::from_ref(&texts), &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1], None, 2).unwrap();
            (values.size(), groups.size())
        };
        let (values, groups) = sizes(&function());
        assert!(values > 10_000 && groups > 10_000, "{values} {groups}");
        let (values, groups) = sizes(&array_agg_udaf());
        assert!(values < 10_000 && groups < 10_000, "{values} {groups}");
        // One value, which is repeated.
        let mut distinct = function().accumulator(args(true)).unwrap();
        distinct.update_batch(std::slice::from_ref(&texts)).unwrap();
        let once = distinct.size();
        for _ in 0..10 {
            distinct.update_batch(std::slice::from_ref(&texts)).unwrap();
        }
        assert!(distinct.size() < 2 * once, "{} {once}", distinct.size());
    }
}
