//! Irregular files: the folder `tests/fixtures/messy`, and files that are replaced while they are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tidegate_core::Principal;
use tidegate_engines::{
    ColumnType, EmbeddedDatabase, Engine, NumberFormat, RaggedRows, TextEncoding, TextTableOptions,
};
use tidegate_ingest_formats::CsvQuotes;
use tidegate_query::Database as _;

use crate::support::{Folder, TEST_TIMEOUT, TestNode, no_delay_limits, numbers, two_thread_options, write_parquet};

fn messy_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/messy")
}

fn node() -> TestNode {
    TestNode::open(vec![messy_folder()], two_thread_options())
}

pub(crate) fn open_with_options(paths: Vec<PathBuf>, tables: &[(&str, TextTableOptions)]) -> TestNode {
    let engine = Engine::start(two_thread_options()).unwrap();
    let tables: BTreeMap<String, TextTableOptions> =
        tables.iter().map(|(name, table)| ((*name).to_owned(), table.clone())).collect();
    let database = EmbeddedDatabase::open_with("db", paths, &engine, no_delay_limits(), tables).unwrap();
    TestNode { engine, database: Arc::new(database) }
}

#[tokio::test]
async fn the_messy_folder_is_served() {
    let node = node();
    assert_eq!(node.rows("SELECT sum(amount) FROM budget_Plan").await, "112.5");
    assert_eq!(
        node.columns("budget_Plan").await.unwrap(),
        "day date, amount double, paid boolean, at timestamp, note text"
    );
    assert_eq!(
        node.rows("SELECT day, paid, note FROM budget_Plan ORDER BY day").await.lines().next(),
        Some("2024-01-01|true|first")
    );
    assert_eq!(node.rows("SELECT item, \"2024\" FROM budget_Prices").await, "apple|2\npear|null");
    assert_eq!(node.rows("SELECT sum(count), min(since) FROM stock").await, "12|2024-01-01");
    assert_eq!(node.rows("SELECT sum(amount) FROM orders").await, "60");
    assert_eq!(node.rows("SELECT name FROM mixed.people").await, "ann");
    assert_eq!(node.rows("SELECT city FROM mixed.places").await, "rome");
    assert_eq!(node.rows("SELECT \"Name\", \"Ort\" FROM kunden ORDER BY \"Umsatz\"").await, "Groß|Zürich\nMüller|Köln");
    assert_eq!(node.rows("SELECT name, city FROM unicode").await, "José|Málaga\nЖанна|Москва");
    assert_eq!(node.rows("SELECT id, name FROM excel_export").await, "1|one\n2|two");
    assert_eq!(node.rows("SELECT sum(column_1), min(column_2), max(column_3) FROM headerless").await, "6|berlin|5.5");
    assert_eq!(node.rows("SELECT code FROM codes").await, "007\n010");
}

#[tokio::test]
async fn missing_values_are_null_where_the_rest_has_a_type() {
    let node = node();
    assert_eq!(node.columns("missing").await.unwrap(), "id bigint, amount bigint, country text");
    assert_eq!(node.rows("SELECT amount, country FROM missing").await, "10|NA\nnull|DE\nnull|null\nnull|FR\n40|-");
}

#[tokio::test]
async fn late_type_change_is_corrected_within_the_query() {
    let node = node();
    assert_eq!(node.columns("late").await.unwrap(), "id bigint, amount bigint");
    assert_eq!(node.rows("SELECT amount FROM late WHERE id = 3001").await, "twelve");
    assert_eq!(node.columns("late").await.unwrap(), "id bigint, amount text");
    let rows: String = (0..3_000).map(|n| format!("{n},{n},2024-01-01\n")).collect();
    let folder = Folder::with(&[("t.csv", &format!("a,b,c\n{rows}n/a,1.5,unknown\n"))]);
    let node = folder.database();
    assert_eq!(node.rows("SELECT a, b, c FROM t ORDER BY b DESC LIMIT 1").await, "2999|2999.0|2024-01-01");
    assert_eq!(node.rows("SELECT a, b, c FROM t WHERE b = 1.5").await, "null|1.5|unknown");
    assert_eq!(node.columns("t").await.unwrap(), "a bigint, b double, c text");
}

#[tokio::test]
async fn a_late_value_that_would_lose_digits_makes_its_column_text() {
    for (early, late, kind) in [
        ("1", "0870", "text"),
        ("1", "+4930", "text"),
        ("1", "00123", "text"),
        ("1", "12E5", "text"),
        ("1", "99999999999999999999", "decimal(38,0)"),
        ("0.5", "5.999999999999999999", "text"),
        ("0.5", "9007199254740993", "text"),
        ("0.5", "00e1", "text"),
        ("2024-01-01", "2024-03-09 23:59:00", "timestamp"),
        ("2024-01-01 10:00:00", "2024-01-01 10:00:00.123456789", "text"),
        ("2024-01-01 10:00:00", "2024-01-01T10:00:00Z", "text"),
        ("2024-01-01T10:00:00Z", "2024-01-01 12:00:00+02:00", "timestamp with time zone"),
    ] {
        let rows = format!("{early},r\n").repeat(30_000);
        let folder = Folder::with(&[("t.csv", &format!("c,x\n{rows}{late},last\n"))]);
        let node = folder.database();
        let read = node.rows("SELECT c FROM t WHERE x = 'last'").await;
        assert_eq!(node.columns("t").await.unwrap(), format!("c {kind}, x text"), "{late}");
        let expected = match kind {
            "timestamp" => "2024-03-09T23:59:00",
            "timestamp with time zone" => "2024-01-01T10:00:00Z",
            _ => late,
        };
        assert_eq!(read, expected, "{late} after {early}");
        // The other rows are as they were written, too.
        let first = node.rows("SELECT CAST(c AS text) FROM t LIMIT 1").await;
        assert!(first.replace(' ', "T").starts_with(&early.replace(' ', "T").replace('Z', "")), "{first} of {early}");
    }
}

#[tokio::test]
async fn quotes_that_enclose_no_value_are_an_error_with_the_option_that_reads_them() {
    let of_quotes = TextTableOptions { quotes: Some(CsvQuotes::Anywhere), ..TextTableOptions::default() };
    let of_escape = TextTableOptions { escape: Some(b'\\'), ..TextTableOptions::default() };
    for (row, option, options, expected) in [
        ("\"x\" y,1", "quotes: lenient", &of_quotes, "x y|1"),
        ("\"p\"q\"r\",1", "quotes: lenient", &of_quotes, "pq\"r\"|1"),
        ("\"a\\\"b\",1", "escape: '\\'", &of_escape, "a\"b|1"),
    ] {
        let folder = Folder::with(&[("t.csv", &format!("a,b\n5\" pipe,0\n{row}\n"))]);
        let found = folder.database().tables().await;
        let fix = format!("tables: {{t: {{{option}}}}}");
        assert!(found.contains("line 3: there is text after the closing quote") && found.contains(&fix), "{found}");
        let node = open_with_options(vec![folder.path()], &[("t", options.clone())]);
        assert_eq!(node.rows("SELECT a, b FROM t ORDER BY b").await, format!("5\" pipe|0\n{expected}"));
    }
    let rows = "1,a\n".repeat(5_000);
    let folder = Folder::with(&[("t.csv", &format!("a,b\n{rows}2,\"open\n{rows}"))]);
    let refusal = folder.database().refusal("SELECT count(*) FROM t").await;
    assert!(refusal.contains("line 5002: the quotes of a field are not closed until the end of the file"), "{refusal}");
    assert!(refusal.contains("tables: {t: {quotes: none}}"), "{refusal}");
}

#[tokio::test]
async fn unreadable_file_suggests_the_fixing_option() {
    let node = node();
    let tables = node.tables().await;
    for (table, line) in [
        ("report", "tables: {report: {skip: 3}}"),
        ("ragged", "tables: {ragged: {ragged: fill}}"),
        ("titled", "tables: {titled: {skip: 2}}"),
    ] {
        let found = tables.lines().find(|found| found.starts_with(&format!("{table}: "))).unwrap();
        assert!(found.contains("unreadable") && found.contains(line), "{found}");
    }
    let option = |change: fn(&mut TextTableOptions)| {
        let mut table = TextTableOptions::default();
        change(&mut table);
        table
    };
    let node = open_with_options(
        vec![messy_folder()],
        &[
            ("report", option(|table| table.skip = Some(3))),
            ("ragged", option(|table| table.ragged = Some(RaggedRows::Fill))),
            ("kunden", option(|table| table.encoding = TextEncoding::parse("iso-8859-2"))),
            ("titled", option(|table| table.skip = Some(2))),
            ("umsatz", option(|table| table.numbers = Some(NumberFormat { decimal: ',', thousands: Some('.') }))),
            ("missing", option(|table| table.null = Some(vec!["NA".to_owned(), "-".to_owned()]))),
        ],
    );
    assert_eq!(node.rows("SELECT sum(price) FROM report").await, "9");
    assert_eq!(node.rows("SELECT a, b, c FROM ragged WHERE a = 4").await, "4|5|null");
    assert_eq!(node.rows("SELECT nom FROM french").await, "mère");
    assert_eq!(node.rows("SELECT \"Name\" FROM kunden WHERE \"Name\" LIKE 'M%'").await, "Müller");
    assert_eq!(node.rows("SELECT price FROM titled").await, "2");
    assert_eq!(node.rows("SELECT \"Betrag\" FROM umsatz").await, "1234.56\n987.1\n-12000.0");
    assert_eq!(node.rows("SELECT country FROM missing WHERE id IN (1, 5)").await, "null\nnull");
}

/// Files with the same name and other extensions are other tables, and so are the sheets of a workbook.
#[tokio::test]
async fn options_apply_to_the_table_that_is_called_so() {
    let text = "id,note\n1,first\n";
    let folder =
        Folder::with(&[("report.csv", text), ("report.old.csv", text), ("twice.csv", text), ("twice.tsv", text)]);
    folder.write("report.xlsx", fs::read(messy_folder().join("budget.xlsx")).unwrap());
    let options = TextTableOptions { null: Some(vec!["first".to_owned()]), ..TextTableOptions::default() };
    for (key, csv, sheet) in [
        ("report", "null", "first"),
        ("report.csv", "null", "first"),
        ("report.xlsx", "first", "null"),
        ("report_Plan", "first", "null"),
        ("report_Prices", "first", "first"),
        ("report.old", "first", "first"),
    ] {
        let node = open_with_options(vec![folder.path()], &[(key, options.clone())]);
        assert_eq!(node.rows("SELECT note FROM report").await, csv, "{key}");
        assert_eq!(node.rows("SELECT note FROM report_Plan ORDER BY day LIMIT 1").await, sheet, "{key}");
        let of_old = if key == "report.old" { "null" } else { "first" };
        assert_eq!(node.rows("SELECT note FROM \"report.old\"").await, of_old, "{key}");
        assert!(node.database.table_option_problems().await.unwrap().len() <= usize::from(key == "report"), "{key}");
    }
    let node = open_with_options(vec![folder.path()], &[("twice_csv", options.clone())]);
    assert_eq!(node.rows("SELECT note FROM twice_csv").await, "null");
    let node = open_with_options(vec![folder.path()], &[("twice", options)]);
    let contested = "several files have the name \"twice\", and its options apply to each of them; to mean one of them, \
                     write its key: \"twice.csv\", \"twice.tsv\"";
    assert_eq!(node.database.table_option_problems().await.unwrap(), [contested]);
}

/// Its key would else mean the other files, too.
#[tokio::test]
async fn advice_about_one_of_several_files_with_a_name_is_for_this_one() {
    let titled = "Export\n\na;b\nAnn;3\nBob;4\n";
    let folder = Folder::with(&[
        ("alone.csv", titled),
        ("sales.csv", titled),
        ("sales.json", "{\"a\":1}\n"),
        ("events/1.csv", "day;kw\n15.06.2025;1\n"),
        ("events/2.csv", "day;kw\n16.06.2025;2\n"),
        ("events.json", "{\"a\":1}\n"),
    ]);
    let node = folder.database();
    let tables = node.tables().await;
    for advice in ["tables: {alone: {skip: 2}}", "tables: {\"sales.csv\": {skip: 2}}"] {
        assert!(tables.contains(advice), "{tables}");
    }
    let notes = node.database.column_notes().await.unwrap();
    let option = "tables: {events_folder: {columns: {\"day\": 'date DD.MM.YYYY'}}}";
    assert!(matches!(notes.as_slice(), [note] if note.ends_with(option)), "{notes:?}");
    let skip = TextTableOptions { skip: Some(2), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("sales.csv", skip)]);
    assert_eq!(node.rows("SELECT b FROM sales_csv").await, "3\n4");
    assert_eq!(node.database.table_option_problems().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn reports_merged_and_skipped_files() {
    let notes = node().database.notes().await.unwrap().join("\n");
    for part in [
        "orders is one table: folder of 2 CSV files",
        "the 2 files of mixed are separate tables: its files have different columns",
        "skipped shop.db: SQLite database: serve it",
        "skipped warehouse.duckdb: DuckDB",
        "skipped old.xls: unsupported workbook format",
        "skipped manual.pdf, notes.txt: document, not a table",
    ] {
        assert!(notes.contains(part), "{part} is not in {notes}");
    }
    let node = node();
    let catalog = node.database.catalog(&Principal::anonymous()).await.unwrap();
    let comment = |name: &str| catalog.tables.iter().find(|table| table.name == name).unwrap().comment.clone().unwrap();
    assert_eq!(comment("headerless"), "CSV file; without a header line");
    assert_eq!(comment("kunden"), "CSV file; guessed encoding: windows-1252");
    assert_eq!(comment("budget_Plan"), "sheet \"Plan\" of a workbook");
}

#[tokio::test]
async fn formulas_without_a_computed_value_are_reported() {
    let node = TestNode::open(vec![messy_folder().join("../workbooks")], two_thread_options());
    assert_eq!(node.rows("SELECT price, total FROM formulas ORDER BY item").await, "2|6\n3|null\nnull|null");
    let note = "formulas without a computed value are null: 3, the first in C3; open the workbook in a spreadsheet program, \
                and save it";
    let catalog = node.database.catalog(&Principal::anonymous()).await.unwrap();
    let formulas = catalog.tables.iter().find(|table| table.name == "formulas").unwrap();
    assert_eq!(formulas.comment, Some(format!("sheet \"Plan\" of a workbook; {note}")));
    assert_eq!(node.database.notes().await.unwrap(), [format!("formulas: {note}")]);
}

#[tokio::test]
async fn a_folder_is_one_table_if_one_file_has_all_columns() {
    let folder = Folder::with(&[
        ("grown/1.csv", "a,b\n1,2\n"),
        ("grown/2.csv", "a,b\n3,4\n"),
        ("wider/1.json", "{\"a\": 1}\n"),
        ("wider/2.json", "{\"a\": 2, \"b\": \"x\"}\n"),
        ("apart/1.json", "{\"a\": 1, \"b\": 2}\n"),
        ("apart/2.json", "{\"a\": 1, \"c\": 2}\n"),
    ]);
    assert_eq!(folder.database().tables().await, "apart.1: 1 rows\napart.2: 1 rows\ngrown: 2 rows\nwider: 2 rows");
    let one = |is_one| TextTableOptions { one_table: Some(is_one), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("apart", one(true)), ("grown", one(false))]);
    assert_eq!(node.tables().await, "apart: 2 rows\ngrown.1: 1 rows\ngrown.2: 1 rows\nwider: 2 rows");
}

#[tokio::test]
async fn demo_data_is_eight_tables() {
    let node = TestNode::open(vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data")], two_thread_options());
    let tables = node.tables().await;
    let names: Vec<&str> = tables.lines().filter_map(|line| line.split(':').next()).collect();
    let expected = ["airlines", "airports", "flights", "planes", "shop_access", "shop_app", "shop_metrics", "weather"];
    assert_eq!(names, expected.map(|name| format!("demo.{name}")));
}

/// Two files of equal size with swapped columns replace each other while queries run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_never_has_the_name_of_another_while_files_are_replaced() {
    let rows = |names: &str, (a, b): (&str, &str)| format!("{names}\n") + &format!("{a},{b}\n").repeat(50);
    let texts = [rows("low,top", ("1", "9")), rows("top,low", ("9", "1"))];
    let folder = Folder::with(&[("t.csv", &texts[0])]);
    let node = TestNode::open_with(
        vec![folder.path()],
        two_thread_options(),
        tidegate_engines::FileLimits { rescan_after: Duration::from_millis(50), ..no_delay_limits() },
    );
    let (is_over, replaced) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (stop, count) = (is_over.clone(), replaced.clone());
    let (path, next) = (folder.join("t.csv"), folder.join("t.csv.tmp"));
    let renaming = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let number = count.load(Ordering::Relaxed) + 1;
            fs::write(&next, &texts[number % 2]).unwrap();
            fs::rename(&next, &path).unwrap();
            count.store(number, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let replaced = || replaced.load(Ordering::Relaxed);
    let (started, mut round, mut answered) = (Instant::now(), 0, 0);
    // A slow machine may need more queries.
    while round < 60 || ((answered == 0 || replaced() <= 10) && started.elapsed() < TEST_TIMEOUT) {
        round += 1;
        let sql = if round % 2 == 0 { "SELECT low, top FROM t" } else { "SELECT min(low), max(top) FROM t" };
        match node.try_rows(sql).await {
            Ok(rows) => {
                assert!(rows.lines().all(|row| row == "1|9"), "{rows}");
                answered += 1;
            }
            Err(error) => assert!(error.to_string().contains("changed while it was being read"), "{error}"),
        }
    }
    is_over.store(true, Ordering::Relaxed);
    renaming.join().unwrap();
    assert!(replaced() > 10, "the file was not replaced");
    assert_eq!(node.rows("SELECT min(low), max(top) FROM t").await, "1|9");
    assert!(answered > 0, "no question was answered");
}

#[tokio::test]
async fn uuids_and_json_of_parquet_have_their_text() {
    use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let folder = Folder::new();
    let message = "message t { optional fixed_len_byte_array(16) id (UUID); optional binary doc (JSON); optional binary kind (ENUM); }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = fs::File::create(folder.join("t.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let ids = [FixedLenByteArray::from(ByteArray::from(vec![0xAB; 16]))];
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<FixedLenByteArrayType>().write_batch(&ids, Some(&[1, 0]), None).unwrap();
    column.close().unwrap();
    for text in ["{\"a\": 1}", "RED"] {
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(text)], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
    }
    rows.close().unwrap();
    writer.close().unwrap();
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "id text, doc json, kind text");
    let uuid = "abababab-abab-abab-abab-abababababab";
    assert_eq!(node.rows("SELECT id, doc, kind FROM t").await, format!("{uuid}|{{\"a\": 1}}|RED\nnull|null|null"));
    assert_eq!(node.rows(&format!("SELECT kind FROM t WHERE id = '{uuid}'")).await, "RED");
    assert_eq!(node.rows("SELECT count(id), max(id) FROM t").await, format!("1|{uuid}"));
}

#[tokio::test]
async fn notes_name_the_value_that_decided_a_type() {
    let late = format!("n,amount\n{}3001,twelve\n", "1,1\n".repeat(3_000));
    let folder = Folder::with(&[
        ("a.csv", "c,d,e\n1,2024-01-01,1\n99999999999999999999,2024-01-01 10:00:00,1.5\n"),
        ("b.json", r#"[{"v": 1, "w": 1}, {"v": "x", "w": 99999999999999999999}]"#),
        ("late.csv", &late),
        ("titled.csv", "Export;x;y\nday;who;pieces\n01.02.2026;Ann;1\n02.02.2026;Bob;2\n"),
        ("parts/1.csv", "v\n1\n"),
        ("parts/2.csv", "v\nx\n"),
    ]);
    let node = folder.database();
    let notes = async || node.database.column_notes().await.unwrap();
    let at_first = [
        "a.c is decimal(38,0), because line 3 of a.csv has \"99999999999999999999\"",
        "a.d is timestamp, because line 3 of a.csv has \"2024-01-01 10:00:00\"",
        "b.v is text, because line 1 of b.json has \"x\"",
        "b.w is decimal(38,0), because line 1 of b.json has 99999999999999999999",
        "parts.v is text, because it is text in parts/2.csv and bigint in files before it",
        // A title that is as wide as the table is taken for the header.
        "titled.y is text, because line 2 of titled.csv has \"pieces\"",
    ];
    assert_eq!(notes().await, at_first);
    assert_eq!(node.rows("SELECT count(amount) FROM late").await, "3001");
    let note = "late.amount is text, because line 3002 of late.csv has \"twelve\"";
    assert!(notes().await.iter().any(|line| line == note), "{:?}", notes().await);
}

#[tokio::test]
async fn declared_columns_that_no_file_has_are_reported() {
    let columns = |name: &str| TextTableOptions {
        columns: [(name.to_owned(), ColumnType::Date)].into(),
        ..TextTableOptions::default()
    };
    let folder = Folder::with(&[
        ("a.csv", "id\n1\n"),
        ("b.json", r#"[{"id": 1}]"#),
        ("parts/1.json", r#"[{"id": 1}]"#),
        ("parts/2.json", r#"[{"id": 2, "Foo": "2024-01-01"}]"#),
    ]);
    write_parquet(&folder.join("c.parquet"), &numbers(2), 10);
    let options = ["a", "b", "c", "parts"].map(|name| (name, columns("Foo")));
    let node = open_with_options(vec![folder.path()], &options);
    let refusal = node.refusal("SELECT * FROM a").await;
    assert!(refusal.contains("declares a type for \"Foo\", but the columns are id"), "{refusal}");
    let note = "b.Foo is declared in the configuration, but no object that was looked at has this key";
    assert_eq!(node.database.column_notes().await.unwrap(), [note]);
    assert_eq!(node.rows("SELECT max(\"Foo\") FROM parts").await, "2024-01-01");
    let problems = node.database.table_option_problems().await.unwrap();
    assert_eq!(problems, ["c: columns (Foo) has no effect on Parquet files, which have types"]);
}
