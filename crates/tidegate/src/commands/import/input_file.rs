//! A file that is imported.

use std::fs::File;
use std::io::{self, Seek as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use clap::ValueEnum;
use serde_json::json;
use tidegate_client::upload::{PART_BYTES, PartCutter, RowSyntax, random_scope};

use super::RowFlags;
use crate::command_error::CommandError;

/// The size of standard input, which is copied to a temporary file first. As that of a body of `/data`.
const SPOOLED_BYTES_MAX: u64 = 16 << 30;

/// A format of rows in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FileFormat {
    Json,
    #[value(alias = "jsonl")]
    Ndjson,
    Csv,
    Tsv,
    Arrow,
    Parquet,
}

impl FileFormat {
    fn from_ending(ending: &str) -> Option<Self> {
        Some(match ending {
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "arrow" | "feather" | "arrows" => Self::Arrow,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv",
            Self::Tsv => "text/tab-separated-values",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn is_csv(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv)
    }
}

/// An open file. What is no regular file was read into a temporary one, so that it can be sent again.
#[derive(Debug)]
pub(super) struct InputFile {
    /// The name for people.
    pub(super) name: String,
    pub(super) file: Arc<File>,
    pub(super) length: u64,
    pub(super) format: FileFormat,
    /// The value of `Content-Encoding`.
    pub(super) coding: Option<&'static str>,
    /// What the keys of its rows are derived from, with their position and bytes.
    pub(super) key_scope: String,
}

impl InputFile {
    pub(super) fn open(path: &Path, flags: &RowFlags) -> Result<Self, CommandError> {
        let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
        let (format, coding) = format_and_coding(path, &name, flags)?;
        check_syntax_flags(format, flags)?;
        let failed = |error: io::Error| CommandError::Usage(format!("{name}: {error}"));
        let (file, identity) = open_regular(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        // Rows that replace others may be put there again after others have replaced them.
        let key_scope = match (&flags.key, identity) {
            _ if flags.replace => random_scope(),
            (Some(key), identity) => json!([key, identity.map(|identity| identity.path)]).to_string(),
            (None, Some(identity)) => json!([identity.path, length, identity.modified_ns]).to_string(),
            (None, None) => random_scope(),
        };
        Ok(Self { name, file: Arc::new(file), length, format, coding, key_scope })
    }

    /// The parts that it is sent in.
    pub(super) fn parts(&self, flags: &RowFlags) -> io::Result<PartCutter> {
        // Rows replace others at once or not at all.
        let is_whole = flags.replace || self.coding.is_some();
        let syntax = match self.format {
            FileFormat::Ndjson if !is_whole => RowSyntax::Lines,
            FileFormat::Csv | FileFormat::Tsv if !is_whole => {
                let default = if self.format == FileFormat::Tsv { b'\t' } else { b',' };
                RowSyntax::Csv { delimiter: flags.delimiter.unwrap_or(default), has_header: !flags.no_header }
            }
            _ => RowSyntax::Whole,
        };
        let mut cutter =
            PartCutter::new(self.file.clone(), self.length, syntax, flags.part_size.unwrap_or(PART_BYTES))?;
        if let Some(line) = flags.from_line {
            cutter.skip_to_line(line)?;
        }
        Ok(cutter)
    }
}

/// What distinguishes a file from others, also after it was changed.
struct FileIdentity {
    path: String,
    modified_ns: u128,
}

fn open_regular(path: &Path) -> io::Result<(File, Option<FileIdentity>)> {
    if path.as_os_str() == "-" {
        return Ok((spool(io::stdin().lock())?, None));
    }
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder; name its files"));
    }
    if !metadata.is_file() {
        return Ok((spool(&mut file)?, None));
    }
    let modified = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let path = std::fs::canonicalize(path)?.to_string_lossy().into_owned();
    Ok((file, Some(FileIdentity { path, modified_ns: modified.as_nanos() })))
}

/// Copies `input` to a temporary file, because its size must be known before it is cut into parts.
fn spool(input: impl io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    if io::copy(&mut input.take(SPOOLED_BYTES_MAX + 1), &mut file)? > SPOOLED_BYTES_MAX {
        let gigabytes = SPOOLED_BYTES_MAX >> 30;
        return Err(io::Error::other(format!("standard input has more than {gigabytes} GiB; import files instead")));
    }
    file.rewind()?;
    Ok(file)
}

fn format_and_coding(
    path: &Path,
    name: &str,
    flags: &RowFlags,
) -> Result<(FileFormat, Option<&'static str>), CommandError> {
    let usage = |message: String| Err(CommandError::Usage(message));
    if path.as_os_str() == "-" {
        return match flags.format {
            Some(format) => Ok((format, None)),
            None => usage("standard input has no ending: set its format with --format".to_owned()),
        };
    }
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let endings = [(".gz", "gzip"), (".zst", "zstd")];
    let coded = endings.iter().find_map(|(ending, coding)| Some((file_name.strip_suffix(ending)?, *coding)));
    let (rest, coding) = coded.map_or((file_name.as_str(), None), |(rest, coding)| (rest, Some(coding)));
    let by_ending = rest.rsplit_once('.').and_then(|(_, ending)| FileFormat::from_ending(ending));
    let Some(format) = flags.format.or(by_ending) else {
        return usage(format!(
            "{name}: the ending is none of .json, .ndjson, .jsonl, .csv, .tsv, .arrow, .feather, .arrows and .parquet; \
             set the format with --format"
        ));
    };
    if format == FileFormat::Parquet && coding.is_some() {
        return usage(format!("{name}: Parquet is compressed itself; decompress the file first"));
    }
    Ok((format, coding))
}

fn check_syntax_flags(format: FileFormat, flags: &RowFlags) -> Result<(), CommandError> {
    let given = [
        ("--delimiter", flags.delimiter.is_some()),
        ("--null", flags.null.is_some()),
        ("--no-header", flags.no_header),
    ];
    match given.iter().find(|(_, is_given)| *is_given && !format.is_csv()) {
        Some((flag, _)) => Err(CommandError::Usage(format!("{flag} applies to CSV only"))),
        None => Ok(()),
    }
}
