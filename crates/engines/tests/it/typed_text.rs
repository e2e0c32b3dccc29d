//! Text files with numbers of another format, and with declared types.

use tidegate_core::Principal;
use tidegate_engines::{ColumnType, NumberFormat, TextTableOptions};
use tidegate_query::Database as _;

use crate::messy::open_with_options;
use crate::support::Folder;

const GERMAN: NumberFormat = NumberFormat { decimal: ',', thousands: Some('.') };

#[tokio::test]
async fn numbers_with_decimal_commas_are_text_with_the_option_that_reads_them() {
    let text = "id;price;pieces;share\n1;12,5;1.000;1,25\n2;1.234,50;2.500;-\n3;7;3.000;3\n";
    let folder = Folder::with(&[("t.csv", text), ("points.csv", "id;pieces\n1;1.000\n2;2.500\n")]);
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "id bigint, price text, pieces text, share text");
    assert_eq!(node.rows("SELECT pieces FROM t WHERE id = 1").await, "1.000");
    let columns = node.database.columns("t", &Principal::anonymous()).await.unwrap();
    let comments: Vec<&str> = columns.iter().filter_map(|column| column.comment.as_deref()).collect();
    let option = "tables: {t: {decimal: \",\", thousands: \".\"}}";
    assert!(comments[0].starts_with("text, because line 2 of t.csv has \"12,5\"; "), "{comments:?}");
    assert!(comments.len() == 3 && comments.iter().all(|comment| comment.ends_with(option)), "{comments:?}");
    let notes = node.database.column_notes().await.unwrap();
    assert!(notes[0].starts_with("t.pieces is text, because"), "{notes:?}");
    assert_eq!(notes.len(), 3);
    // The option does what the note says.
    let options = TextTableOptions { numbers: Some(GERMAN), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("t", options)]);
    assert_eq!(node.columns("t").await.unwrap(), "id bigint, price double, pieces bigint, share double");
    assert_eq!(node.rows("SELECT price, pieces, share FROM t").await, "12.5|1000|1.25\n1234.5|2500|null\n7.0|3000|3.0");
    assert!(node.database.column_notes().await.unwrap().is_empty());
    // Without a comma in the file, a point is decimal.
    assert_eq!(node.columns("points").await.unwrap(), "id bigint, pieces double");
}

/// With options of their own, the files of a folder would be separate tables.
#[tokio::test]
async fn notes_of_a_folder_are_about_all_its_files() {
    let folder = Folder::with(&[
        ("parts/1.csv", "a;b\n1,5;x\n"),
        ("parts/2.csv", "a;b\n2,5;x\n"),
        ("others/1.csv", "c\n1\n99999999999999999999\n"),
        ("others/2.csv", "c\nx\n"),
    ]);
    let expected = [
        "others.c is text, because it is text in others/2.csv and decimal(38,0) in files before it",
        "parts.a is text, because line 2 of parts/2.csv has \"2,5\"; for decimal commas, write in tidegate.yaml, under its \
         database, tables: {parts: {decimal: \",\"}}",
    ];
    assert_eq!(folder.database().database.column_notes().await.unwrap(), expected);
    let options = TextTableOptions { numbers: Some(GERMAN), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("parts", options)]);
    assert_eq!(node.rows("SELECT sum(a) FROM parts").await, "4.0");
}

/// The store of a snapshot encodes these characters.
#[tokio::test]
async fn options_apply_whatever_the_name_of_the_file_is() {
    let folder = Folder::with(&[("a#b~c.csv", "day\n24.12.2026\n25.12.2026\nlater\n")]);
    let node = open_with_options(vec![folder.path()], &[("a#b~c", declared(&[("day", "date DD.MM.YYYY")]))]);
    let expected =
        "line 4 of the file a#b~c.csv has 'later' in column \"day\", which the configuration declares as date";
    let refusal = node.refusal("SELECT max(day) FROM \"a#b~c\"").await;
    assert!(refusal.contains(expected), "{refusal}");
}

fn declared(types: &[(&str, &str)]) -> TextTableOptions {
    let types = types.iter().map(|(name, text)| ((*name).to_owned(), ColumnType::parse(text).unwrap()));
    TextTableOptions { columns: types.collect(), ..TextTableOptions::default() }
}

#[tokio::test]
async fn declared_dates_and_times_are_read_in_their_form() {
    let text = "day;at;moment;n\n15.06.2025;15.06.2025 17:30;2025-06-15 17:30 +0200;007\n9.1.0999;;;\n\
                31.12.9999;1.1.2000 00:00;1999-12-31 22:00 -0200;+5\n";
    let folder = Folder::with(&[("t.csv", text)]);
    let types = [
        ("day", "date DD.MM.YYYY"),
        ("at", "timestamp %d.%m.%Y %H:%M"),
        ("moment", "timestamp with time zone YYYY-MM-DD HH24:MI TZH"),
        ("n", "bigint"),
    ];
    let node = open_with_options(vec![folder.path()], &[("t", declared(&types))]);
    assert_eq!(node.columns("t").await.unwrap(), "day date, at timestamp, moment timestamp with time zone, n bigint");
    assert_eq!(
        node.rows("SELECT * FROM t").await,
        "2025-06-15|2025-06-15T17:30:00|2025-06-15T15:30:00Z|7\n0999-01-09|null|null|null\n\
         9999-12-31|2000-01-01T00:00:00|2000-01-01T00:00:00Z|5"
    );
    assert_eq!(node.rows("SELECT max(day), max(at) FROM t WHERE n = 7").await, "2025-06-15|2025-06-15T17:30:00");
}

#[tokio::test]
async fn a_value_without_the_declared_form_is_an_error_with_its_line() {
    for (kind, value, name) in [
        ("date DD.MM.YYYY", "15.06.25", "date"),
        ("date DD.MM.YYYY", "2025-06-15", "date"),
        ("date DD.MM.YYYY", "31.06.2025", "date"),
        ("date DD.MM.YYYY HH:MI", "15.06.2025 10:00", "date"),
        ("timestamp DD.MM.YYYY HH:MI:SS.US", "15.06.2025 10:00:00.1234567", "timestamp"),
        ("timestamp DD.MM.YYYY HH:MI", "15.06.2025", "timestamp"),
        ("timestamptz", "2025-06-15 10:00", "timestamp with time zone"),
    ] {
        let folder = Folder::with(&[("t.csv", &format!("id;v\n1;\n2;{value}\n"))]);
        let node = open_with_options(vec![folder.path()], &[("t", declared(&[("v", kind)]))]);
        let expected = format!(
            "unavailable: line 3 of the file t.csv has '{value}' in column \"v\", which the configuration declares as {name}"
        );
        assert_eq!(node.refusal("SELECT max(v) FROM t").await, expected, "{kind}");
    }
}

#[tokio::test]
async fn strings_of_json_have_declared_forms() {
    let folder = Folder::with(&[("t.json", "{\"day\":\"15.06.2025\"}\n{\"day\":null}\n")]);
    let node = open_with_options(vec![folder.path()], &[("t", declared(&[("day", "date DD.MM.YYYY")]))]);
    assert_eq!(node.rows("SELECT day FROM t").await, "2025-06-15\nnull");
}
