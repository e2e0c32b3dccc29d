//! The compact protocol of Thrift, in which the footer of a Parquet file and the headers of its pages are written.
//!
//! [Thrift compact protocol](https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)

/// How deeply values that are skipped may be nested.
pub(crate) const SKIP_DEPTH_MAX: usize = 32;

/// The types of the compact protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompactType {
    Stop,
    /// A boolean of a field, whose value is part of its type.
    Boolean(bool),
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

/// Reads values one after the other.
pub(crate) struct CompactReader<'a> {
    rest: &'a [u8],
}

impl<'a> CompactReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes after what was read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Moves over so many bytes.
    pub(crate) fn advance(&mut self, length: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(length).ok()?..)?;
        Some(())
    }

    /// A number without sign, of seven bits a byte.
    pub(crate) fn variable(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number with sign, of at most 32 bits: of a longer one, the library reads the lower bits.
    pub(crate) fn integer(&mut self) -> Option<i64> {
        let value = self.variable()?;
        let value = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
        i32::try_from(value).ok().map(i64::from)
    }

    fn kind(code: u8) -> Option<CompactType> {
        Some(match code {
            0 => CompactType::Stop,
            1 | 2 => CompactType::Boolean(code == 1),
            3 => CompactType::Byte,
            4..=6 => CompactType::Integer,
            7 => CompactType::Double,
            8 => CompactType::Binary,
            9 | 10 => CompactType::List,
            11 => CompactType::Map,
            12 => CompactType::Struct,
            13 => CompactType::Uuid,
            _ => return None,
        })
    }

    /// The type of the next field of a struct, whose number becomes `field`. The library reads 16 bits of a number, and the
    /// last of several fields with the same one: a file with others has two meanings.
    pub(crate) fn field(&mut self, field: &mut i64) -> Option<CompactType> {
        let header = self.byte()?;
        let kind = Self::kind(header & 0x0F)?;
        if kind != CompactType::Stop {
            let delta = i64::from(header >> 4);
            let next = if delta == 0 { self.integer()? } else { field.checked_add(delta)? };
            if next <= *field || next > i64::from(i16::MAX) {
                return None;
            }
            *field = next;
        }
        Some(kind)
    }

    /// The number and the type of the items of a list.
    pub(crate) fn list(&mut self) -> Option<(u64, CompactType)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.variable()?,
            count => u64::from(count),
        };
        Some((count, Self::kind(header & 0x0F)?))
    }

    /// Moves over the value of a field.
    pub(crate) fn skip(&mut self, kind: CompactType, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            CompactType::Stop | CompactType::Boolean(_) => Some(()),
            CompactType::Byte => self.advance(1),
            CompactType::Integer => self.variable().map(drop),
            CompactType::Double => self.advance(8),
            CompactType::Uuid => self.advance(16),
            CompactType::Binary => {
                let length = self.variable()?;
                self.advance(length)
            }
            CompactType::List => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_item(kind, depth))
            }
            CompactType::Map => {
                let count = self.variable()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Self::kind(kinds >> 4)?, Self::kind(kinds & 0x0F)?);
                (0..count).try_for_each(|_| self.skip_item(key, depth).and_then(|()| self.skip_item(value, depth)))
            }
            CompactType::Struct => {
                let mut field = 0;
                loop {
                    match self.field(&mut field)? {
                        CompactType::Stop => return Some(()),
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
        }
    }

    /// Moves over an item of a list or map, where a boolean has a byte.
    fn skip_item(&mut self, kind: CompactType, depth: usize) -> Option<()> {
        match kind {
            CompactType::Stop => None,
            CompactType::Boolean(_) => self.advance(1),
            _ => self.skip(kind, depth),
        }
    }
}
