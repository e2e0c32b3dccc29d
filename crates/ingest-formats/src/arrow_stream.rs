//! The stream of Arrow IPC.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};

use crate::error::BodyError;
use crate::options::{BodyLimits, BodyOptions};
use crate::rows::RowCollector;

#[derive(Debug)]
pub(crate) struct ArrowStream {}

pub(crate) fn schema_of_head(_bytes: &[u8], _limits: &BodyLimits) -> Result<SchemaRef, BodyError> {
    Err(BodyError::Options("todo".into()))
}

impl ArrowStream {
    pub(crate) fn new(_schema: &Schema, _options: Arc<BodyOptions>) -> Result<Self, BodyError> {
        Ok(Self {})
    }
    pub(crate) fn push(&mut self, _bytes: &[u8], _rows: &mut RowCollector) -> Result<(), BodyError> {
        Ok(())
    }
    pub(crate) fn finish(&mut self) -> Result<(), BodyError> {
        Ok(())
    }
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::empty())
    }
    pub(crate) fn added_columns(&self) -> Vec<FieldRef> {
        Vec::new()
    }
}
