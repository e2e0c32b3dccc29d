//! Files as people have them, through the commands of the README: `tests/fixtures/messy` is served, asked and exported.

use std::path::PathBuf;

use super::server::Server;
use super::{ConfiguredFolder, run, run_in, tidegate};

fn folder(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name).canonicalize().unwrap().display().to_string()
}

fn messy() -> String {
    folder("tests/fixtures/messy")
}

#[test]
fn late_type_change_does_not_fail_queries() {
    let ran = run(&["query", "SELECT id, amount FROM late WHERE id > 3000", &messy()]);
    assert_eq!((ran.code, ran.lines()), (Some(0), vec!["id,amount", "3001,twelve", "3002,6004"]), "{ran:?}");
    let ran = run(&["query", "SELECT count(amount) AS n FROM late", &messy()]);
    assert_eq!(ran.lines(), ["n", "3002"], "{ran:?}");
}

#[test]
fn serve_logs_merged_and_skipped_files() {
    let mut server = Server::start(tidegate().args(["serve", "--listen", "127.0.0.1:0", "--log", "info"]).arg(messy()));
    for words in ["the 2 files of mixed are separate tables", "orders is one table", "skipped shop.db: SQLite"] {
        server.wait_for_log(words);
    }
    assert!(server.wait_for_log("skipped manual.pdf").contains("WARN"));
}

#[test]
fn the_tables_are_listed_with_notes() {
    let ran = run(&["call", "list_tables", "--path", &messy()]);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    for part in ["budget_Plan", "skipped warehouse.duckdb: DuckDB", "tables: {report: {skip: 3}}"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn demo_data_is_readable() {
    let ran = run(&["query", "SELECT count(*) AS airlines FROM demo.airlines", &folder("data")]);
    assert_eq!(ran.lines(), ["airlines", "16"], "{ran:?}");
    let ran = run(&["query", "SELECT count(DISTINCT faa) > 1000 AS many FROM demo.airports", &folder("data")]);
    assert_eq!(ran.lines(), ["many", "true"], "{ran:?}");
}

#[test]
fn suggested_settings_fix_the_tables() {
    let tables = "report: {skip: 3}, ragged: {ragged: fill}, french: {encoding: latin-1}, titled: {skip: 2}, \
                  umsatz: {decimal: ',', thousands: .}, missing: {null: [NA, '-', N/A, '\\N']}, late: {columns: {amount: string}}";
    let configured =
        ConfiguredFolder::new(&format!("databases: [{{name: messy, files: {:?}, tables: {{{tables}}}}}]\n", messy()));
    let ask = |sql: &str| configured.run(&["query", sql]).lines().join(" ");
    assert_eq!(ask("SELECT sum(price) AS p FROM report"), "p 9");
    assert_eq!(ask("SELECT nom FROM french"), "nom mère");
    assert_eq!(ask("SELECT sum(\"Betrag\") AS b FROM umsatz"), "b -9778.34");
    assert_eq!(ask("SELECT count(country) AS c, sum(amount) AS a FROM missing"), "c,a 2,50");
    let doctor = configured.run(&["doctor"]).stdout;
    assert!(!doctor.contains("cannot be read"), "{doctor}");
    assert!(doctor.contains("skipped shop.db: SQLite"), "{doctor}");
}

#[test]
fn reports_invalid_table_settings() {
    let tables = "a: {encoding: ebcdic}, b: {decimal: ab}, c: {decimal: '.', thousands: '.'}";
    let configured =
        ConfiguredFolder::new(&format!("databases: [{{name: shop, files: shop, tables: {{{tables}}}}}]\n"));
    let ran = configured.run(&["config", "check"]);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    for part in
        ["there is no encoding \"ebcdic\"", "is not one character that may stand in a number", "they must differ"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn export_compression_follows_the_extension() {
    let out = tempfile::tempdir().unwrap();
    let export = |name: &str| {
        let path = messy();
        let ran = run_in(out.path(), &["export", "SELECT id FROM late WHERE id < 3", &path, "-o", name, "--quiet"]);
        (ran.code, std::fs::read(out.path().join(name)).unwrap_or_default(), ran.stderr)
    };
    let (code, bytes, _) = export("a.csv.gz");
    assert_eq!((code, bytes.get(..2)), (Some(0), Some(&[0x1F, 0x8B][..])));
    let (code, bytes, _) = export("b.ndjson.zst");
    assert_eq!((code, bytes.get(..4)), (Some(0), Some(&[0x28, 0xB5, 0x2F, 0xFD][..])));
    // What was written is served again.
    let sql = "SELECT a.s + b.s AS s FROM (SELECT sum(id) s FROM a) a, (SELECT sum(id) s FROM b) b";
    let ran = run(&["query", sql, &out.path().display().to_string()]);
    assert_eq!(ran.lines(), ["s", "6"], "{ran:?}");
    let (code, _, text) = export("c.parquet.gz");
    assert_eq!(code, Some(2), "{text}");
}

/// In `config check`, which `init` runs, in `doctor`, and at the start of `serve`.
#[test]
fn odd_tables_are_reported_where_they_are_seen_first() {
    let tables = "{orders: {columns: {Bar: date}}, events: {columns: {Foo: date}}, facts: {columns: {id: string}}}";
    let configured =
        ConfiguredFolder::new(&format!("databases:\n  - name: shop\n    files: shop\n    tables: {tables}\n"));
    let write = |name: &str, text: &str| std::fs::write(configured.folder().join("shop").join(name), text).unwrap();
    for number in 1..=6 {
        write(&format!("broken{number}.parquet"), "no parquet");
    }
    write("facts.parquet", "neither");
    write("events.ndjson", "{\"id\": 1}\n");
    write("prices.csv", "id,price\n1,10\n2,unknown\n");
    write("manual.pdf", "");
    let unreadable = "table shop.broken1 cannot be read: it is not a readable Parquet file";
    let notes = [
        "database shop: skipped manual.pdf: document, not a table",
        "database shop: events.Foo is declared in the configuration, but no object that was looked at has this key",
        "database shop: prices.price is text, because line 3 of prices.csv has \"unknown\"",
    ];
    let more = "3 more tables of shop cannot be read; tidegate doctor lists them";
    let ineffective = "database shop: tables: facts: columns (id) has no effect on Parquet files, which have types";

    let check = configured.run(&["config", "check", "--log", "error"]);
    for line in notes.iter().chain([&more, &ineffective, &unreadable]) {
        assert!(check.stdout.contains(line), "{line}: {check:?}");
    }
    assert!(check.stdout.ends_with("no errors; 7 warnings above\n"), "{check:?}");

    let doctor = configured.run(&["doctor"]).stdout;
    let orders = "table shop.orders cannot be read: the configuration declares a type for \"Bar\", but the columns are id, \
                  customer, amount";
    for line in notes.iter().chain([&orders, &ineffective, &unreadable]) {
        assert!(doctor.contains(line), "{line}: {doctor}");
    }
    assert_eq!(doctor.matches(" cannot be read: ").count(), 8, "{doctor}");

    let mut command = tidegate();
    command.current_dir(configured.folder()).args(["serve", "--listen", "127.0.0.1:0", "--log", "info"]);
    let mut server = Server::start(&mut command);
    let [skipped, ..] = notes;
    for words in [unreadable, more, skipped] {
        let line = server.wait_for_log(words);
        assert!(line.contains("WARN"), "{line}");
    }
    // Values of files are in no log.
    server.signal("TERM");
    let (_, log) = server.wait_for_exit();
    assert!(!log.contains("unknown"), "{log}");
}
