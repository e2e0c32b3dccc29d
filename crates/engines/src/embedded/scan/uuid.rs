//! UUIDs of Parquet files as text.
//!
//! Parquet stores UUIDs as 16 bytes. The table declares the column as text, and the reader converts the bytes to
//! PostgreSQL's notation: `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, FixedSizeBinaryArray, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_plan::PhysicalExpr;
use uuid::Uuid;

const UUID_BYTES: i32 = 16;

/// Reads columns that are text in the table and 16 bytes in the file as UUIDs.
#[derive(Debug)]
pub(super) struct UuidsAsText;

impl PhysicalExprAdapterFactory for UuidsAsText {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let is_uuid = |field: &Field| {
            let in_file = physical.field_with_name(field.name()).map(|field| field.data_type().clone());
            *field.data_type() == DataType::Utf8View && in_file.ok() == Some(DataType::FixedSizeBinary(UUID_BYTES))
        };
        let names: Vec<String> =
            logical.fields().iter().filter(|field| is_uuid(field)).map(|field| field.name().clone()).collect();
        let as_bytes = |field: &Arc<Field>| match names.contains(field.name()) {
            true => Arc::new(field.as_ref().clone().with_data_type(DataType::FixedSizeBinary(UUID_BYTES))),
            false => field.clone(),
        };
        let raw = Arc::new(Schema::new(logical.fields().iter().map(as_bytes).collect::<Vec<_>>()));
        let inner = DefaultPhysicalExprAdapterFactory.create(raw, physical.clone())?;
        Ok(Arc::new(UuidAdapter { inner, names, physical }))
    }
}

#[derive(Debug)]
struct UuidAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    names: Vec<String>,
    physical: SchemaRef,
}

impl PhysicalExprAdapter for UuidAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = self.inner.rewrite(expr)?;
        if self.names.is_empty() {
            return Ok(expr);
        }
        let as_text = |node: Arc<dyn PhysicalExpr>| {
            let is_uuid =
                node.downcast_ref::<Column>().is_some_and(|column| self.names.iter().any(|name| name == column.name()));
            if !is_uuid {
                return Ok(Transformed::no(node));
            }
            let function = Arc::new(ScalarUDF::from(UuidText::new()));
            let text =
                ScalarFunctionExpr::try_new(function, vec![node], &self.physical, Arc::new(ConfigOptions::new()))?;
            Ok(Transformed::yes(Arc::new(text) as Arc<dyn PhysicalExpr>))
        };
        expr.transform_up(as_text).data()
    }
}

/// Converts 16 bytes to the text of a UUID.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UuidText {
    signature: Signature,
}

impl UuidText {
    fn new() -> Self {
        Self { signature: Signature::exact(vec![DataType::FixedSizeBinary(UUID_BYTES)], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for UuidText {
    fn name(&self) -> &str {
        "uuid_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let bytes = arrays.first().and_then(|array| array.as_any().downcast_ref::<FixedSizeBinaryArray>());
        let bytes = bytes.ok_or_else(|| DataFusionError::Internal("uuid_text takes 16 bytes".to_owned()))?;
        let text: StringViewArray = bytes.iter().map(|value| uuid_to_text(value?)).collect();
        Ok(ColumnarValue::Array(Arc::new(text)))
    }
}

fn uuid_to_text(bytes: &[u8]) -> Option<String> {
    Uuid::from_slice(bytes).ok().map(|uuid| uuid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_text_that_postgresql_writes() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
        assert_eq!(uuid_to_text(&bytes).unwrap(), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
