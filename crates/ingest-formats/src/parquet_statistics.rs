//! The bounds of columns that the footer of a Parquet file marks as values.
//!
//! The library keeps the marks of texts and bytes only, and takes each bound of a number for a value.

use crate::compact_protocol::{CompactReader, CompactType, SKIP_DEPTH_MAX};

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
