//! The JSON Schema of the `query` tool's arguments, written by hand to stay short.

use serde_json::{Value, json};

use super::{AggregateFunction, ComparisonOperator, JoinKind, LIMIT_DEFAULT};
use crate::executor::{AnswerMode, Delivery};
use crate::format::OutputFormat;

pub(super) fn arguments_schema() -> Value {
    let condition = format!(
        "{{column, op, value}}, {{and: […]}}, {{or: […]}}, {{not: …}} or one SQL expression. op: {}",
        join_names(ComparisonOperator::ALL.map(ComparisonOperator::name), " ")
    );
    let select = format!(
        "Columns or {{function, column?, as?, distinct?}}. function: {}",
        join_names(AggregateFunction::ALL.map(AggregateFunction::name), " ")
    );
    let joins = format!(
        "{{table, type?, on: [{{left, right}}] or SQL expression, as?}}. type: {}",
        join_names(JoinKind::ALL.map(JoinKind::name), " ")
    );
    json!({
        "type": "object",
        "properties": {
            "database": {"type": "string"},
            "table": {"type": "string"},
            "select": {"type": "array", "items": {"type": ["string", "object"]}, "description": select},
            "where": {"type": ["object", "string", "array"], "description": condition},
            "joins": {"type": "array", "items": {"type": "object"}, "description": joins},
            "group_by": {"type": "array", "items": {"type": "string"}},
            "having": {"type": ["object", "string", "array"], "description": "Like where, on names of select"},
            "order_by": {"type": "array", "items": {"type": ["string", "object"]}, "description": "\"column\", or \"-column\" for descending"},
            "limit": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
            "format": {"enum": OutputFormat::ALL.map(OutputFormat::name), "default": OutputFormat::default().name()},
            "extract": {"type": "string", "description": "Return only the unique sorted values of this column"},
            "delivery": {"enum": Delivery::ALL.map(Delivery::name), "description": "blocks: stored, with a preview"},
            "cursor": {"type": "string", "description": "Cursor for the next page"},
            "no_cache": {"type": "boolean"},
            "mode": {"enum": AnswerMode::ALL.map(AnswerMode::name), "default": AnswerMode::default().name()},
        },
        "required": ["table"],
        "additionalProperties": false,
    })
}

fn join_names<const N: usize>(names: [&str; N], separator: &str) -> String {
    names.join(separator)
}
