//! A compressed list of samples, in memory and as a record of a file: times as differences of differences, values as
//! differences of their bits.
//!
//! The scheme is that of Gorilla (Pelkonen et al., VLDB 2015), with times in milliseconds: a regular interval takes one
//! bit, and so does a value that does not change. A counter that grows by about the same number takes two to three
//! bytes, and an arbitrary value up to nine.
//!
//! A record has its length and checksum, then the name of its metric, its labels and its samples. All numbers are
//! little-endian. A record does not refer to others, so that a file can be removed or damaged without an effect on the
//! rest.

use crate::metrics::model::{Labels, Sample};

/// Appends bits.
#[derive(Debug, Clone, Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// The free bits of the last byte.
    free: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits (at most 64) of `bits`.
    fn write(&mut self, bits: u64, count: u32) {
        let mut open = count;
        while open > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = open.min(self.free);
            let part = (bits >> (open - taken)) & ((1 << taken) - 1);
            if let (Some(last), Ok(part)) = (self.bytes.last_mut(), u8::try_from(part << (self.free - taken))) {
                *last |= part;
            }
            self.free -= taken;
            open -= taken;
        }
    }

    /// The bytes, the last one filled with zeros.
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory reserved for the bytes.
    fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Reads bits.
#[derive(Debug, Clone)]
struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next `count` bits (at most 64); `None` behind the end.
    fn read(&mut self, count: u32) -> Option<u64> {
        if count == 0 {
            return Some(0);
        }
        // Far from the end, one load has all bits.
        if let Some(next) = self.bytes.get(self.position / 8..).and_then(|rest| rest.first_chunk::<16>()) {
            let bits = u128::from_be_bytes(*next) << (self.position % 8) >> (128 - count);
            self.position += count as usize;
            return u64::try_from(bits).ok();
        }
        self.read_near_end(count)
    }

    fn read_near_end(&mut self, count: u32) -> Option<u64> {
        let (mut bits, mut open) = (0_u64, count);
        while open > 0 {
            let byte = u64::from(*self.bytes.get(self.position / 8)?);
            let available = 8 - (self.position % 8) as u32;
            let taken = open.min(available);
            let part = (byte >> (available - taken)) & ((1 << taken) - 1);
            bits = bits << taken | part;
            self.position += taken as usize;
            open -= taken;
        }
        Some(bits)
    }
}

/// Nanoseconds of a millisecond.
pub(super) const MILLISECOND_NS: i64 = 1_000_000;
/// Sizes of a difference of differences: the number of prefix bits, and the number of bits behind it. A larger one has
/// 64 bits behind the longest prefix.
const DELTA_CLASSES: [(u32, u32); 3] = [(2, 7), (3, 9), (4, 12)];
const LONGEST_PREFIX_BITS: u32 = 4;
const LEADING_BITS: u32 = 5;
const LENGTH_BITS: u32 = 6;

/// A sealed chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleChunk {
    bytes: Box<[u8]>,
    count: u32,
    first_ms: i64,
    last_ms: i64,
}

impl SampleChunk {
    /// A chunk from its parts, as they were stored.
    fn from_parts(bytes: &[u8], count: u32, first_ms: i64, last_ms: i64) -> Self {
        Self { bytes: bytes.into(), count, first_ms, last_ms }
    }

    /// The compressed samples.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of samples.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The time of the first sample, in milliseconds since 1970.
    pub fn first_ms(&self) -> i64 {
        self.first_ms
    }

    /// The time of the last sample, in milliseconds since 1970.
    pub fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// The samples in order of time.
    pub fn samples(&self) -> ChunkSamples<'_> {
        ChunkSamples::new(&self.bytes, self.count)
    }

    /// The memory that the chunk takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }
}

/// A chunk that grows.
#[derive(Debug, Clone, Default)]
pub(super) struct ChunkEncoder {
    bits: BitWriter,
    count: u32,
    first_ms: i64,
    last_ms: i64,
    last_delta_ms: i64,
    last_value: u64,
    window: BitWindow,
}

/// The part of a 64-bit difference that is written: what lies between its leading and trailing zeros.
#[derive(Debug, Clone, Copy, Default)]
struct BitWindow {
    leading: u32,
    length: u32,
}

impl ChunkEncoder {
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn first_ms(&self) -> i64 {
        self.first_ms
    }

    pub(super) fn last_ms(&self) -> i64 {
        self.last_ms
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bits.capacity()
    }

    /// Adds a sample. Any time is stored, but chunks are read in order only if times grow.
    pub(super) fn append(&mut self, time_ms: i64, value: f64) {
        let value = value.to_bits();
        if self.count == 0 {
            self.first_ms = time_ms;
            self.bits.write(time_ms.cast_unsigned(), 64);
            self.bits.write(value, 64);
        } else {
            let delta_ms = time_ms.wrapping_sub(self.last_ms);
            self.write_time(delta_ms.wrapping_sub(self.last_delta_ms));
            self.last_delta_ms = delta_ms;
            self.write_value(value ^ self.last_value);
        }
        self.count += 1;
        self.last_ms = time_ms;
        self.last_value = value;
    }

    fn write_time(&mut self, difference: i64) {
        if difference == 0 {
            self.bits.write(0, 1);
            return;
        }
        let zigzag = (difference << 1 ^ difference >> 63).cast_unsigned();
        match DELTA_CLASSES.into_iter().find(|(_, bits)| zigzag < 1 << bits) {
            Some((prefix, bits)) => {
                // Ones, then a zero.
                self.bits.write((1 << prefix) - 2, prefix);
                self.bits.write(zigzag, bits);
            }
            None => {
                self.bits.write((1 << LONGEST_PREFIX_BITS) - 1, LONGEST_PREFIX_BITS);
                self.bits.write(zigzag, 64);
            }
        }
    }

    fn write_value(&mut self, difference: u64) {
        if difference == 0 {
            self.bits.write(0, 1);
            return;
        }
        // At most 31, because five bits are written.
        let leading = difference.leading_zeros().min((1 << LEADING_BITS) - 1);
        let trailing = difference.trailing_zeros();
        let window = self.window;
        let fits = window.length > 0 && leading >= window.leading && trailing >= 64 - window.leading - window.length;
        if fits {
            self.bits.write(0b10, 2);
        } else {
            self.window = BitWindow { leading, length: 64 - leading - trailing };
            self.bits.write(0b11, 2);
            self.bits.write(u64::from(leading), LEADING_BITS);
            self.bits.write(u64::from(self.window.length - 1), LENGTH_BITS);
        }
        let BitWindow { leading, length } = self.window;
        self.bits.write(difference >> (64 - leading - length), length);
    }

    /// The samples so far.
    pub(super) fn samples(&self) -> ChunkSamples<'_> {
        ChunkSamples::new(self.bits.bytes(), self.count)
    }

    /// The sealed chunk; `None` without samples.
    pub(super) fn seal(&self) -> Option<SampleChunk> {
        let (first_ms, last_ms) = (self.first_ms, self.last_ms);
        (self.count > 0).then(|| SampleChunk::from_parts(self.bits.bytes(), self.count, first_ms, last_ms))
    }
}

/// The samples of a chunk. Bytes that are no chunk end early, and never fail otherwise.
#[derive(Debug, Clone)]
pub struct ChunkSamples<'a> {
    bits: BitReader<'a>,
    remaining: u32,
    is_first: bool,
    time_ms: i64,
    delta_ms: i64,
    value: u64,
    window: BitWindow,
}

impl<'a> ChunkSamples<'a> {
    fn new(bytes: &'a [u8], count: u32) -> Self {
        Self {
            bits: BitReader::new(bytes),
            remaining: count,
            is_first: true,
            time_ms: 0,
            delta_ms: 0,
            value: 0,
            window: BitWindow::default(),
        }
    }

    fn decode(&mut self) -> Option<()> {
        if std::mem::take(&mut self.is_first) {
            self.time_ms = self.bits.read(64)?.cast_signed();
            self.value = self.bits.read(64)?;
            return Some(());
        }
        self.delta_ms = self.delta_ms.wrapping_add(self.read_time()?);
        self.time_ms = self.time_ms.wrapping_add(self.delta_ms);
        self.value ^= self.read_value()?;
        Some(())
    }

    fn read_time(&mut self) -> Option<i64> {
        let mut ones = 0;
        while ones < LONGEST_PREFIX_BITS && self.bits.read(1)? == 1 {
            ones += 1;
        }
        if ones == 0 {
            return Some(0);
        }
        let class = DELTA_CLASSES.into_iter().find(|(prefix, _)| *prefix == ones + 1);
        let zigzag = self.bits.read(class.map_or(64, |(_, bits)| bits))?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    fn read_value(&mut self) -> Option<u64> {
        if self.bits.read(1)? == 0 {
            return Some(0);
        }
        if self.bits.read(1)? == 1 {
            let leading = u32::try_from(self.bits.read(LEADING_BITS)?).ok()?;
            let length = u32::try_from(self.bits.read(LENGTH_BITS)?).ok()? + 1;
            self.window = BitWindow { leading, length };
        }
        let BitWindow { leading, length } = self.window;
        let shift = 64_u32.checked_sub(leading + length).filter(|_| length > 0)?;
        Some(self.bits.read(length)? << shift)
    }
}

impl Iterator for ChunkSamples<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        self.remaining = self.remaining.checked_sub(1)?;
        if self.decode().is_none() {
            self.remaining = 0;
            return None;
        }
        let time_ns = self.time_ms.saturating_mul(MILLISECOND_NS);
        Some(Sample { time_ns, value: f64::from_bits(self.value) })
    }
}

/// The bytes at the start of a file. The last one is the version of the format.
pub(super) const FILE_MAGIC: [u8; 8] = *b"TGMETRS\x01";
/// The length and the checksum before each record.
const FRAME_BYTES: usize = 8;
/// The maximum length of a record; labels and 120 samples need far less.
const RECORD_BYTES_MAX: usize = 1 << 20;

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
        fn reads_what_was_written(parts in prop::collection::vec((any::<u64>(), 0_u32..65), 0..50)) {
            let mask = |bits: u64, count: u32| if count == 64 { bits } else { bits & ((1 << count) - 1) };
            let mut writer = BitWriter::default();
            parts.iter().for_each(|(bits, count)| writer.write(*bits, *count));
            let mut reader = BitReader::new(writer.bytes());
            for (bits, count) in parts {
                prop_assert_eq!(reader.read(count), Some(mask(bits, count)));
            }
            prop_assert_eq!(reader.read(8), None);
        }
    }

    fn encode_samples(samples: impl IntoIterator<Item = (i64, f64)>) -> ChunkEncoder {
        let mut encoder = ChunkEncoder::default();
        samples.into_iter().for_each(|(time_ms, value)| encoder.append(time_ms, value));
        encoder
    }

    /// The sizes that the documentation states.
    #[test]
    fn bytes_of_a_sample() {
        let bytes = |value: fn(i64) -> f64| {
            let chunk = encode_samples((0..120).map(|index| (1_700_000_000_000 + index * 10_000, value(index))))
                .seal()
                .unwrap();
            chunk.bytes().len() as f64 / 120.0
        };
        assert!(bytes(|_| 42.0) < 0.5, "constant");
        assert!(
            bytes(|index| (1_000_000 + index * 37) as f64) < 4.0,
            "counter: {}",
            bytes(|index| (1_000_000 + index * 37) as f64)
        );
        assert!(bytes(|index| (index as f64).sin()) < 9.0, "arbitrary");
    }

    proptest! {
        #[test]
        fn any_samples_survive(samples in prop::collection::vec((-1_i64 << 42..1 << 42, prop::num::f64::ANY), 0..200)) {
            let encoder = encode_samples(samples.iter().copied());
            let decoded: Vec<_> = encoder.samples().map(|sample| (sample.time_ns / MILLISECOND_NS, sample.value.to_bits())).collect();
            let expected: Vec<_> = samples.iter().map(|(time_ms, value)| (*time_ms, value.to_bits())).collect();
            prop_assert_eq!(&decoded, &expected);
            if let Some(chunk) = encoder.seal() {
                prop_assert_eq!(chunk.samples().count(), samples.len());
            }
        }

        #[test]
        fn regular_series_survive(start in 0_i64..1 << 40, jitter in prop::collection::vec(-20_i64..20, 1..200)) {
            let samples: Vec<_> = (0..).zip(jitter).map(|(index, jitter)| (start + index * 10_000 + jitter, (index * 7 / 3) as f64)).collect();
            let decoded: Vec<_> = encode_samples(samples.iter().copied()).samples().map(|sample| (sample.time_ns / MILLISECOND_NS, sample.value)).collect();
            prop_assert_eq!(decoded, samples);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0_u32..1_000) {
            prop_assert!(ChunkSamples::new(&bytes, count).count() <= count as usize);
        }
    }

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
        fn arbitrary_records_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_next(&bytes);
            let _ = decode_payload(&bytes);
        }
    }
}
