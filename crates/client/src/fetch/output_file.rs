//! The output file: checked before the download, written under a temporary name, and renamed when it is complete.
//!
//! Its name determines its format and its compression: `rows.csv.gz`, `rows.ndjson.zst`. Blocks are written in order and batch
//! by batch, and the stream of one answer can become a file of Arrow.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;
use tidegate_core::{Error, Format, join_alternatives};
use tidegate_query::RowEncoder;

use super::FetchError;
use crate::server::sanitize;

pub(crate) const UNFINISHED_SUFFIX: &str = ".tmp";

/// The path and the format of the output file.
#[derive(Debug, Clone)]
pub struct OutputFile {
    path: PathBuf,
    /// Arrow is a file, unless the ending stands for a stream.
    format: Option<Format>,
    /// Whether the format was given explicitly, and not by the file name.
    is_explicit_format: bool,
    overwrites: bool,
}

/// An incomplete output file under a temporary name. Dropping it removes it.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: Box<CompressionWriter>,
    output_file: OutputFile,
    bytes: u64,
}

/// Parses the name of a format in which a result can be written.
///
/// # Errors
/// Returns a message that lists the formats.
pub fn parse_format(name: &str) -> Result<Format, String> {
    let formats = Format::FOR_DOWNLOADS;
    Format::parse(name, &formats).ok_or_else(|| format!("write one of {}", formats.map(Format::name).join(", ")))
}

/// The names of the formats in which a result can be written, as in `arrow, csv or json`.
pub fn format_names() -> String {
    join_alternatives(Format::FOR_DOWNLOADS.map(|format| format.name().to_owned()).to_vec())
}

impl OutputFile {
    /// The file `path` in `format`, or in the format of its ending.
    ///
    /// # Errors
    /// Fails if the format is unknown, if the file cannot be written there, or if it exists and `overwrites` is false.
    pub fn new(path: PathBuf, format: Option<Format>, overwrites: bool) -> Result<Self, FetchError> {
        let output_file = Self::with_optional_format(path, format, overwrites)?;
        output_file.row_format()?;
        Ok(output_file)
    }

    /// As [`OutputFile::new`], but the name needs no format: the result may be a file itself, which is known only
    /// later.
    ///
    /// # Errors
    /// Fails if the file cannot be written there, or if it exists and `overwrites` is false.
    pub fn with_optional_format(path: PathBuf, format: Option<Format>, overwrites: bool) -> Result<Self, FetchError> {
        let is_explicit_format = format.is_some();
        let format_of_extension = format_from_extension(&path);
        let format = match format.or(format_of_extension) {
            Some(Format::Arrow) if format_of_extension != Some(Format::Arrow) => Some(Format::ArrowFile),
            format => format,
        };
        let output_file = Self { path, format, is_explicit_format, overwrites };
        output_file.check()?;
        Ok(output_file)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format in which to request rows for the file. A file of Arrow is made of the stream.
    pub fn requested_format(&self) -> Format {
        self.format.filter(|format| *format != Format::ArrowFile).unwrap_or(Format::Arrow)
    }

    /// Whether rows become a file of Arrow, and not the stream that servers send.
    pub fn is_arrow_file(&self) -> bool {
        self.format.is_none_or(|format| format == Format::ArrowFile)
    }

    pub(crate) fn row_format(&self) -> Result<Format, FetchError> {
        self.format.ok_or_else(|| FetchError::UnknownFormat { path: self.path.clone() })
    }

    pub(crate) fn explicit_format(&self) -> Option<Format> {
        self.format.filter(|_| self.is_explicit_format)
    }

    pub(crate) fn needs_format_flag(&self) -> bool {
        format_from_extension(&self.path) != self.format
    }

    /// Creates the temporary file beside the output file.
    ///
    /// # Errors
    /// Fails if the folder is not writable.
    pub fn create_file(&self) -> Result<UnfinishedFile, FetchError> {
        self.create_file_in(self.folder())
    }

    /// Creates the temporary file in `folder`, which is on the same disk.
    pub(crate) fn create_file_in(&self, folder: &Path) -> Result<UnfinishedFile, FetchError> {
        let prefix = self.hidden_name("");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(UNFINISHED_SUFFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // The umask applies, as for ordinary files; other temporary files are private.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder);
        let writer = file.and_then(|file| CompressionWriter::new(BufWriter::new(file), &self.path));
        let writer = writer.map_err(FetchError::disk_error(&self.path, "written"))?;
        Ok(UnfinishedFile { file: Box::new(writer), output_file: self.clone(), bytes: 0 })
    }

    pub(crate) fn partial_folder(&self) -> PathBuf {
        self.folder().join(self.hidden_name("partial"))
    }

    fn check(&self) -> Result<(), FetchError> {
        let invalid = |what| Err(FetchError::InvalidDestination { path: self.path.clone(), what });
        if self.path.file_name().is_none() {
            return invalid("this is not the name of a file");
        }
        match self.path.metadata() {
            Ok(metadata) if metadata.is_dir() => return invalid("this is a folder; name a file in it"),
            Ok(metadata) if !metadata.is_file() => {
                return invalid("this is not a regular file, and would be replaced by one");
            }
            _ => {}
        }
        // A dangling symbolic link counts as an existing file.
        if self.path.symlink_metadata().is_ok() && !self.overwrites {
            return Err(FetchError::DestinationExists { path: self.path.clone() });
        }
        if !self.folder().is_dir() {
            return invalid("its folder does not exist");
        }
        Ok(())
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }

    /// `.FILE.end`
    fn hidden_name(&self, end: &str) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!(".{name}.{end}")
    }
}

impl UnfinishedFile {
    /// Appends `bytes`.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(FetchError::disk_error(&self.output_file.path, "written"))
    }

    /// The number of bytes so far, before compression.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Renames the complete file to its final name. Returns its size in bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if a file of that name exists by now.
    pub fn finish(self) -> Result<u64, FetchError> {
        let Self { file, output_file, .. } = self;
        let path = &output_file.path;
        let synced = file.finish().and_then(|file| {
            file.as_file().sync_all()?;
            Ok((file.as_file().metadata()?.len(), file))
        });
        let (bytes, file) = synced.map_err(FetchError::disk_error(path, "written"))?;
        let named = if output_file.overwrites { file.persist(path) } else { file.persist_noclobber(path) };
        if let Err(refused) = named {
            return Err(match refused.error.kind() {
                ErrorKind::AlreadyExists => FetchError::DestinationExists { path: path.clone() },
                _ => FetchError::disk_error(path, "named")(refused.error),
            });
        }
        // Where folders cannot be synced, the system writes them later.
        if let Ok(folder) = File::open(output_file.folder()) {
            let _ = folder.sync_all();
        }
        Ok(bytes)
    }
}

fn format_from_extension(path: &Path) -> Option<Format> {
    let (path, is_packed) = strip_compression_extension(path);
    let format = Format::from_extension(path.extension().and_then(OsStr::to_str)?)?;
    // Binary formats have their own compression, and readers do not accept another one around it.
    (!(is_packed && format.is_binary())).then_some(format)
}

enum CompressionWriter {
    None(BufWriter<NamedTempFile>),
    Gzip(GzEncoder<BufWriter<NamedTempFile>>),
    Zstd(zstd::Encoder<'static, BufWriter<NamedTempFile>>),
}

tidegate_core::impl_debug!(CompressionWriter, "CompressionWriter");

/// The path without the ending of a compression, and whether it had one.
fn strip_compression_extension(path: &Path) -> (PathBuf, bool) {
    match is_gzip(path) || is_zstd(path) {
        true => (path.with_extension(""), true),
        false => (path.to_owned(), false),
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    extensions.iter().any(|other| extension.eq_ignore_ascii_case(other))
}

fn is_gzip(path: &Path) -> bool {
    has_extension(path, &["gz", "gzip"])
}

fn is_zstd(path: &Path) -> bool {
    has_extension(path, &["zst", "zstd"])
}

impl CompressionWriter {
    pub(crate) fn new(file: BufWriter<NamedTempFile>, path: &Path) -> io::Result<Self> {
        if is_gzip(path) {
            return Ok(Self::Gzip(GzEncoder::new(file, Compression::default())));
        }
        if is_zstd(path) {
            return Ok(Self::Zstd(zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?));
        }
        Ok(Self::None(file))
    }

    pub(crate) fn finish(self) -> io::Result<NamedTempFile> {
        let file = match self {
            Self::None(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for CompressionWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::None(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct VerifiedBlock {
    pub(crate) index: u64,
    pub(crate) rows: u64,
    pub(crate) path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMode {
    Rows(Format),
    /// The file whose bytes the rows contain.
    File,
}

pub(crate) struct ResultFileWriter {
    file: UnfinishedFile,
    mode: OutputMode,
    /// The encoder, from the first block on, with the schema of that block.
    encoder: Option<(SchemaRef, BatchEncoder)>,
    pub(crate) rows: u64,
}

enum BatchEncoder {
    /// A stream of Arrow IPC, with the schema of all blocks.
    ArrowStream(Box<StreamWriter<Vec<u8>>>),
    Rendered(RowEncoder),
    /// The bytes of the file, unchanged.
    File,
}

impl ResultFileWriter {
    pub(crate) fn new(file: UnfinishedFile, mode: OutputMode) -> Self {
        Self { file, mode, encoder: None, rows: 0 }
    }

    pub(crate) fn append_block(&mut self, block: &VerifiedBlock) -> Result<(), FetchError> {
        let bytes = std::fs::read(&block.path).map_err(FetchError::disk_error(&block.path, "read"))?;
        // Memory is allocated for bytes that exist, not for lengths that the stream claims.
        let (mut rest, mut decoder) = (Buffer::from_vec(bytes), StreamDecoder::new());
        let unreadable = |error: ArrowError| damaged_block(block, sanitize(&error.to_string()));
        let mut rows = 0;
        while let Some(batch) = decoder.decode(&mut rest).map_err(unreadable)? {
            rows += batch.num_rows() as u64;
            let encoded = self.encoder_for(block, batch.schema_ref())?.write(&batch)?;
            self.file.write(&encoded)?;
        }
        decoder.finish().map_err(unreadable)?;
        let schema = decoder.schema().ok_or_else(|| damaged_block(block, "it has no schema".to_owned()))?;
        self.encoder_for(block, &schema)?;
        if rows != block.rows {
            return Err(damaged_block(block, format!("it has {rows} rows instead of {}", block.rows)));
        }
        self.rows += rows;
        Ok(())
    }

    fn encoder_for(&mut self, block: &VerifiedBlock, schema: &SchemaRef) -> Result<&mut BatchEncoder, FetchError> {
        let (first, encoder) = match self.encoder.take() {
            Some(encoder) => self.encoder.insert(encoder),
            None => {
                let encoder = BatchEncoder::new(self.mode, schema)?;
                self.encoder.insert((schema.clone(), encoder))
            }
        };
        if first.fields() != schema.fields() {
            return Err(damaged_block(block, "its columns differ from those of the first block".to_owned()));
        }
        Ok(encoder)
    }

    /// Renames the complete file; an error if it has not `length` bytes. `is_part` marks an incomplete result.
    pub(crate) fn finish(mut self, is_part: bool, length: Option<u64>) -> Result<u64, FetchError> {
        if let Some((_, encoder)) = self.encoder {
            self.file.write(&encoder.finish(is_part)?)?;
        }
        if let Some(expected) = length.filter(|expected| *expected != self.file.bytes()) {
            return Err(FetchError::LengthMismatch { expected, bytes: self.file.bytes() });
        }
        self.file.finish()
    }
}

impl BatchEncoder {
    fn new(mode: OutputMode, schema: &SchemaRef) -> Result<Self, FetchError> {
        Ok(match mode {
            OutputMode::File => Self::File,
            OutputMode::Rows(Format::Arrow) => {
                Self::ArrowStream(Box::new(StreamWriter::try_new(Vec::new(), schema).map_err(format_error)?))
            }
            OutputMode::Rows(format) => Self::Rendered(RowEncoder::new(format, schema).map_err(FetchError::Format)?),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::ArrowStream(writer) => {
                writer.write(batch).map_err(format_error)?;
                Ok(std::mem::take(writer.get_mut()).into())
            }
            Self::Rendered(writer) => writer.write(batch).map_err(FetchError::Format),
            Self::File => file_bytes(batch),
        }
    }

    fn finish(self, is_part: bool) -> Result<bytes::Bytes, FetchError> {
        match self {
            Self::ArrowStream(writer) => Ok(writer.into_inner().map_err(format_error)?.into()),
            Self::File => Ok(bytes::Bytes::new()),
            Self::Rendered(writer) => writer.finish(is_part).map_err(FetchError::Format),
        }
    }
}

fn file_bytes(batch: &RecordBatch) -> Result<bytes::Bytes, FetchError> {
    let column = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>());
    let column = column
        .ok_or_else(|| FetchError::Format(Error::internal("the blocks of the file contain no column of bytes")))?;
    Ok(column.iter().flatten().flatten().copied().collect::<Vec<u8>>().into())
}

fn damaged_block(block: &VerifiedBlock, what: String) -> FetchError {
    FetchError::Damaged { block: block.index, what }
}

fn format_error(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(error.to_string()))
}

/// Converts a stream batch by batch, so that no more than one is in memory.
#[derive(Debug, Default)]
pub struct ArrowFileConverter {
    decoder: StreamDecoder,
    /// From the schema on.
    encoder: Option<RowEncoder>,
}

impl ArrowFileConverter {
    /// The bytes of the file that the next `bytes` of the stream complete, possibly none.
    ///
    /// # Errors
    /// Only because of an internal error.
    pub fn write(&mut self, bytes: Bytes) -> Result<Vec<u8>, FetchError> {
        let (mut rest, mut written) = (Buffer::from(bytes), Vec::new());
        while let Some(batch) = self.decoder.decode(&mut rest).map_err(stream_error)? {
            written.extend_from_slice(&self.encoder()?.write(&batch).map_err(FetchError::Format)?);
        }
        Ok(written)
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If the stream has no end.
    pub fn finish(mut self) -> Result<Bytes, FetchError> {
        self.decoder.finish().map_err(stream_error)?;
        self.encoder()?;
        let encoder = self.encoder.ok_or_else(missing_schema)?;
        encoder.finish(false).map_err(FetchError::Format)
    }

    fn encoder(&mut self) -> Result<&mut RowEncoder, FetchError> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => {
                let schema = self.decoder.schema().ok_or_else(missing_schema)?;
                RowEncoder::new(Format::ArrowFile, &schema).map_err(FetchError::Format)?
            }
        };
        Ok(self.encoder.insert(encoder))
    }
}

fn missing_schema() -> FetchError {
    FetchError::Format(Error::internal("the answer has no schema"))
}

fn stream_error(error: ArrowError) -> FetchError {
    FetchError::Format(Error::internal(format!("the answer is no stream of Arrow: {error}")))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn refused(path: &Path) -> String {
        let text = OutputFile::new(path.to_owned(), None, false).unwrap_err().to_string();
        text.replace(&path.display().to_string(), "FILE")
    }

    #[test]
    fn format_comes_from_extension_unless_given() {
        let folder = tempfile::tempdir().unwrap();
        let requested = |name: &str, format| {
            OutputFile::new(folder.path().join(name), format, false).map(|it| it.requested_format())
        };
        for (name, expected) in [
            ("a.arrow", Format::Arrow),
            ("a.ARROWS", Format::Arrow),
            ("a.feather", Format::Arrow),
            ("a.b.csv", Format::Csv),
            ("a.ndjson", Format::Ndjson),
            ("a.jsonl", Format::Ndjson),
            ("a.json", Format::Json),
            ("a.parquet", Format::Parquet),
            ("a.csv.gz", Format::Csv),
            ("a.ndjson.ZST", Format::Ndjson),
        ] {
            assert_eq!(requested(name, None).unwrap(), expected);
            assert_eq!(requested(name, Some(Format::Csv)).unwrap(), Format::Csv);
        }
        assert!(matches!(requested("a.txt", None), Err(FetchError::UnknownFormat { .. })));
        let is_file =
            |name: &str| OutputFile::new(folder.path().join(name), Some(Format::Arrow), false).unwrap().is_arrow_file();
        assert_eq!(
            ["a.arrow", "a.feather", "a.csv", "a", "a.arrows.gz", "a.Arrows"].map(is_file),
            [true, true, true, true, true, false]
        );
        assert_eq!(parse_format("parquet"), Ok(Format::Parquet));
        assert_eq!(parse_format("table"), Err("write one of arrow, ndjson, csv, json, parquet".to_owned()));
    }

    #[test]
    fn rejects_unwritable_files() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("there.csv");
        std::fs::write(&there, "x").unwrap();
        std::fs::create_dir(folder.path().join("folder.csv")).unwrap();
        insta::assert_snapshot!(refused(&there), @"FILE exists; --force overwrites it");
        insta::assert_snapshot!(refused(&folder.path().join("folder.csv")), @"FILE: this is a folder; name a file in it");
        insta::assert_snapshot!(refused(&folder.path().join("none/out.csv")), @"FILE: its folder does not exist");
        insta::assert_snapshot!(
            refused(&folder.path().join("out.txt")),
            @"FILE: a result can be written as arrow, ndjson, csv, json or parquet; set one with --format"
        );
        assert!(OutputFile::new(there, None, true).is_ok());
    }

    #[test]
    fn file_gets_its_name_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let output_file = OutputFile::new(path.clone(), None, false).unwrap();
        let mut unfinished = output_file.create_file().unwrap();
        unfinished.write(b"a\n").unwrap();
        assert!(!path.exists());
        drop(unfinished);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut unfinished = output_file.create_file().unwrap();
        unfinished.write(b"a\n").unwrap();
        std::fs::write(&path, "somebody was faster").unwrap();
        assert!(matches!(unfinished.finish(), Err(FetchError::DestinationExists { .. })));

        let output_file = OutputFile::new(path.clone(), None, true).unwrap();
        let mut unfinished = output_file.create_file().unwrap();
        unfinished.write(b"a\n").unwrap();
        unfinished.write(b"b\n").unwrap();
        assert_eq!(unfinished.finish().unwrap(), 4);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    fn compress_as(name: &str) -> Vec<u8> {
        let mut writer =
            CompressionWriter::new(BufWriter::new(NamedTempFile::new().unwrap()), Path::new(name)).unwrap();
        writer.write_all(b"id\n1\n").unwrap();
        let file = writer.finish().unwrap();
        std::fs::read(file.path()).unwrap()
    }

    #[test]
    fn compression_comes_from_extension() {
        assert_eq!(compress_as("a.csv"), b"id\n1\n");
        let mut text = String::new();
        flate2::read::GzDecoder::new(compress_as("a.csv.gz").as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "id\n1\n");
        assert_eq!(zstd::decode_all(compress_as("a.ndjson.zst").as_slice()).unwrap(), b"id\n1\n");
    }

    #[test]
    fn strips_compression_extension() {
        assert_eq!(strip_compression_extension(Path::new("x/a.csv.GZ")), (PathBuf::from("x/a.csv"), true));
        assert_eq!(strip_compression_extension(Path::new("x/a.csv")), (PathBuf::from("x/a.csv"), false));
    }
}
