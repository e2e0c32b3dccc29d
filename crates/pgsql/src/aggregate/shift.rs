//! `lag` and `lead` whose offset or default is a column; those of literals are DataFusion's.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::planner::RawWindowExpr;
use datafusion::logical_expr::{
    PartitionEvaluator, Signature, Volatility, WindowFunctionDefinition, WindowUDF, WindowUDFImpl,
};

/// The function in place of that of `call`, if that is `lag` or `lead` with columns beside the value.
pub(super) fn of_columns(call: &RawWindowExpr) -> Option<WindowFunctionDefinition> {
    let is_ahead = match call.func_def.name() {
        "lag" => false,
        "lead" => true,
        _ => return None,
    };
    let has_columns = call.args.iter().skip(1).any(|argument| argument.any_column_refs());
    if !has_columns || call.null_treatment.is_some() {
        return None;
    }
    let function = Shift { is_ahead, signature: Signature::user_defined(Volatility::Immutable) };
    Some(WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function))))
}

/// The value of the row that lies so many rows before or after.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shift {
    is_ahead: bool,
    signature: Signature,
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        if self.is_ahead { "lead" } else { "lag" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, _] => Ok(vec![value.clone(), DataType::Int64]),
            [value, _, _] => Ok(vec![value.clone(), DataType::Int64, value.clone()]),
            _ => plan_err!("{} takes a value, an offset and a default", self.name()),
        }
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        match args.get_input_field(0) {
            Some(field) => Ok(Field::clone(&field).with_name(args.name()).with_nullable(true).into()),
            None => plan_err!("{} takes a value", self.name()),
        }
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(ShiftEvaluator { is_ahead: self.is_ahead }))
    }
}

#[derive(Debug)]
struct ShiftEvaluator {
    is_ahead: bool,
}

impl PartitionEvaluator for ShiftEvaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let (value, offsets) = (&values[0], values[1].as_primitive::<Int64Type>());
        let nulls = new_null_array(value.data_type(), 1);
        let default = values.get(2);
        let sources: Vec<&dyn Array> =
            [Some(value), default, Some(&nulls)].into_iter().flatten().map(AsRef::as_ref).collect();
        let null = (sources.len() - 1, 0);
        let rows = (0..num_rows).map(|row| {
            if offsets.is_null(row) {
                return null;
            }
            let offset = i128::from(offsets.value(row));
            let place = i128::try_from(row).map(|row| if self.is_ahead { row + offset } else { row - offset });
            match place.ok().and_then(|place| usize::try_from(place).ok()).filter(|place| *place < num_rows) {
                Some(place) => (0, place),
                None if default.is_some() => (1, row),
                None => null,
            }
        });
        Ok(interleave(&sources, &rows.collect::<Vec<_>>())?)
    }
}
