//! Statistics of files hold for all their values, and days of partitions for all their rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use proptest::prelude::*;
use tempfile::tempdir;
use tidegate_delta::{
    ColumnStatistics, DataFile, DataFileWriter, DeltaTable, PartitionBy, StatisticsValue, WriterOptions, expired_files,
};

use super::fixture::{append, rows, write};
use super::samples::samples;

fn column(values: ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("c", values.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap()
}

/// The statistics of a column after they were written to the log and read from it.
fn statistics(values: ArrayRef) -> ColumnStatistics {
    let folder = tempdir().unwrap();
    let batch = column(values);
    let mut table = DeltaTable::create(folder.path(), &batch.schema(), &[]).unwrap();
    append(&mut table, &batch);
    let reopened = DeltaTable::open(folder.path()).unwrap().unwrap().snapshot();
    assert_eq!(reopened.files, table.snapshot().files);
    reopened.files[0].column_statistics("c").unwrap().clone()
}

fn text(value: &str) -> Option<StatisticsValue> {
    Some(StatisticsValue::Text(value.into()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

#[test]
fn long_text_is_cut_to_bounds() {
    let long = "x".repeat(40);
    let found = statistics(texts(&["b", &long]));
    assert_eq!((found.minimum, found.maximum), (text("b"), text(&format!("{}y", "x".repeat(31)))));
    assert!(!found.is_exact);
    let found = statistics(texts(&[&long]));
    assert_eq!((found.minimum, found.is_exact), (text(&"x".repeat(32)), false));
    // The greatest character has no next one, so that there is no bound.
    let found = statistics(texts(&[&"\u{10FFFF}".repeat(33)]));
    assert_eq!((found.minimum, found.maximum), (text(&"\u{10FFFF}".repeat(32)), None));
    // Surrogates are no characters.
    let found = statistics(texts(&[&"\u{D7FF}".repeat(33)]));
    assert_eq!(found.maximum, text(&format!("{}\u{E000}", "\u{D7FF}".repeat(31))));
    let found = statistics(texts(&["a", "b"]));
    assert_eq!((found.minimum, found.maximum, found.is_exact), (text("a"), text("b"), true));
}

#[test]
fn floats_that_have_no_order_have_no_bounds() {
    let float = |value| Some(StatisticsValue::Float(value));
    let found = statistics(floats(&[1.0, f64::NAN]));
    assert_eq!((found.minimum, found.maximum), (None, None));
    let found = statistics(floats(&[1.0, f64::INFINITY]));
    assert_eq!((found.minimum, found.maximum), (float(1.0), None));
    let found = statistics(floats(&[0.0, -1.5]));
    assert_eq!((found.minimum, found.maximum, found.is_exact), (float(-1.5), float(0.0), false));
    let StatisticsValue::Float(zero) = statistics(floats(&[0.0])).minimum.unwrap() else { panic!("no number") };
    assert!(zero.is_sign_negative());
}

#[test]
fn nulls_are_counted() {
    let found = statistics(Arc::new(Int64Array::from(vec![None, Some(i64::MIN), None])));
    let minimum = Some(StatisticsValue::Integer(i128::from(i64::MIN)));
    assert_eq!((found.null_count, &found.minimum, &found.maximum), (Some(2), &minimum, &minimum));
    let found = statistics(Arc::new(Int64Array::from(vec![None, None])));
    assert_eq!((found.null_count, found.minimum, found.is_exact), (Some(2), None, false));
}

/// The bounds of each type are values of it, and the smallest and greatest of the sample.
#[test]
fn bounds_of_all_types_have_the_type() {
    for sample in samples() {
        let (data_type, values) = (sample.field.data_type(), &sample.values);
        let is_plain = !data_type.is_nested() && !data_type.is_floating() && *data_type != DataType::Boolean;
        let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let has_bytes = data_type.to_string().contains("Binary");
        if !is_plain || is_text || has_bytes {
            continue;
        }
        let found = statistics(Arc::clone(values));
        let sorted = arrow::compute::sort(values, None).unwrap();
        // Nulls are the first of the sorted values.
        let bounds = [(found.minimum, values.null_count()), (found.maximum, sorted.len() - 1)];
        for (bound, row) in bounds {
            let bound = bound.unwrap().to_array(data_type).unwrap();
            assert_eq!(bound.to_data(), sorted.slice(row, 1).to_data(), "{}", sample.field.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_outside_of_its_bounds(values in prop::collection::vec("[a-c\u{D7FF}\u{10FFFF}]{0,40}", 1..6)) {
        let found = statistics(Arc::new(StringArray::from(values.clone())));
        for value in values {
            let value = StatisticsValue::Text(value.into());
            prop_assert!(found.minimum.as_ref().is_none_or(|minimum| *minimum <= value));
            prop_assert!(found.maximum.as_ref().is_none_or(|maximum| *maximum >= value));
        }
    }

    #[test]
    fn no_number_is_outside_of_its_bounds(values in prop::collection::vec(any::<f64>(), 1..6)) {
        let found = statistics(floats(&values));
        for value in values {
            let value = StatisticsValue::Float(value);
            prop_assert!(found.minimum.as_ref().is_none_or(|minimum| *minimum <= value));
            prop_assert!(found.maximum.as_ref().is_none_or(|maximum| *maximum >= value));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    /// A row is in the partition of its day, month and hour, whatever its time.
    #[test]
    fn files_expire_after_all_their_rows(
        times in prop::collection::vec(prop_oneof![-9_000_000_000_000_000..9_000_000_000_000_000_i64, -9_000_000_000_i64..9_000_000_000], 1..6),
        cutoff in -9_000_000_000_000_000..9_000_000_000_000_000_i64,
    ) {
        for (unit, per_microsecond) in [(TimeUnit::Nanosecond, 1000), (TimeUnit::Microsecond, 1)] {
            for partition_by in [PartitionBy::Day("t".to_owned()), PartitionBy::Month("t".to_owned()), PartitionBy::Hour("t".to_owned())] {
                let folder = tempdir().unwrap();
                let numbers: Int64Array = times.iter().map(|time| Some(time * per_microsecond)).collect();
                let values = cast(&numbers, &DataType::Timestamp(unit, None)).unwrap();
                let schema = Arc::new(Schema::new(vec![Field::new("t", values.data_type().clone(), true)]));
                let batch = RecordBatch::try_new(schema, vec![values]).unwrap();
                let mut table = DeltaTable::create(folder.path(), &batch.schema(), std::slice::from_ref(&partition_by)).unwrap();
                append(&mut table, &batch);
                let snapshot = DeltaTable::open(folder.path()).unwrap().unwrap().snapshot();
                prop_assert_eq!(rows(folder.path(), &snapshot).num_rows(), times.len());
                let expired = expired_files(&snapshot, "t", cutoff).unwrap();
                let mut alone = snapshot.as_ref().clone();
                for file in &snapshot.files {
                    alone.files = vec![Arc::clone(file)];
                    let found = rows(folder.path(), &alone);
                    let found = cast(found.column(0), &DataType::Int64).unwrap();
                    let all_before = found.as_any().downcast_ref::<Int64Array>().unwrap().values().iter()
                        .all(|time| time.div_euclid(per_microsecond) < cutoff);
                    prop_assert_eq!(expired.contains(file), all_before, "{:?}", file.partition_values);
                }
            }
        }
    }
}

#[test]
fn files_with_null_times_do_not_expire() {
    let folder = tempdir().unwrap();
    let values = cast(&Int64Array::from(vec![Some(0), None]), &DataType::Timestamp(TimeUnit::Second, None)).unwrap();
    let batch = column(values);
    for partition_by in [vec![], vec![PartitionBy::Day("c".to_owned())]] {
        let table_folder = folder.path().join(partition_by.len().to_string());
        let mut table = DeltaTable::create(&table_folder, &batch.schema(), &partition_by).unwrap();
        append(&mut table, &batch);
        let expired = expired_files(&table.snapshot(), "c", i64::MAX).unwrap();
        assert_eq!(expired.iter().map(|file| file.rows).sum::<u64>(), partition_by.len() as u64);
    }
}

#[test]
fn names_of_partitions_are_those_of_days_months_and_hours() {
    let folder = tempdir().unwrap();
    let time =
        cast(&Int64Array::from(vec![-1]), &DataType::Timestamp(TimeUnit::Second, Some("+02:00".into()))).unwrap();
    let by = [PartitionBy::Day("c".to_owned()), PartitionBy::Month("c".to_owned()), PartitionBy::Hour("c".to_owned())];
    let file = &write(folder.path(), &by, &column(time))[0];
    let values: Vec<_> = file.partition_values.iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(values, ["1969-12-31", "1969-12-01", "1969-12-31T23"]);
    assert!(file.path.starts_with("c_day=1969-12-31/c_month=1969-12-01/c_hour=1969-12-31T23/part-"), "{}", file.path);
}

/// A writer with few open files and little memory divides the rows into more files and row groups, and keeps them all.
#[test]
fn limits_of_a_writer_change_no_rows() {
    let folder = tempdir().unwrap();
    let numbers: Int64Array = (0..3000).collect();
    let keys: Int64Array = (0..3000).map(|row| row * 7919 % 11).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![("n", Arc::new(numbers)), ("key", Arc::new(keys))];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
            .unwrap();
    let by = [PartitionBy::Column("key".to_owned())];
    let limits = [(2, usize::MAX, u64::MAX), (64, 1, u64::MAX), (64, usize::MAX, 1), (0, 0, 0)];
    for (open_files_max, memory_bytes_max, file_bytes_max) in limits {
        let mut table = DeltaTable::create(
            &folder.path().join(format!("{open_files_max}-{memory_bytes_max}-{file_bytes_max}")),
            &batch.schema(),
            &by,
        )
        .unwrap();
        let options = WriterOptions { open_files_max, memory_bytes_max, file_bytes_max, ..WriterOptions::default() };
        let mut writer = DataFileWriter::new(table.folder(), &batch.schema(), &by, options).unwrap();
        for start in (0..3000).step_by(500) {
            writer.write(&batch.slice(start, 500)).unwrap();
        }
        let add: Vec<DataFile> = writer.finish().unwrap();
        assert!(add.len() >= 11);
        table.commit(tidegate_delta::DeltaCommit { add, operation: "WRITE", ..Default::default() }).unwrap();
        let found = super::fixture::numbers(table.folder(), &table.snapshot());
        assert_eq!(found, (0..3000).collect::<Vec<_>>());
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let folder = tempdir().unwrap();
    let schema = Schema::new(vec![Field::new("c", DataType::Decimal128(3, 1), false)]);
    let refuse = |batch: &RecordBatch| {
        let mut writer = DataFileWriter::new(folder.path(), &schema, &[], WriterOptions::default()).unwrap();
        assert!(writer.write(batch).is_err());
        assert!(writer.finish().is_err());
    };
    let decimal = |value: Option<i128>| {
        let values = arrow::array::Decimal128Array::from(vec![value]).with_precision_and_scale(3, 1).unwrap();
        column(Arc::new(values))
    };
    refuse(&decimal(Some(1000)));
    refuse(&decimal(None));
    refuse(&column(floats(&[1.0])));
    let other = RecordBatch::try_from_iter([("other", decimal(Some(1)).column(0).clone())]).unwrap();
    refuse(&other);
}
