//! Profiles of columns, by `get_schema`: over the rows of the caller, and nothing of masked columns.

use std::path::Path;

use serde_json::{Value, json};

use super::ConfiguredFolder;

const PEOPLE: &str = "id,code,city,score\n1,AB-12,Oslo,1.5\n2,CD-34,Oslo,2\n3,EF-56,Bergen,\n4,GH-78,Oslo,-3\n";

/// The profile of the table `people` of `database`, in a folder that `fill` has filled.
fn profile(database: &str, fill: impl FnOnce(&Path)) -> Vec<Value> {
    let configured = ConfiguredFolder::new(&format!("databases:\n  - {{name: people, {database}}}\n"));
    fill(configured.folder());
    let ran = configured.run(&["call", "get_schema", "table=people", "profile=true"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn with_people(text: &str) -> impl FnOnce(&Path) {
    move |folder: &Path| std::fs::write(folder.join("shop/people.csv"), text).unwrap()
}

/// The member `key` of the line of the column `name`.
fn member<'a>(columns: &'a [Value], name: &str, key: &str) -> &'a Value {
    &columns.iter().find(|column| column["name"] == name).unwrap()[key]
}

#[test]
fn columns_are_profiled_by_their_values() {
    let columns = profile("files: shop", with_people(PEOPLE));
    for (name, key, expected) in [
        ("id", "nulls", json!(0)),
        ("id", "distinct", json!("4")),
        ("id", "unique", json!(true)),
        ("id", "min", json!("1")),
        ("id", "max", json!("4")),
        ("id", "frequent", json!([])),
        ("id", "pattern", Value::Null),
        ("id", "rows_read", json!(4)),
        ("id", "all_rows", json!(true)),
        ("code", "min", json!("AB-12")),
        ("code", "max", json!("GH-78")),
        ("code", "pattern", json!("AA-99 (4)")),
        ("code", "length", json!("5")),
        ("city", "distinct", json!("2")),
        ("city", "unique", json!(false)),
        ("city", "frequent", json!(["Oslo (3)"])),
        ("city", "pattern", json!("Aaaa (3)")),
        ("city", "length", json!("4 to 6")),
        ("score", "nulls", json!(1)),
        ("score", "distinct", json!("3")),
    ] {
        assert_eq!(*member(&columns, name, key), expected, "{key} of {name}");
    }
    let bound = |key: &str| member(&columns, "score", key).as_str().unwrap().parse::<f64>().unwrap();
    assert_eq!([bound("min"), bound("max")], [-3.0, 2.0]);
}

#[test]
fn hidden_rows_do_not_count_and_masked_columns_have_no_profile() {
    let policies =
        "policies: [{table: people, rows: \"city = 'Oslo'\", columns: {code: {keep_first: 1}, score: deny}}]";
    let columns = profile(&format!("files: shop, {policies}"), with_people(PEOPLE));
    assert_eq!(*member(&columns, "city", "distinct"), json!("1"));
    assert_eq!(*member(&columns, "id", "rows_read"), json!(3));
    for key in ["nulls", "distinct", "unique", "min", "max", "frequent", "pattern", "length"] {
        assert_eq!(*member(&columns, "code", key), Value::Null, "{key}");
    }
    assert!(columns.iter().all(|column| column["name"] != "score"));
}

/// In SQLite, a number is no text: 9 is less than 10.
#[test]
fn values_of_sqlite_have_the_order_of_their_types() {
    let columns = profile("sqlite: people.db", |folder| {
        let tables = "CREATE TABLE people (age INTEGER, name TEXT, either, number NUMERIC);
            INSERT INTO people VALUES (10, 'Bo', 1, 9007199254740992), (9, 'Al', 'x', 9007199254740993),
                (100, NULL, NULL, 0.5);";
        rusqlite::Connection::open(folder.join("people.db")).unwrap().execute_batch(tables).unwrap();
    });
    for (name, key, expected) in [
        ("age", "min", json!("9")),
        ("age", "max", json!("100")),
        ("age", "length", Value::Null),
        ("name", "min", json!("Al")),
        ("name", "pattern", json!("Aa (2)")),
        ("either", "min", Value::Null),
        ("either", "distinct", json!("2")),
        ("number", "min", json!("0.5")),
        ("number", "max", json!("9007199254740993")),
    ] {
        assert_eq!(*member(&columns, name, key), expected, "{key} of {name}");
    }
}

#[test]
fn a_profile_of_the_first_rows_has_their_number() {
    let text = format!("id\n{}", "7\n".repeat(100_001));
    let columns = profile("files: shop", with_people(&text));
    for (key, expected) in [
        ("rows_read", json!(100_000)),
        ("all_rows", json!(false)),
        ("distinct", json!("1")),
        ("frequent", json!(["7 (100000)"])),
    ] {
        assert_eq!(*member(&columns, "id", key), expected, "{key}");
    }
}
