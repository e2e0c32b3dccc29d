//! Groups of Arrow types, their names in PostgreSQL, and the types that a statement names.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::{Result, plan_err};
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
