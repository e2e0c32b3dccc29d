//! The JSON Schema of the `query` tool's arguments, written by hand to stay short.

use serde_json::{Value, json};

use super::{Function, JoinKind, LIMIT_DEFAULT, Operator};
use crate::executor::{Delivery, Mode};
use crate::format::Format;

pub(super) fn schema() -> Value {
    let condition = format!(
        "{{column, op, value}}, {{and: […]}}, {{or: […]}}, {{not: …}} or one SQL expression. op: {}",
        names(Operator::ALL.map(Operator::name), " ")
    );
    let select = format!(
        "Columns or {{function, column?, as?, distinct?}}. function: {}",
        names(Function::ALL.map(Function::name), " ")
    );
    let joins = format!(
        "{{table, type?, on: [{{left, right}}] or SQL expression, as?}}. type: {}",
        names(JoinKind::ALL.map(JoinKind::name), " ")
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
            "format": {"enum": Format::ALL.map(Format::name), "default": Format::default().name()},
            "extract": {"type": "string", "description": "Answer the unique sorted values of this column only"},
            "delivery": {"enum": Delivery::ALL.map(Delivery::name), "description": "blocks: stored, with a preview"},
            "cursor": {"type": "string", "description": "Of an answer, for its next page"},
            "no_cache": {"type": "boolean"},
            "mode": {"enum": Mode::ALL.map(Mode::name), "default": Mode::default().name()},
        },
        "required": ["table"],
        "additionalProperties": false,
    })
}

fn names<const N: usize>(names: [&str; N], separator: &str) -> String {
    names.join(separator)
}
