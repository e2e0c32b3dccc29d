//! Rows as values: that of a table, whose members are named like its columns, and `ROW(…)`.

use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::document::check_count;
use crate::data_type::{JsonKind, is_json_extension, texts};
use crate::function::{ColumnarFunction, keep_types};

/// The name of the function. Its value is never NULL, unlike that of functions of JSON.
pub(crate) const WHOLE_ROW: &str = "whole_row*";

/// The name of the function that makes a row of its arguments.
pub(crate) const ROW: &str = "row";

/// The name of the function whose argument is used as a row, and is its value.
pub(crate) const ROW_VALUE: &str = "row_value*";

pub(super) fn row_value() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| {
        check_count("a row", fields, 1, 1)?;
        Ok(fields[0].data_type().clone())
    };
    ColumnarFunction::new(ROW_VALUE, keep_types, returns, |call| call.array(0))
}

/// Returns `ROW(…)`, whose members have PostgreSQL's names: `f1`, `f2`, …
pub(crate) fn row() -> ScalarUDF {
    let returns = |fields: &[FieldRef]| {
        if fields.is_empty() {
            return plan_err!("a row without values is not supported");
        }
        Ok(DataType::Struct(row_members(fields)))
    };
    ColumnarFunction::new(ROW, keep_types, returns, |call| {
        let columns = (0..call.args.len()).map(|index| member_values(call.array(index)?, &call.fields[index]));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        Ok(Arc::new(StructArray::try_new_with_length(row_members(call.fields), columns, None, call.rows)?))
    })
}

fn row_members(fields: &[FieldRef]) -> Fields {
    fields.iter().enumerate().map(|(index, field)| member(&format!("f{}", index + 1), field)).collect()
}

/// Returns a field of a row. Text that is marked as JSON has the type `json`.
fn member(name: &str, field: &FieldRef) -> Field {
    let data_type = if is_json_extension(field) { JsonKind::Json.data_type() } else { field.data_type().clone() };
    Field::new(name, data_type, true)
}

fn member_values(values: ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    if is_json_extension(field) { JsonKind::Json.values(texts(&values)?) } else { Ok(values) }
}

/// Returns the row of `values`, whose names are `names`; several may be equal.
pub(crate) fn whole_row(names: Vec<String>, values: Vec<Expr>) -> Expr {
    ScalarUDF::new_from_impl(WholeRow { names, signature: Signature::variadic_any(Volatility::Immutable) }).call(values)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeRow {
    names: Vec<String>,
    signature: Signature,
}

impl WholeRow {
    fn members(&self, fields: &[FieldRef]) -> Fields {
        self.names.iter().zip(fields).map(|(name, field)| member(name, field)).collect()
    }
}

impl ScalarUDFImpl for WholeRow {
    crate::name_and_signature!(WHOLE_ROW);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{WHOLE_ROW} returns a field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(WHOLE_ROW, DataType::Struct(self.members(args.arg_fields)), false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args
            .args
            .iter()
            .zip(&args.arg_fields)
            .map(|(value, field)| member_values(value.clone().into_array(args.number_rows)?, field));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let rows = StructArray::try_new_with_length(self.members(&args.arg_fields), columns, None, args.number_rows)?;
        Ok(ColumnarValue::Array(Arc::new(rows)))
    }
}
