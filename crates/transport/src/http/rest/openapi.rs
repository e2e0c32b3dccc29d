//! OpenAPI.
use serde_json::{Value, json};
use tidegate_core::{Caller, Snapshot};

use super::super::Door;

pub(super) fn openapi(_door: &Door, _state: &Snapshot, _caller: &Caller) -> Value {
    json!({})
}
