//! The import of one file, part by part, and what is printed about it.

use std::fmt::Write as _;
use std::time::Duration;

use tidegate_client::upload::{FilePart, RowReason, UploadProgressBar, UploadReceipt, UploadRequest};
use tidegate_query::REJECTS_SUFFIX;
use tokio_util::sync::CancellationToken;

use super::destination::{ImportDestination, SendError};
use super::input_file::InputFile;
use super::{OnReject, RowFlags, TableName, new_table};
use crate::command_error::CommandError;
use crate::output;

/// How many rejected rows are printed for a file.
const PRINTED_REASONS_MAX: usize = 10;

/// How the import of a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileOutcome {
    Stored,
    Refused,
}

pub(super) struct FileImport<'a> {
    pub(super) destination: &'a ImportDestination,
    pub(super) to: &'a TableName,
    pub(super) rows: &'a RowFlags,
    pub(super) creates: bool,
    pub(super) asks: bool,
    pub(super) is_quiet: bool,
    pub(super) stop: &'a CancellationToken,
    /// Whether a part was stored, or the creation of the table was confirmed.
    pub(super) has_table: bool,
}

/// What the parts of a file have stored.
#[derive(Default)]
struct FileTotals {
    rows: u64,
    repeated_rows: u64,
    rejected: u64,
    reasons: Vec<String>,
    is_created: bool,
    /// The last line of the parts that are stored.
    stored_lines: u64,
    parts: u64,
}

impl FileImport<'_> {
    pub(super) async fn run(&mut self, file: &InputFile) -> Result<FileOutcome, CommandError> {
        let bar = UploadProgressBar::new(&file.name, file.length, self.is_quiet);
        let mut totals = FileTotals::default();
        let stored = self.store_parts(file, &bar, &mut totals).await;
        bar.clear();
        let error = match stored {
            Ok(()) => {
                totals.print(file, self.to)?;
                return Ok(FileOutcome::Stored);
            }
            Err(error) => error,
        };
        if totals.parts > 0 {
            totals.print(file, self.to)?;
        }
        match error {
            SendError::NoTable(message) => Err(anyhow::Error::msg(self.with_creation_hint(message)).into()),
            SendError::Refused { message, reasons, hint } => {
                self.print_refusal(file, &totals, &message, &reasons, hint.as_deref());
                Ok(FileOutcome::Refused)
            }
            SendError::Failed(error) => {
                if totals.parts > 0 {
                    output::print_note("The same command continues after these rows.\n");
                }
                Err(error)
            }
        }
    }

    async fn store_parts(
        &mut self,
        file: &InputFile,
        bar: &UploadProgressBar,
        totals: &mut FileTotals,
    ) -> Result<(), SendError> {
        let failed = |error: std::io::Error| SendError::Failed(anyhow::anyhow!("{}: {error}", file.name).into());
        let mut cutter = file.parts(self.rows).map_err(failed)?;
        loop {
            // The parts are read to compute their keys.
            let cut = tokio::task::spawn_blocking(move || {
                let part = cutter.next_part();
                (cutter, part)
            });
            let (rest, part) = cut.await.map_err(|error| SendError::Failed(anyhow::Error::from(error).into()))?;
            cutter = rest;
            let Some(part) = part.map_err(failed)? else { return Ok(()) };
            if self.stop.is_cancelled() {
                return Err(SendError::Failed(anyhow::anyhow!("stopped").into()));
            }
            let receipt = self.store_part(file, &part, bar).await.map_err(|error| with_file_lines(error, &part))?;
            self.has_table = true;
            totals.add(&receipt, &part);
        }
    }

    async fn store_part(
        &mut self,
        file: &InputFile,
        part: &FilePart,
        bar: &UploadProgressBar,
    ) -> Result<UploadReceipt, SendError> {
        let first = self.send(file, part, bar, false).await;
        if !matches!(first, Err(SendError::NoTable(_))) || !self.creates || self.has_table {
            return first;
        }
        bar.clear();
        new_table::confirm(file, part, self.to, self.rows, self.asks).await.map_err(SendError::Failed)?;
        self.send(file, part, bar, true).await
    }

    async fn send(
        &self,
        file: &InputFile,
        part: &FilePart,
        bar: &UploadProgressBar,
        creates: bool,
    ) -> Result<UploadReceipt, SendError> {
        let request = UploadRequest {
            part: part.clone(),
            media_type: file.format.media_type(),
            coding: file.coding,
            key: part.key(&file.key_scope),
            replaces: self.rows.replace,
            parameters: self.parameters(creates),
        };
        let (start, moving) = (part.start(), bar.clone());
        let on_retry = |reason: &str, delay: Duration| {
            let line = format!("{}: {reason}; again in {:.1} s", file.name, delay.as_secs_f64());
            if bar.is_hidden() { tracing::warn!("{line}") } else { bar.println(&line) }
        };
        self.destination.send(&request, move |bytes| moving.set_position(start + bytes), on_retry).await
    }

    fn parameters(&self, creates: bool) -> Vec<(&'static str, String)> {
        let mut parameters = vec![("create", creates.to_string())];
        if self.rows.on_reject == OnReject::Row {
            parameters.push(("on_reject", "row".to_owned()));
        }
        if let Some(delimiter) = self.rows.delimiter {
            let text = if delimiter == b'\t' { "tab".to_owned() } else { char::from(delimiter).to_string() };
            parameters.push(("delimiter", text));
        }
        if let Some(null) = &self.rows.null {
            parameters.push(("null", null.clone()));
        }
        if self.rows.no_header {
            parameters.push(("header", "false".to_owned()));
        }
        parameters
    }

    fn with_creation_hint(&self, message: String) -> String {
        // The hint of the server is about its own parameter.
        let message = message.replace("create=true creates it.", "--create creates it.");
        message.trim_end_matches(['\n', ';', ' ']).to_owned()
    }

    fn print_refusal(
        &self,
        file: &InputFile,
        totals: &FileTotals,
        message: &str,
        reasons: &[RowReason],
        hint: Option<&str>,
    ) {
        let mut text = format!("{}: {message}\n", file.name);
        for reason in reasons.iter().take(PRINTED_REASONS_MAX) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {}: {}", reason.path, reason.message);
        }
        let more = reasons.len().saturating_sub(PRINTED_REASONS_MAX);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
        if totals.parts > 0 {
            let (last, next) = (totals.stored_lines, totals.stored_lines + 1);
            let _ = writeln!(
                text,
                "  \"nothing was stored\" is about the part from line {next}. Lines 1 to {last} are stored: when the file is \
                 corrected, import it with --from-line {next}"
            );
        } else if let Some(hint) = hint {
            let _ = writeln!(text, "  {}", hint.replace("on_reject=row", "--on-reject row"));
        }
        output::print_note(text);
    }
}

/// The reasons of a refusal with the lines of the file.
fn with_file_lines(error: SendError, part: &FilePart) -> SendError {
    let SendError::Refused { message, mut reasons, hint } = error else { return error };
    for reason in &mut reasons {
        reason.path = with_file_line(&reason.path, part);
    }
    SendError::Refused { message, reasons, hint }
}

/// `line 7, column "a"` with the line of the file in place of that of the body.
fn with_file_line(path: &str, part: &FilePart) -> String {
    let Some(rest) = path.strip_prefix("line ") else { return path.to_owned() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, end) = rest.split_at(digits);
    match number.parse() {
        Ok(line) => format!("line {}{end}", part.file_line(line)),
        Err(_) => path.to_owned(),
    }
}

impl FileTotals {
    fn add(&mut self, receipt: &UploadReceipt, part: &FilePart) {
        match receipt.is_repeated {
            true => self.repeated_rows += receipt.rows,
            false => self.rows += receipt.rows,
        }
        self.rejected += receipt.rejected;
        self.is_created |= receipt.is_created;
        self.stored_lines = part.lines_to_end();
        self.parts += 1;
        let room = PRINTED_REASONS_MAX.saturating_sub(self.reasons.len());
        for rejection in receipt.rejections.iter().take(room) {
            let position = match (rejection.line, rejection.row) {
                (Some(line), _) => format!("line {}", part.file_line(line)),
                (None, Some(row)) => format!("row {row}"),
                (None, None) => "a row".to_owned(),
            };
            let column = rejection.column.as_ref().map(|column| format!(", column {column:?}")).unwrap_or_default();
            self.reasons.push(format!("{position}{column}: {}", rejection.reason));
        }
    }

    fn print(&self, file: &InputFile, to: &TableName) -> Result<(), CommandError> {
        let mut line = format!("{}: {}", file.name, rows(self.rows, "stored"));
        if self.repeated_rows > 0 || (self.rows == 0 && self.parts > 0 && self.rejected == 0) {
            let _ = write!(line, ", {} by an earlier run", rows(self.repeated_rows, "stored"));
        }
        if self.rejected > 0 {
            let _ =
                write!(line, ", {} in {}.{}{REJECTS_SUFFIX}", rows(self.rejected, "rejected"), to.database, to.table);
        }
        if self.is_created {
            let _ = write!(line, "; {}.{} was created", to.database, to.table);
        }
        line.push('\n');
        output::print(line)?;
        let mut reasons: String = self.reasons.iter().map(|reason| format!("  {reason}\n")).collect();
        if self.rejected > self.reasons.len() as u64 && !self.reasons.is_empty() {
            let _ = writeln!(reasons, "  and {} more", self.rejected - self.reasons.len() as u64);
        }
        output::print_note(reasons);
        Ok(())
    }
}

fn rows(count: u64, what: &str) -> String {
    if count == 1 { format!("1 row {what}") } else { format!("{count} rows {what}") }
}
