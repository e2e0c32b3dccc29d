//! Compression of the output file, by its name: `rows.csv.gz`, `rows.ndjson.zst`.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

pub(crate) enum CompressionWriter {
    None(BufWriter<NamedTempFile>),
    Gzip(GzEncoder<BufWriter<NamedTempFile>>),
    Zstd(zstd::Encoder<'static, BufWriter<NamedTempFile>>),
}

tidegate_core::impl_debug!(CompressionWriter, "CompressionWriter");

/// The path without the ending of a compression, and whether it had one.
pub(crate) fn strip_compression_extension(path: &Path) -> (PathBuf, bool) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

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
