//! Content codings, in pieces and with bounds.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tidegate_ingest_formats::{BodyCoding, BodyError, BodyFormat, BodyLimits, BodyOptions};

use super::fixture::{decode_pieces, gzip, sensors, zstd};

fn body(rows: usize) -> String {
    (0..rows).map(|row| format!("{{\"device\":\"d{row}\",\"value\":{row}}}\n")).collect()
}

fn options(coding: BodyCoding) -> BodyOptions {
    BodyOptions { coding, ..BodyOptions::new(BodyFormat::Ndjson) }
}

type Compress = fn(&[u8]) -> Vec<u8>;

fn codings() -> [(BodyCoding, Compress); 2] {
    [(BodyCoding::Gzip, gzip), (BodyCoding::Zstd, zstd)]
}

#[test]
fn compressed_bodies_are_read_in_pieces_of_any_size() {
    let text = body(5_000);
    for (coding, compress) in codings() {
        let compressed = compress(text.as_bytes());
        for piece_bytes in [1, 1_000, usize::MAX] {
            let decoded = decode_pieces(&sensors(), &options(coding), &compressed, piece_bytes).unwrap();
            assert_eq!(decoded.rows(), 5_000);
            assert_eq!(decoded.text()[4_999], "·|d4999|4999.0");
        }
        // Several members or frames are one body.
        let twice = [compressed.as_slice(), &compressed].concat();
        assert_eq!(decode_pieces(&sensors(), &options(coding), &twice, 1_000).unwrap().rows(), 10_000);
        assert_eq!(decode_pieces(&sensors(), &options(coding), &compress(b""), 10).unwrap().rows(), 0);
    }
}

#[test]
fn compressed_body_that_breaks_off_is_an_error_at_every_byte() {
    let text = body(30);
    for (coding, compress) in codings() {
        let compressed = compress(text.as_bytes());
        for length in 0..compressed.len() {
            let error = decode_pieces(&sensors(), &options(coding), &compressed[..length], 64).unwrap_err();
            assert!(matches!(error, BodyError::Incomplete(_)), "{length}: {error}");
        }
    }
}

#[test]
fn other_bytes_are_refused() {
    let text = body(3);
    for (coding, compress) in codings() {
        assert!(matches!(
            decode_pieces(&sensors(), &options(coding), text.as_bytes(), 64),
            Err(BodyError::Malformed(_))
        ));
        let mut trailing = compress(text.as_bytes());
        trailing.extend(b"trailing bytes");
        assert!(decode_pieces(&sensors(), &options(coding), &trailing, 64).is_err());
        let mut changed = compress(text.as_bytes());
        let middle = changed.len() / 2;
        changed[middle] ^= 0x55;
        assert!(decode_pieces(&sensors(), &options(coding), &changed, 64).is_err());
    }
}

#[test]
fn huge_expansion_is_refused() {
    // 24 MB of blank lines.
    let mut line = vec![b' '; 1_000_000];
    line.push(b'\n');
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for _ in 0..24 {
        encoder.write_all(&line).unwrap();
    }
    let bombs = [(BodyCoding::Gzip, encoder.finish().unwrap()), (BodyCoding::Zstd, zstd(&line.repeat(24)))];
    for (coding, bomb) in bombs {
        let error = decode_pieces(&sensors(), &options(coding), &bomb, 1 << 16).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the body is more than 500 times larger than its compressed form; send it with less compression"
        );
    }
}

#[test]
fn decompressed_size_is_bounded() {
    let limits = BodyLimits { decompressed_bytes_max: 10_000, ..BodyLimits::default() };
    for (coding, compress) in codings() {
        let options = BodyOptions { limits: limits.clone(), ..options(coding) };
        let error = decode_pieces(&sensors(), &options, &compress(body(5_000).as_bytes()), 1 << 16).unwrap_err();
        assert_eq!(error.to_string(), "the body has more than 10000 bytes after decompression");
    }
    let options = BodyOptions { limits, ..options(BodyCoding::Identity) };
    assert!(matches!(
        decode_pieces(&sensors(), &options, body(5_000).as_bytes(), 1 << 16),
        Err(BodyError::TooLarge(_))
    ));
}
