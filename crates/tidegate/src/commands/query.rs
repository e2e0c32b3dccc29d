//! `tidegate query`: runs one statement and prints its rows.

use clap::Args;
use serde_json::{Map, Value};
use tidegate_core::{Format, join_alternatives};

use super::call::ToolCaller;
use crate::command_error::CommandError;
use crate::database_argument::DatabaseArgument;
use crate::options::GlobalOptions;
use crate::quantity::{self, LimitValue};
use crate::standard_stream::standard_output;

/// Run one read-only SQL statement on files or a database and print its rows
#[derive(Debug, Args)]
pub(crate) struct QueryCommand {
    /// The statement
    sql: String,

    /// Folder, file, SQLite file, postgres:// or mysql:// address to query, named after it, or NAME [default: the
    /// current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,

    /// The database to query, if there are several
    #[arg(long, value_name = "NAME")]
    database: Option<String>,

    #[arg(long, value_name = "FORMAT", value_parser = parse_format, help = format_help())]
    format: Option<Format>,

    /// Print only the unique values of this column
    #[arg(long, value_name = "COLUMN")]
    extract: Option<String>,

    /// Maximum number of rows to print, or unlimited
    #[arg(long, value_name = "ROWS", default_value = "unlimited", value_parser = quantity::row_bound)]
    max_rows: LimitValue<u64>,
}

fn format_help() -> String {
    let names = join_alternatives(Format::FOR_MODELS.map(|format| format.name().to_owned()).to_vec());
    format!("{names} [default: table on a terminal, else csv]")
}

fn parse_format(name: &str) -> Result<Format, String> {
    Format::parse_for_model(name).map_err(|error| error.to_string())
}

impl QueryCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let default = if standard_output().is_terminal() { Format::Table } else { Format::Csv };
        let format = self.format.unwrap_or(default);
        let mut arguments = sql_arguments(&self.sql, self.database.as_deref(), self.max_rows);
        arguments.insert("format".to_owned(), format.name().into());
        arguments.extend(self.extract.map(|column| ("extract".to_owned(), column.into())));
        let tool_caller = ToolCaller::open(&self.paths, options).await?;
        tool_caller.call_and_print("sql", arguments).await
    }
}

pub(super) fn sql_arguments(sql: &str, database: Option<&str>, max_rows: LimitValue<u64>) -> Map<String, Value> {
    // The tool has no value for "unlimited"; no table has that many rows.
    let max_rows = max_rows.limit().unwrap_or(i64::MAX as u64);
    let arguments = [("sql", sql.into()), ("max_rows", max_rows.into())].into_iter();
    let arguments = arguments.chain(database.map(|name| ("database", name.into())));
    arguments.map(|(name, value)| (name.to_owned(), value)).collect()
}
