//! Column names and types of an answer: unique names, SQL type names, and extension types in field metadata, which are
//! the meaning of values that their Arrow type does not express.
//!
//! Engines annotate their fields; formats, output schemas and type names read the annotations. JSON and UUIDs use the
//! canonical [extension types](https://arrow.apache.org/docs/format/CanonicalExtensions.html), which other Arrow
//! writers use too. The schema of an answer also carries its missing nodes, because every encoder, and every stored
//! result, has the schema.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tidegate_core::{MissingNode, MissingNodes};
use tidegate_runtime::Job;

/// The names of the columns, none empty (`column_1`) and all unique (`name`, `name_2`).
pub(crate) fn unique_names(schema: &SchemaRef) -> Vec<String> {
    let given: HashSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if given.len() == schema.fields().len() && !given.contains("") {
        return schema.fields().iter().map(|field| field.name().clone()).collect();
    }
    let mut taken: HashSet<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut used = HashSet::new();
    let mut names = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let name = if field.name().is_empty() { format!("column_{}", index + 1) } else { field.name().clone() };
        let is_free = !used.contains(&name) && (!field.name().is_empty() || !taken.contains(&name));
        let unique = if is_free { name } else { append_number(&name, &taken) };
        taken.insert(unique.clone());
        used.insert(unique.clone());
        names.push(unique);
    }
    names
}

fn append_number(name: &str, taken: &HashSet<String>) -> String {
    let mut numbered = (2_usize..).map(|number| format!("{name}_{number}"));
    numbered.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// The SQL name of the type of a field, as `columns` of the format `json` and `get_schema` show it: the declared name,
/// or that of its extension type or Arrow type.
pub fn field_type_name(field: &Field) -> String {
    let meaning = || ExtensionType::from_field(field).map(ExtensionType::type_name);
    declared_type_name(field).or_else(meaning).map_or_else(|| type_name(field.data_type()), str::to_owned)
}

/// The SQL name of an Arrow type.
pub fn type_name(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "boolean",
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::UInt8 => "tinyint unsigned",
        DataType::UInt16 => "smallint unsigned",
        DataType::UInt32 => "integer unsigned",
        DataType::UInt64 => "bigint unsigned",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Duration(_) | DataType::Interval(_) => "interval",
        DataType::Union(..) => "union",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return format!("decimal({precision},{scale})"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => return format!("{}[]", field_type_name(item)),
        DataType::Struct(fields) => {
            let members: Vec<String> =
                fields.iter().map(|field| format!("{} {}", field.name(), field_type_name(field))).collect();
            return format!("struct({})", members.join(", "));
        }
        DataType::Map(entries, _) => return map_name(entries.data_type()),
        DataType::Dictionary(_, values) => return type_name(values),
        DataType::RunEndEncoded(_, values) => return type_name(values.data_type()),
    };
    fixed.to_owned()
}

fn map_name(entries: &DataType) -> String {
    match entries {
        DataType::Struct(members) if members.len() == 2 => {
            format!("map({}, {})", field_type_name(&members[0]), field_type_name(&members[1]))
        }
        _ => "map".to_owned(),
    }
}

pub(crate) fn is_number(field: &Field) -> bool {
    ExtensionType::from_field(field) == Some(ExtensionType::Number) || is_numeric(field.data_type())
}

fn is_numeric(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_numeric(values),
        DataType::RunEndEncoded(_, values) => is_numeric(values.data_type()),
        other => other.is_numeric(),
    }
}

const TYPE_NAME_KEY: &str = "tidegate.type";
const EXTENSION_NAME_KEY: &str = "ARROW:extension:name";
const FOREIGN_TEXT_NAME: &str = "tidegate.foreign_text";

/// The meaning of values beyond their Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtensionType {
    /// Text that is a number with all its digits, beyond Arrow's decimals; or `NaN`, `Infinity`, `-Infinity`. In JSON
    /// it is a number; with more than 308 digits before the point it is a string, because readers reject such numbers.
    Number,
    /// Text that is JSON.
    Json,
    /// 16 bytes that are a UUID.
    Uuid,
}

impl ExtensionType {
    const ALL: [Self; 3] = [Self::Number, Self::Json, Self::Uuid];

    /// The extension type of `field`, if its Arrow type supports it.
    pub fn from_field(field: &Field) -> Option<Self> {
        let name = field.metadata().get(EXTENSION_NAME_KEY)?;
        let meaning = Self::ALL.into_iter().find(|meaning| meaning.extension_name() == name)?;
        meaning.supports(field.data_type()).then_some(meaning)
    }

    /// Annotates `field` with this extension type.
    #[must_use]
    pub fn annotate(self, mut field: Field) -> Field {
        field.metadata_mut().insert(EXTENSION_NAME_KEY.to_owned(), self.extension_name().to_owned());
        field
    }

    /// The type name when the database declares none.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Number => "numeric",
            Self::Json => "json",
            Self::Uuid => "uuid",
        }
    }

    fn extension_name(self) -> &'static str {
        match self {
            Self::Number => "tidegate.number",
            Self::Json => "arrow.json",
            Self::Uuid => "arrow.uuid",
        }
    }

    fn supports(self, data_type: &DataType) -> bool {
        match self {
            Self::Number | Self::Json => data_type.is_string(),
            Self::Uuid => *data_type == DataType::FixedSizeBinary(16),
        }
    }
}

/// Annotates `field` with the type name in the SQL of its database.
#[must_use]
pub fn with_type_name(mut field: Field, name: impl Into<String>) -> Field {
    field.metadata_mut().insert(TYPE_NAME_KEY.to_owned(), name.into());
    field
}

/// `field` without a declared type name.
#[must_use]
pub fn without_type_name(mut field: Field) -> Field {
    field.metadata_mut().remove(TYPE_NAME_KEY);
    field
}

/// Annotates a text that its database compares by the rules of another type. As it is the name of an extension type, a
/// cast to an Arrow type removes it.
#[must_use]
pub fn as_foreign_text(mut field: Field) -> Field {
    field.metadata_mut().insert(EXTENSION_NAME_KEY.to_owned(), FOREIGN_TEXT_NAME.to_owned());
    field
}

/// Whether `field` has the annotation of [`as_foreign_text`].
pub fn is_foreign_text(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME_KEY).is_some_and(|name| name == FOREIGN_TEXT_NAME)
}

/// The declared type name of `field`.
pub fn declared_type_name(field: &Field) -> Option<&str> {
    field.metadata().get(TYPE_NAME_KEY).map(String::as_str)
}

/// The key in the metadata of an Arrow schema, and in a Parquet file, for the nodes whose rows are missing: a JSON array
/// of objects with `name`, `reason` and `rows`.
pub const MISSING_NODES_KEY: &str = "tidegate.missing_nodes";
/// The key for the number of rows of the tables of the statement on all nodes, if it is known.
pub const ROWS_ON_ALL_NODES_KEY: &str = "tidegate.rows_on_all_nodes";

/// The nodes whose rows are missing from an answer with this schema, such as that of another Tidegate node. A mark that
/// cannot be read counts: the rows are still missing.
pub fn missing_nodes_of_schema(schema: &Schema) -> Option<MissingNodes> {
    let text = schema.metadata().get(MISSING_NODES_KEY)?;
    let nodes: Vec<MissingNode> = serde_json::from_str(text).unwrap_or_else(|_| {
        let reason = format!("the metadata {MISSING_NODES_KEY} of the answer cannot be read");
        vec![MissingNode { name: "unknown".to_owned(), reason, rows: None }]
    });
    let rows_total = schema.metadata().get(ROWS_ON_ALL_NODES_KEY).and_then(|rows| rows.parse().ok());
    (!nodes.is_empty()).then_some(MissingNodes { nodes, rows_total })
}

/// The schema of the answer of `job`, with the missing nodes that the job has recorded, and no other ones.
pub(crate) fn mark_schema(schema: SchemaRef, job: &Job) -> SchemaRef {
    let missing = job.missing_nodes();
    if missing.is_none() && !schema.metadata().contains_key(MISSING_NODES_KEY) {
        return schema;
    }
    let mut metadata = schema.metadata().clone();
    metadata.retain(|key, _| key != MISSING_NODES_KEY && key != ROWS_ON_ALL_NODES_KEY);
    if let Some(missing) = missing {
        metadata.insert(MISSING_NODES_KEY.to_owned(), missing.nodes_as_json().to_string());
        metadata.extend(missing.rows_total.map(|rows| (ROWS_ON_ALL_NODES_KEY.to_owned(), rows.to_string())));
    }
    Arc::new(schema.as_ref().clone().with_metadata(metadata))
}

/// The members of [`MissingNodes::to_json_members`] for an object with other members before them: `,"partial":true,…`;
/// empty for a complete answer.
pub(crate) fn json_members_of_schema(schema: &Schema) -> String {
    let Some(missing) = missing_nodes_of_schema(schema) else { return String::new() };
    let members = missing.to_json_members().into_iter();
    members.map(|(name, value)| format!(",{}:{value}", serde_json::Value::from(name))).collect()
}
