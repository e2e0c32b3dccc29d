//! `tidegate export` of data here, and what `tidegate fetch` and it refuse before anything is asked.

use super::{CommandOutput, Shop, run, run_in, tidegate};

const SQL: &str = "SELECT id, amount FROM orders ORDER BY id";

#[test]
fn format_follows_the_file_extension() {
    let shop = Shop::new();
    let export = |file: &str, more: &[&str]| {
        let ran = run_in(&shop.path(), &[&["export", SQL, "orders.csv", "-o", file], more].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        (std::fs::read(shop.path().join(file)).unwrap(), ran.stderr)
    };
    let (csv, message) = export("out.csv", &[]);
    assert_eq!(String::from_utf8(csv).unwrap(), "id,amount\r\n1,12.5\r\n2,7.0\r\n3,\r\n");
    assert!(message.starts_with("out.csv: 3 rows, "), "{message}");
    let (ndjson, message) = export("out.jsonl", &["--quiet"]);
    assert_eq!(String::from_utf8(ndjson).unwrap().lines().count(), 3);
    assert_eq!(message, "");
    assert_eq!(&export("out.parquet", &[]).0[..4], b"PAR1");
    let (named, text) = (export("out.arrow", &[]).0, export("out.bin", &["--format", "arrow"]).0);
    assert!(!named.is_empty() && named == text);
    for (name, ending, magic) in [("gzip", "gz", &[0x1f, 0x8b][..]), ("zstd", "zst", &[0x28, 0xb5, 0x2f, 0xfd])] {
        assert_eq!(&export(&format!("{name}.csv.{ending}"), &[]).0[..magic.len()], magic);
        let read = run_in(&shop.path(), &["query", &format!("SELECT sum(amount) AS total FROM {name}")]);
        assert_eq!(read.lines(), ["total", "19.5"], "{name}: {read:?}");
    }
}

/// Programs read a file of Arrow by the index at its end. The values of a partition are a dictionary for each of its files.
#[test]
fn arrow_files_have_an_index_unless_they_end_as_streams() {
    let shop = Shop::new();
    for year in ["2023", "2024"] {
        let folder = shop.path().join(format!("sales/year={year}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.csv"), "amount\n1\n2\n").unwrap();
    }
    for (table, ending, condition, rows) in [
        ("out", "arrow", "", "4"),
        ("out", "feather", "", "4"),
        ("out", "arrows", "", "4"),
        ("empty", "arrow", " WHERE amount > 9", "0"),
    ] {
        let file = format!("../{table}.{ending}");
        let sql = format!("SELECT year, amount FROM sales{condition} ORDER BY year, amount");
        let ran = run_in(&shop.path(), &["export", &sql, ".", "-o", &file, "--quiet"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        let (bytes, is_file) = (std::fs::read(shop.path().join(&file)).unwrap(), ending != "arrows");
        assert_eq!((bytes.starts_with(b"ARROW1"), bytes.ends_with(b"ARROW1")), (is_file, is_file), "{file}");
        let count = run_in(&shop.path(), &["query", &format!("SELECT count(*) AS rows FROM {table}"), &file]);
        assert_eq!(count.lines(), ["rows", rows], "{file}: {count:?}");
    }
}

#[test]
fn export_ignores_the_inline_budget() {
    let shop = Shop::new();
    let sql = "SELECT a.id FROM orders a CROSS JOIN generate_series(1, 200000)";
    let ran = run_in(&shop.path(), &["export", sql, "orders.csv", "-o", "out.csv", "--quiet"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(shop.path().join("out.csv")).unwrap().lines().count(), 600_001);
}

#[test]
fn failed_query_leaves_no_file() {
    let shop = Shop::new();
    let before = std::fs::read_dir(shop.path()).unwrap().count();
    for sql in ["SELECT * FROM oders", "SELECT CAST(customer AS int) FROM orders"] {
        let ran = run_in(&shop.path(), &["export", sql, ".", "-o", "out.csv"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert_eq!(std::fs::read_dir(shop.path()).unwrap().count(), before, "{sql}");
    }
}

#[test]
fn invalid_destination_is_a_usage_error() {
    let shop = Shop::new();
    let refused = |arguments: &[&str]| {
        let ran = run_in(&shop.path(), arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        ran.stderr
    };
    insta::assert_snapshot!(
        refused(&["export", SQL, "-o", "orders.csv"]),
        @"error: orders.csv exists; --force overwrites it"
    );
    insta::assert_snapshot!(
        refused(&["export", SQL, "-o", "out.txt"]),
        @"error: out.txt: a result can be written as arrow, ndjson, csv, json or parquet; set one with --format"
    );
    insta::assert_snapshot!(
        refused(&["export", SQL, "-o", "out.csv", "--partial"]),
        @"error: --partial requires --connect"
    );
    insta::assert_snapshot!(
        refused(&["fetch", "http://127.0.0.1:1/mcp", "-o", "out.csv"]),
        @"error: the URL is not the URL of a result: its path must end in /results/ID or /results/ID/data"
    );
    let ran = run(&["fetch", "http://127.0.0.1:1/results/x", "-o", "out.csv", "--parallel", "0"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn reports_unreachable_server() {
    let shop = Shop::new();
    let url = "http://127.0.0.1:1/results/2f1c1f0e-9d1b-4c55-8a33-0d6a3a1f7c11";
    let mut command = tidegate();
    command.current_dir(shop.path()).env("TIDEGATE_BEARER", "secret").args(["fetch", url, "-o", "out.csv"]);
    let ran = CommandOutput::from(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains(&format!("error: {url} could not be reached: ")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("secret"));
}
