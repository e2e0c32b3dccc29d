//! A connection that writes, and its errors.

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tidegate_core::{Error, ErrorKind};

use super::writer::WriteContext;
use crate::files::DatabaseFile;
use crate::work_error::{OpenFileError, WorkError, sqlite_message};

/// The page cache, in KiB.
const CACHE_KIB: u32 = 16 << 10;

/// Opens the file for writing. It must exist.
pub(super) fn open(file: &DatabaseFile, context: &WriteContext) -> Result<Connection, Error> {
    let opened = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&file.path, flags)?;
        connection.busy_timeout(context.options.busy_timeout)?;
        let switches = [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, true),
        ];
        for (switch, on) in switches {
            connection.set_db_config(switch, on)?;
        }
        let length = i32::try_from(context.options.value_bytes_max).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        // If a mapped file is truncated, the process is killed.
        let pragmas = format!("PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; PRAGMA cache_size = -{CACHE_KIB};");
        connection.execute_batch(&pragmas)?;
        // SQLite opens a file at the first read.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    opened().map_err(|error| {
        let error = OpenFileError::RejectedBySqlite(file.schema.clone(), error);
        WorkError::Open(error).into_error(&context.database)
    })
}

/// The error of a statement that writes.
pub(super) fn write_error(error: rusqlite::Error, database: &str) -> Error {
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message).with_detail(error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => {
            Error::new(ErrorKind::InvalidArguments, sqlite_message(&error))
        }
        Some(ErrorCode::DiskFull) => unavailable(format!("the disk of the database {database:?} is full")),
        Some(ErrorCode::ReadOnly) => unavailable(format!("the file of the database {database:?} cannot be written"))
            .with_hint("Grant the node write access to the file and to its folder."),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable(format!("another program writes to the database {database:?}"))
                .with_hint("Try again in a few seconds.")
        }
        Some(ErrorCode::TooBig) => {
            Error::new(ErrorKind::TooLarge, "a text, a blob or a row exceeds the size limit of the database")
        }
        _ => WorkError::Sqlite(error).into_error(database),
    }
}
