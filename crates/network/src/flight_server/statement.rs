//! Statements: each is a call of the built-in tool `sql`, with the rights of its caller.

use arrow::array::{Array, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    Any, CommandStatementQuery, ProstMessageExt, TicketStatementQuery,
};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::Message;
use serde_json::{Map, Value, json};
use tidegate_sql::{SqlDialect, Statement};
use tonic::{Code, Status};

use super::answer::FlightAnswer;
use super::service::{FlightRequest, READ_ONLY};
use super::ticket::PreparedStatement;
use crate::node_protocol::{DATABASE_HEADER, NamedStatement, OTHER_BYTE_ORDER, has_native_byte_order};

/// The tool that runs statements.
const SQL_TOOL: &str = "sql";
/// Parameters of one statement.
const PARAMETERS_MAX: usize = 10_000;

/// The arguments of the tool. A client of Flight reads all rows, so there is no limit of rows.
fn into_arguments(statement: NamedStatement) -> Map<String, Value> {
    let NamedStatement { database, sql, parameters } = statement;
    let mut arguments = Map::new();
    arguments.insert("sql".to_owned(), sql.into());
    arguments.insert("max_rows".to_owned(), i64::MAX.into());
    if let Some(database) = database {
        arguments.insert("database".to_owned(), database.into());
    }
    if !parameters.is_empty() {
        arguments.insert("parameters".to_owned(), parameters.into());
    }
    arguments
}

impl FlightRequest {
    /// The statement of `query`, with the database that the header names.
    pub(super) fn named_statement(&self, query: &CommandStatementQuery) -> Result<NamedStatement, Status> {
        if query.transaction_id.as_ref().is_some_and(|id| !id.is_empty()) {
            return Err(Status::permission_denied(READ_ONLY));
        }
        Ok(NamedStatement { database: self.database()?, sql: query.query.clone(), parameters: Vec::new() })
    }

    pub(super) fn statement_ticket(&self, query: &CommandStatementQuery) -> Result<Any, Status> {
        let statement = self.named_statement(query)?;
        // Text and JSON values always serialize.
        let statement_handle = serde_json::to_vec(&statement).unwrap_or_default().into();
        Ok(TicketStatementQuery { statement_handle }.as_any())
    }

    pub(super) fn answer_statement(
        self,
        handle: &[u8],
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let statement: NamedStatement = serde_json::from_slice(handle)
            .map_err(|error| Status::invalid_argument(format!("the ticket is malformed: {error}")))?;
        self.answer_named(statement)
    }

    /// Runs a statement that came without a ticket of this server, with the rights of the caller.
    pub(super) fn answer_named(
        self,
        statement: NamedStatement,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        Ok(self.run(SQL_TOOL, into_arguments(statement))?.into_stream())
    }

    /// Calls `tool`, which answers with rows.
    pub(super) fn run(&self, tool: &str, arguments: Map<String, Value>) -> Result<FlightAnswer, Status> {
        let reply = self.state.call_tool(tool, arguments, self.caller.clone(), &self.metadata)?;
        Ok(FlightAnswer::new(&self.state, reply, self.credentials.clone(), &self.caller))
    }

    /// The database that the header names.
    pub(super) fn database(&self) -> Result<Option<String>, Status> {
        let Some(value) = self.metadata.get(DATABASE_HEADER) else { return Ok(None) };
        let name = value.to_str().map_err(|_| {
            Status::invalid_argument(format!("the header {DATABASE_HEADER} must be the name of a database in ASCII"))
        })?;
        Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
    }

    /// The columns of the answer to `statement` as an encapsulated IPC message.
    ///
    /// The statement is planned as a subquery without rows, so that nothing is computed. One that cannot be a subquery, or
    /// whose error is to be reported, runs until its first row.
    pub(super) async fn describe(&self, statement: &NamedStatement) -> Result<Bytes, Status> {
        let text = statement.sql.trim_end().trim_end_matches(';');
        // The line break ends a comment.
        let without_rows = format!("SELECT * FROM (\n{text}\n) AS described WHERE 1 = 0");
        let without_rows = NamedStatement { sql: without_rows, ..statement.clone() };
        match self.first_columns(without_rows).await {
            Err(status) if status.code() == Code::InvalidArgument => self.first_columns(statement.clone()).await,
            columns => columns,
        }
    }

    async fn first_columns(&self, statement: NamedStatement) -> Result<Bytes, Status> {
        let mut arguments = into_arguments(statement);
        arguments.insert("max_rows".to_owned(), 1.into());
        let first = self.run(SQL_TOOL, arguments)?.next().await?;
        Ok(first.map(|message| encapsulate(&message.data_header)).unwrap_or_default())
    }

    /// The columns of a statement that is prepared, with null for its parameters. They are unknown if the statement cannot
    /// be planned without the values.
    async fn describe_prepared(&self, statement: &NamedStatement) -> Result<Bytes, Status> {
        match placeholders_of(&statement.sql) {
            0 => self.describe(statement).await,
            count => {
                let parameters = vec![Value::Null; count.min(PARAMETERS_MAX)];
                match self.describe(&NamedStatement { parameters, ..statement.clone() }).await {
                    Err(status) if status.code() == Code::InvalidArgument => Ok(Bytes::new()),
                    columns => columns,
                }
            }
        }
    }

    pub(super) async fn prepare(&self, body: &[u8]) -> Result<ActionCreatePreparedStatementResult, Status> {
        let request: ActionCreatePreparedStatementRequest = unpack(body)?;
        if request.transaction_id.as_ref().is_some_and(|id| !id.is_empty()) {
            return Err(Status::permission_denied(READ_ONLY));
        }
        let statement = NamedStatement { database: self.database()?, sql: request.query, parameters: Vec::new() };
        let schema = self.describe_prepared(&statement).await?;
        let NamedStatement { database, sql, parameters } = statement;
        let prepared = PreparedStatement { database, sql, parameters, schema: schema.clone() };
        let prepared_statement_handle = self.state.prepared.create(prepared, &self.caller)?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle,
            dataset_schema: schema,
            parameter_schema: Bytes::new(),
        })
    }

    pub(super) fn close_prepared_statement(&self, body: &[u8]) -> Result<(), Status> {
        let request: ActionClosePreparedStatementRequest = unpack(body)?;
        self.state.prepared.close(&request.prepared_statement_handle, &self.caller);
        Ok(())
    }

    pub(super) fn prepared_statement(&self, handle: &[u8]) -> Result<PreparedStatement, Status> {
        self.state.prepared.get(handle, &self.caller)
    }

    pub(super) fn answer_prepared_statement(
        self,
        handle: &[u8],
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let PreparedStatement { database, sql, parameters, .. } = self.prepared_statement(handle)?;
        let statement = NamedStatement { database, sql, parameters };
        Ok(self.run(SQL_TOOL, into_arguments(statement))?.into_stream())
    }

    /// Binds the only row of `messages` to the statement of `handle`.
    pub(super) async fn bind_parameters(
        &self,
        handle: &[u8],
        messages: BoxStream<'static, Result<FlightData, Status>>,
    ) -> Result<(), Status> {
        self.prepared_statement(handle)?;
        let messages = messages.map(|message| match message {
            Ok(message) if has_native_byte_order(&message) => Ok(message),
            Ok(_) => Err(FlightError::DecodeError(OTHER_BYTE_ORDER.to_owned())),
            Err(status) => Err(FlightError::Tonic(Box::new(status))),
        });
        let mut batches = FlightRecordBatchStream::new_from_flight_data(messages);
        let mut values = None;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| {
                Status::invalid_argument(format!("the parameters cannot be read as Arrow: {error}"))
            })?;
            if batch.num_rows() == 0 {
                continue;
            }
            if batch.num_rows() > 1 || values.is_some() {
                return Err(Status::invalid_argument(
                    "several rows of parameters are bound; this server runs a statement with one row at a time",
                ));
            }
            values = Some(parameters_of(&batch)?);
        }
        self.state.prepared.bind(handle, values.unwrap_or_default(), &self.caller)
    }
}

/// The number of placeholders in `sql`, in whichever dialect it can be parsed.
fn placeholders_of(sql: &str) -> usize {
    let dialects = [SqlDialect::DataFusion, SqlDialect::Sqlite];
    let parsed = dialects.into_iter().find_map(|dialect| Statement::parse(sql, dialect).ok());
    parsed.map_or(0, |statement| statement.placeholders())
}

fn unpack<T: Message + Default + ProstMessageExt>(body: &[u8]) -> Result<T, Status> {
    let malformed = |problem: String| Status::invalid_argument(format!("the request is malformed: {problem}"));
    let any = Any::decode(Bytes::copy_from_slice(body)).map_err(|error| malformed(error.to_string()))?;
    let message = any.unpack().map_err(|error| malformed(error.to_string()))?;
    message.ok_or_else(|| malformed(format!("expected {}", T::type_url())))
}

/// `header` as an encapsulated IPC message, the form of schemas in Flight.
pub(super) fn encapsulate(header: &[u8]) -> Bytes {
    let length = u32::try_from(header.len()).unwrap_or(u32::MAX);
    [&[0xff; 4], &length.to_le_bytes()[..], header].concat().into()
}

/// The values of the only row of `batch`, as the tool `sql` takes them.
fn parameters_of(batch: &RecordBatch) -> Result<Vec<Value>, Status> {
    if batch.num_columns() > PARAMETERS_MAX {
        let message = format!("{} parameters are bound; the maximum is {PARAMETERS_MAX}", batch.num_columns());
        return Err(Status::invalid_argument(message));
    }
    let columns = batch.columns().iter().enumerate();
    columns
        .map(|(index, column)| {
            parameter_of(column).map_err(|problem| {
                Status::invalid_argument(format!("parameter {} cannot be bound: {problem}", index + 1))
            })
        })
        .collect()
}

/// Dates, times and decimals are bound as text, which the database reads in their type.
fn parameter_of(column: &dyn Array) -> Result<Value, String> {
    use DataType as Type;
    if column.is_null(0) || column.data_type() == &Type::Null {
        return Ok(Value::Null);
    }
    let cast = |to: &Type| {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, to, &options).map_err(|error| error.to_string())
    };
    let first = |array: &dyn Array| {
        let formatter = ArrayFormatter::try_new(array, &FormatOptions::default()).map_err(|error| error.to_string())?;
        formatter.value(0).try_to_string().map_err(|error| error.to_string())
    };
    match column.data_type() {
        Type::Dictionary(_, values) => parameter_of(&cast(values)?),
        Type::Boolean => Ok(json!(first(column)? == "true")),
        number if number.is_integer() => {
            let text = first(&cast(&Type::Int64)?)?;
            text.parse::<i64>().map(Value::from).map_err(|error| error.to_string())
        }
        number if number.is_floating() => {
            let number: f64 = first(&cast(&Type::Float64)?)?.parse().map_err(|_| "it is no number".to_owned())?;
            let value = serde_json::Number::from_f64(number).map(Value::Number);
            value.ok_or_else(|| format!("{number} has no form in SQL; bind it as text and cast it in the statement"))
        }
        text if text.is_string() || text.is_temporal() || text.is_decimal() => Ok(Value::String(first(column)?)),
        other => Err(format!("values of the type {other} are not supported; bind text and cast it in the statement")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StringArray,
        UInt64Array,
    };

    use super::*;

    #[test]
    fn values_of_each_type_are_bound() {
        let decimal = Decimal128Array::from(vec![1234]).with_precision_and_scale(10, 2).unwrap();
        let cases: [(ArrayRef, Value); 7] = [
            (Arc::new(Int32Array::from(vec![7])), json!(7)),
            (Arc::new(UInt64Array::from(vec![7])), json!(7)),
            (Arc::new(Int32Array::from(vec![None])), Value::Null),
            (Arc::new(BooleanArray::from(vec![true])), json!(true)),
            (Arc::new(Float64Array::from(vec![0.1])), json!(0.1)),
            (Arc::new(Date32Array::from(vec![0])), json!("1970-01-01")),
            (Arc::new(decimal), json!("12.34")),
        ];
        for (column, expected) in cases {
            assert_eq!(parameter_of(&column), Ok(expected), "{column:?}");
        }
        assert_eq!(parameter_of(&StringArray::from(vec!["a"])), Ok(json!("a")));
    }

    #[test]
    fn placeholders_are_counted() {
        for (sql, count) in [("SELECT 1", 0), ("SELECT '$1'", 0), ("SELECT $1, $2, $1", 2), ("no SQL", 0)] {
            assert_eq!(placeholders_of(sql), count, "{sql}");
        }
    }

    #[test]
    fn values_without_a_form_are_refused() {
        for column in [
            Arc::new(UInt64Array::from(vec![u64::MAX])) as ArrayRef,
            Arc::new(Float64Array::from(vec![f64::NAN])),
            Arc::new(BinaryArray::from(vec![&b"a"[..]])),
        ] {
            assert!(parameter_of(&column).is_err(), "{column:?}");
        }
    }
}
