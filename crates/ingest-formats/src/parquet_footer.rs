//! The footer of a Parquet file, as far as the library trusts it, and the bounds of columns that it marks as values.
//!
//! The library builds the tree of columns with a function that calls itself, so that a footer of some kilobytes with
//! thousands of levels ends the process. The depth is therefore counted here first. Of the bounds, the library keeps the marks
//! of texts and bytes only, and takes each bound of a number for a value.
//!
//! The footer and the headers of pages are in the
//! [compact protocol of Thrift](https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).

use std::io::{self, Read, Seek, SeekFrom};

use crate::error::BodyError;

/// The first and last bytes of every file.
const MAGIC: &[u8; 4] = b"PAR1";
/// The length of the footer and the last bytes.
const END_BYTES: u64 = 8;
/// The largest footer. That of 2,000 columns in 100 row groups has some 20 MB.
const FOOTER_BYTES_MAX: u32 = 64 << 20;
/// How deeply columns may be nested. A level of lists or maps takes two or three.
const SCHEMA_DEPTH_MAX: usize = 100;
/// The fields of the footer and of an element of its schema that are read.
const SCHEMA_FIELD: i64 = 2;
const CHILDREN_FIELD: i64 = 5;

/// Checks the footer, and returns the length of the file.
pub(crate) fn check_footer<R: Read + Seek>(file: &mut R) -> Result<u64, BodyError> {
    let spool = |error: io::Error| BodyError::Spool(error.to_string());
    let length = file.seek(SeekFrom::End(0)).map_err(spool)?;
    if length < MAGIC.len() as u64 + END_BYTES {
        return Err(malformed("it is too short"));
    }
    let mut first = [0; MAGIC.len()];
    let mut end = [0; 4];
    let mut last = [0; MAGIC.len()];
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut first)).map_err(spool)?;
    file.seek(SeekFrom::Start(length - END_BYTES)).map_err(spool)?;
    file.read_exact(&mut end).and_then(|()| file.read_exact(&mut last)).map_err(spool)?;
    if first != *MAGIC {
        return Err(malformed("it does not begin with PAR1"));
    }
    if last != *MAGIC {
        return Err(malformed("it does not end with PAR1, so that it may be cut off"));
    }
    let footer = u32::from_le_bytes(end);
    if footer > FOOTER_BYTES_MAX {
        return Err(BodyError::TooLarge(format!(
            "the footer of the Parquet file has {footer} bytes; at most {FOOTER_BYTES_MAX} are allowed"
        )));
    }
    let Some(start) = (length - END_BYTES).checked_sub(u64::from(footer)) else {
        return Err(malformed("its footer is longer than the file"));
    };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).map_err(spool)?;
    file.take(u64::from(footer)).read_to_end(&mut bytes).map_err(spool)?;
    let depth = schema_depth(&bytes).ok_or_else(|| malformed("its footer is malformed"))?;
    if depth > SCHEMA_DEPTH_MAX {
        return Err(BodyError::Columns(format!("the columns are nested more than {SCHEMA_DEPTH_MAX} levels deep")));
    }
    Ok(length)
}

fn malformed(reason: &str) -> BodyError {
    BodyError::Malformed(format!("the body is no valid Parquet file: {reason}"))
}

/// How deeply the schema is nested, or one more than allowed. Nothing if the footer is malformed.
fn schema_depth(footer: &[u8]) -> Option<usize> {
    let mut reader = CompactReader::new(footer);
    let mut field = 0;
    loop {
        let kind = reader.field(&mut field)?;
        match (kind, field) {
            (CompactType::Stop, _) => return None,
            (CompactType::List, SCHEMA_FIELD) => return element_depth(&mut reader),
            // The library does not look at the type of a field.
            (_, SCHEMA_FIELD) => return None,
            _ => reader.skip(kind, SKIP_DEPTH_MAX)?,
        }
    }
}

/// The depth of a list of elements, each with the number of its children, which follow it.
fn element_depth(reader: &mut CompactReader<'_>) -> Option<usize> {
    let (count, kind) = reader.list()?;
    if kind != CompactType::Struct {
        return None;
    }
    let mut open: Vec<i64> = Vec::new();
    let mut deepest = 0;
    for _ in 0..count {
        let children = children(reader)?;
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(remaining) = open.last_mut() {
            *remaining -= 1;
        }
        if children > 0 {
            open.push(children);
            deepest = deepest.max(open.len());
        }
        if deepest > SCHEMA_DEPTH_MAX {
            break;
        }
    }
    Some(deepest)
}

/// The number of children of the next element.
fn children(reader: &mut CompactReader<'_>) -> Option<i64> {
    let (mut field, mut children) = (0, 0);
    loop {
        match reader.field(&mut field)? {
            CompactType::Stop => return Some(children),
            CompactType::Integer if field == CHILDREN_FIELD => children = reader.integer()?,
            _ if field == CHILDREN_FIELD => return None,
            kind => reader.skip(kind, SKIP_DEPTH_MAX)?,
        }
    }
}

/// The fields of the footer, of a row group, of a part of a column, of its description and of its statistics that are read.
const ROW_GROUPS_FIELD: i64 = 4;
const COLUMNS_FIELD: i64 = 1;
const DESCRIPTION_FIELD: i64 = 3;
const STATISTICS_FIELD: i64 = 12;
const MAXIMUM_IS_EXACT_FIELD: i64 = 7;
const MINIMUM_IS_EXACT_FIELD: i64 = 8;

/// Whether both bounds of a column are marked as values of it in all row groups, for each column of a footer. Nothing if the
/// footer is malformed.
#[must_use]
pub fn exact_parquet_columns(footer: &[u8]) -> Option<Vec<bool>> {
    let mut exact: Option<Vec<bool>> = None;
    read_struct(&mut CompactReader::new(footer), |reader, field, kind| {
        if field != ROW_GROUPS_FIELD {
            return Some(false);
        }
        each_struct(reader, kind, |reader| {
            let of_group = exact_columns_of_group(reader)?;
            match &mut exact {
                None => exact = Some(of_group),
                Some(exact) if exact.len() == of_group.len() => {
                    exact.iter_mut().zip(of_group).for_each(|(exact, of_group)| *exact &= of_group);
                }
                Some(_) => return None,
            }
            Some(())
        })?;
        Some(true)
    })?;
    exact
}

fn exact_columns_of_group(reader: &mut CompactReader<'_>) -> Option<Vec<bool>> {
    let mut exact = Vec::new();
    read_struct(reader, |reader, field, kind| {
        if field != COLUMNS_FIELD {
            return Some(false);
        }
        each_struct(reader, kind, |reader| {
            let mut has_exact_bounds = false;
            read_struct_field(reader, DESCRIPTION_FIELD, |reader| {
                read_struct_field(reader, STATISTICS_FIELD, |reader| {
                    has_exact_bounds = read_marks(reader)?;
                    Some(())
                })
            })?;
            exact.push(has_exact_bounds);
            Some(())
        })?;
        Some(true)
    })?;
    Some(exact)
}

/// Reads the statistics of a part of a column. A boolean has no bytes of its own.
fn read_marks(reader: &mut CompactReader<'_>) -> Option<bool> {
    let (mut maximum, mut minimum) = (false, false);
    read_struct(reader, |_, field, kind| {
        match (field, kind) {
            (MAXIMUM_IS_EXACT_FIELD, CompactType::Boolean(is_exact)) => maximum = is_exact,
            (MINIMUM_IS_EXACT_FIELD, CompactType::Boolean(is_exact)) => minimum = is_exact,
            _ => {}
        }
        Some(false)
    })?;
    Some(maximum && minimum)
}

/// Reads a struct. `read` returns whether it has read the value of a field; others are skipped.
fn read_struct(
    reader: &mut CompactReader<'_>,
    mut read: impl FnMut(&mut CompactReader<'_>, i64, CompactType) -> Option<bool>,
) -> Option<()> {
    let mut field = 0;
    loop {
        match reader.field(&mut field)? {
            CompactType::Stop => return Some(()),
            kind => {
                if !read(reader, field, kind)? {
                    reader.skip(kind, SKIP_DEPTH_MAX)?;
                }
            }
        }
    }
}

/// Reads a struct of which only the struct in the field `expected` matters.
fn read_struct_field(
    reader: &mut CompactReader<'_>,
    expected: i64,
    mut read: impl FnMut(&mut CompactReader<'_>) -> Option<()>,
) -> Option<()> {
    read_struct(reader, |reader, field, kind| {
        let is_expected = field == expected && kind == CompactType::Struct;
        if is_expected {
            read(reader)?;
        }
        Some(is_expected)
    })
}

/// Reads the value of a field that is a list of structs.
fn each_struct(
    reader: &mut CompactReader<'_>,
    kind: CompactType,
    mut read: impl FnMut(&mut CompactReader<'_>) -> Option<()>,
) -> Option<()> {
    if kind != CompactType::List {
        return None;
    }
    let (count, item) = reader.list()?;
    if item != CompactType::Struct {
        return None;
    }
    (0..count).try_for_each(|_| read(reader))
}

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
