//! `tidegate import`: stores the rows of files in a table, on a running server or in this process.
//!
//! - `input_file`: what is imported: its format, its coding, and the scope of its keys.
//! - `destination`: the server or the node that stores rows.
//! - `file_import`: one file, part by part. `new_table`: the question before a table is created.

mod destination;
mod file_import;
mod input_file;
mod new_table;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use self::destination::ImportDestination;
use self::file_import::{FileImport, FileOutcome};
use self::input_file::{FileFormat, InputFile};
use super::table_server::ServerFlags;
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::quantity;
use crate::shutdown::Shutdown;

/// Store the rows of files in a table; the same command continues an interrupted import
#[derive(Debug, Args)]
pub(crate) struct ImportCommand {
    /// Files of rows, plain or with the ending .gz or .zst; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Table that gets the rows
    #[arg(long, value_name = "DATABASE.TABLE")]
    to: TableName,

    #[command(flatten)]
    rows: RowFlags,

    /// Create the table if it does not exist, after showing the columns that the first file has
    #[arg(long)]
    create: bool,

    /// Create the table without asking
    #[arg(long, requires = "create")]
    yes: bool,

    /// Print no progress
    #[arg(long)]
    quiet: bool,

    #[command(flatten)]
    server: ServerFlags,
}

/// Flags about the rows.
#[derive(Debug, Args)]
pub(crate) struct RowFlags {
    /// json, ndjson, csv, tsv, arrow or parquet [default: by the ending of FILE]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    format: Option<FileFormat>,

    /// What happens to rows that do not fit: all refuses the request, row keeps them in the table of rejected rows
    #[arg(long, value_name = "all|row", value_enum, hide_possible_values = true, default_value_t = OnReject::All)]
    on_reject: OnReject,

    /// Replace all rows of the table by those of one FILE
    #[arg(long)]
    replace: bool,

    /// Text that makes a repeat safe, in place of the size and time of FILE; another text stores the rows again
    #[arg(long, value_name = "TEXT", conflicts_with = "replace")]
    key: Option<String>,

    /// CSV: what separates fields; tab for a tab [default: comma]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// CSV: the text without quotes that is null [default: nothing]
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,

    /// CSV: the first line is a row already
    #[arg(long)]
    no_header: bool,

    /// NDJSON and CSV: leave out the lines of FILE before this one
    #[arg(long, value_name = "LINE", conflicts_with = "replace", value_parser = clap::value_parser!(u64).range(1..))]
    from_line: Option<u64>,

    /// NDJSON and CSV: a larger file is sent in parts of this size, so that an interruption costs one part [default:
    /// 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    part_size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnReject {
    All,
    Row,
}

/// The name of a database and of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName {
    pub(crate) database: String,
    pub(crate) table: String,
}

impl FromStr for TableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok(Self { database: database.to_owned(), table: table.to_owned() })
            }
            _ => Err("write it as DATABASE.TABLE".to_owned()),
        }
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [character] if character.is_ascii() && !matches!(character, b'"' | b'\r' | b'\n') => Ok(*character),
        _ => Err("write one ASCII character, or tab".to_owned()),
    }
}

impl ImportCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        self.check()?;
        let shutdown = Shutdown::on_signals()?;
        // Problems of any file are found before a row is sent.
        let files = self.files.iter().map(|path| InputFile::open(path, &self.rows));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let destination = ImportDestination::open(&self.server, &self.to, options, &shutdown).await?;
        let imported = shutdown.run_until_forced(self.import(&files, &destination, &shutdown)).await;
        destination.close().await;
        imported?
    }

    fn check(&self) -> Result<(), CommandError> {
        let usage = |message: &str| Err(CommandError::Usage(message.to_owned()));
        if self.rows.replace && self.files.len() > 1 {
            return usage("--replace takes one FILE: each further one would replace the rows of the one before");
        }
        if self.rows.from_line.is_some() && self.files.len() > 1 {
            return usage("--from-line takes one FILE");
        }
        if self.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            return usage("- is given more than once; standard input can be read once");
        }
        if self.rows.part_size == Some(0) {
            return usage("--part-size must not be 0");
        }
        Ok(())
    }

    async fn import(
        &self,
        files: &[InputFile],
        destination: &ImportDestination,
        shutdown: &Shutdown,
    ) -> Result<(), CommandError> {
        let mut import = FileImport {
            destination,
            to: &self.to,
            rows: &self.rows,
            creates: self.create,
            asks: !self.yes,
            is_quiet: self.quiet,
            stop: &shutdown.graceful,
            has_table: false,
        };
        let mut refused = 0;
        for file in files {
            if import.run(file).await? == FileOutcome::Refused {
                refused += 1;
            }
        }
        match (refused, files.len()) {
            (0, _) => Ok(()),
            (_, 1) => Err(anyhow::anyhow!("the file was refused").into()),
            (refused, files) => Err(anyhow::anyhow!("{refused} of {files} files were refused").into()),
        }
    }
}
