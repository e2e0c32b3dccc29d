//! Text and bytes, and the types whose values become text.

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use arrow::array::{BinaryArray, NullBufferBuilder, StringArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::numeric;
use super::raw::{ValueError, ValueReader, exactly};

/// The version of the binary form of `jsonb`, the byte before its text.
const JSONB_VERSION: u8 = 1;

/// The maximum initial capacity of a column.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// How a binary value becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRendering {
    Plain,
    /// `"char"`: one byte.
    Char,
    /// A version byte, then the text.
    Jsonb,
    Number,
    Uuid,
    /// `inet` and `cidr`.
    Address,
    MacAddress,
    Bits,
}

impl TextRendering {
    pub(super) fn write(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
        match self {
            Self::Plain => out.extend_from_slice(bytes),
            Self::Char => write_char(bytes, out)?,
            Self::Jsonb => match bytes.split_first() {
                Some((&JSONB_VERSION, text)) => out.extend_from_slice(text),
                _ => return Err(ValueError::Malformed),
            },
            Self::Number => numeric::write_numeric(bytes, out)?,
            Self::Uuid => {
                let mut text = [0; Hyphenated::LENGTH];
                out.extend_from_slice(
                    Uuid::from_bytes(exactly(bytes)?).hyphenated().encode_lower(&mut text).as_bytes(),
                );
            }
            Self::Address => write_inet(bytes, out)?,
            Self::MacAddress => write_mac_address(bytes, out),
            Self::Bits => write_bits(bytes, out)?,
        }
        Ok(())
    }
}

/// Builds arrays of values with any length in one buffer.
pub(super) struct BytesBuilder {
    bytes: Vec<u8>,
    /// The start of each value, and the end of the last one.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Default for BytesBuilder {
    fn default() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0], nulls: NullBufferBuilder::new(0) }
    }
}

impl BytesBuilder {
    /// Appends the value that `write` writes.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        write(&mut self.bytes)?;
        self.offsets.push(i32::try_from(self.bytes.len()).map_err(|_| ValueError::TooLarge)?);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        // The last offset fitted before.
        self.offsets.push(self.offsets.last().copied().unwrap_or_default());
        self.nulls.append_null();
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.offsets.as_slice())
    }

    /// The values as text; the whole buffer is validated at once.
    pub(super) fn finish_text(&mut self) -> Result<StringArray, ValueError> {
        let (offsets, bytes, nulls) = self.take();
        StringArray::try_new(offsets, bytes, nulls).map_err(|_| ValueError::NotUtf8)
    }

    pub(super) fn finish_bytes(&mut self) -> Result<BinaryArray, ValueError> {
        let (offsets, bytes, nulls) = self.take();
        BinaryArray::try_new(offsets, bytes, nulls).map_err(|_| ValueError::Malformed)
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        // The next batch is probably about as large, unless this one contains a huge value.
        let bytes = Vec::with_capacity(self.bytes.len().min(KEPT_BYTES_MAX));
        let mut offsets = Vec::with_capacity(self.offsets.len().min(KEPT_BYTES_MAX / size_of::<i32>()));
        offsets.push(0);
        let offsets = std::mem::replace(&mut self.offsets, offsets);
        let bytes = std::mem::replace(&mut self.bytes, bytes);
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), self.nulls.finish())
    }
}

fn write_char(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    match exactly(bytes)? {
        // The server represents an empty value as zero.
        [0] => {}
        [byte] if byte.is_ascii() => out.push(byte),
        [byte] => out.extend([b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
    Ok(())
}

fn write_mac_address(bytes: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in bytes.iter().enumerate() {
        let colon = if index > 0 { ":" } else { "" };
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{colon}{byte:02x}");
    }
}

/// Writes the digits of a bit string. Its binary form is their number, then eight digits in each byte.
fn write_bits(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = ValueReader(bytes);
    let length = usize::try_from(reader.int32()?).map_err(|_| ValueError::Malformed)?;
    if reader.0.len() != length.div_ceil(8) {
        return Err(ValueError::Malformed);
    }
    out.extend((0..length).map(|index| b'0' + (reader.0[index / 8] >> (7 - index % 8) & 1)));
    Ok(())
}

const IPV4: u8 = 2;
const IPV6: u8 = 3;

/// Writes the address, with the prefix length if it is a network or not the default.
fn write_inet(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = ValueReader(bytes);
    let (family, bits, is_network, length) = (reader.byte()?, reader.byte()?, reader.byte()? != 0, reader.byte()?);
    if reader.0.len() != usize::from(length) {
        return Err(ValueError::Malformed);
    }
    // Writing to a Vec cannot fail; below too.
    let bits_max = match family {
        IPV4 => {
            let _ = write!(out, "{}", Ipv4Addr::from(exactly(reader.0)?));
            32
        }
        IPV6 => {
            write_ipv6(exactly(reader.0)?, out);
            128
        }
        _ => return Err(ValueError::Malformed),
    };
    if is_network || bits != bits_max {
        let _ = write!(out, "/{bits}");
    }
    Ok(())
}

/// The standard library writes addresses as PostgreSQL does, except those that end in one of IPv4 after six groups of
/// zeros.
fn write_ipv6(bytes: [u8; 16], out: &mut Vec<u8>) {
    let _ = match bytes {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if (a, b) != (0, 0) => {
            write!(out, "::{}", Ipv4Addr::new(a, b, c, d))
        }
        bytes => write!(out, "{}", Ipv6Addr::from(bytes)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(family: u8, bits: u8, is_network: u8, address: &[u8]) -> Result<String, ValueError> {
        let mut out = Vec::new();
        let head = [family, bits, is_network, address.len() as u8];
        write_inet(&[&head, address].concat(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn ipv6(groups: [u16; 8]) -> String {
        text(IPV6, 128, 0, &groups.map(u16::to_be_bytes).concat()).unwrap()
    }

    #[test]
    fn prefix_length_is_written_for_networks() {
        assert_eq!(text(IPV4, 32, 0, &[10, 0, 0, 1]).unwrap(), "10.0.0.1");
        assert_eq!(text(IPV4, 24, 0, &[10, 0, 0, 1]).unwrap(), "10.0.0.1/24");
        assert_eq!(text(IPV4, 32, 1, &[10, 0, 0, 1]).unwrap(), "10.0.0.1/32");
        assert_eq!(text(IPV4, 32, 0, &[10, 0, 0]), Err(ValueError::Malformed));
        assert_eq!(text(9, 32, 0, &[10, 0, 0, 1]), Err(ValueError::Malformed));
    }

    #[test]
    fn first_longest_zero_run_is_compressed() {
        assert_eq!(ipv6([0; 8]), "::");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0, 0, 1]), "::1");
        assert_eq!(ipv6([1, 0, 0, 0, 0, 0, 0, 0]), "1::");
        assert_eq!(ipv6([1, 0, 0, 2, 0, 0, 3, 0]), "1::2:0:0:3:0");
        assert_eq!(ipv6([1, 0, 2, 3, 4, 5, 6, 7]), "1:0:2:3:4:5:6:7");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304]), "::ffff:1.2.3.4");
        assert_eq!(ipv6([0, 0, 0, 0, 0, 0, 0x102, 0x304]), "::1.2.3.4");
    }
}
