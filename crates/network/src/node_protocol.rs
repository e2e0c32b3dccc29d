//! What Tidegate adds to Flight SQL: statements as tickets, three actions, and the parts of an error. Also the byte order of
//! Arrow messages, which both sides check.
//!
//! A client of another program needs none of it.

use arrow_flight::FlightData;
use arrow_ipc::root_as_message;
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_core::{Error, ErrorKind};

/// The action that lists the tables of one database with their columns.
pub(crate) const TABLES_ACTION: &str = "tidegate.tables";
/// The action that reports how a table is stored.
pub(crate) const STORAGE_ACTION: &str = "tidegate.storage";
/// The action that reports version and clock.
pub(crate) const CHECK_ACTION: &str = "tidegate.check";
/// The header that names the database of a statement, for clients that cannot write it before the names of tables.
pub(crate) const DATABASE_HEADER: &str = "database";
/// The header that makes a repeated write safe, as `Idempotency-Key` does over HTTP.
pub(crate) const KEY_HEADER: &str = "idempotency-key";
/// The header of the answer to a write with the position of the write in the log of its database.
pub(crate) const SEQUENCE_HEADER: &str = "tidegate-sequence";
/// The header of the answer to a repeated write with the number of rows that were sent first, where it is known.
pub(crate) const REPEATED_HEADER: &str = "tidegate-repeated-rows";
/// The trailer with the parts of an error.
pub(crate) const ERROR_TRAILER: &str = "tidegate-error-bin";
/// The version of this protocol. It changes only with what servers of other versions would read wrongly: members may be
/// added to messages without it.
pub(crate) const PROTOCOL_VERSION: u32 = 1;
/// Tables of one list.
pub(crate) const TABLES_MAX: usize = 10_000;
/// Bytes of one list of tables.
pub(crate) const TABLES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The first byte of a statement that is a ticket. Signed tickets begin with another one, and no command does.
const STATEMENT_MARK: u8 = 2;
/// Bytes of the trailer of an error. Clients bound the size of trailers.
const ERROR_BYTES_MAX: usize = 2048;

/// A statement for a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NamedStatement {
    pub(crate) database: Option<String>,
    pub(crate) sql: String,
    #[serde(default)]
    pub(crate) parameters: Vec<Value>,
}

impl NamedStatement {
    /// The statement as a ticket, or as the command of a descriptor. It has no signature: it runs with the rights of
    /// the caller that sends it.
    pub(crate) fn to_command(&self) -> Bytes {
        let mut command = BytesMut::new();
        command.put_u8(STATEMENT_MARK);
        // Text and JSON values always serialize.
        command.put_slice(&serde_json::to_vec(self).unwrap_or_default());
        command.freeze()
    }

    /// The statement of a ticket or a command; `None` if it is of another kind.
    ///
    /// # Errors
    /// What is malformed.
    pub(crate) fn from_command(command: &[u8]) -> Option<Result<Self, String>> {
        let statement = command.strip_prefix(&[STATEMENT_MARK])?;
        Some(serde_json::from_slice(statement).map_err(|error| error.to_string()))
    }
}

/// The body of [`TABLES_ACTION`] and [`CHECK_ACTION`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DatabaseRequest {
    /// The database; without it, the only one that the caller may query.
    pub(crate) database: Option<String>,
}

/// The first part of the answer to [`TABLES_ACTION`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TablesHeader {
    pub(crate) database: String,
    /// [`PROTOCOL_VERSION`] of the server.
    #[serde(default)]
    pub(crate) protocol: u32,
    /// The name of the dialect, as [`tidegate_sql::SqlDialect::key`] has it.
    pub(crate) dialect: String,
    pub(crate) version: String,
}

/// Each further part of the answer to [`TABLES_ACTION`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableMessage {
    pub(crate) name: String,
    pub(crate) rows: Option<u64>,
    pub(crate) comment: Option<String>,
    /// The columns as an encapsulated IPC message, in base64. Empty if the table cannot be read.
    pub(crate) schema: String,
    /// Why the table cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unreadable: Option<String>,
}

/// The body of [`STORAGE_ACTION`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableRequest {
    /// The database; without it, the only one that the caller may query.
    pub(crate) database: Option<String>,
    pub(crate) table: String,
}

/// The answer to [`STORAGE_ACTION`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StorageAnswer {
    /// The size on disk, if it is known and does not depend on rows that the caller may not read.
    pub(crate) bytes: Option<u64>,
    pub(crate) indexed_columns: Vec<String>,
}

/// The answer to [`CHECK_ACTION`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckAnswer {
    pub(crate) version: String,
    /// [`PROTOCOL_VERSION`] of the server.
    #[serde(default)]
    pub(crate) protocol: u32,
    /// Milliseconds since 1970 by the clock of the server.
    pub(crate) time_ms: i64,
    pub(crate) running_calls: u64,
    /// The subject as which the server knows the caller.
    pub(crate) subject: String,
    /// The dialect of the database, as [`tidegate_sql::SqlDialect::key`] has it, if the caller may see the database.
    pub(crate) dialect: Option<String>,
}

/// The parts of an error, which the text of a status has in one piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorParts {
    kind: String,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl ErrorParts {
    /// The parts of `error` as the value of the trailer; `None` if it is too long, or has parts of other kinds.
    pub(crate) fn encode(error: &Error) -> Option<Vec<u8>> {
        if !error.violations().is_empty() {
            return None;
        }
        let parts = Self {
            kind: error.kind().name().to_owned(),
            message: error.message().to_owned(),
            choices: error.choices().to_vec(),
            hint: error.hint().map(str::to_owned),
        };
        serde_json::to_vec(&parts).ok().filter(|bytes| bytes.len() <= ERROR_BYTES_MAX)
    }

    /// The error in the value of the trailer, with `describe` applied to its message.
    pub(crate) fn decode(bytes: &[u8], describe: impl FnOnce(&str) -> String) -> Option<Error> {
        let parts: Self = serde_json::from_slice(bytes).ok()?;
        let kind = ErrorKind::ALL.iter().copied().find(|kind| kind.name() == parts.kind)?;
        let error = Error::new(kind, describe(&parts.message)).with_choices(parts.choices);
        Some(match parts.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }
}

/// Why messages of other machines are refused.
pub(crate) const OTHER_BYTE_ORDER: &str = "its numbers have the byte order of other machines";

/// Whether numbers that follow the schema in `message` have the byte order of this machine. The decoder of the Arrow library
/// reads others in the wrong order.
pub(crate) fn has_native_byte_order(message: &FlightData) -> bool {
    let message = root_as_message(&message.data_header).ok();
    let schema = message.and_then(|message| message.header_as_schema());
    schema.is_none_or(|schema| schema.endianness().equals_to_target_endianness())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        let parameters = vec![Value::from(1), Value::from(1.0), Value::Null, Value::from("é")];
        let statement = NamedStatement { database: Some("plant".to_owned()), sql: "SELECT $1".to_owned(), parameters };
        assert_eq!(NamedStatement::from_command(&statement.to_command()), Some(Ok(statement)));
        assert_eq!(NamedStatement::from_command(b"\x0a\x01"), None);
        assert!(NamedStatement::from_command(&[STATEMENT_MARK, b'{']).is_some_and(|statement| statement.is_err()));
    }

    /// Servers of different versions are in one network. These are the messages of 0.1.0: members may be added to them, and
    /// a reader takes what it knows.
    #[test]
    fn messages_of_other_versions_are_read() {
        fn read<T: serde::de::DeserializeOwned + Serialize>(first: &str) -> Value {
            let mut message: Value = serde_json::from_str(first).unwrap();
            let known: T = serde_json::from_value(message.clone()).unwrap();
            assert_eq!(serde_json::to_value(&known).unwrap(), message, "{first}");
            message["added_later"] = Value::from(1);
            serde_json::to_value(serde_json::from_value::<T>(message).unwrap()).unwrap()
        }
        let statement = r#"{"database":"plant","sql":"SELECT 1","parameters":[1]}"#;
        assert_eq!(read::<NamedStatement>(statement)["sql"], "SELECT 1");
        assert_eq!(read::<DatabaseRequest>(r#"{"database":null}"#)["database"], Value::Null);
        read::<TablesHeader>(r#"{"database":"plant","protocol":1,"dialect":"datafusion","version":"0.1.0"}"#);
        read::<TableMessage>(r#"{"name":"readings","rows":3,"comment":null,"schema":"AAAA"}"#);
        read::<TableRequest>(r#"{"database":null,"table":"readings"}"#);
        read::<StorageAnswer>(r#"{"bytes":1,"indexed_columns":["time"]}"#);
        let check =
            r#"{"version":"0.1.0","protocol":1,"time_ms":1,"running_calls":0,"subject":"ann","dialect":"datafusion"}"#;
        assert_eq!(read::<CheckAnswer>(check)["subject"], "ann");
        assert_eq!(read::<ErrorParts>(r#"{"kind":"not_found","message":"no table"}"#)["kind"], "not_found");
        // A kind of error that this version does not know is that of the status.
        assert!(ErrorParts::decode(br#"{"kind":"added_later","message":"m"}"#, str::to_owned).is_none());
    }

    #[test]
    fn errors_keep_their_parts() {
        let error =
            Error::new(ErrorKind::InvalidArguments, "no column a").with_choices(["b".to_owned()]).with_hint("c");
        let bytes = ErrorParts::encode(&error).unwrap();
        let decoded = ErrorParts::decode(&bytes, |message| format!("oslo: {message}")).unwrap();
        assert_eq!(decoded.to_string(), "oslo: no column a\nValid choices: b\nc");
        assert_eq!(decoded.kind(), ErrorKind::InvalidArguments);
        assert_eq!(ErrorParts::encode(&Error::new(ErrorKind::Failed, "x".repeat(4096))), None);
    }
}
