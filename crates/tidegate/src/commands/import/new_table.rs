//! The question before a table is created.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _};

use tidegate_client::upload::FilePart;
use tidegate_ingest_formats::{BodyCoding, BodyFormat, BodyOptions, INFERENCE_BYTES, infer_schema, parquet_schema};
use tidegate_query::field_type_name;

use super::input_file::InputFile;
use super::{RowFlags, TableName};
use crate::command_error::CommandError;
use crate::output;

/// Shows the columns that a table gets from `part`, and asks whether it shall be created if `asks`.
pub(super) async fn confirm(
    file: &InputFile,
    part: &FilePart,
    to: &TableName,
    flags: &RowFlags,
    asks: bool,
) -> Result<(), CommandError> {
    let description = describe(file, part, to, flags)?;
    output::print_note(description);
    if !asks {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(CommandError::Usage("nobody can be asked here: --yes creates the table without asking".to_owned()));
    }
    output::print_note("Create it? [y/N] ");
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = read.await.map_err(anyhow::Error::from)?.map_err(anyhow::Error::from)?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(anyhow::anyhow!("the table was not created").into()),
    }
}

fn describe(file: &InputFile, part: &FilePart, to: &TableName, flags: &RowFlags) -> Result<String, CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::Other(anyhow::anyhow!("{}: {error}", file.name));
    let mut options = BodyOptions::from_media_type(file.format.media_type())
        .ok_or_else(|| failed(&"the format has no media type"))?;
    options.coding = BodyCoding::from_name(file.coding.unwrap_or_default()).unwrap_or_default();
    options.csv.delimiter = flags.delimiter.unwrap_or(options.csv.delimiter);
    options.csv.has_header = !flags.no_header;
    if let Some(null) = &flags.null {
        options.csv.null_text.clone_from(null);
    }
    let schema = match options.format {
        BodyFormat::Parquet => {
            let file = file.file.try_clone().map_err(|error| failed(&error))?;
            parquet_schema(file).map_err(|error| failed(&error))?
        }
        _ => {
            let head = part.beginning(INFERENCE_BYTES).map_err(|error| failed(&error))?;
            infer_schema(&head, &options).map_err(|error| failed(&error))?.schema
        }
    };
    let width = schema.fields().iter().map(|field| field.name().chars().count()).max().unwrap_or_default();
    let mut text = format!("{}.{} does not exist. Its columns, from {}:\n", to.database, to.table, file.name);
    for field in schema.fields() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:width$}  {}", field.name(), field_type_name(field));
    }
    Ok(text)
}
