//! Bits in a list of bytes, the most significant one of each byte first.

/// Appends bits.
#[derive(Debug, Clone, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// The free bits of the last byte.
    free: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits (at most 64) of `bits`.
    pub(super) fn write(&mut self, bits: u64, count: u32) {
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
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory reserved for the bytes.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Reads bits.
#[derive(Debug, Clone)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next `count` bits (at most 64); `None` behind the end.
    pub(super) fn read(&mut self, count: u32) -> Option<u64> {
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
}
