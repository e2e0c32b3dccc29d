//! Unreadable files do not affect others.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use insta::assert_snapshot;
use tidegate_core::ErrorKind;
use tidegate_engines::FileLimits;

use crate::support::{Folder, TestNode, numbers, numbers_csv, two_thread_options, write_arrow, write_parquet};

#[tokio::test]
async fn files_that_cannot_be_read_are_listed_with_their_reason() {
    let folder = Folder::with(&[
        ("good.csv", "id\n1\n"),
        ("header_only.csv", "id,name\n"),
        ("empty.csv", ""),
        ("blank.csv", "\n\n"),
        ("ragged.csv", "a,b\n1,2\n1,2,3\n"),
        ("empty.json", ""),
        ("number.json", "42"),
        ("numbers.json", "[1, 2]"),
        ("cut.json", r#"[{"a": 1}, {"a":"#),
        ("open.json", r#"[{"a": 1}"#),
        ("mixed.json", r#"[{"a": 1}, {"a": {"b": 2}}]"#),
        ("no.parquet", "this is no parquet file at all"),
        ("zero.parquet", ""),
        ("no.arrow", "this is no arrow file at all"),
        ("no.csv.gz", "this is no gzip file"),
        ("no.csv.zst", "this is no zstd file"),
        ("whole.parquet.gz", "x"),
    ]);
    folder.write("latin.csv", b"name\nM\xfcnchen\n");
    folder.write("zeros.csv", [0_u8; 100]);
    let node = folder.database();
    assert_snapshot!(node.tables().await);
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
    assert_eq!(node.rows("SELECT * FROM header_only").await, "");
    assert_eq!(node.columns("header_only").await.unwrap(), "id text, name text");
    assert_snapshot!(node.refusal("SELECT * FROM ragged").await, @r#"unavailable: the table "ragged" cannot be read: incorrect number of fields for line 3, expected 2 got 3; if commas in numbers are decimal, enclose these numbers in quotes, or write the file with another delimiter, such as ;"#);
    assert_eq!(node.rows("SELECT name FROM latin").await, "München");
}

#[tokio::test]
async fn one_bad_file_of_a_folder_is_left_out_and_reported() {
    let folder = Folder::new();
    write_parquet(&folder.join("n/1.parquet"), &numbers(10), 10);
    write_parquet(&folder.join("n/2.parquet"), &numbers(10), 10);
    folder.write("n/3.parquet", "broken");
    let node = folder.database();
    assert_snapshot!(node.tables().await, @r"
    n: 20 rows
    n.3: unreadable, its file n/3.parquet: it is not a readable Parquet file: EOF: Parquet file too small. Size is 6 but need 8
    ");
    assert_eq!(node.rows("SELECT count(*) FROM n").await, "20");
    let comment = node.catalog().await.tables[0].comment.clone().unwrap();
    assert_eq!(comment, "folder of 2 Parquet files; 1 more cannot be read and are left out");
}

/// The name of the table is that of the folder, or has dots in place of slashes.
#[tokio::test]
async fn the_reason_of_a_table_of_a_folder_names_the_file() {
    let folder = Folder::new();
    for name in ["several/part-0", "alone/part-0", "outer/inner/a", "all/part-0", "all/part-1", "keys/k=1/a"] {
        folder.write(&format!("{name}.arrow"), "this is no arrow file at all");
    }
    for name in ["several/part-1", "several/part-2"] {
        write_arrow(&folder.join(&format!("{name}.arrow")), &numbers(10), false);
    }
    let node = folder.database();
    let unreadable = |table: &str, file: &str| {
        let reason = "it is not a readable Arrow IPC file: it has the format of neither a file nor a stream";
        format!("{table}: unreadable, its file {file}.arrow: {reason}")
    };
    let expected = [
        unreadable("all", "all/part-0"),
        unreadable("alone", "alone/part-0"),
        unreadable("keys", "keys/k=1/a"),
        unreadable("outer.inner.a", "outer/inner/a"),
        "several: readable".to_owned(),
        unreadable("several.part-0", "several/part-0"),
    ];
    assert_eq!(node.tables().await, expected.join("\n"));
    assert_eq!(node.rows("SELECT count(*) FROM several").await, "20");
    let refusal = node.refusal("SELECT * FROM \"several.part-0\"").await;
    assert!(
        refusal.contains("the table \"several.part-0\" cannot be read: its file several/part-0.arrow: "),
        "{refusal}"
    );
}

/// Copies of an Arrow file. In each, a number that is 64 became 63; in one, it is the width of an integer column, which
/// makes the Arrow library panic.
fn arrow_with_odd_numbers(is_stream: bool) -> Vec<Vec<u8>> {
    let folder = Folder::new();
    let path = folder.join("whole.arrow");
    write_arrow(&path, &numbers(10), is_stream);
    let whole = std::fs::read(path).unwrap();
    let is_64 = |position: &usize| whole[*position..*position + 4] == 64_i32.to_le_bytes();
    let with_63 = |position: usize| {
        let mut bytes = whole.clone();
        bytes[position] = 63;
        bytes
    };
    (0..whole.len() - 4).filter(is_64).map(with_63).collect()
}

#[tokio::test]
async fn a_reader_that_panics_makes_only_its_table_unreadable() {
    for is_stream in [false, true] {
        let folder = Folder::with(&[("good.csv", "id\n1\n")]);
        let copies = arrow_with_odd_numbers(is_stream);
        for (number, bytes) in copies.iter().enumerate() {
            folder.write(&format!("odd_{number}.arrow"), bytes);
        }
        let node = folder.database();
        assert_eq!(node.rows("SELECT id FROM good").await, "1");
        let tables = node.tables().await;
        let reason = "cannot be read: it is damaged, or its reader does not support it";
        let status = |number: usize| format!("odd_{number}: unreadable, the file odd_{number}.arrow {reason}");
        let number = (0..copies.len()).find(|number| tables.contains(&status(*number)));
        let number = number.unwrap_or_else(|| panic!("{tables}"));
        assert_eq!(
            node.refusal(&format!("SELECT * FROM odd_{number}")).await,
            format!("unavailable: the table \"odd_{number}\" cannot be read: the file odd_{number}.arrow {reason}")
        );
        folder.write("n/2.arrow", &copies[number]);
        write_arrow(&folder.join("n/1.arrow"), &numbers(10), is_stream);
        assert_eq!(node.rows("SELECT count(*), sum(id) FROM n").await, "10|45");
        assert!(node.tables().await.contains(&format!("n.2: unreadable, the file n/2.arrow {reason}")));
    }
}

/// Damaged bytes of schemas, footers, lengths and values.
#[tokio::test]
async fn damaged_arrow_files_fail_alone() {
    let folder = Folder::with(&[("good.csv", "id\n1\n")]);
    let mut tables = Vec::new();
    for is_stream in [false, true] {
        let whole = folder.join("whole.arrow");
        write_arrow(&whole, &numbers(3), is_stream);
        let whole = std::fs::read(whole).unwrap();
        for position in (0..whole.len()).step_by(7) {
            for value in [0x00, 0xFF] {
                let mut bytes = whole.clone();
                bytes[position] = value;
                let table = format!("damaged_{is_stream}_{position}_{value}");
                folder.write(&format!("{table}.arrow"), bytes);
                tables.push(table);
            }
        }
    }
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), FileLimits::default());
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
    let mut failures = 0;
    for table in &tables {
        for columns in ["count(*)", "*"] {
            let answer = node.batches(&format!("SELECT {columns} FROM {table}"), Vec::new()).await;
            if let Err(error) = answer {
                failures += 1;
                assert_ne!(error.kind(), ErrorKind::Internal, "{table}: {error}");
            }
        }
    }
    assert!(failures > 0 && failures < 2 * tables.len(), "{failures} of {}", tables.len());
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
}

/// Damaged bytes of pages. One of them is the width of the indexes of a dictionary, on which the Parquet library panics.
#[tokio::test]
async fn damaged_parquet_files_fail_alone_and_are_named() {
    let folder = Folder::with(&[("good.csv", "id\n1\n")]);
    write_parquet(&folder.join("whole.parquet"), &numbers(10), 10);
    let whole = std::fs::read(folder.join("whole.parquet")).unwrap();
    let footer_bytes = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap());
    let pages = 4..whole.len() - 8 - footer_bytes as usize;
    for position in pages.clone() {
        let mut bytes = whole.clone();
        bytes[position] = 0xFF;
        folder.write(&format!("damaged_{position}.parquet"), bytes);
    }
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), FileLimits::default());
    let mut panics = 0;
    for position in pages {
        let answer = node.batches(&format!("SELECT * FROM damaged_{position}"), Vec::new()).await;
        let Err(error) = answer else { continue };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{position}: {error}");
        let text = error.to_string();
        assert!(text.contains(&format!("the file damaged_{position}.parquet cannot be read: ")), "{text}");
        panics += usize::from(text.contains("it is damaged, or its reader does not support it"));
    }
    assert!(panics > 0);
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
}

/// A file that is whole where it is inspected, and damaged where it is scanned.
#[tokio::test]
async fn an_error_of_a_scan_names_the_file() {
    let folder = Folder::with(&[("good.csv", "id\n1\n")]);
    write_arrow(&folder.join("names.arrow"), &numbers(3), false);
    let mut bytes = std::fs::read(folder.join("names.arrow")).unwrap();
    let name = bytes.windows(6).position(|word| word == b"name 0").unwrap();
    bytes[name] = 0xFF;
    folder.write("names.arrow", bytes);
    let node = folder.database();
    assert_eq!(node.rows("SELECT sum(id) FROM names").await, "3");
    let refusal = node.refusal("SELECT name FROM names").await;
    let expected = "unavailable: the file names.arrow cannot be read: it is not a readable Arrow IPC file: ";
    assert!(refusal.starts_with(expected), "{refusal}");
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
}

/// The library makes as many bytes of LZ4 as there are, whatever the file declares.
#[tokio::test]
async fn declared_lengths_of_lz4_are_compared_with_what_there_is() {
    const BYTES: usize = 4_000_000;
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; BYTES / 8]));
    let batch = RecordBatch::try_from_iter([("v", zeros)]).unwrap();
    let compression = Some(CompressionType::LZ4_FRAME);
    let options = || IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut file = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options()).unwrap();
    file.write(&batch).unwrap();
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options()).unwrap();
    stream.write(&batch).unwrap();
    let folder = Folder::new();
    for (name, whole) in [("file", file.into_inner().unwrap()), ("stream", stream.into_inner().unwrap())] {
        assert!(whole.len() < BYTES / 100, "{}", whole.len());
        let declared = whole.windows(8).position(|bytes| bytes == (BYTES as u64).to_le_bytes()).unwrap();
        for length in [1_000, BYTES + 8] {
            let mut damaged = whole.clone();
            damaged[declared..declared + 8].copy_from_slice(&(length as u64).to_le_bytes());
            folder.write(&format!("{name}_{length}.arrow"), damaged);
        }
        folder.write(&format!("{name}.arrow"), whole);
    }
    let node = folder.database();
    for name in ["file", "stream"] {
        assert_eq!(node.rows(&format!("SELECT count(v), sum(v) FROM {name}")).await, "500000|0");
        for length in [1_000, BYTES + 8] {
            let refusal = node.refusal(&format!("SELECT sum(v) FROM {name}_{length}")).await;
            let reason = "it is not a readable Arrow IPC file: a buffer has not as many bytes as it declares";
            let expected = format!("unavailable: the file {name}_{length}.arrow cannot be read: {reason}");
            assert!(refusal.starts_with(&expected), "{refusal}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_and_folders_without_permission_are_listed() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with(&[("good.csv", "id\n1\n"), ("secret.csv", "id\n1\n"), ("closed/a.csv", "id\n1\n")]);
    set_permissions(folder.join("secret.csv"), Permissions::from_mode(0o000)).unwrap();
    set_permissions(folder.join("closed"), Permissions::from_mode(0o000)).unwrap();
    let is_root = std::fs::read(folder.join("secret.csv")).is_ok();
    let node = folder.database();
    let tables = node.tables().await;
    set_permissions(folder.join("closed"), Permissions::from_mode(0o755)).unwrap();
    if !is_root {
        assert_eq!(
            tables,
            "closed: unreadable, permission denied\ngood: 1 rows\nsecret: unreadable, permission denied"
        );
    }
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
}

#[tokio::test]
async fn mismatched_row_is_reported_and_corrects_the_type() {
    let mut text = numbers_csv(30_000);
    text.push_str("unknown,last\n");
    let folder = Folder::with(&[("late.csv", &text)]);
    // Few rows are sampled, and only from the beginning.
    let limits = FileLimits { inferred_rows: 100, ..crate::support::no_delay_limits() };
    let node = || TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    let test_node = node();
    assert_eq!(test_node.columns("late").await.unwrap(), "id bigint, name text");
    // If no row was sent, the query restarts.
    assert_eq!(test_node.rows("SELECT count(*), max(id) FROM late").await, "30001|unknown");
    assert_eq!(test_node.columns("late").await.unwrap(), "id text, name text");
    let streamed = node();
    assert_snapshot!(streamed.refusal("SELECT id, name FROM late").await, @r#"
    unavailable: line 30002 of the file late.csv has 'unknown' in column "id", which was detected as bigint from the first rows
    The running program has corrected the column: retry. Where each call starts a program, write in tidegate.yaml, under its database, tables: {late: {columns: {"id": string}}}
    "#);
    assert_eq!(streamed.rows("SELECT name FROM late WHERE id = 'unknown'").await, "last");
}

#[tokio::test]
async fn integers_that_become_floats_become_floats() {
    let mut text = String::from("[");
    for id in 0..500 {
        text.push_str(&format!("{{\"v\": {id}}},"));
    }
    text.push_str("{\"v\": 0.5}]");
    let folder = Folder::with(&[("late.json", &text)]);
    let limits = FileLimits { inferred_rows: 100, ..crate::support::no_delay_limits() };
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    assert_eq!(node.rows("SELECT sum(v) FROM late").await, "124750.5");
}

#[tokio::test]
async fn a_file_that_is_cut_off_gives_its_rows_and_then_an_error() {
    let folder = Folder::new();
    let text = numbers_csv(100_000);
    let mut zipped = gzip(text.as_bytes());
    zipped.truncate(zipped.len() / 2);
    folder.write("cut.csv.gz", zipped);
    let node = folder.database();
    assert_snapshot!(node.refusal("SELECT count(*) FROM cut").await, @"unavailable: the file cut.csv.gz cannot be read: the compressed file is damaged or cut off: incomplete deflate stream");
    folder.write("array.json", format!("[{}", "{\"a\": 1},".repeat(3_000)));
    assert_snapshot!(node.refusal("SELECT count(*) FROM array").await, @"unavailable: the file array.json cannot be read: line 1: the array is not closed; the file is cut off");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    output
}

#[tokio::test]
async fn a_quote_that_is_never_closed_is_bounded() {
    let folder = Folder::new();
    folder.write("open.csv", format!("a,b\n1,\"x{}", "y\n".repeat(1 << 20)));
    let limits = FileLimits { row_bytes_max: 1 << 20, ..crate::support::no_delay_limits() };
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    assert_snapshot!(node.tables().await, @"open: unreadable, line 2: the quotes of a field are not closed in as many bytes as a row may have; close the quotes; or, if no quotes in the file enclose values, write in tidegate.yaml, under its database, tables: {open: {quotes: none}}");
}

/// A line of millions of values is some kilobytes after compression.
#[tokio::test]
async fn lines_of_very_many_columns_are_refused_after_the_limit() {
    let folder = Folder::with(&[("good.csv", "id\n1\n")]);
    folder.write("wide.csv.gz", gzip("1,".repeat(3_000_000).as_bytes()));
    let node = folder.database();
    assert_eq!(node.rows("SELECT id FROM good").await, "1");
    assert_snapshot!(node.tables().await, @r"
    good: 1 rows
    wide: unreadable, it has more than 4096 columns
    ");
}

#[tokio::test]
async fn folder_with_differing_columns_is_refused_when_read() {
    let folder = Folder::new();
    for index in 0..20 {
        folder.write(&format!("many/{index:02}.csv"), "id,name\n1,a\n");
    }
    folder.write("many/07.csv", "name,id\na,1\n");
    // Only some files are probed.
    let limits = FileLimits { probed_files_max: 2, ..crate::support::no_delay_limits() };
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    assert_eq!(node.tables().await, "many: readable");
    assert_snapshot!(node.refusal("SELECT sum(id) FROM many").await, @"unavailable: the file many/07.csv cannot be read: its columns (name, id) differ from those of the table");
}

#[tokio::test]
async fn folders_of_very_many_files_are_tables_up_to_a_bound() {
    let folder = Folder::new();
    for index in 0..1_000 {
        folder.write(&format!("many/{index:05}.csv"), format!("id\n{index}\n"));
    }
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*), sum(id) FROM many").await, "1000|499500");
    let limits = FileLimits { files_max: 999, ..crate::support::no_delay_limits() };
    let bounded = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    assert_snapshot!(bounded.tables().await, @"many: unreadable, more than 999 data files; the rest is not read");
}
