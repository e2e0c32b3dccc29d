//! One chunk in a file: its length and checksum, then the name of its metric, its labels and its samples.
//!
//! All numbers are little-endian. A record does not refer to others, so that a file can be removed or damaged without
//! an effect on the rest.

use super::super::model::Labels;
use super::chunk::SampleChunk;

/// The bytes at the start of a file. The last one is the version of the format.
pub(super) const FILE_MAGIC: [u8; 8] = *b"TGMETRS\x01";
/// The length and the checksum before each record.
pub(super) const FRAME_BYTES: usize = 8;
/// The maximum length of a record; labels and 120 samples need far less.
pub(super) const RECORD_BYTES_MAX: usize = 1 << 20;

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkRecord {
    pub metric: String,
    pub labels: Labels,
    pub chunk: SampleChunk,
}

/// What follows in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextRecord<'a> {
    /// A record, and the bytes behind it.
    Record(Box<ChunkRecord>, &'a [u8]),
    /// The end of the file.
    End,
    /// Something else, with the reason.
    Damaged(&'static str),
}

/// The bytes of a record with its frame; `None` if it would be larger than [`RECORD_BYTES_MAX`].
pub(super) fn encode(metric: &str, labels: &Labels, chunk: &SampleChunk) -> Option<Vec<u8>> {
    let mut payload = Vec::with_capacity(64 + chunk.bytes().len());
    write_text(&mut payload, metric)?;
    payload.extend(u32::try_from(labels.len()).ok()?.to_le_bytes());
    for (name, value) in labels.iter() {
        write_text(&mut payload, name)?;
        write_text(&mut payload, value)?;
    }
    payload.extend(chunk.first_ms().to_le_bytes());
    payload.extend(chunk.last_ms().to_le_bytes());
    payload.extend(chunk.count().to_le_bytes());
    payload.extend(chunk.bytes());
    if payload.len() > RECORD_BYTES_MAX {
        return None;
    }
    let mut record = Vec::with_capacity(FRAME_BYTES + payload.len());
    record.extend(u32::try_from(payload.len()).ok()?.to_le_bytes());
    record.extend(crc32fast::hash(&payload).to_le_bytes());
    record.append(&mut payload);
    Some(record)
}

fn write_text(payload: &mut Vec<u8>, text: &str) -> Option<()> {
    payload.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
    payload.extend(text.as_bytes());
    Some(())
}

/// Decodes the record at the start of `bytes`.
pub(super) fn decode_next(bytes: &[u8]) -> NextRecord<'_> {
    if bytes.is_empty() {
        return NextRecord::End;
    }
    let Some((frame, rest)) = bytes.split_first_chunk::<FRAME_BYTES>() else {
        return NextRecord::Damaged("the last record is cut");
    };
    let [a, b, c, d, checksum @ ..] = *frame;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > RECORD_BYTES_MAX {
        return NextRecord::Damaged("a record has an impossible length");
    }
    let Some((payload, rest)) = rest.split_at_checked(length) else {
        return NextRecord::Damaged("the last record is cut");
    };
    if crc32fast::hash(payload) != u32::from_le_bytes(checksum) {
        return NextRecord::Damaged("the checksum of a record does not match");
    }
    match decode_payload(payload) {
        Some(record) => NextRecord::Record(Box::new(record), rest),
        None => NextRecord::Damaged("a record has an unknown form"),
    }
}

fn decode_payload(payload: &[u8]) -> Option<ChunkRecord> {
    let (metric, mut rest) = read_text(payload)?;
    let (count, after) = read_u32(rest)?;
    rest = after;
    let mut pairs = Vec::new();
    for _ in 0..count {
        let (name, after) = read_text(rest)?;
        let (value, after) = read_text(after)?;
        pairs.push((name, value));
        rest = after;
    }
    let (first_ms, rest) = rest.split_first_chunk::<8>()?;
    let (last_ms, rest) = rest.split_first_chunk::<8>()?;
    let (samples, rest) = read_u32(rest)?;
    let chunk = SampleChunk::from_parts(rest, samples, i64::from_le_bytes(*first_ms), i64::from_le_bytes(*last_ms));
    Some(ChunkRecord { metric: metric.to_owned(), labels: Labels::new(pairs), chunk })
}

fn read_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

fn read_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = read_u32(bytes)?;
    let (text, rest) = rest.split_at_checked(length as usize)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_survive(metric in ".{0,20}", name in "[a-z]{1,5}", value in ".{1,9}", bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            let labels = Labels::new([(name, value)]);
            let chunk = SampleChunk::from_parts(&bytes, 7, -5, 9);
            let encoded = encode(&metric, &labels, &chunk).unwrap();
            let expected = NextRecord::Record(Box::new(ChunkRecord { metric, labels, chunk }), &[]);
            prop_assert_eq!(decode_next(&encoded), expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_next(&bytes);
            let _ = decode_payload(&bytes);
        }
    }
}
