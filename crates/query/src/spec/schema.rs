//! The JSON Schema of the `query` tool's arguments, written by hand to stay short.

use serde_json::{Value, json};
use tidegate_core::Format;

use super::{AggregateFunction, ComparisonOperator, JoinKind, LIMIT_DEFAULT, QuerySpec};
use crate::request::{AnswerMode, Delivery};

impl QuerySpec {
    /// The JSON Schema of the arguments. It is short, because every model reads it; [`QuerySpec::from_json`] checks the
    /// details with better messages.
    pub fn schema() -> Value {
        let condition = format!(
            "{{column, op, value}}, {{and: […]}}, {{or: […]}}, {{not: …}} or one SQL expression. op: {}",
            ComparisonOperator::ALL.map(ComparisonOperator::name).join(" ")
        );
        let select = format!(
            "Columns, {{expression: \"date_trunc('month', t)\", as}} or {{function, column?, as?, distinct?}}. function: {}",
            AggregateFunction::ALL.map(AggregateFunction::name).join(" ")
        );
        let joins = format!(
            "{{table, type?, on: [{{left, right}}] or SQL expression, as?}}. type: {}",
            JoinKind::ALL.map(JoinKind::name).join(" ")
        );
        // No list of types, and nothing beside alternatives: some clients refuse either.
        let column = json!({"anyOf": [{"type": "string"}, {"type": "object"}]});
        json!({
            "type": "object",
            "properties": {
                "database": {"type": "string"},
                "table": {"type": "string"},
                "select": {"type": "array", "items": column, "description": select},
                "distinct": {"type": "boolean"},
                "where": Self::condition_schema(&condition),
                "joins": {"type": "array", "items": {"type": "object"}, "description": joins},
                "group_by": {"type": "array", "items": column, "description": "Columns or {expression, as}"},
                "having": Self::condition_schema("Like where, on names of select"),
                "order_by": {"type": "array", "items": column, "description": "\"column\", or \"-column\" for descending"},
                "limit": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
                "offset": {"type": "integer"},
                "format": {"type": "string", "enum": Format::FOR_MODELS.map(Format::name)},
                "extract": {"type": "string", "description": "Only the unique values of this column, sorted"},
                "delivery": {"type": "string", "enum": Delivery::ALL.map(Delivery::name), "description": "blocks: stored, with a preview"},
                "cursor": {"type": "string", "description": "For the next page"},
                "no_cache": {"type": "boolean"},
                "mode": {"type": "string", "enum": AnswerMode::ALL.map(AnswerMode::name), "default": AnswerMode::default().name()},
            },
            "required": ["table"],
            "additionalProperties": false,
        })
    }

    /// The JSON Schema of a condition, in all its forms.
    pub fn condition_schema(description: &str) -> Value {
        let condition = json!({"anyOf": [{"type": "object"}, {"type": "string"}]});
        let list = json!({"type": "array", "items": condition});
        json!({"anyOf": [{"type": "object", "description": description}, {"type": "string"}, list]})
    }
}
