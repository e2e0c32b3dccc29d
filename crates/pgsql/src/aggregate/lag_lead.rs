//! The functions `lag` and `lead` with an offset from a column. DataFusion implements literal offsets.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    PartitionEvaluator, Signature, Volatility, WindowFunctionDefinition, WindowUDF, WindowUDFImpl,
};

/// Returns `lag(value, offset)`, or `lead`, with any expression as offset.
pub(super) fn lag_lead_function(is_ahead: bool) -> WindowFunctionDefinition {
    let function = LagLead { is_ahead, signature: Signature::user_defined(Volatility::Immutable) };
    WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function)))
}

/// Returns the value of the row at an offset before or after the current one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LagLead {
    is_ahead: bool,
    signature: Signature,
}

impl WindowUDFImpl for LagLead {
    fn name(&self) -> &str {
        if self.is_ahead { "lead" } else { "lag" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, _] => Ok(vec![value.clone(), DataType::Int64]),
            _ => plan_err!("{} takes a value and an offset", self.name()),
        }
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        match args.get_input_field(0) {
            Some(field) => Ok(Field::clone(&field).with_name(args.name()).with_nullable(true).into()),
            None => plan_err!("{} takes a value", self.name()),
        }
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(LagLeadEvaluator { is_ahead: self.is_ahead }))
    }
}

#[derive(Debug)]
struct LagLeadEvaluator {
    is_ahead: bool,
}

impl PartitionEvaluator for LagLeadEvaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let (value, offsets) = (&values[0], values[1].as_primitive::<Int64Type>());
        let nulls = new_null_array(value.data_type(), 1);
        let null = (1, 0);
        let rows = (0..num_rows).map(|row| {
            if offsets.is_null(row) {
                return null;
            }
            let offset = i128::from(offsets.value(row));
            let position = i128::try_from(row).map(|row| if self.is_ahead { row + offset } else { row - offset });
            match position
                .ok()
                .and_then(|position| usize::try_from(position).ok())
                .filter(|position| *position < num_rows)
            {
                Some(position) => (0, position),
                None => null,
            }
        });
        Ok(interleave(&[value.as_ref(), nulls.as_ref()], &rows.collect::<Vec<_>>())?)
    }
}
