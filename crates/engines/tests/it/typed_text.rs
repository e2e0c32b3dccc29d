//! Text files with numbers of another format, and with declared types.

use tidegate_core::Principal;
use tidegate_engines::{ColumnType, Inference, NumberFormat, TextTableOptions};
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
    let [price, pieces, share] = comments.as_slice() else { panic!("{comments:?}") };
    assert!(price.starts_with("text, because line 2 of t.csv has \"12,5\"; "), "{price}");
    // The format of the table would decide what the points of `pieces` mean.
    assert!(price.ends_with("tables: {t: {columns: {\"price\": 'number 1.234,5'}}}"), "{price}");
    assert!(share.ends_with("tables: {t: {columns: {\"share\": 'number 1234,5'}}}"), "{share}");
    assert!(pieces.contains("tables: {t: {decimal: \",\", thousands: \".\"}}; if they are decimal"), "{pieces}");
    let notes = node.database.column_notes().await.unwrap();
    assert!(notes[0].starts_with("t.pieces is text, because"), "{notes:?}");
    assert_eq!(notes.len(), 3);
    // The option does what the note says.
    let options = TextTableOptions { numbers: Some(GERMAN), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("t", options)]);
    assert_eq!(node.columns("t").await.unwrap(), "id bigint, price double, pieces bigint, share double");
    assert_eq!(node.rows("SELECT price, pieces, share FROM t").await, "12.5|1000|1.25\n1234.5|2500|null\n7.0|3000|3.0");
    assert!(node.database.column_notes().await.unwrap().is_empty());
    // Without evidence of decimal commas, a point is decimal.
    assert_eq!(node.columns("points").await.unwrap(), "id bigint, pieces double");
    // The options of the columns change no other column.
    let options = declared(&[("price", "number 1.234,5"), ("share", "number 1234,5"), ("pieces", "number 1234.5")]);
    let node = open_with_options(vec![folder.path()], &[("t", options)]);
    assert_eq!(node.rows("SELECT price, pieces, share FROM t").await, "12.5|1.0|1.25\n1234.5|2.5|null\n7.0|3.0|3.0");
}

#[tokio::test]
async fn points_in_files_with_dates_of_decimal_commas_are_not_taken_for_decimal_ones() {
    let folder = Folder::with(&[
        ("t.csv", "day;amount\n15.06.2025;1.234\n16.06.2025;7\n"),
        ("english.csv", "day,amount\n15.06.2025,1.234\n16.06.2025,7\n"),
        ("swiss.csv", "day;weight;price\n15.06.2025;1.234;9.90\n"),
    ]);
    let node = folder.database();
    assert_eq!(node.columns("t").await.unwrap(), "day text, amount text");
    assert_eq!(node.columns("english").await.unwrap(), "day text, amount double");
    assert_eq!(node.columns("swiss").await.unwrap(), "day text, weight double, price double");
    let notes = node.database.column_notes().await.unwrap();
    let of_table: Vec<&String> = notes.iter().filter(|note| note.starts_with("t.")).collect();
    let [amount, day] = of_table.as_slice() else { panic!("{notes:?}") };
    assert!(amount.contains("has \"1.234\"; if points are between thousands, write "), "{amount}");
    assert!(amount.contains("tables: {t: {decimal: \",\", thousands: \".\"}}"), "{amount}");
    assert!(day.ends_with("; for dates, write in tidegate.yaml, under its database, tables: {t: {columns: {\"day\": 'date DD.MM.YYYY'}}}"), "{day}");
    let types = declared(&[("day", "date DD.MM.YYYY")]);
    let node = open_with_options(vec![folder.path()], &[("t", TextTableOptions { numbers: Some(GERMAN), ..types })]);
    assert_eq!(node.rows("SELECT max(day), sum(amount) FROM t").await, "2025-06-16|1241");
}

/// Signs, units and other texts are beside most numbers that people write.
#[tokio::test]
async fn one_value_of_any_column_shows_how_numbers_are_written() {
    let values = ["+12,50", "12,50 €", "12,5%", "1 234,50", "1.234,50-", "2,50", "11.050.007"];
    let folder = Folder::with(&[("points.csv", "id;sum;pieces\n1;k.A.;1.000\n2;12.50 €;2.500\n")]);
    for (position, value) in values.iter().enumerate() {
        folder.write(&format!("t{position}.csv"), format!("id;sum;pieces\n1;k.A.;1.000\n2;{value};2.500\n"));
    }
    let node = folder.database();
    for (position, value) in values.iter().enumerate() {
        let columns = node.columns(&format!("t{position}")).await.unwrap();
        assert_eq!(columns, "id bigint, sum text, pieces text", "{value}");
    }
    assert_eq!(node.columns("points").await.unwrap(), "id bigint, sum text, pieces double");
    let options = TextTableOptions { numbers: Some(GERMAN), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("t0", options)]);
    assert_eq!(node.rows("SELECT sum(pieces) FROM t0").await, "3500");
}

#[tokio::test]
async fn numbers_have_one_meaning_in_all_files_of_a_table() {
    let folder = Folder::with(&[
        ("parts/1.csv", "pieces;price\n1.000;7\n2;8\n"),
        ("parts/2.csv", "pieces;price\n3;12,5\n"),
        ("dates/1.csv", "day;pieces\n;1.000\n"),
        ("dates/2.csv", "day;pieces\n15.06.2025;3\n"),
    ]);
    let node = folder.database();
    assert_eq!(node.columns("parts").await.unwrap(), "pieces text, price text");
    assert_eq!(node.columns("dates").await.unwrap(), "day text, pieces text");
    assert_eq!(node.rows("SELECT pieces FROM parts ORDER BY 1").await, "1.000\n2\n3");
}

/// Values after the sample are evidence, too.
#[tokio::test]
async fn late_numbers_with_separators_have_the_meaning_of_their_table() {
    let sampled = || TextTableOptions { infer: Some(Inference::Sample), ..TextTableOptions::default() };
    let rows = "15.06.2025;7;5\n".repeat(60_000);
    let folder = Folder::with(&[
        ("points.csv", &format!("day;pieces;price\n{rows}15.06.2025;1.000;5\n")),
        ("commas.csv", &format!("price;pieces\n{}12,5;1\n", "7;1.000\n".repeat(60_000))),
    ]);
    let node = open_with_options(vec![folder.path()], &[("points", sampled()), ("commas", sampled())]);
    assert_eq!(node.columns("points").await.unwrap(), "day text, pieces bigint, price bigint");
    assert_eq!(node.rows("SELECT max(length(CAST(pieces AS text))) FROM points").await, "5");
    assert_eq!(node.columns("points").await.unwrap(), "day text, pieces text, price bigint");
    assert_eq!(node.columns("commas").await.unwrap(), "price bigint, pieces double");
    assert_eq!(node.rows("SELECT count(price) FROM commas").await, "60001");
    assert_eq!(node.columns("commas").await.unwrap(), "price text, pieces text");
    let notes = node.database.column_notes().await.unwrap();
    let note = "commas.price is text, because line 60002 of commas.csv has \"12,5\"; for decimal commas, write ";
    assert!(notes.iter().any(|found| found.starts_with(note)), "{notes:?}");
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
        "parts.a is text, because line 2 of parts/1.csv has \"1,5\"; for decimal commas, write in tidegate.yaml, under its \
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
    // Numbers of JSON have a point.
    let folder = Folder::with(&[("t.json", "{\"sum\":\"1.234,5\"}\n{\"sum\":1234.5}\n")]);
    let node = open_with_options(vec![folder.path()], &[("t", declared(&[("sum", "number 1.234,5")]))]);
    assert_eq!(node.rows("SELECT sum FROM t").await, "1234.5\n1234.5");
}
