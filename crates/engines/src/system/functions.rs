//! Live tables as functions: a request with conditions, order and limit, without SQL.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::Database as _;
use tidegate_runtime::Job;
use tidegate_system::{FunctionRequest, RequestViolations, RowSelector, SelectedRows, SystemTableDescription};
use tokio::runtime::Handle;

use super::columns::{RowBatchBuilder, table_schema};
use super::database::SystemDatabase;
use super::live_table::ReadContext;

/// The rows of a function.
#[derive(Debug)]
pub struct FunctionAnswer {
    /// The rows, as they are sent.
    pub batch: RecordBatch,
    /// The rows with the numbers of rows that match and that were checked.
    pub selected: SelectedRows,
    /// Whether the table has more rows than can be checked.
    pub is_truncated: bool,
}

impl SystemDatabase {
    /// The descriptions of the tables that `principal` may use as functions, by name.
    pub fn functions(&self, principal: &Principal) -> Vec<&SystemTableDescription> {
        self.visible_tables(principal).map(|(_, table)| table.offered.table.description()).collect()
    }

    /// The description of one function.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, the same whether it is hidden or absent.
    pub fn function(&self, name: &str, principal: &Principal) -> Result<&SystemTableDescription, Error> {
        Ok(self.visible_table(name, principal)?.1.offered.table.description())
    }

    /// Checks the arguments of a function.
    ///
    /// # Errors
    /// `NotFound` for the function; the violations of the request.
    pub fn validate_request(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        principal: &Principal,
    ) -> Result<Result<FunctionRequest, RequestViolations>, Error> {
        let description = self.function(name, principal)?;
        Ok(FunctionRequest::validate(description, arguments, self.grants_sensitive(principal)))
    }

    /// Reads the rows of a checked request.
    ///
    /// # Errors
    /// `NotFound` for the function; `Forbidden` if a row policy restricts the table; when the table cannot be read.
    pub async fn run_function(
        &self,
        name: &str,
        request: FunctionRequest,
        job: &Arc<Job>,
    ) -> Result<FunctionAnswer, Error> {
        let principal = job.principal().clone();
        let (name, stored) = self.visible_table(name, &principal)?;
        if self.is_restricted(name, &principal) {
            let message = format!("a row policy restricts {name:?} for you, so that it is no function");
            let hint = format!("Read it with the tool sql: SELECT * FROM {}.{name}.", self.name());
            return Err(Error::new(ErrorKind::Forbidden, message).with_hint(hint));
        }
        let table = stored.offered.table.clone();
        let grants_sensitive = self.grants_sensitive(&principal);
        let context = ReadContext { principal, job: job.clone(), runtime: Handle::current(), conditions: Vec::new() };
        let reading = move || {
            let description = table.description();
            let options = request.read_options(description, grants_sensitive);
            let mut selector = RowSelector::new(&request);
            let summary = table.read(&context, &options, &mut |row| {
                selector.push(&row);
                if context.job.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            let selected = selector.finish();
            let internal = |error: arrow::error::ArrowError| Error::internal(error.to_string());
            let schema = table_schema(description).project(&request.columns).map_err(internal)?;
            let mut builder = RowBatchBuilder::new(Arc::new(schema));
            selected.rows.iter().for_each(|row| builder.push(row));
            let batch = builder.finish().map_err(internal)?;
            Ok(FunctionAnswer { batch, selected, is_truncated: summary.is_truncated })
        };
        self.engine.run_blocking(reading).await
    }
}
