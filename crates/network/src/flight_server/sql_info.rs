//! What the server is and can, for `GetSqlInfo`.

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{SqlInfo, SqlNullOrdering, SqlSupportedTransaction};

/// The version of Arrow's format that answers have.
const ARROW_FORMAT_VERSION: &str = "1.5";

/// All entries of a server of `version`, for a caller that may write rows, or may not.
pub(super) fn sql_info(version: &str, takes_rows: bool) -> Result<SqlInfoData, FlightError> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Tidegate");
    info.append(SqlInfo::FlightSqlServerVersion, version);
    info.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_FORMAT_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, !takes_rows);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, takes_rows);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    // Dropping the stream of an answer cancels it; there is no action of its own.
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedAtEnd as i32);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    info.append(SqlInfo::SqlBatchUpdatesSupported, false);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.build()
}
