//! The types of times that a statement names.

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{self, TimezoneInfo};

use super::kind::{DATE, INTERVAL, TIME, TIMESTAMP, timestamptz};

/// Maps the SQL type `data_type`; `None` if it is not a date or time type.
///
/// # Errors
/// `Plan` for a time with a time zone, with what to write instead.
pub(crate) fn plan_type(data_type: &ast::DataType) -> Result<Option<DataType>> {
    let is_zoned = |zone: &TimezoneInfo| matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
    Ok(Some(match data_type {
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
