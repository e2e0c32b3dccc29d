//! Groups of Arrow types, their names in PostgreSQL, and the types that a statement names.
//!
//! In a plan, a value of the types `json` and `jsonb` is a struct of one text. This distinct type survives `CASE`,
//! `coalesce`, arrays, aggregates and subqueries, and is never confused with text. `jsonb` texts are canonical. The output
//! contains the text, in a field that is marked as JSON.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;

use crate::syntax::is_zoned;

/// `date`.
pub(crate) const DATE: DataType = DataType::Date32;

/// `time`.
pub(crate) const TIME: DataType = DataType::Time64(TimeUnit::Microsecond);

/// `timestamp`.
pub(crate) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// `interval`.
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Returns the type `timestamptz`.
pub(crate) fn timestamptz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Whether `data_type` is text, or a dictionary of texts.
pub(crate) fn is_text_or_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text_or_dictionary(values),
        other => other.is_string(),
    }
}

/// Whether `data_type` is text, or the type of NULL, which may have any type.
pub(crate) fn is_text_or_null(data_type: &DataType) -> bool {
    data_type.is_string() || data_type.is_null()
}

/// Returns PostgreSQL's name of a type, for messages.
pub(crate) fn postgres_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "time".to_owned(),
        DataType::Timestamp(_, None) => "timestamp".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::Null => "unknown".to_owned(),
        DataType::List(element) | DataType::LargeList(element) => {
            format!("{}[]", postgres_type_name(element.data_type()))
        }
        DataType::Dictionary(_, values) => postgres_type_name(values),
        text if text.is_string() => "text".to_owned(),
        bytes if bytes.is_binary() => "bytea".to_owned(),
        number if number.is_numeric() => number_type_name(number).to_owned(),
        other => other.to_string(),
    }
}

/// Returns PostgreSQL's name of a type of numbers.
pub(crate) fn number_type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => "smallint",
        DataType::UInt16 | DataType::Int32 => "integer",
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => "bigint",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric",
        _ => "value",
    }
}

/// Returns the type planner, which maps type names as PostgreSQL does where DataFusion differs.
pub fn type_planner() -> Arc<dyn TypePlanner> {
    Arc::new(PostgresTypePlanner)
}

#[derive(Debug)]
struct PostgresTypePlanner;

impl TypePlanner for PostgresTypePlanner {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        check_oid_type(sql_type)?;
        Ok(plan_time_type(sql_type)?.map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}

/// Types whose values are the oids of objects.
const OID_TYPES: &[&str] = &["oid", "regclass", "regnamespace", "regproc", "regprocedure", "regrole", "regtype"];

/// Refuses types whose values are oids, because no object has one here.
fn check_oid_type(sql_type: &ast::DataType) -> Result<()> {
    let name = sql_type.to_string().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    if OID_TYPES.contains(&name) {
        return plan_err!(
            "the type {name} is not supported, because there are no oids; compare names: information_schema.tables has \
             those of tables, and information_schema.columns those of columns and types"
        );
    }
    Ok(())
}

fn plan_time_type(sql_type: &ast::DataType) -> Result<Option<DataType>> {
    Ok(Some(match sql_type {
        ast::DataType::Timestamp(_, zone) if is_zoned(zone) => timestamptz(),
        ast::DataType::Timestamp(..) => TIMESTAMP,
        ast::DataType::Time(_, zone) if is_zoned(zone) => {
            return plan_err!("the type time with time zone is not supported; write time or timestamptz instead");
        }
        ast::DataType::Time(..) => TIME,
        ast::DataType::Date => DATE,
        ast::DataType::Interval { .. } => INTERVAL,
        _ => return Ok(None),
    }))
}

/// Which of the two types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    /// The text as it was given.
    Json,
    /// Canonical: keys in order and unique, numbers without exponents.
    Jsonb,
}

/// The key and the value that mark a text field as JSON, as Arrow's canonical extension has them.
const EXTENSION: (&str, &str) = ("ARROW:extension:name", "arrow.json");

/// The key of the metadata with the JSON type of a marked field.
const TYPE_KEY: &str = "postgresql:type";

static JSON_FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::from(vec![Field::new("$json", DataType::Utf8, true)]));

static JSONB_FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::from(vec![Field::new("$jsonb", DataType::Utf8, true)]));

impl JsonKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonb => "jsonb",
        }
    }

    fn fields(self) -> &'static Fields {
        match self {
            Self::Json => &JSON_FIELDS,
            Self::Jsonb => &JSONB_FIELDS,
        }
    }

    /// Returns the type of the values in a plan.
    pub(crate) fn data_type(self) -> DataType {
        DataType::Struct(self.fields().clone())
    }

    /// Converts texts to values of this type. They must be valid documents.
    pub(crate) fn values(self, texts: StringArray) -> Result<ArrayRef> {
        let nulls = texts.nulls().cloned();
        Ok(Arc::new(StructArray::try_new_with_length(
            self.fields().clone(),
            vec![Arc::new(texts.clone())],
            nulls,
            texts.len(),
        )?))
    }
}

/// Returns the JSON type of `data_type`; `None` for other types.
pub(crate) fn json_kind(data_type: &DataType) -> Option<JsonKind> {
    match data_type {
        DataType::Struct(fields) if fields.len() == 1 => match fields[0].name().as_str() {
            "$json" => Some(JsonKind::Json),
            "$jsonb" => Some(JsonKind::Jsonb),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text field is marked as JSON, as columns of Parquet files are. It has the type `json`, because the text
/// need not be canonical.
pub(crate) fn is_json_extension(field: &Field) -> bool {
    field.metadata().get(EXTENSION.0).is_some_and(|name| name == EXTENSION.1)
}

/// Returns the texts of `array`, which holds text or JSON.
pub(crate) fn texts(array: &ArrayRef) -> Result<StringArray> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().clone()),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Null | DataType::Dictionary(..) => {
            Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
        }
        other if json_kind(other).is_some() => {
            let values = array.as_struct();
            let texts = values.column(0).as_string::<i32>();
            let nulls = NullBuffer::union(values.nulls(), texts.nulls());
            Ok(StringArray::try_new(texts.offsets().clone(), texts.values().clone(), nulls)?)
        }
        other => exec_err!("expected text or JSON, not {other}"),
    }
}

/// Whether JSON values are anywhere in `data_type`.
pub(crate) fn holds_json(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_json(item.data_type())
        }
        DataType::Struct(fields) => {
            json_kind(data_type).is_some() || fields.iter().any(|field| holds_json(field.data_type()))
        }
        _ => false,
    }
}

/// Returns the output field of `field`: marked text instead of JSON values.
pub(crate) fn output_field(field: &Field) -> Field {
    if let Some(kind) = json_kind(field.data_type()) {
        let marks = [(EXTENSION.0.to_owned(), EXTENSION.1.to_owned()), (TYPE_KEY.to_owned(), kind.name().to_owned())];
        return Field::new(field.name(), DataType::Utf8, field.is_nullable()).with_metadata(HashMap::from(marks));
    }
    // Marks within a list would be lost where a constant is made of it.
    let visible = |item: &FieldRef| Arc::new(output_field(item).with_metadata(item.metadata().clone()));
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(visible(item)),
        DataType::LargeList(item) => DataType::LargeList(visible(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(visible(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(visible).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}
