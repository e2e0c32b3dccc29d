//! Values of all types survive a table exactly.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Int64Array, LargeListArray,
    ListArray, MapArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, sort_to_indices, take_record_batch};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Field, Fields, Float32Type, Float64Type,
    Schema, TimeUnit, UInt64Type, i256,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tempfile::tempdir;
use tidegate_delta::{DeltaError, DeltaTable, PartitionBy};

use super::fixture::{append, rows};

/// Types with integers as values, and their width in bits.
fn integer_types() -> Vec<(DataType, u32)> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let mut types = vec![
        (DataType::Int8, 8),
        (DataType::Int16, 16),
        (DataType::Int32, 32),
        (DataType::Int64, 64),
        (DataType::Date32, 32),
        (DataType::Date64, 64),
        (DataType::Time32(Second), 32),
        (DataType::Time32(Millisecond), 32),
        (DataType::Time64(Microsecond), 64),
        (DataType::Time64(Nanosecond), 64),
    ];
    for unit in [Second, Millisecond, Microsecond, Nanosecond] {
        types.push((DataType::Duration(unit), 64));
        types.push((DataType::Timestamp(unit, None), 64));
        for zone in ["UTC", "+00:00", "Europe/Berlin", "-08:00"] {
            types.push((DataType::Timestamp(unit, Some(zone.into())), 64));
        }
    }
    types
}

type Raw = Option<i128>;

/// The column that rows of a table with partitions are ordered by.
const ROW_NUMBER: &str = "row";

fn integers(data_type: &DataType, bits: u32, raw: &[Raw]) -> ArrayRef {
    let shift = 64 - bits;
    #[expect(clippy::cast_possible_truncation, reason = "any value will do")]
    let values = raw.iter().map(|raw| raw.map(|raw| (raw as i64) << shift >> shift)).collect::<Int64Array>();
    let through = if bits == 32 { cast(&values, &DataType::Int32).unwrap() } else { Arc::new(values) };
    cast(&through, data_type).unwrap()
}

/// A column of each type without parts, from any numbers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "any value will do")]
fn leaves(raw: &[Raw]) -> Vec<ArrayRef> {
    let mut arrays: Vec<_> = integer_types().iter().map(|(data_type, bits)| integers(data_type, *bits, raw)).collect();
    let values = || raw.iter().copied();
    arrays.push(Arc::new(values().map(|raw| raw.map(|raw| raw % 2 == 0)).collect::<BooleanArray>()));
    let unsigned = values().map(|raw| raw.map(|raw| raw as u64)).collect::<PrimitiveArray<UInt64Type>>();
    for (data_type, bits) in [(DataType::UInt8, 8), (DataType::UInt16, 16), (DataType::UInt32, 32)] {
        let shift = 64 - bits;
        arrays.push(cast(&unsigned.unary::<_, UInt64Type>(|value| value << shift >> shift), &data_type).unwrap());
    }
    arrays.push(Arc::new(unsigned));
    arrays.push(Arc::new(
        values().map(|raw| raw.map(|raw| f64::from_bits(raw as u64))).collect::<PrimitiveArray<Float64Type>>(),
    ));
    arrays.push(Arc::new(
        values().map(|raw| raw.map(|raw| f32::from_bits(raw as u32))).collect::<PrimitiveArray<Float32Type>>(),
    ));
    let halves =
        values().map(|raw| raw.map(|raw| f32::from(raw as i16) / 8.0)).collect::<PrimitiveArray<Float32Type>>();
    arrays.push(Arc::new(cast(&halves, &DataType::Float16).unwrap()));
    assert_eq!(arrays.last().unwrap().data_type(), &DataType::Float16);
    let text: StringArray = values().map(|raw| raw.map(to_text)).collect();
    arrays.push(cast(&text, &DataType::LargeUtf8).unwrap());
    arrays.push(cast(&text, &DataType::Utf8View).unwrap());
    arrays.push(Arc::new(text));
    let bytes: BinaryArray = values().map(|raw| raw.map(|raw| raw.to_le_bytes())).collect();
    arrays.push(cast(&bytes, &DataType::LargeBinary).unwrap());
    arrays.push(cast(&bytes, &DataType::BinaryView).unwrap());
    arrays.push(Arc::new(bytes));
    let fixed = values().map(|raw| raw.map(|raw| raw.to_le_bytes()));
    arrays.push(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 16).unwrap()));
    arrays.extend(decimals(raw));
    arrays
}

#[expect(clippy::cast_possible_truncation, reason = "any value will do")]
fn decimals(raw: &[Raw]) -> Vec<ArrayRef> {
    let within = |digits: u32| raw.iter().map(move |raw| raw.map(|raw| raw % 10_i128.pow(digits)));
    let d32: PrimitiveArray<Decimal32Type> = within(9).map(|value| value.map(|value| value as i32)).collect();
    let d64: PrimitiveArray<Decimal64Type> = within(18).map(|value| value.map(|value| value as i64)).collect();
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(d32.with_precision_and_scale(9, 2).unwrap()),
        Arc::new(d64.with_precision_and_scale(18, 18).unwrap()),
    ];
    for (precision, scale) in [(38, 0), (38, 38), (38, 7), (5, 2)] {
        let values: PrimitiveArray<Decimal128Type> = within(u32::from(precision)).collect();
        arrays.push(Arc::new(values.with_precision_and_scale(precision, scale).unwrap()));
    }
    let wide: PrimitiveArray<Decimal256Type> = within(38).map(|value| value.map(i256::from_i128)).collect();
    arrays.push(Arc::new(wide.with_precision_and_scale(38, 10).unwrap()));
    arrays
}

fn to_text(raw: i128) -> String {
    let characters = raw.to_le_bytes().map(|byte| char::from_u32(u32::from(byte) * 7).unwrap_or('\u{10FFFF}'));
    let length = usize::try_from(raw.rem_euclid(17)).unwrap();
    characters.into_iter().take(length).collect::<String>().repeat(1 + length % 3)
}

/// A list, a list of fixed size, a structure and a map with these values.
fn nested(leaf: &ArrayRef) -> Vec<ArrayRef> {
    let rows = leaf.len();
    let nulls = NullBuffer::from((0..rows).map(|row| row % 3 != 1).collect::<Vec<_>>());
    let element = Arc::new(Field::new("element", leaf.data_type().clone(), true));
    // The rows have no value, one, and two by turns; a row that is null has none.
    let lengths = (0..rows).map(|row| if row % 3 == 1 { 0 } else { row % 3 });
    let offsets = OffsetBuffer::from_lengths(lengths.clone());
    let used = offsets.last().copied().map_or(0, |last| usize::try_from(last).unwrap());
    let positions =
        arrow::array::UInt32Array::from_iter_values((0..used).map(|row| u32::try_from(row % rows.max(1)).unwrap()));
    let values = arrow::compute::take(leaf, &positions, None).unwrap();
    let list = ListArray::new(Arc::clone(&element), offsets.clone(), Arc::clone(&values), Some(nulls.clone()));
    let large = LargeListArray::new(
        Arc::new(Field::new("item", leaf.data_type().clone(), true)),
        OffsetBuffer::from_lengths(lengths),
        Arc::clone(&values),
        Some(nulls.clone()),
    );
    let doubled = arrow::compute::concat(&[leaf.as_ref(), leaf.as_ref()]).unwrap();
    let fixed = FixedSizeListArray::new(element, 2, doubled, Some(nulls.clone()));
    let fields: Fields =
        vec![Field::new("part", leaf.data_type().clone(), true), Field::new("list", list.data_type().clone(), true)]
            .into();
    let structure = StructArray::new(fields, vec![Arc::clone(leaf), Arc::new(list.clone())], Some(nulls.clone()));
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values((0..used).map(|key| key.to_string())));
    let entries = StructArray::new(
        vec![Field::new("keys", DataType::Utf8, false), Field::new("values", leaf.data_type().clone(), true)].into(),
        vec![keys, values],
        None,
    );
    let entries_field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let map = MapArray::new(entries_field, offsets, entries, Some(nulls), false);
    vec![Arc::new(list), Arc::new(large), Arc::new(fixed), Arc::new(structure), Arc::new(map)]
}

fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<_> = arrays
        .iter()
        .enumerate()
        .map(|(position, array)| Field::new(format!("c{position}"), array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn check_round_trip(batch: &RecordBatch, partition_by: &[PartitionBy]) -> Result<(), TestCaseError> {
    let folder = tempdir().unwrap();
    let mut table = DeltaTable::create(folder.path(), &batch.schema(), partition_by).unwrap();
    append(&mut table, batch);
    let reopened = DeltaTable::open(folder.path()).unwrap().unwrap();
    let snapshot = reopened.snapshot();
    prop_assert_eq!(&snapshot.schema, &batch.schema());
    prop_assert_eq!(&snapshot.files, &table.snapshot().files);
    let read = rows(folder.path(), &snapshot);
    let read = match batch.schema().index_of(ROW_NUMBER) {
        Ok(position) => take_record_batch(&read, &sort_to_indices(read.column(position), None, None).unwrap()).unwrap(),
        Err(_) => read,
    };
    for (read, written) in read.columns().iter().zip(batch.columns()) {
        // This compares the bytes of numbers, so that NaN is equal to itself, and ignores what is below a null.
        prop_assert!(read.to_data() == written.to_data(), "{:?} instead of {:?}", read, written);
    }
    Ok(())
}

fn any_numbers() -> impl Strategy<Value = Vec<Raw>> {
    let number = prop_oneof![
        any::<i128>(),
        any::<i64>().prop_map(i128::from),
        (-5_i128..5),
        Just(i128::from(i64::MIN)),
        Just(i128::from(i64::MAX)),
        Just(i128::MAX),
        Just(i128::MIN),
    ];
    vec(option::weighted(0.8, number), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_types_survive(raw in any_numbers()) {
        check_round_trip(&batch(leaves(&raw)), &[])?;
    }

    #[test]
    fn nested_types_survive(raw in any_numbers(), choice in any::<prop::sample::Index>()) {
        let leaves = leaves(&raw);
        let leaf = choice.get(&leaves);
        let first = nested(leaf);
        let second = nested(&first[choice.index(first.len())]);
        check_round_trip(&batch(first.into_iter().chain(second).collect()), &[])?;
    }

    #[test]
    fn partition_columns_survive(raw in any_numbers(), choice in any::<prop::sample::Index>()) {
        let leaves = leaves(&raw);
        let is_partition = |leaf: &&ArrayRef| !matches!(
            leaf.data_type(),
            DataType::Float64 | DataType::Float32 | DataType::Float16 | DataType::Binary | DataType::LargeBinary
                | DataType::BinaryView | DataType::FixedSizeBinary(_)
        );
        let possible: Vec<_> = leaves.iter().filter(is_partition).cloned().collect();
        let numbers = (0..raw.len()).map(|number| i64::try_from(number).unwrap()).collect::<Int64Array>();
        let possible = choice.get(&possible).clone();
        let fields = vec![
            Field::new("c0", possible.data_type().clone(), true),
            Field::new(ROW_NUMBER, DataType::Int64, false),
        ];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![possible, Arc::new(numbers)]).unwrap();
        check_round_trip(&batch, &[PartitionBy::Column("c0".to_owned())])?;
    }
}

#[test]
fn extension_metadata_survives() {
    let folder = tempdir().unwrap();
    let metadata = [("ARROW:extension:name".to_owned(), "arrow.json".to_owned()), ("unit".to_owned(), "°C".to_owned())];
    let json = Field::new("json", DataType::Utf8, true).with_metadata(metadata.into());
    let inner = Field::new("inner", DataType::Struct(vec![json.clone()].into()), false);
    let schema = Schema::new(vec![json, inner]);
    DeltaTable::create(folder.path(), &schema, &[]).unwrap();
    assert_eq!(*DeltaTable::open(folder.path()).unwrap().unwrap().snapshot().schema, schema);
}

#[test]
fn types_without_lossless_form_are_refused_by_name() {
    let folder = tempdir().unwrap();
    let types = [
        DataType::Null,
        DataType::Decimal128(10, -2),
        DataType::Decimal256(39, 2),
        DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        DataType::Struct(Fields::empty()),
    ];
    for data_type in types {
        let schema = Schema::new(vec![Field::new("a", DataType::Int8, true), Field::new("odd", data_type, true)]);
        let error = DeltaTable::create(folder.path(), &schema, &[]).unwrap_err();
        assert!(matches!(&error, DeltaError::UnsupportedType { column, .. } if column == "odd"), "{error}");
    }
}

#[test]
fn names_that_differ_in_case_only_are_refused() {
    let folder = tempdir().unwrap();
    let schema = Schema::new(vec![Field::new("a", DataType::Int8, true), Field::new("A", DataType::Int8, true)]);
    assert!(matches!(DeltaTable::create(folder.path(), &schema, &[]), Err(DeltaError::InvalidSchema(_))));
}
