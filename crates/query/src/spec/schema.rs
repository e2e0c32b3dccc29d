//! The JSON Schema of the `query` tool's arguments, written by hand to stay short.

use serde_json::{Value, json};

use super::{AggregateFunction, ComparisonOperator, JoinKind, LIMIT_DEFAULT, QuerySpec};
use crate::format::OutputFormat;
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
        json!({
            "type": "object",
            "properties": {
                "database": {"type": "string"},
                "table": {"type": "string"},
                "select": {"type": "array", "items": {"type": ["string", "object"]}, "description": select},
                "distinct": {"type": "boolean"},
                "where": {"type": ["object", "string", "array"], "description": condition},
                "joins": {"type": "array", "items": {"type": "object"}, "description": joins},
                "group_by": {"type": "array", "items": {"type": ["string", "object"]}, "description": "Columns or {expression, as}"},
                "having": {"type": ["object", "string", "array"], "description": "Like where, on names of select"},
                "order_by": {"type": "array", "items": {"type": ["string", "object"]}, "description": "\"column\", or \"-column\" for descending"},
                "limit": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
                "offset": {"type": "integer"},
                "format": {"enum": OutputFormat::ALL.map(OutputFormat::name)},
                "extract": {"type": "string", "description": "Only the unique values of this column, sorted"},
                "delivery": {"enum": Delivery::ALL.map(Delivery::name), "description": "blocks: stored, with a preview"},
                "cursor": {"type": "string", "description": "For the next page"},
                "no_cache": {"type": "boolean"},
                "mode": {"enum": AnswerMode::ALL.map(AnswerMode::name), "default": AnswerMode::default().name()},
            },
            "required": ["table"],
            "additionalProperties": false,
        })
    }
}
