//! Rows of any values come out of each format as they went in; bodies that are cut or changed never give other rows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    Time64NanosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit, i256};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate_ingest_formats::{
    BodyCoding, BodyError, BodyFormat, BodyOptions, RejectMode, UnknownColumns, infer_schema,
};

use super::fixture::{
    Decoded, decode_parquet, decode_pieces, gzip, list_of, map_of, row_options, rows_of, write_arrow, write_parquet,
    zstd,
};
use super::written::{csv_body, json_body, ndjson_body};

/// Numbers that repeat for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Small, large, or any.
    fn integer(&mut self) -> i64 {
        match self.below(4) {
            0 => self.below(200) as i64 - 100,
            1 => [i64::MIN, i64::MAX, 9_007_199_254_740_993, 0][self.below(4) as usize],
            _ => self.next() as i64,
        }
    }

    fn text(&mut self) -> String {
        const PARTS: [&str; 16] = [
            "",
            "a",
            "007",
            "\"",
            "\"\"",
            ",",
            "\n",
            "\r\n",
            "\\",
            "ä😀",
            "null",
            " ",
            "\u{1}",
            "{\"a\":1}",
            "\u{feff}",
            "'",
        ];
        (0..self.below(4)).map(|_| PARTS[self.below(16) as usize]).collect()
    }

    fn values<T>(&mut self, rows: usize, mut value: impl FnMut(&mut Self) -> T) -> Vec<Option<T>> {
        (0..rows).map(|_| (self.below(5) > 0).then(|| value(self))).collect()
    }
}

/// Within the years that are written with four digits.
const YEAR_SECONDS: i64 = 60_000_000_000;

fn single_columns(random: &mut Random, rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let decimal = |random: &mut Random| i128::from(random.integer()) * i128::from(random.below(1 << 40) as i64);
    let wide = |random: &mut Random| i256::from_i128(decimal(random)).wrapping_mul(i256::from_i128(1 << 100));
    let float = |random: &mut Random| match random.below(6) {
        0 => f64::NAN,
        1 => f64::NEG_INFINITY,
        2 => -0.0,
        3 => random.integer() as f64 / 8.0,
        _ => Some(f64::from_bits(random.next())).filter(|value| value.is_finite()).unwrap_or(0.1),
    };
    let seconds = |random: &mut Random| random.integer() % YEAR_SECONDS;
    let zoned = TimestampNanosecondArray::from(random.values(rows, |random| random.next() as i64)).with_timezone("UTC");
    let offset = TimestampMicrosecondArray::from(random.values(rows, |random| seconds(random).abs() * 1_000_000 + 7))
        .with_timezone("Europe/Berlin");
    vec![
        ("boolean", Arc::new(BooleanArray::from(random.values(rows, |random| random.below(2) == 0)))),
        ("int8", Arc::new(Int8Array::from(random.values(rows, |random| random.next() as i8)))),
        ("int64", Arc::new(Int64Array::from(random.values(rows, Random::integer)))),
        ("uint64", Arc::new(UInt64Array::from(random.values(rows, Random::next)))),
        ("float32", Arc::new(Float32Array::from(random.values(rows, |random| float(random) as f32)))),
        ("float64", Arc::new(Float64Array::from(random.values(rows, float)))),
        (
            "decimal",
            Arc::new(Decimal128Array::from(random.values(rows, decimal)).with_precision_and_scale(38, 10).unwrap()),
        ),
        ("wide", Arc::new(Decimal256Array::from(random.values(rows, wide)).with_precision_and_scale(76, 30).unwrap())),
        ("date", Arc::new(Date32Array::from(random.values(rows, |random| (seconds(random) / 86_400) as i32)))),
        (
            "time",
            Arc::new(Time64NanosecondArray::from(
                random.values(rows, |random| random.below(86_400_000_000_000) as i64),
            )),
        ),
        ("zoned", Arc::new(zoned)),
        ("offset", Arc::new(offset)),
        ("local", Arc::new(TimestampSecondArray::from(random.values(rows, seconds)))),
        ("text", Arc::new(StringArray::from(random.values(rows, Random::text)))),
        ("large text", Arc::new(LargeStringArray::from(random.values(rows, Random::text)))),
        (
            "bytes",
            Arc::new(random.values(rows, |random| random.text().into_bytes()).into_iter().collect::<BinaryArray>()),
        ),
        (
            "fixed",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    random.values(rows, |random| random.next().to_le_bytes()).into_iter(),
                    8,
                )
                .unwrap(),
            ),
        ),
    ]
}

/// Columns of lists, objects and maps, which the JSON reader of Arrow builds.
fn nested_columns(random: &mut Random, rows: usize) -> RecordBatch {
    let members = vec![
        Field::new("x", DataType::Int64, true),
        Field::new("tags", list_of(DataType::Utf8), true),
        Field::new("time", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), true),
    ];
    let fields = vec![
        Field::new("list", list_of(list_of(DataType::Int32)), true),
        Field::new("object", DataType::Struct(members.into()), true),
        Field::new("map", map_of(DataType::Utf8, DataType::Int64), true),
    ];
    let mut lines = String::new();
    for _ in 0..rows {
        let list = ["null", "[]", "[[1,null],null,[]]", "[[-5]]"][random.below(4) as usize];
        let text = serde_json::to_string(&random.text()).unwrap();
        let object = match random.below(3) {
            0 => "null".to_owned(),
            1 => format!("{{\"x\":{},\"tags\":[{text},null]}}", random.integer()),
            _ => format!("{{\"time\":{},\"tags\":[]}}", random.integer() % (YEAR_SECONDS * 1_000)),
        };
        let map = match random.below(3) {
            0 => "null".to_owned(),
            1 => "{}".to_owned(),
            _ => format!("{{{text}:{},\"other key\":null}}", random.integer()),
        };
        lines += &format!("{{\"list\":{list},\"object\":{object},\"map\":{map}}}\n");
    }
    let reader = arrow::json::ReaderBuilder::new(Arc::new(Schema::new(fields))).with_batch_size(rows);
    reader.build(lines.as_bytes()).unwrap().next().unwrap().unwrap()
}

fn random_batch(seed: u64, rows: usize) -> RecordBatch {
    let mut random = Random(seed);
    let nested = nested_columns(&mut random, rows);
    let names = ["list", "object", "map"].into_iter().zip(nested.columns().iter().cloned());
    let columns = single_columns(&mut random, rows).into_iter().chain(names);
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

/// All forms of the same rows.
fn bodies(batch: &RecordBatch) -> [(BodyFormat, Vec<u8>); 4] {
    [
        (BodyFormat::Ndjson, ndjson_body(batch).into_bytes()),
        (BodyFormat::Json, json_body(batch).into_bytes()),
        (BodyFormat::Csv, csv_body(batch).into_bytes()),
        (BodyFormat::Arrow, write_arrow(std::slice::from_ref(batch))),
    ]
}

fn check_equal(
    format: BodyFormat,
    decoded: Result<Decoded, BodyError>,
    batch: &RecordBatch,
) -> Result<(), TestCaseError> {
    let decoded = decoded.map_err(|error| TestCaseError::fail(format!("{format:?}: {error}")))?.batch();
    for (column, expected) in decoded.columns().iter().zip(batch.columns()) {
        prop_assert_eq!(column, expected, "{:?}", format);
    }
    prop_assert_eq!(decoded.schema(), batch.schema());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_out_of_each_format_as_they_went_in(seed: u64, rows in 1usize..40, piece_bytes in 1usize..5_000) {
        let batch = random_batch(seed, rows);
        for (format, body) in bodies(&batch) {
            let options = BodyOptions::new(format);
            check_equal(format, decode_pieces(&batch.schema(), &options, &body, piece_bytes), &batch)?;
        }
        let gzipped = BodyOptions { coding: BodyCoding::Gzip, ..BodyOptions::new(BodyFormat::Ndjson) };
        let body = gzip(ndjson_body(&batch).as_bytes());
        check_equal(BodyFormat::Ndjson, decode_pieces(&batch.schema(), &gzipped, &body, piece_bytes), &batch)?;
        let parquet = decode_parquet(&batch.schema(), &BodyOptions::new(BodyFormat::Parquet), write_parquet(std::slice::from_ref(&batch)));
        check_equal(BodyFormat::Parquet, parquet, &batch)?;
    }

    #[test]
    fn bytes_of_any_kind_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece_bytes in 1usize..50) {
        decode_everywhere(&small_batch().schema(), &bytes, piece_bytes);
    }

    #[test]
    fn characters_of_the_formats_do_not_panic(text in "[\\[\\]{}:,\"'\\\\ntruefalse0-9eE.+\\-\\r\\n au]{0,80}", piece_bytes in 1usize..10) {
        decode_everywhere(&small_batch().schema(), text.as_bytes(), piece_bytes);
    }

    #[test]
    fn changed_bodies_do_not_panic(seed: u64, changes in 1usize..6) {
        let batch = small_batch();
        let mut random = Random(seed);
        let mut all: Vec<Vec<u8>> = bodies(&batch).into_iter().map(|(_, body)| body).collect();
        all.push(write_parquet(std::slice::from_ref(&batch)));
        all.push(gzip(&all[0]));
        all.push(zstd(&all[0]));
        for mut body in all {
            for _ in 0..changes {
                let position = random.below(body.len() as u64) as usize;
                body[position] = if random.below(2) == 0 { random.next() as u8 } else { body[position] ^ (1 << random.below(8)) };
            }
            decode_everywhere(&batch.schema(), &body, 100);
        }
    }
}

fn small_batch() -> RecordBatch {
    let batch = random_batch(7, 5);
    let columns: Vec<usize> = ["int64", "decimal", "zoned", "text", "list", "map"]
        .iter()
        .map(|name| batch.schema().index_of(name).unwrap())
        .collect();
    batch.project(&columns).unwrap()
}

/// Decodes bytes as each format and coding, whatever the outcome.
fn decode_everywhere(schema: &Schema, bytes: &[u8], piece_bytes: usize) {
    for format in [BodyFormat::Json, BodyFormat::Ndjson, BodyFormat::Csv, BodyFormat::Arrow] {
        for coding in [BodyCoding::Identity, BodyCoding::Gzip, BodyCoding::Zstd] {
            let options = BodyOptions { coding, unknown_columns: UnknownColumns::Add, ..row_options(format) };
            let _ = decode_pieces(schema, &options, bytes, piece_bytes);
            let _ = infer_schema(bytes, &options);
        }
        let _ = decode_pieces(schema, &BodyOptions::new(format), bytes, piece_bytes);
    }
    let _ = decode_parquet(schema, &row_options(BodyFormat::Parquet), bytes.to_vec());
}

#[test]
fn body_that_is_cut_gives_whole_rows_or_an_error() {
    let batch = small_batch();
    let expected = rows_of(&batch);
    for (format, body) in bodies(&batch) {
        let mut options = BodyOptions { reject_mode: RejectMode::All, ..BodyOptions::new(format) };
        options.csv.requires_final_line_break = true;
        let mut whole = 0;
        for length in 0..body.len() {
            let Ok(decoded) = decode_pieces(&batch.schema(), &options, &body[..length], usize::MAX) else { continue };
            whole += 1;
            let rows = decoded.text();
            assert_eq!(rows, expected[..rows.len()], "{format:?} cut at {length}");
        }
        // A document is complete at its end only. In lines and messages, each end of a row is one.
        assert!(if format == BodyFormat::Json { whole == 0 } else { whole > 0 }, "{format:?} is whole {whole} times");
    }
    let file = write_parquet(std::slice::from_ref(&batch));
    for length in 0..file.len() {
        let decoded = decode_parquet(&batch.schema(), &BodyOptions::new(BodyFormat::Parquet), file[..length].to_vec());
        assert!(decoded.is_err(), "cut at {length}");
    }
}

#[test]
fn inferred_columns_hold_the_rows_that_they_were_inferred_from() {
    for seed in 0..50 {
        let batch = random_batch(seed, 20);
        for (format, body) in bodies(&batch) {
            let options = BodyOptions::new(format);
            let inferred = infer_schema(&body, &options).unwrap();
            let decoded = decode_pieces(&inferred.schema, &options, &body, 1_000).unwrap();
            assert_eq!(decoded.rows(), 20, "{format:?}");
            let integers = decoded.batch().column_by_name("int64").unwrap().clone();
            if let Some(integers) = integers.as_primitive_opt::<arrow::datatypes::Int64Type>() {
                assert_eq!(integers, batch.column_by_name("int64").unwrap().as_primitive());
            }
        }
    }
}
