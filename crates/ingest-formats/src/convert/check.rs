//! Which rows of a batch do not fit, and why.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, OffsetSizeTrait, PrimitiveArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
};
use arrow::error::ArrowError;

use super::size::between;
use super::{ConversionKind, MemberConversion, ValueConversion, value_type};
use crate::column::describe_type;
use crate::error::CellError;
use crate::json::JsonCursor;
use crate::value::{quoted, units_per_second};

const SECONDS_PER_DAY: i64 = 86_400;
const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// The first reason of each row that does not fit.
pub(super) type RowFailures = BTreeMap<usize, Box<CellError>>;

/// Checks all rows of a batch.
pub(super) fn check_rows(batch: &RecordBatch, columns: &[MemberConversion]) -> Result<RowFailures, ArrowError> {
    check_members(batch.columns(), None, columns)
}

/// Checks the members of objects, except of those that are null.
fn check_members(
    arrays: &[ArrayRef],
    parents: Option<&NullBuffer>,
    members: &[MemberConversion],
) -> Result<RowFailures, ArrowError> {
    let mut failures = RowFailures::new();
    for member in members {
        let Some(array) = member.source.and_then(|position| arrays.get(position)) else { continue };
        for (row, error) in check_values(array, parents, &member.value)? {
            failures.entry(row).or_insert_with(|| error.in_member(&member.name));
        }
    }
    Ok(failures)
}

/// Checks the values of an array, except where `parents` is null.
fn check_values(
    array: &ArrayRef,
    parents: Option<&NullBuffer>,
    conversion: &ValueConversion,
) -> Result<RowFailures, ArrowError> {
    let array = &unpack(array)?;
    let nulls = array.logical_nulls();
    let mut failures = RowFailures::new();
    if !conversion.is_nullable
        && let Some(nulls) = &nulls
    {
        let visible = |row: &usize| parents.is_none_or(|parents| parents.is_valid(*row));
        for row in (0..array.len()).filter(|row| nulls.is_null(*row)).filter(visible) {
            failures.insert(row, CellError::new("it is null, and the column takes no nulls"));
        }
    }
    let visible = NullBuffer::union(parents, nulls.as_ref());
    let is_visible = |row: usize| visible.as_ref().is_none_or(|visible| visible.is_valid(row));
    let found = match &conversion.kind {
        ConversionKind::Same => check_range(array, conversion),
        ConversionKind::Cast => check_cast(array, conversion, &is_visible)?,
        ConversionKind::Struct(members) => {
            let members = check_members(array.as_struct().columns(), visible.as_ref(), members)?;
            members.into_iter().collect()
        }
        ConversionKind::List(item) => check_items(array, item, &is_visible)?,
        ConversionKind::Map { key, value } => check_entries(array, key, value)?,
    };
    let found = found.into_iter().filter(|(row, _)| is_visible(*row));
    for (row, error) in found {
        failures.entry(row).or_insert(error);
    }
    if conversion.is_json {
        check_json(array, &is_visible, &mut failures)?;
    }
    Ok(failures)
}

/// The values without a dictionary.
pub(super) fn unpack(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values),
        _ => Ok(array.clone()),
    }
}

/// Checks items of lists. Those of a list that is null are not visible.
fn check_items(
    array: &ArrayRef,
    item: &ValueConversion,
    is_visible: &dyn Fn(usize) -> bool,
) -> Result<Vec<(usize, Box<CellError>)>, ArrowError> {
    let (items, ranges) = item_ranges(array)?;
    let mut failures = check_values(&items, None, item)?;
    let mut found = Vec::new();
    if failures.is_empty() {
        return Ok(found);
    }
    for (row, range) in ranges.into_iter().enumerate().filter(|(row, _)| is_visible(*row)) {
        let first = failures.range(range.clone()).next().map(|(index, _)| *index);
        if let Some((index, error)) = first.and_then(|index| failures.remove_entry(&index)) {
            found.push((row, error.in_item(index - range.start)));
        }
    }
    Ok(found)
}

/// The items that lists of any layout have, and which of them each list has.
fn item_ranges(array: &ArrayRef) -> Result<(ArrayRef, Vec<std::ops::Range<usize>>), ArrowError> {
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let items = array.as_fixed_size_list().values().clone();
            Ok((items, (0..array.len()).map(|row| row * size..(row + 1) * size).collect()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            Ok((between(list.values(), list.offsets()), ranges_of(list.offsets())))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            Ok((between(list.values(), list.offsets()), ranges_of(list.offsets())))
        }
        other => Err(ArrowError::InvalidArgumentError(format!("{other} is no list"))),
    }
}

/// Which items each list has, counted from the first item of the first one.
fn ranges_of<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<std::ops::Range<usize>> {
    let first = offsets.first().map_or(0, |offset| offset.as_usize());
    offsets.array_windows().map(|[start, end]| start.as_usize() - first..end.as_usize() - first).collect()
}

fn check_entries(
    array: &ArrayRef,
    key: &ValueConversion,
    value: &ValueConversion,
) -> Result<Vec<(usize, Box<CellError>)>, ArrowError> {
    let map = array.as_map();
    let mut failures = check_values(&between(map.keys(), map.offsets()), None, key)?;
    for (index, error) in check_values(&between(map.values(), map.offsets()), None, value)? {
        failures.entry(index).or_insert(error);
    }
    let mut found = Vec::new();
    for (row, range) in ranges_of(map.offsets()).into_iter().enumerate() {
        let first = failures.range(range.clone()).next().map(|(index, _)| *index);
        if let Some((index, error)) = first.and_then(|index| failures.remove_entry(&index)) {
            found.push((row, error.in_item(index - range.start)));
        }
    }
    Ok(found)
}

/// A value fits if it comes back from the other type as it was.
fn check_cast(
    array: &ArrayRef,
    conversion: &ValueConversion,
    is_visible: &dyn Fn(usize) -> bool,
) -> Result<Vec<(usize, Box<CellError>)>, ArrowError> {
    let target = value_type(&conversion.target);
    if array.data_type() == &DataType::Null || is_same_family(array.data_type(), target) {
        return Ok(Vec::new());
    }
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let converted = cast_with_options(array, target, &options)?;
    let back = cast_with_options(&converted, array.data_type(), &options)?;
    let differs = distinct(array, &back)?;
    let mut found = failures_where(&differs, |row| {
        is_visible(row)
            .then(|| format!("{} does not fit; the column is {}", value_text(array, row), describe_type(target)))
    });
    let rest = check_range(&converted, conversion);
    found.extend(rest);
    Ok(found)
}

/// Texts and bytes differ in their layout only.
fn is_same_family(source: &DataType, target: &DataType) -> bool {
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_binary = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
        )
    };
    (is_text(source) && is_text(target)) || (is_binary(source) && is_binary(target))
}

/// Values that the type does not have, although its bits can hold them.
fn check_range(array: &ArrayRef, conversion: &ValueConversion) -> Vec<(usize, Box<CellError>)> {
    let day = |unit: TimeUnit| SECONDS_PER_DAY * units_per_second(unit);
    match array.data_type() {
        DataType::Decimal32(precision, _) => decimals::<Decimal32Type>(array, *precision, conversion),
        DataType::Decimal64(precision, _) => decimals::<Decimal64Type>(array, *precision, conversion),
        DataType::Decimal128(precision, _) => decimals::<Decimal128Type>(array, *precision, conversion),
        DataType::Decimal256(precision, _) => decimals::<Decimal256Type>(array, *precision, conversion),
        DataType::Date64 => invalid::<Date64Type>(array, conversion, |value| value % MILLISECONDS_PER_DAY == 0),
        DataType::Time32(TimeUnit::Second) => {
            invalid::<Time32SecondType>(array, conversion, |value| (0..day(TimeUnit::Second)).contains(&value.into()))
        }
        DataType::Time32(_) => invalid::<Time32MillisecondType>(array, conversion, |value| {
            (0..day(TimeUnit::Millisecond)).contains(&value.into())
        }),
        DataType::Time64(TimeUnit::Microsecond) => invalid::<Time64MicrosecondType>(array, conversion, |value| {
            (0..day(TimeUnit::Microsecond)).contains(&value)
        }),
        DataType::Time64(_) => {
            invalid::<Time64NanosecondType>(array, conversion, |value| (0..day(TimeUnit::Nanosecond)).contains(&value))
        }
        _ => Vec::new(),
    }
}

fn decimals<T: DecimalType>(
    array: &ArrayRef,
    precision: u8,
    conversion: &ValueConversion,
) -> Vec<(usize, Box<CellError>)> {
    invalid::<T>(array, conversion, |value| T::is_valid_decimal_precision(value, precision))
}

fn invalid<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    conversion: &ValueConversion,
    is_valid: impl Fn(T::Native) -> bool,
) -> Vec<(usize, Box<CellError>)> {
    let Some(values) = array.as_any().downcast_ref::<PrimitiveArray<T>>() else { return Vec::new() };
    let described = || {
        CellError::new(format!(
            "it has a value that the type does not have; the column is {}",
            describe_type(&conversion.target)
        ))
    };
    let rows = values.values().iter().enumerate();
    let invalid = rows.filter(|(row, value)| array.is_valid(*row) && !is_valid(**value));
    invalid.map(|(row, _)| (row, described())).collect()
}

fn check_json(
    array: &ArrayRef,
    is_visible: &dyn Fn(usize) -> bool,
    failures: &mut RowFailures,
) -> Result<(), ArrowError> {
    let texts = cast(array, &DataType::LargeUtf8)?;
    for (row, text) in texts.as_string::<i64>().iter().enumerate().filter(|(row, _)| is_visible(*row)) {
        let Some(text) = text else { continue };
        let mut cursor = JsonCursor::new(text);
        let is_valid = cursor.raw_value().and_then(|_| cursor.expect_end()).is_ok();
        if !is_valid {
            failures.entry(row).or_insert_with(|| CellError::new(format!("{} is not JSON", quoted(text))));
        }
    }
    Ok(())
}

fn failures_where(rows: &BooleanArray, reason: impl Fn(usize) -> Option<String>) -> Vec<(usize, Box<CellError>)> {
    let rows = rows.values().set_indices();
    rows.filter_map(|row| Some((row, CellError::new(reason(row)?)))).collect()
}

fn value_text(array: &ArrayRef, row: usize) -> String {
    arrow::util::display::array_value_to_string(array, row).unwrap_or_else(|_| "the value".to_owned())
}
