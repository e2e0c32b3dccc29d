//! `tidegate query`.

use std::io::Read as _;
use std::process::Stdio;

use super::{Shop, run, run_in, tidegate};

#[test]
fn prints_csv_by_default() {
    let shop = Shop::new();
    let ran = run(&["query", "SELECT id, amount FROM orders ORDER BY id", &shop.argument()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ran.stdout, @"
    id,amount
    1,12.5
    2,7.0
    3,
    ");
    let ran = run(&["query", "SELECT id, amount FROM orders ORDER BY id", &shop.argument(), "--format", "ndjson"]);
    insta::assert_snapshot!(ran.stdout, @r#"
    {"id":1,"amount":12.5}
    {"id":2,"amount":7.0}
    {"id":3,"amount":null}
    "#);
}

#[test]
fn queries_current_folder_by_default() {
    let ran = run_in(&Shop::new().path(), &["query", "SELECT count(*) AS orders FROM orders"]);
    assert_eq!(ran.lines(), ["orders", "3"]);
}

#[test]
fn expands_globs() {
    let shop = Shop::new();
    let ask = |sql: &str| run_in(shop.0.path(), &["query", sql, "shop/ord*.csv"]);
    assert_eq!(ask("SELECT count(*) AS orders FROM shop.orders").lines(), ["orders", "3"]);
    assert!(ask("SELECT * FROM \"2024\"").stderr.contains("there is no table"), "it does not fit");
    let idle = run_in(shop.0.path(), &["query", "SELECT 1 AS one", "shop/none*.csv", "--log", "warn"]);
    assert_eq!(idle.lines(), ["one", "1"]);
    assert!(idle.stderr.contains("database shop: no file matches none*.csv yet"), "{}", idle.stderr);
    let lost = run_in(shop.0.path(), &["query", "SELECT 1", "nowhere/*.csv"]);
    assert_eq!(lost.code, Some(2));
    assert!(lost.stderr.contains("nowhere: no such file or folder"), "{}", lost.stderr);
}

#[test]
fn failed_query_exits_with_1_without_stdout() {
    let shop = Shop::new();
    let ran = run(&["query", "SELECT * FROM oders", &shop.argument()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("orders"), "{}", ran.stderr);
    let ran = run(&["query", "DELETE FROM orders", &shop.argument()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

#[test]
fn truncation_is_reported_on_stderr() {
    let shop = Shop::new();
    let ran = run(&["query", "SELECT id FROM orders ORDER BY id", &shop.argument(), "--max-rows", "2"]);
    assert_eq!((ran.code, ran.lines()), (Some(0), vec!["id", "1", "2"]));
    assert!(ran.stderr.contains("more exist"), "{}", ran.stderr);
}

#[test]
fn invalid_paths_are_usage_errors() {
    let shop = Shop::new();
    let ran = run(&["query", "SELECT 1", "/nowhere/at/all"]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.stderr, @"error: cannot open /nowhere/at/all: no such file or folder");
    let ran = run(&["query", "SELECT 1", &shop.argument(), &shop.argument()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("have the same database name \"shop\""), "{}", ran.stderr);
}

#[test]
fn databases_are_selected_by_name() {
    let shop = Shop::new();
    let other = format!("other={}", shop.argument());
    let arguments = ["query", "SELECT count(*) AS n FROM orders", &shop.argument(), &other];
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("other, shop"), "{}", ran.stderr);
    let ran = run(&[&arguments[..], &["--database", "other"]].concat());
    assert_eq!(ran.lines(), ["n", "3"]);
}

#[test]
fn closed_pipe_is_not_an_error() {
    let shop = Shop::new();
    let sql = "SELECT a.id FROM orders a CROSS JOIN generate_series(1, 1000000)";
    let mut child = tidegate()
        .args(["query", sql, &shop.argument()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 3];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn extract_prints_the_unique_values() {
    let shop = Shop::new();
    let ran = run(&["query", "SELECT * FROM orders", "--extract", "customer", "--format", "csv", &shop.argument()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Ann\r\nBob\r\n"), "{ran:?}");
    let ran = run(&["query", "SELECT * FROM orders", "--extract", "custom", &shop.argument()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("customer"), "{ran:?}");
}

#[test]
fn connection_strings_are_recognized_and_no_message_has_a_password() {
    let shop = Shop::new();
    for (text, part) in [
        ("host=127.0.0.1 port=1 dbname=shop user=ann password=s3cret", "as ann: connection refused"),
        ("postgresql+asyncpg://ann:s3cret@127.0.0.1:1/shop", "as ann: connection refused"),
        ("shop=host=127.0.0.1 port=1 user=ann password=s3cret", "database shop cannot be reached"),
        (
            "jdbc:postgresql://127.0.0.1/shop?user=ann&password=s3cret",
            "write it as postgresql://USER@HOST:PORT/DATABASE",
        ),
        ("postgres://ann:s3cret@db/shop?currentSchema=sales", "write options=-csearch_path%3DNAME"),
        ("postgres:/ann:s3cret@db/shop", "does not begin with postgresql:// or postgres://"),
        ("mysql://ann:s3cret@127.0.0.1:1/shop", "database shop cannot be reached"),
        (
            "oracle://ann:s3cret@db/shop",
            "write a path, or postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT/DATABASE",
        ),
        ("Server=db;Database=shop;User Id=ann;Password=s3cret", "connection string of another driver"),
        ("ann:s3cret@127.0.0.1:1/shop", "a connection string begins with postgresql://"),
        ("shop=postgresql//ann:s3cret@127.0.0.1:1/shop", "a connection string begins with postgresql://"),
    ] {
        let commands: [&[&str]; 8] = [
            &["query", "SELECT 1", text],
            &["call", "list_tables", "--path", text, "database=shop"],
            &["export", "SELECT 1", "-o", "out.csv", text],
            &["doctor", text],
            &["init", "--yes", "--config", "new.yaml", text],
            &["call", "list_tables", text],
            &["serve", "--listen", text],
            &[text],
        ];
        for (index, arguments) in commands.into_iter().enumerate() {
            let ran = run_in(&shop.path(), arguments);
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("s3cret"), "{ran:?}");
            assert!(index > 0 || ran.stderr.contains(part), "{ran:?}");
        }
    }
}

#[test]
fn unreachable_database_is_one_error_with_its_reason() {
    let shop = Shop::new();
    let ran = run_in(&shop.path(), &["query", "SELECT 1", "postgres://ann@127.0.0.1:1/shop"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    insta::assert_snapshot!(ran.stderr, @"
    error: the database shop cannot be reached: connection refused
    cannot connect to postgres at 127.0.0.1:1/shop as ann: connection refused
    ");
}
