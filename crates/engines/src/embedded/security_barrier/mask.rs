//! Masks for columns.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use datafusion::arrow::compute::cast as cast_array;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use tidegate_query::{HashKey, Mask};

use super::conditions::unqualified_column;

pub(super) fn build_masked_column(mask: Option<Mask>, position: usize, schema: &Schema, key: &HashKey) -> Result<Expr> {
    let field = schema.field(position);
    Ok(match mask {
        None => unqualified_column(field.name()),
        Some(Mask::Deny | Mask::Null) => lit(ScalarValue::try_new_null(field.data_type())?).alias(field.name()),
        Some(mask) => {
            let (key, text) = (key.clone(), text_type(schema));
            let masking = MaskFunction { mask, key, text, signature: Signature::any(1, Volatility::Immutable) };
            let function = Arc::new(ScalarUDF::new_from_impl(masking));
            Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![unqualified_column(field.name())]))
                .alias(field.name())
        }
    })
}

/// The text type for masked columns: that of the other text columns of the table.
pub(super) fn text_type(schema: &Schema) -> DataType {
    let is_view = schema.fields().iter().any(|field| *field.data_type() == DataType::Utf8View);
    if is_view { DataType::Utf8View } else { DataType::Utf8 }
}

/// A mask that returns text, as a function. No statement can call it by name.
#[derive(Debug)]
struct MaskFunction {
    mask: Mask,
    key: HashKey,
    text: DataType,
    signature: Signature,
}

// A plan has only one key.
tidegate_pgsql::compare_by!(MaskFunction { mask });

impl ScalarUDFImpl for MaskFunction {
    tidegate_pgsql::name_and_signature!("mask");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.text.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = match arrays.first() {
            Some(values) => cast_array(values, &DataType::Utf8)?,
            None => return Ok(ColumnarValue::Scalar(ScalarValue::try_new_null(&self.text)?)),
        };
        let mut masked = StringBuilder::with_capacity(texts.len(), texts.len() * 16);
        for text in texts.as_string::<i32>() {
            masked.append_option(text.and_then(|text| self.mask.mask_text(text, &self.key)));
        }
        let masked: ArrayRef = Arc::new(masked.finish());
        Ok(ColumnarValue::Array(cast_array(&masked, &self.text)?))
    }
}
