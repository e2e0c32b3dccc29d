//! Which files make which table; folders, partitions, names.

use insta::assert_snapshot;
use tidegate_engines::{ColumnType, TextTableOptions};

use crate::messy::open_with_options;
use crate::support::{Folder, TestNode, numbers, two_thread_options, write_parquet};

const A: &str = "id,name\n1,a\n2,b\n";
const B: &str = "id,name\n3,c\n";

#[tokio::test]
async fn a_folder_of_files_that_fit_together_is_a_table() {
    let folder = Folder::with(&[
        ("top.csv", A),
        ("sales/2023.csv", A),
        ("sales/2024.csv", B),
        ("sales/.hidden.csv", "x\n1\n"),
        ("sales/notes.txt", "no table"),
        ("sales/empty.csv", ""),
        ("lookup/countries.csv", "code\nDE\n"),
    ]);
    let node = folder.database();
    assert_snapshot!(node.tables().await, @r"
    lookup.countries: 1 rows
    sales: 3 rows
    top: 2 rows
    ");
    assert_eq!(node.rows("SELECT * FROM sales").await, "1|a\n2|b\n3|c");
    let comments: Vec<_> = node.catalog().await.tables.iter().filter_map(|table| table.comment.clone()).collect();
    assert_snapshot!(comments.join("\n"), @r"
    CSV file
    folder of 2 CSV files
    CSV file
    ");
}

/// Another file can make the name of the folder that of the table, so statements may use both names before.
#[tokio::test]
async fn the_only_file_of_a_folder_keeps_its_name() {
    let folder = Folder::with(&[
        ("months/2024-01.csv", A),
        ("out/part-00000.csv", A),
        ("declared/x.csv", A),
        ("outer/inner/deep.json", r#"[{"n": 1}]"#),
        ("empty/none.csv", ""),
    ]);
    let one_table = TextTableOptions { one_table: Some(true), ..TextTableOptions::default() };
    let node = open_with_options(vec![folder.path()], &[("declared", one_table)]);
    assert_snapshot!(node.tables().await, @r"
    declared: 2 rows
    empty.none: unreadable, its file empty/none.csv: the file is empty
    months.2024-01: 2 rows
    out: 2 rows
    outer.inner.deep: 1 rows
    ");
    for name in ["\"months.2024-01\"", "months.\"2024-01\"", "months", "Months", "db.months"] {
        assert_eq!(node.rows(&format!("SELECT count(*) FROM {name}")).await, "2", "{name}");
    }
    assert_eq!(node.rows("SELECT n FROM \"outer.inner\"").await, "1");
    assert_eq!(node.columns("months").await.unwrap(), "id bigint, name text");
    let alone = TestNode::open(vec![folder.join("months")], two_thread_options());
    assert_eq!(alone.tables().await, "2024-01: 2 rows");

    folder.write("months/2024-02.csv", B);
    assert_eq!(node.rows("SELECT count(*) FROM months").await, "3");
    assert!(node.refusal("SELECT * FROM months.\"2024-01\"").await.contains("there is no table \"months.2024-01\""));
    folder.write("months/2024-02.csv", "other\n1\n");
    assert!(node.refusal("SELECT * FROM months").await.contains("there is no table \"months\""));
    assert_eq!(node.rows("SELECT count(*) FROM months.\"2024-01\"").await, "2");
}

#[tokio::test]
async fn files_that_do_not_fit_together_are_tables_of_their_own() {
    let folder = Folder::with(&[
        ("misc/customers.csv", A),
        ("misc/orders.csv", "id,total\n1,2.5\n"),
        ("both/one.csv", A),
        ("both/two.json", r#"[{"x": 1}]"#),
        ("outer/inner/deep.csv", A),
        ("outer/inner/deeper.csv", B),
    ]);
    let node = folder.database();
    assert_snapshot!(node.tables().await, @r"
    both.one: 2 rows
    both.two: 1 rows
    misc.customers: 2 rows
    misc.orders: 1 rows
    outer.inner: 3 rows
    ");
    assert_eq!(node.rows("SELECT total FROM \"misc.orders\"").await, "2.5");
    assert_eq!(node.rows("SELECT total FROM misc.orders").await, "2.5");
    assert_eq!(node.rows("SELECT count(*) FROM db.\"outer.inner\"").await, "3");
    assert_eq!(node.rows("SELECT orders.total FROM misc.orders").await, "2.5");
}

#[tokio::test]
async fn columns_of_several_files_are_united() {
    let folder = Folder::with(&[
        ("csv/a.csv", "id,v\n1,2\n"),
        ("csv/b.csv", "id,v\n2,2.5\n"),
        ("csv/c.csv", "id,v\n3,x\n"),
        ("json/a.json", r#"[{"id": 1, "only_a": "x"}]"#),
        ("json/b.json", r#"[{"id": 2.5, "only_a": null, "only_b": true}]"#),
    ]);
    write_parquet(&folder.join("parquet/a.parquet"), &numbers(2), 10);
    let narrow = numbers(4).project(&[0]).unwrap().slice(2, 2);
    write_parquet(&folder.join("parquet/b.parquet"), &narrow, 10);
    let node = folder.database();
    assert_eq!(node.columns("csv").await.unwrap(), "id bigint, v text");
    assert_eq!(node.rows("SELECT * FROM csv").await, "1|2\n2|2.5\n3|x");
    assert_eq!(node.columns("json").await.unwrap(), "id double, only_a text, only_b boolean");
    assert_eq!(node.rows("SELECT * FROM json").await, "1.0|x|null\n2.5|null|true");
    assert_eq!(node.rows("SELECT * FROM parquet").await, "0|name 0\n1|name 1\n2|null\n3|null");
    assert_eq!(node.rows("SELECT max(id), count(name) FROM parquet").await, "3|2");
}

#[tokio::test]
async fn partitions_are_columns_and_choose_the_files() {
    let folder = Folder::with(&[
        ("events/year=2023/month=01/a.csv", A),
        ("events/year=2023/month=02/a.csv", B),
        ("events/year=2024/month=01/a.csv", B),
        ("events/readme.csv", "note\nhello\n"),
        ("cities/city=S%C3%A3o Paulo/a.json", r#"{"n": 1}"#),
        ("cities/city=__HIVE_DEFAULT_PARTITION__/a.json", r#"{"n": 2}"#),
    ]);
    let node = folder.database();
    assert_snapshot!(node.tables().await, @r"
    cities: 2 rows
    events: 4 rows
    events.readme: 1 rows
    ");
    assert_eq!(node.columns("events").await.unwrap(), "id bigint, name text, year bigint, month text");
    let rows = node.rows("SELECT id, year, month FROM events WHERE year = 2023 AND month > '01'").await;
    assert_eq!(rows, "3|2023|02");
    let plan = node.plan("SELECT id FROM events WHERE year = 2024").await.unwrap().explain().await.unwrap();
    assert!(plan.contains("year=2024") && !plan.contains("year=2023/month"), "{plan}");
    assert_eq!(node.rows("SELECT year, count(*) FROM events GROUP BY year ORDER BY year").await, "2023|3\n2024|1");
    assert_eq!(node.rows("SELECT n, city FROM cities ORDER BY n").await, "1|São Paulo\n2|null");
    assert_eq!(node.rows("SELECT n FROM cities WHERE city IS NULL").await, "2");
    assert_eq!(node.rows("SELECT n FROM cities WHERE city = 'São Paulo'").await, "1");
}

/// A condition on the null of a partition is null, and null is not true.
#[tokio::test]
async fn a_null_partition_matches_no_comparison() {
    let folder = Folder::with(&[
        ("texts/k=__HIVE_DEFAULT_PARTITION__/a.csv", "n\n1\n"),
        ("texts/k=/a.csv", "n\n2\n"),
        ("texts/k=x/a.csv", "n\n3\n"),
        ("numbers/k=__HIVE_DEFAULT_PARTITION__/a.csv", "n\n1\n"),
        ("numbers/k=0/a.csv", "n\n2\n"),
        ("numbers/k=7/a.csv", "n\n3\n"),
        ("days/k=__HIVE_DEFAULT_PARTITION__/a.csv", "n\n1\n"),
        ("days/k=1970-01-01/a.csv", "n\n2\n"),
    ]);
    let node = folder.database();
    for (condition, numbers) in [
        ("texts WHERE k = ''", "2"),
        ("texts WHERE k <> 'x'", "2"),
        ("texts WHERE NOT k = 'x'", "2"),
        ("texts WHERE k LIKE '%'", "2\n3"),
        ("texts WHERE k IS NULL", "1"),
        ("texts WHERE (k = '') IS NOT TRUE", "1\n3"),
        ("numbers WHERE k = 0", "2"),
        ("numbers WHERE k < 5", "2"),
        ("numbers WHERE k <> 7", "2"),
        ("numbers WHERE k NOT IN (7, 8)", "2"),
        ("days WHERE k = '1970-01-01'", "2"),
    ] {
        assert_eq!(node.rows(&format!("SELECT n FROM {condition} ORDER BY n")).await, numbers, "{condition}");
    }
    assert_eq!(node.rows("SELECT count(*) FROM texts WHERE k = ''").await, "1");
}

#[tokio::test]
async fn a_path_may_be_partitioned_itself_or_be_one_output_or_one_file() {
    let folder = Folder::with(&[("y/year=2023/a.csv", A), ("y/year=2024/a.csv", B), ("one.csv", A)]);
    write_parquet(&folder.join("out/part-0000-x.parquet"), &numbers(10), 5);
    write_parquet(&folder.join("out/part-0001-x.parquet"), &numbers(10), 5);
    folder.write("out/_SUCCESS", "");
    for (path, tables) in [("y", "y: 3 rows"), ("out", "out: 20 rows"), ("one.csv", "one: 2 rows")] {
        let node = TestNode::open(vec![folder.join(path)], two_thread_options());
        assert_eq!(node.tables().await, tables, "{path}");
    }
    let several =
        TestNode::open(vec![folder.join("y"), folder.join("one.csv"), folder.join("out")], two_thread_options());
    assert_eq!(several.tables().await, "one: 2 rows\nout: 20 rows\ny: 3 rows");
    assert_eq!(several.rows("SELECT count(*) FROM one, out").await, "40");
}

/// The order of the paths is no part of the names of tables, and neither is it of the keys of their options.
#[tokio::test]
async fn the_files_of_several_paths_have_the_keys_of_their_tables() {
    let text = "id,note\n1,first\n";
    let folder = Folder::with(&[("a/x.csv", text), ("b/y.csv", text), ("b/bad.csv", "a,b\n1,2\n3,4,\n")]);
    let paths = |names: &[&str]| names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    let nulls = || TextTableOptions { null: Some(vec!["first".to_owned()]), ..TextTableOptions::default() };
    for names in [&["a", "b"][..], &["b/*.csv", "a/x.csv"], &["b/[a-m]*.csv", "b/[n-z]*.csv", "a"]] {
        let node = open_with_options(paths(names), &[("x", nulls()), ("y", nulls())]);
        assert_eq!(node.rows("SELECT x.note, y.note FROM x JOIN y USING (id)").await, "null|null", "{names:?}");
        let tables = node.tables().await;
        assert!(tables.contains("tables: {bad: {ragged: trim}}"), "{tables}");
        assert!(node.database.table_option_problems().await.unwrap().is_empty(), "{names:?}");
    }
    // Messages name the folder only if there are several.
    let dates =
        TextTableOptions { columns: [("note".to_owned(), ColumnType::Date)].into(), ..TextTableOptions::default() };
    for (names, location) in [(&["b/[a-m]*.csv", "b/[n-z]*.csv"], "y.csv"), (&["a", "b"], "2~b/y.csv")] {
        let node = open_with_options(paths(names), &[("y", dates.clone())]);
        let refusal = node.refusal("SELECT max(note) FROM y").await;
        assert!(refusal.contains(&format!("line 2 of the file {location} has 'first'")), "{refusal}");
    }
}

#[tokio::test]
async fn files_may_be_called_anything() {
    let names = [
        "with space",
        "o'brien",
        "say \"hi\"",
        "Straße 北京 🚀",
        ";DROP TABLE x",
        "--",
        "select",
        "a\nb",
        "a.b.c",
        "1",
    ];
    let folder = Folder::new();
    for (index, name) in names.iter().enumerate() {
        folder.write(&format!("{name}.csv"), format!("n\n{index}\n"));
    }
    let node = folder.database();
    for (index, name) in names.iter().enumerate() {
        let quoted = name.replace('"', "\"\"");
        let answer = node.rows(&format!("SELECT n FROM \"{quoted}\"")).await;
        assert_eq!(answer, index.to_string(), "{name:?}");
    }
    assert_eq!(node.catalog().await.tables.len(), names.len());
}

#[tokio::test]
async fn invalid_table_names_are_fixed_and_unique() {
    let folder = Folder::with(&[
        ("a.csv", A),
        ("a.json", r#"{"x": 1}"#),
        ("a/one.csv", A),
        ("a/two.csv", B),
        ("b.csv.csv", A),
        ("c:d.csv", A),
        ("e\\f.csv", A),
    ]);
    let node = folder.database();
    assert_snapshot!(node.tables().await, @r"
    a_csv: 2 rows
    a_folder: 3 rows
    a_json: 1 rows
    b_csv: 2 rows
    c_d: 2 rows
    e_f: 2 rows
    ");
    for table in node.catalog().await.tables.iter() {
        assert_eq!(node.rows(&format!("SELECT count(*) > 0 FROM \"{}\"", table.name)).await, "true", "{}", table.name);
    }
}

#[tokio::test]
async fn names_are_found_whatever_their_case_unless_quoted() {
    let folder = Folder::with(&[("Flights.csv", "tailNum,Dest,dest\nN1,JFK,jfk\n")]);
    let node = folder.database();
    assert_eq!(node.rows("SELECT tailNum, Dest, dest FROM Flights").await, "N1|JFK|jfk");
    assert_eq!(node.rows("SELECT TAILNUM FROM flights").await, "N1");
    assert_eq!(node.rows("SELECT FLIGHTS.tailnum AS Plane FROM flights ORDER BY plane").await, "N1");
    assert_snapshot!(node.refusal("SELECT \"tailnum\" FROM flights").await, @r#"
    invalid_arguments: there is no column "tailnum"
    Valid choices: tailNum, Dest, dest
    "#);
}

#[tokio::test]
async fn unusual_column_names_work() {
    let folder = Folder::with(&[("odd.csv", "a b,\"c,d\",,a b,\"say \"\"hi\"\"\",select\n1,2,3,4,5,6\n")]);
    let node = folder.database();
    let columns = node.columns("odd").await.unwrap();
    assert_eq!(columns, "a b bigint, c,d bigint, column_3 bigint, a b_2 bigint, say \"hi\" bigint, select bigint");
    let sql = "SELECT \"a b\", \"c,d\", column_3, \"a b_2\", \"say \"\"hi\"\"\", \"select\" FROM odd";
    assert_eq!(node.rows(sql).await, "1|2|3|4|5|6");
}
