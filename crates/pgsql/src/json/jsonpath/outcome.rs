//! What the evaluation of a path leads to.

use std::borrow::Cow;

use datafusion::common::DataFusionError;

use super::super::value::JsonValue;

/// A value on the way: one of the document, or one that was computed.
pub(super) type Item<'v> = Cow<'v, JsonValue>;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum PathError {
    /// What `silent` and predicates suppress.
    Suppressible(String),
    Error(DataFusionError),
}

impl From<DataFusionError> for PathError {
    fn from(error: DataFusionError) -> Self {
        Self::Error(error)
    }
}

pub(super) type PathResult<T> = Result<T, PathError>;

pub(super) fn suppressible_error<T>(message: impl Into<String>) -> PathResult<T> {
    Err(PathError::Suppressible(message.into()))
}
