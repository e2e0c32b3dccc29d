//! The footer of a Parquet file, as far as the library trusts it.
//!
//! The library builds the tree of columns with a function that calls itself, so that a footer of some kilobytes with
//! thousands of levels ends the process. The depth is therefore counted here first, from the compact protocol of Thrift.

use std::io::{self, Read, Seek, SeekFrom};

use crate::compact_protocol::{CompactReader, CompactType, SKIP_DEPTH_MAX};
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
