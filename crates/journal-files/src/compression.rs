//! The compression of large values: XZ, LZ4 and Zstandard.

use std::io::{self, Read};

use crate::header::read_u64;

const XZ: u8 = 1;
const LZ4: u8 = 1 << 1;
const ZSTD: u8 = 1 << 2;
/// The memory of the XZ decoder.
const XZ_MEMORY_MAX: u64 = 64 << 20;

/// Whether an object with these flags is compressed.
pub(crate) fn is_compressed(flags: u8) -> bool {
    flags & (XZ | LZ4 | ZSTD) != 0
}

/// Up to `bytes_max` bytes of what `compressed` contains, and whether that is all.
pub(crate) fn decompress(flags: u8, compressed: &[u8], bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    match flags & (XZ | LZ4 | ZSTD) {
        XZ => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_MAX, 0).map_err(io::Error::other)?;
            read_up_to(liblzma::read::XzDecoder::new_stream(compressed, stream), bytes_max)
        }
        ZSTD => read_up_to(zstd::stream::read::Decoder::with_buffer(compressed)?, bytes_max),
        LZ4 => {
            let size = read_u64(compressed, 0).and_then(|size| usize::try_from(size).ok());
            let (size, block) = size.zip(compressed.get(8..)).ok_or_else(|| invalid("LZ4 data without a size"))?;
            let bytes = decode_lz4(block, size.min(bytes_max))?;
            if size <= bytes_max && bytes.len() != size {
                return Err(invalid("LZ4 data of another size than declared"));
            }
            Ok((bytes, size <= bytes_max))
        }
        _ => Err(invalid("more than one compression")),
    }
}

fn read_up_to(reader: impl Read, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    let is_all = bytes.len() <= bytes_max;
    bytes.truncate(bytes_max);
    Ok((bytes, is_all))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The first `bytes_max` bytes of an LZ4 block.
///
/// A decoder of our own, because it stops after the name of the field, which most readings need only.
///
/// [LZ4 Block Format](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)
fn decode_lz4(block: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut decoded: Vec<u8> = Vec::with_capacity(bytes_max.min(block.len().saturating_mul(4)));
    let mut input = block.iter();
    let incomplete = || invalid("incomplete LZ4 data");
    while decoded.len() < bytes_max {
        let Some(token) = input.next() else { break };
        let literals = read_length(usize::from(token >> 4), &mut input).ok_or_else(incomplete)?;
        let rest = input.as_slice();
        let (literal, further) = rest.split_at_checked(literals).ok_or_else(incomplete)?;
        decoded.extend_from_slice(literal.get(..literals.min(bytes_max - decoded.len())).unwrap_or_default());
        input = further.iter();
        if further.is_empty() || decoded.len() == bytes_max {
            break;
        }
        let (Some(low), Some(high)) = (input.next(), input.next()) else { return Err(incomplete()) };
        let distance = usize::from(u16::from_le_bytes([*low, *high]));
        let length = read_length(usize::from(token & 15), &mut input).and_then(|length| length.checked_add(4));
        let length = length.ok_or_else(incomplete)?.min(bytes_max - decoded.len());
        let start = decoded.len().checked_sub(distance).filter(|_| distance > 0);
        let start = start.ok_or_else(|| invalid("LZ4 data that refers to nothing"))?;
        // The copy may overlap with what it appends.
        let mut copied = 0;
        while copied < length {
            let count = (decoded.len() - start).min(length - copied);
            decoded.extend_from_within(start..start + count);
            copied += count;
        }
    }
    Ok(decoded)
}

/// A length that continues in further bytes if its four bits are all set.
fn read_length(bits: usize, input: &mut std::slice::Iter<'_, u8>) -> Option<usize> {
    let mut length = bits;
    if bits == 15 {
        loop {
            let byte = *input.next()?;
            length = length.checked_add(usize::from(byte))?;
            if byte != u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lz4_of_literals_and_overlapping_copies() {
        // "ab" as literals, then 18 bytes from two bytes before, then "xyz".
        let block = [0x2e, b'a', b'b', 2, 0, 0x30, b'x', b'y', b'z'];
        assert_eq!(decode_lz4(&block, 100).unwrap(), b"ababababababababababxyz");
        assert_eq!(decode_lz4(&block, 5).unwrap(), b"ababa");
        assert!(decode_lz4(&[0x2e, b'a', b'b', 3, 0], 100).is_err(), "before the beginning");
        assert!(decode_lz4(&[0x2e, b'a', b'b', 0, 0], 100).is_err(), "a distance of zero");
        assert!(decode_lz4(&[0xff, 255], 100).is_err(), "an incomplete length");
        assert!(decompress(LZ4, &[1, 2, 3], 10).is_err());
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_exceed_the_bound(bytes: Vec<u8>, flags: u8, bytes_max in 0_usize..300) {
            if let Ok((decoded, _)) = decompress(flags, &bytes, bytes_max) {
                proptest::prop_assert!(decoded.len() <= bytes_max);
            }
        }
    }
}
