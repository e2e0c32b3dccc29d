//! Structured content of a table: `{"rows":[{…}],"truncated":false}`, and its JSON Schema.
//!
//! [MCP 2026-07-28, Structured Content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#structured-content)

use arrow::datatypes::{DataType, Field, SchemaRef, UnionFields};
use serde_json::{Map, Value, json};

use crate::format::{BoxedCells, ExtensionType, JsonRows, json_members_of_schema, unique_names};

pub(crate) struct StructuredRows {
    rows: JsonRows,
    text: String,
    /// The members about missing nodes.
    missing: String,
}

impl StructuredRows {
    pub(crate) fn new(schema: &SchemaRef) -> Self {
        Self {
            rows: JsonRows::new(&unique_names(schema)),
            text: "{\"rows\":[".to_owned(),
            missing: json_members_of_schema(schema),
        }
    }

    pub(crate) fn write_row(&mut self, cells: &[BoxedCells<'_>], row: usize) {
        if !self.text.ends_with('[') {
            self.text.push(',');
        }
        self.rows.write_row(cells, row, &mut self.text);
    }

    /// The complete content; `truncated` says that more rows exist.
    pub(crate) fn finish(mut self, truncated: bool) -> String {
        self.text.push_str(if truncated { "],\"truncated\":true" } else { "],\"truncated\":false" });
        self.text.push_str(&self.missing);
        self.text.push('}');
        self.text
    }
}

/// The JSON Schema of structured content with rows of `schema`. No column is required, because with `extract` an answer
/// has only one of them.
pub fn output_schema(schema: &SchemaRef) -> Value {
    let names = unique_names(schema);
    let columns: Map<String, Value> =
        names.into_iter().zip(schema.fields()).map(|(name, field)| (name, field_schema(field))).collect();
    json!({
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object", "properties": columns, "additionalProperties": false}},
            "truncated": {"type": "boolean"},
        },
        "required": ["rows", "truncated"],
    })
}

/// The first column of `actual` that the [`output_schema`] of `promised` does not describe.
pub(crate) fn find_undescribed_column(promised: &SchemaRef, actual: &SchemaRef) -> Option<String> {
    if promised.fields() == actual.fields() {
        return None;
    }
    let described = |schema: &SchemaRef| -> Vec<(String, Value)> {
        unique_names(schema).into_iter().zip(schema.fields().iter().map(|field| field_schema(field))).collect()
    };
    let promised = described(promised);
    described(actual).into_iter().find(|column| !promised.contains(column)).map(|(name, _)| name)
}

fn field_schema(field: &Field) -> Value {
    match ExtensionType::from_field(field) {
        // NaN and the infinities are strings.
        Some(ExtensionType::Number) => json!({"type": ["number", "string", "null"]}),
        Some(ExtensionType::Json) => json!({}),
        Some(ExtensionType::Uuid) => json!({"type": ["string", "null"]}),
        None => value_schema(field.data_type()),
    }
}

/// The JSON Schema of values of `kind`. Any value may be null, because databases seldom declare otherwise.
fn value_schema(kind: &DataType) -> Value {
    match kind {
        DataType::Null => json!({"type": "null"}),
        DataType::Boolean => json!({"type": ["boolean", "null"]}),
        kind if kind.is_integer() => json!({"type": ["integer", "null"]}),
        // NaN and the infinities are strings.
        kind if kind.is_floating() => json!({"type": ["number", "string", "null"]}),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            json!({"type": ["number", "null"]})
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            json!({"type": ["array", "null"], "items": {}})
        }
        DataType::Struct(_) => json!({"type": ["object", "null"]}),
        DataType::Dictionary(_, values) => value_schema(values),
        kind if kind.is_temporal() => json!({"type": ["string", "null"]}),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => json!({"type": ["string", "null"]}),
        // Bytes are base64.
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            json!({"type": ["string", "null"]})
        }
        DataType::Union(members, _) => union_schema(members),
        // Other types are not described.
        _ => json!({}),
    }
}

fn union_schema(members: &UnionFields) -> Value {
    let mut names: Vec<Value> = Vec::new();
    for (_, member) in members.iter() {
        let schema = value_schema(member.data_type());
        let of_member: &[Value] = match &schema["type"] {
            Value::Array(of_member) => of_member,
            Value::Null => return json!({}),
            only => std::slice::from_ref(only),
        };
        names.extend(of_member.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    }
    // A list without items is refused by some clients.
    let is_list = names.iter().any(|name| name == "array");
    let mut schema = json!({"type": names});
    if is_list {
        schema["items"] = json!({});
    }
    schema
}
