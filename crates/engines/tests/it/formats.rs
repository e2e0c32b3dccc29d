//! Each format and compression becomes a table.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float64Array, Int16Array,
    Int32Array, Int64Array, ListArray, ListViewArray, RecordBatch, RunArray, StringArray, StructArray, new_empty_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Int8Type, Int16Type, Int32Type};

use crate::support::{Folder, lines, numbers, write_arrow, write_parquet};

const CSV: &str = "id,name,price,when,ok\n1,a,1.5,2024-01-31,true\n2,,2,2024-02-29,false\n";
const ANSWER: &str = "1|a|1.5|2024-01-31|true\n2|null|2.0|2024-02-29|false";
const TYPES: &str = "id bigint, name text, price double, when date, ok boolean";

/// Compresses with the usual command-line tool. `None` if it is not installed.
pub(crate) fn compressed(tool: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let started = Command::new(tool).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = started.ok()?;
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}

#[tokio::test]
async fn text_files_are_tables_in_every_compression() {
    let folder = Folder::with(&[
        ("plain.csv", CSV),
        ("tabs.tsv", &CSV.replace(',', "\t")),
        ("semicolons.csv", &CSV.replace(',', ";")),
        ("bars.csv", &CSV.replace(',', "|")),
        ("mark.csv", &format!("\u{feff}{CSV}")),
        ("windows.csv", &CSV.replace('\n', "\r\n")),
        ("unfinished.csv", CSV.trim_end()),
    ]);
    let mut tables = vec!["plain", "tabs", "semicolons", "bars", "mark", "windows", "unfinished"];
    for (tool, extension, table) in
        [("gzip", "gz", "gzipped"), ("zstd", "zst", "zstandard"), ("bzip2", "bz2", "bzipped"), ("xz", "xz", "xzed")]
    {
        if let Some(bytes) = compressed(tool, CSV.as_bytes()) {
            folder.write(&format!("{table}.csv.{extension}"), bytes);
            tables.push(table);
        }
    }
    assert!(tables.contains(&"gzipped"), "gzip is installed everywhere");
    let node = folder.database();
    for table in tables {
        assert_eq!(node.rows(&format!("SELECT * FROM {table}")).await, ANSWER, "{table}");
        assert_eq!(node.columns(table).await.unwrap(), TYPES, "{table}");
    }
}

#[tokio::test]
async fn json_files_are_tables_as_array_and_as_lines() {
    let lines = "{\"id\":1,\"tags\":[\"x\",\"y\"],\"at\":{\"x\":1,\"y\":null}}\n{\"id\":2.5,\"extra\":null}\n";
    let pretty = "[\n  {\n    \"id\": 1,\n    \"tags\": [\"x\", \"y\"],\n    \"at\": {\"x\": 1, \"y\": null}\n  },\n  {\n    \"id\": 2.5, \"extra\": null\n  }\n]\n";
    let folder = Folder::with(&[
        ("lines.ndjson", lines),
        ("jsonl.jsonl", lines),
        ("objects.json", lines),
        ("pretty.json", pretty),
        ("marked.json", &format!("\u{feff}{pretty}")),
        ("single.json", "{\n \"id\": 7,\n \"tags\": [],\n \"at\": {\"x\": 1, \"y\": \"z\"}, \"extra\": 1}"),
    ]);
    folder.write("zipped.json.gz", compressed("gzip", pretty.as_bytes()).unwrap());
    let node = folder.database();
    for table in ["lines", "jsonl", "objects", "pretty", "marked", "zipped"] {
        let rows = node.rows(&format!("SELECT id, tags, at['x'], extra FROM {table}")).await;
        assert_eq!(rows, "1.0|[x, y]|1|null\n2.5|null|null|null", "{table}");
        let columns = node.columns(table).await.unwrap();
        assert_eq!(columns, "id double, tags text[], at struct(x bigint, y text), extra text", "{table}");
    }
    assert_eq!(node.rows("SELECT id, at['y'] FROM single").await, "7|z");
}

#[tokio::test]
async fn mixed_scalars_of_json_are_text() {
    let folder = Folder::with(&[(
        "mixed.json",
        r#"[{"a": 1, "b": true, "c": 18446744073709551615}, {"a": "x", "b": 2, "c": 1}]"#,
    )]);
    let node = folder.database();
    assert_eq!(node.rows("SELECT * FROM mixed").await, "1|true|18446744073709551615\nx|2|1");
    assert_eq!(node.columns("mixed").await.unwrap(), "a text, b text, c decimal(38,0)");
}

#[tokio::test]
async fn parquet_and_arrow_files_are_tables_and_tell_their_rows() {
    let folder = Folder::new();
    write_parquet(&folder.join("parquet.parquet"), &numbers(1_000), 100);
    write_arrow(&folder.join("file.arrow"), &numbers(1_000), false);
    write_arrow(&folder.join("feather.feather"), &numbers(1_000), false);
    write_arrow(&folder.join("stream.arrows"), &numbers(1_000), true);
    let node = folder.database();
    for table in ["parquet", "file", "feather", "stream"] {
        let sql = format!("SELECT count(*), sum(id), min(name) FROM {table}");
        assert_eq!(node.rows(&sql).await, "1000|499500|name 0", "{table}");
        let rows = node.rows(&format!("SELECT * FROM {table} LIMIT 2")).await;
        assert_eq!(rows, "0|name 0\n1|name 1", "{table}");
        assert_eq!(node.columns(table).await.unwrap(), "id bigint, name text", "{table}");
    }
    assert!(node.tables().await.contains("parquet: 1000 rows"));
}

/// Six rows, whose values are encoded or have no bytes.
fn encoded_rows() -> RecordBatch {
    let item = |data_type: &DataType| Arc::new(Field::new_list_field(data_type.clone(), true));
    let texts = StringArray::from(vec![Some("a"), None, Some("b")]);
    let texts = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3, 6]), &texts).unwrap();
    let numbers = Int64Array::from(vec![7, 9]);
    let numbers = RunArray::<Int16Type>::try_new(&Int16Array::from(vec![4, 6]), &numbers).unwrap();
    let (offsets, sizes) = (vec![0_i32, 0, 1, 2, 0, 0], vec![2_i32, 2, 1, 0, 3, 1]);
    let items: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let nulls = NullBuffer::from(vec![true, true, true, true, true, false]);
    let lists = ListViewArray::new(item(&DataType::Int32), offsets.into(), sizes.into(), items, Some(nulls));
    let words = [Some("x"), Some("y"), None, Some("x"), Some("y"), Some("x")];
    let words: ArrayRef = Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>());
    let offsets = OffsetBuffer::from_lengths([2, 0, 1, 1, 1, 1]);
    let word_lists = ListArray::new(item(words.data_type()), offsets, words.clone(), None);
    let word = Arc::new(Field::new("w", words.data_type().clone(), true));
    let structs = StructArray::from(vec![(word, words)]);
    let no_bytes = FixedSizeBinaryArray::try_new_with_len(0, Buffer::from_vec(Vec::<u8>::new()), None, 6).unwrap();
    let no_items = new_empty_array(&DataType::Int32);
    let no_items = FixedSizeListArray::try_new_with_length(item(&DataType::Int32), 0, no_items, None, 6).unwrap();
    let columns: [(&str, ArrayRef); 8] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..6))),
        ("t", Arc::new(texts)),
        ("n", Arc::new(numbers)),
        ("l", Arc::new(lists)),
        ("words", Arc::new(word_lists)),
        ("s", Arc::new(structs)),
        ("no_bytes", Arc::new(no_bytes)),
        ("no_items", Arc::new(no_items)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

#[tokio::test]
async fn encoded_columns_of_arrow_files_have_the_types_of_their_values() {
    let folder = Folder::new();
    write_arrow(&folder.join("file.arrow"), &encoded_rows(), false);
    write_arrow(&folder.join("stream.arrows"), &encoded_rows(), true);
    let node = folder.database();
    for table in ["file", "stream"] {
        let columns = "id bigint, t text, n bigint, l integer[], words text[], s struct(w text), no_bytes bytea, \
                       no_items integer[]";
        assert_eq!(node.columns(table).await.unwrap(), columns);
        for (sql, answer) in [
            ("SELECT max(t), min(t), count(t), max(n), sum(n) FROM", "b|a|5|9|46"),
            ("SELECT t, n FROM", "a|7\na|7\nnull|7\nb|7\nb|9\nb|9"),
            ("SELECT t, count(*) FROM {} GROUP BY t ORDER BY t", "a|2\nb|3\nnull|1"),
            ("SELECT l FROM", "[1, 2]\n[1, 2]\n[2]\n[]\n[1, 2, 3]\nnull"),
            ("SELECT l, count(*) FROM {} WHERE id < 3 GROUP BY l ORDER BY count(*)", "[2]|1\n[1, 2]|2"),
            ("SELECT words FROM", "[x, y]\n[]\n[null]\n[x]\n[y]\n[x]"),
            ("SELECT s['w'], count(*) FROM {} GROUP BY s['w'] ORDER BY s['w']", "x|3\ny|2\nnull|1"),
            ("SELECT no_bytes, count(*) FROM {} WHERE id > 1 GROUP BY no_bytes", "|4"),
            ("SELECT no_bytes FROM {} WHERE id > 3 ORDER BY no_bytes, id DESC", "\n"),
            ("SELECT no_items, count(*) FROM {} WHERE id > 1 GROUP BY no_items", "[]|4"),
        ] {
            let sql = if sql.contains("{}") { sql.replace("{}", table) } else { format!("{sql} {table}") };
            assert_eq!(node.rows(&sql).await, answer, "{sql}");
        }
    }
}

#[tokio::test]
async fn number_like_codes_stay_text() {
    let folder = Folder::with(&[("codes.csv", "zip,phone,big\n02134,+49 30,99999999999999999999\n10115,,1\n")]);
    let node = folder.database();
    assert_eq!(node.rows("SELECT * FROM codes").await, "02134|+49 30|99999999999999999999\n10115|null|1");
}

#[tokio::test]
async fn quoted_values_hold_anything() {
    let folder = Folder::with(&[("quoted.csv", "a,b\n\"x,\"\"y\"\"\",\"two\nlines\"\n1,2\n")]);
    let node = folder.database();
    assert_eq!(node.rows("SELECT a FROM quoted").await, "x,\"y\"\n1");
    assert_eq!(node.rows("SELECT count(*) FROM quoted WHERE b = 'two\nlines'").await, "1");
}

/// NaN is larger than all numbers, but the bounds in Parquet metadata omit it.
#[tokio::test]
async fn no_part_of_a_parquet_file_with_nan_is_skipped() {
    let folder = Folder::new();
    let values = Float64Array::from(vec![1.0, 2.0, 3.0, f64::NAN, 3.0, 3.0]);
    let batch = RecordBatch::try_from_iter([("d", Arc::new(values) as ArrayRef)]).unwrap();
    write_parquet(&folder.join("t.parquet"), &batch, 2);
    let node = folder.database();
    for (sql, answer) in [
        ("SELECT count(*) FROM t WHERE d > 3", "1"),
        ("SELECT count(*) FROM t WHERE d >= 4", "1"),
        ("SELECT count(*) FROM t WHERE d <> 3", "3"),
        ("SELECT count(*) FROM t WHERE d = 'NaN'", "1"),
        ("SELECT d FROM t ORDER BY d DESC LIMIT 1", "NaN"),
        ("SELECT min(d), max(d) FROM t", "1.0|NaN"),
        ("SELECT count(*) FROM t WHERE d < 3", "2"),
    ] {
        // Twice, because the footer is cached.
        for _ in 0..2 {
            assert_eq!(lines(&node.batches(sql, Vec::new()).await.unwrap()), answer, "{sql}");
        }
    }
}
