//! Each value in its own type, through the formats; random values come back as they went in.

use arrow::datatypes::DataType;
use proptest::prelude::*;
use rusqlite::types::Value;
use tidegate_core::{ErrorKind, Format};
use tidegate_query::output_schema;
use tidegate_sql::Parameter;

use crate::support::{Folder, open_database};

const MIXED: &str = "
    CREATE TABLE mixed (id INTEGER PRIMARY KEY, value, flag BOOLEAN, day DATE);
    INSERT INTO mixed VALUES
        (1, 9007199254740993, TRUE, '2024-02-29'), (2, 2.0, FALSE, 45000), (3, 'a,\"b', 'yes', NULL),
        (4, x'00ff', NULL, NULL), (5, NULL, NULL, NULL), (6, 1e999, NULL, NULL);
    CREATE TABLE strict (n INT, r REAL, t TEXT, b BLOB, a ANY, g INT AS (n + 1), s INT AS (n + 1) STORED) STRICT;
    INSERT INTO strict (n, r, t, b, a) VALUES (1, 2, 'three', x'04', 'five'), (NULL, NULL, NULL, NULL, NULL);";

#[tokio::test]
async fn each_value_keeps_its_type_in_every_format() {
    let (_folder, node) = open_database(MIXED);
    let sql = "SELECT * FROM mixed";
    insta::assert_snapshot!(node.answer(sql, Format::Ndjson).await.unwrap(), @r#"
    {"id":1,"value":9007199254740993,"flag":1,"day":"2024-02-29"}
    {"id":2,"value":2.0,"flag":0,"day":45000}
    {"id":3,"value":"a,\"b","flag":"yes","day":null}
    {"id":4,"value":"AP8=","flag":null,"day":null}
    {"id":5,"value":null,"flag":null,"day":null}
    {"id":6,"value":"Infinity","flag":null,"day":null}
    "#);
    insta::assert_snapshot!(node.answer(sql, Format::Table).await.unwrap(), @r#"
     id | value            | flag | day
    ----+------------------+------+------------
      1 | 9007199254740993 | 1    | 2024-02-29
      2 | 2.0              | 0    | 45000
      3 | a,"b             | yes  | NULL
      4 | AP8=             | NULL | NULL
      5 | NULL             | NULL | NULL
      6 | Infinity         | NULL | NULL
    (6 rows)
    "#);
    insta::assert_snapshot!(node.rows(sql).await, @r#"
    1,9007199254740993,1,2024-02-29
    2,2.0,0,45000
    3,"a,""b",yes,
    4,AP8=,,
    5,,,
    6,Infinity,,
    "#);
    insta::assert_snapshot!(node.answer(sql, Format::Toon).await.unwrap(), @r#"
    [6]{id,value,flag,day}:
      1,9007199254740993,1,2024-02-29
      2,2.0,0,45000
      3,"a,\"b",yes,null
      4,AP8=,null,null
      5,null,null,null
      6,Infinity,null,null
    "#);
    insta::assert_snapshot!(node.answer(sql, Format::Markdown).await.unwrap(), @r#"
    | id | value | flag | day |
    | ---: | --- | --- | --- |
    | 1 | 9007199254740993 | 1 | 2024-02-29 |
    | 2 | 2.0 | 0 | 45000 |
    | 3 | a,"b | yes | NULL |
    | 4 | AP8= | NULL | NULL |
    | 5 | NULL | NULL | NULL |
    | 6 | Infinity | NULL | NULL |
    "#);
    insta::assert_snapshot!(node.answer("SELECT * FROM strict", Format::Ndjson).await.unwrap(), @r#"
    {"n":1,"r":2.0,"t":"three","b":"BA==","a":"five","g":2,"s":2}
    {"n":null,"r":null,"t":null,"b":null,"a":null,"g":null,"s":null}
    "#);
}

#[tokio::test]
async fn text_that_is_not_utf8_is_an_error_with_its_column() {
    let (_folder, node) = open_database(
        "CREATE TABLE t (id INTEGER, name TEXT); INSERT INTO t VALUES (1, 'ok'), (2, CAST(x'61ff62' AS TEXT));
        CREATE TABLE s (name TEXT) STRICT; INSERT INTO s VALUES (CAST(x'ff' AS TEXT));",
    );
    for (sql, message) in [
        ("SELECT * FROM t", "column \"name\" holds text that is not UTF-8"),
        ("SELECT name || '!' AS n FROM t", "column \"n\" holds text that is not UTF-8"),
        ("SELECT name FROM s", "column \"name\" holds text that is not UTF-8"),
        ("SELECT replace(name, 'a', 'b') FROM t", "an argument is text that is not UTF-8"),
        ("SELECT trim(name, 'a') FROM t", "an argument is text that is not UTF-8"),
    ] {
        let error = node.answer(sql, Format::Csv).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArguments, message), "{sql}");
    }
    assert_eq!(node.rows("SELECT id FROM t WHERE instr(name, 'b') > 0").await, "2");
    assert_eq!(node.rows("SELECT id, CAST(name AS BLOB) FROM t").await, "1,b2s=\n2,Yf9i");
}

#[tokio::test]
async fn extracts_unique_values_of_an_untyped_column() {
    let (_folder, node) =
        open_database("CREATE TABLE t (v); INSERT INTO t VALUES (2), ('b'), (1.5), (NULL), (2), ('a'), (x'00'), (1)");
    insta::assert_snapshot!(node.extract("SELECT v FROM t", "v").await.unwrap(), @r#"[1,2,1.5,"a","b","AA==",null]"#);
}

#[tokio::test]
async fn types_are_stated_only_where_certain() {
    let (_folder, node) = open_database(&format!(
        "{MIXED}
        CREATE VIEW seen AS SELECT n FROM strict;
        CREATE TABLE backward (id INTEGER PRIMARY KEY DESC);
        CREATE TABLE named (rowid TEXT);
        CREATE TABLE keyed (id INTEGER PRIMARY KEY) WITHOUT ROWID;"
    ));
    let mut message = String::new();
    for sql in [
        "SELECT * FROM strict",
        "SELECT id, value, flag FROM mixed",
        "SELECT rowid FROM mixed",
        "SELECT rowid FROM strict",
        "SELECT rowid FROM named",
        "SELECT id FROM backward",
        "SELECT id FROM keyed",
        "SELECT n + 1, count(*) FROM strict",
        "SELECT s.n AS m FROM mixed LEFT JOIN strict s ON s.n = mixed.id",
        "SELECT x FROM (SELECT n AS x FROM strict)",
        "SELECT n FROM seen",
        "SELECT n FROM strict UNION ALL SELECT 'text'",
        "SELECT x FROM (SELECT n AS x FROM strict UNION ALL SELECT 'text')",
    ] {
        let plan = node.plan(sql, Vec::new()).await.unwrap();
        let types = plan
            .schema()
            .fields()
            .iter()
            .map(|field| {
                let data_type = match field.data_type() {
                    DataType::Union(..) => "any".to_owned(),
                    other => other.to_string(),
                };
                let declared =
                    field.metadata().get("tidegate.type").map(|name| format!(" ({name})")).unwrap_or_default();
                format!("{} {data_type}{declared}", field.name())
            })
            .collect::<Vec<_>>()
            .join(", ");
        message.push_str(&format!("{sql}\n    {types}\n"));
        // The declared type matches the values.
        node.batches(sql, Vec::new()).await.unwrap();
    }
    insta::assert_snapshot!(message, @r#"
    SELECT * FROM strict
        n Int64 (INT), r Float64 (REAL), t Utf8 (TEXT), b Binary (BLOB), a any (ANY), g any (INT), s Int64 (INT)
    SELECT id, value, flag FROM mixed
        id Int64 (INTEGER), value any, flag any (BOOLEAN)
    SELECT rowid FROM mixed
        id Int64 (INTEGER)
    SELECT rowid FROM strict
        rowid Int64 (INTEGER)
    SELECT rowid FROM named
        rowid any (TEXT)
    SELECT id FROM backward
        id any (INTEGER)
    SELECT id FROM keyed
        id any (INTEGER)
    SELECT n + 1, count(*) FROM strict
        n + 1 any, count(*) any
    SELECT s.n AS m FROM mixed LEFT JOIN strict s ON s.n = mixed.id
        m Int64 (INT)
    SELECT x FROM (SELECT n AS x FROM strict)
        x Int64 (INT)
    SELECT n FROM seen
        n any (INT)
    SELECT n FROM strict UNION ALL SELECT 'text'
        n any (INT)
    SELECT x FROM (SELECT n AS x FROM strict UNION ALL SELECT 'text')
        x any
    "#);
}

#[tokio::test]
async fn output_schema_allows_each_type() {
    let (_folder, node) = open_database(MIXED);
    let plan = node.plan("SELECT value, id FROM mixed", Vec::new()).await.unwrap();
    insta::assert_json_snapshot!(output_schema(&plan.schema())["properties"]["rows"]["items"]["properties"], @r#"
    {
      "value": {
        "type": [
          "integer",
          "null",
          "number",
          "string"
        ]
      },
      "id": {
        "type": [
          "integer",
          "null"
        ]
      }
    }
    "#);
}

#[tokio::test]
async fn parameters_are_bound_by_their_numbers() {
    let (_folder, node) = open_database(MIXED);
    let parameters = vec![Parameter::Integer(3), Parameter::Text("x'; DROP TABLE mixed; --".to_owned())];
    let sql = "SELECT $2 AS text, $1 AS number, typeof($1) AS type FROM mixed WHERE id = $1";
    insta::assert_snapshot!(node.answer_with(sql, parameters).await.unwrap(), @r#"[{"text":"x'; DROP TABLE mixed; --","number":3,"type":"integer"}]"#);
    let parameters =
        vec![Parameter::Boolean(true), Parameter::Null, Parameter::Float(1.5), Parameter::Text(String::new())];
    let sql = "SELECT typeof(?) AS a, typeof(?) AS b, typeof(?) AS c, typeof(?) AS d";
    insta::assert_snapshot!(node.answer_with(sql, parameters).await.unwrap(), @r#"[{"a":"integer","b":"null","c":"real","d":"text"}]"#);
}

#[tokio::test]
async fn quotes_unusual_column_and_table_names() {
    let (_folder, node) = open_database(
        "CREATE TABLE \"odd \"\" name;\" (\"a.b\", \"\", \"select\"); INSERT INTO \"odd \"\" name;\" VALUES (1, 2, 3)",
    );
    insta::assert_snapshot!(node.answer("SELECT * FROM \"odd \"\" name;\"", Format::Mcp).await.unwrap(), @r#"[{"a.b":1,"column_2":2,"select":3}]"#);
    insta::assert_snapshot!(node.columns("odd \" name;").await.unwrap(), @r#"
    a.b any
     any
    select any
    "#);
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        // SQLite stores NaN as NULL.
        any::<f64>().prop_filter("no NaN", |value| !value.is_nan()).prop_map(Value::Real),
        any::<String>().prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Blob),
    ]
}

/// What a value is in JSON.
fn json(value: &Value) -> serde_json::Value {
    use base64::Engine as _;
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(value) => (*value).into(),
        Value::Real(value) if value.is_infinite() => (if *value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
        Value::Real(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Blob(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn random_values_round_trip(rows in proptest::collection::vec((value(), value()), 0..200)) {
        let folder = Folder::new();
        let mut writer = folder.write("data.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)");
        let transaction = writer.transaction().unwrap();
        for (a, b) in &rows {
            transaction.execute("INSERT INTO t (a, b) VALUES (?1, ?2)", [a, b]).unwrap();
        }
        transaction.commit().unwrap();
        let node = folder.open(&["data.db"], Default::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let answer = runtime.block_on(node.answer("SELECT a, b FROM t ORDER BY id", Format::Mcp)).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let expected: Vec<_> = rows.iter().map(|(a, b)| serde_json::json!({"a": json(a), "b": json(b)})).collect();
        prop_assert_eq!(answer, serde_json::Value::Array(expected));
    }
}

#[tokio::test]
async fn mathematical_functions_are_part_of_sqlite() {
    let (_folder, node) = open_database(MIXED);
    let sql = "SELECT sqrt(16), pow(2, 10), ln(1), floor(2.7), ceil(2.1), round(log10(1000)), mod(7, 3), trunc(-2.5)";
    assert_eq!(node.rows(sql).await, "4.0,1024.0,0.0,2.0,3.0,3.0,1.0,-2.0");
    let sql = "SELECT sqrt(-1) IS NULL, ln(0) IS NULL, log(1, 2) IS NULL, floor('x') IS NULL, sin(x'31') IS NULL, ceil(7), trunc(' 2.5 '), log(2, 8)";
    assert_eq!(node.rows(sql).await, "1,1,1,1,1,7,2.0,3.0");
}

#[tokio::test]
async fn series_are_generated() {
    let (_folder, node) = open_database(
        "CREATE TABLE orders (id, n); INSERT INTO orders VALUES (1, 2), (2, 3);
         CREATE VIEW numbers AS SELECT value FROM generate_series(1, 3)",
    );
    assert_eq!(node.rows("SELECT * FROM generate_series(1, 3)").await, "1\n2\n3");
    assert_eq!(node.rows("SELECT g.value FROM generate_series(10, 0, -5) AS g ORDER BY value").await, "0\n5\n10");
    assert_eq!(node.rows("SELECT value FROM generate_series(10, 0, -5)").await, "10\n5\n0");
    assert_eq!(node.rows("SELECT id, value FROM orders, generate_series(1, n) WHERE id = 2").await, "2,1\n2,2\n2,3");
    assert_eq!(
        node.rows("WITH s AS (SELECT value FROM Generate_Series(1, 100000)) SELECT sum(value) FROM s").await,
        "5000050000"
    );
    let bound =
        node.answer_with("SELECT value FROM generate_series(?, ?)", vec![Parameter::Integer(4), Parameter::Integer(5)]);
    assert_eq!(bound.await.unwrap(), r#"[{"value":4},{"value":5}]"#);
    insta::assert_snapshot!(node.refusal("SELECT value FROM generate_series(1, 2.5)").await, @"invalid_arguments: generate_series takes whole numbers of at most 2305843009213693952");
    insta::assert_snapshot!(node.refusal("SELECT value FROM generate_series WHERE start = 1").await, @r"
    invalid_arguments: the column start of generate_series is refused: only reading tables is allowed
    Write one SELECT statement over tables of the catalog.
    ");
    insta::assert_snapshot!(node.refusal("SELECT * FROM numbers").await, @r"
    invalid_arguments: generate_series is not supported here
    Write it with its arguments into the statement itself: FROM generate_series(1, 10).
    ");
}
