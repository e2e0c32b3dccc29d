//! The body of a request as a whole, within limits, and decompressed.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::RequestBodyReader;

/// The codings of bodies that are decompressed here.
pub(super) const CODINGS: &[&str] = &["identity", "gzip"];

/// Reads a body of at most `bytes_max` bytes as it was sent.
///
/// # Errors
/// Those of the body, and `TooLarge`.
pub(super) async fn read_body(reader: &mut RequestBodyReader, bytes_max: usize) -> Result<Bytes, Error> {
    let mut only = Bytes::new();
    let mut joined: Vec<u8> = Vec::new();
    while let Some(piece) = reader.next().await? {
        let bytes = if joined.is_empty() { only.len() } else { joined.len() };
        if bytes + piece.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        if bytes == 0 {
            only = piece;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&std::mem::take(&mut only));
        }
        joined.extend_from_slice(&piece);
    }
    Ok(if joined.is_empty() { only } else { joined.into() })
}

/// Decompresses a body. The result has at most `bytes_max` bytes.
///
/// # Errors
/// `InvalidArguments` if the body is not in its coding; `TooLarge`.
pub(super) fn decompress(body: Bytes, coding: Option<&str>, bytes_max: usize) -> Result<Bytes, Error> {
    if !coding.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("gzip")) {
        return Ok(body);
    }
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let mut decompressed = Vec::new();
    let read = MultiGzDecoder::new(&*body).take(most).read_to_end(&mut decompressed);
    if let Err(error) = read {
        let message = format!("the body is not gzip: {error}; nothing was stored");
        return Err(Error::new(ErrorKind::InvalidArguments, message));
    }
    if decompressed.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    Ok(decompressed.into())
}

fn too_large(bytes_max: usize) -> Error {
    let message = format!("the body is larger than {bytes_max} bytes; nothing was stored");
    Error::new(ErrorKind::TooLarge, message).with_hint("Send smaller batches.")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bodies_are_decompressed_within_their_limit() {
        let text = vec![b'x'; 1_000];
        let decompress_up_to = |bytes_max| decompress(gzip(&text).into(), Some("gzip"), bytes_max);
        assert_eq!(decompress_up_to(1_000).unwrap(), text);
        assert_eq!(decompress_up_to(999).unwrap_err().kind(), ErrorKind::TooLarge);
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(decompress(two.into(), Some("GZIP"), 2).unwrap(), "ab");
        assert_eq!(decompress(Bytes::from_static(b"a"), Some("identity"), 1).unwrap(), "a");
        let cut = gzip(&text)[..15].to_vec();
        for wrong in [cut, b"text".to_vec()] {
            assert_eq!(decompress(wrong.into(), Some("gzip"), 2_000).unwrap_err().kind(), ErrorKind::InvalidArguments);
        }
    }
}
