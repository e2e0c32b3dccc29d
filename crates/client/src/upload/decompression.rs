//! Compressed files, read as what they contain.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// What `input` contains, which has the coding `gzip` or `zstd`, as `Content-Encoding` names them.
///
/// # Errors
/// For another coding. Malformed input is an error when it is read.
pub fn decompress(input: impl Read + 'static, coding: &str) -> io::Result<Box<dyn Read>> {
    Ok(match coding {
        "gzip" => Box::new(MultiGzDecoder::new(input)),
        "zstd" => Box::new(zstd::Decoder::new(input)?),
        other => return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no coding {other:?}"))),
    })
}
