//! Lookups in small tables, which are answered from rows in memory, give what DataFusion gives.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int16Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array, UInt64Array,
};
use arrow::datatypes::{Int32Type, SchemaRef};
use proptest::test_runner::Config;
use tidegate_sql::Parameter;
use tidegate_testkit::wait::wait_until;

use crate::support::{
    Folder, TestNode, lines, make_old, no_delay_limits, no_rescan_limits, numbers, numbers_csv, run_plan, settle,
    two_thread_options, wait_until_settled, write_arrow, write_parquet,
};

/// Columns of each kind, with NULL, limits of their types, and texts that compare by their bytes.
fn all_types() -> RecordBatch {
    let columns: [(&str, ArrayRef); 12] = [
        ("id", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(-1), Some(0), None, Some(7), Some(i64::MAX)]))),
        ("small", Arc::new(Int16Array::from(vec![Some(i16::MIN), Some(-1), None, Some(7), Some(7), Some(i16::MAX)]))),
        ("tiny", Arc::new(UInt8Array::from(vec![0, 1, 7, 200, 255, 7]))),
        ("big", Arc::new(UInt64Array::from(vec![0, 7, u64::MAX, 1, 2, 3]))),
        ("name", Arc::new(StringArray::from(vec![Some("x"), Some("X"), Some(""), None, Some("ä"), Some("x ")]))),
        ("kind", Arc::new(["x", "y", "x", "y", "7", "x"].into_iter().collect::<DictionaryArray<Int32Type>>())),
        ("ok", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(false), None]))),
        ("ratio", Arc::new(Float64Array::from(vec![0.0, -0.0, 7.0, f64::NAN, f64::INFINITY, 1.5]))),
        ("day", Arc::new(Date32Array::from(vec![0, 7, 20_000, -1, 1, 2]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 7, 1, 2, 3, 4]))),
        ("price", {
            let prices = Decimal128Array::from(vec![0, 700, -1, 5, 6, 7]);
            Arc::new(prices.with_precision_and_scale(10, 2).unwrap())
        }),
        ("Two Words", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5, 6]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

async fn folder() -> Folder {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &all_types(), 4);
    write_arrow(&folder.join("a.arrow"), &all_types(), false);
    let metadata = [("origin".to_owned(), "a test".to_owned())];
    let schema = all_types().schema().as_ref().clone().with_metadata(metadata.into());
    write_parquet(&folder.join("m.parquet"), &all_types().with_schema(schema.into()).unwrap(), 6);
    folder.write("c.csv", "id,small,tiny,big,name,kind,ok\n7,7,7,7,x,y,true\n8,-1,N/A,1,,x,false\n");
    folder.write("j.ndjson", "{\"id\":7,\"name\":\"x\",\"small\":1}\n{\"id\":8,\"ok\":true,\"tags\":[1]}\n");
    for name in ["t.parquet", "m.parquet", "a.arrow", "c.csv", "j.ndjson"] {
        settle(&folder.join(name), 1).await;
    }
    folder
}

/// What a statement gives: its columns, its rows; or its error.
type Outcome = Result<(SchemaRef, String), String>;

async fn outcome(node: &TestNode, sql: &str, parameters: &[Parameter]) -> (Outcome, bool) {
    let failed = |error: tidegate_core::Error| format!("{}: {error}", error.kind().name());
    let plan = match node.plan_with(sql, parameters.to_vec()).await {
        Ok(plan) => plan,
        Err(error) => return (Err(failed(error)), false),
    };
    let is_lookup = plan.explain().await.unwrap().starts_with("Lookup:");
    let rows = run_plan(plan).await.map_err(failed);
    (rows.map(|batches| (batches[0].schema(), lines(&batches))), is_lookup)
}

#[tokio::test]
async fn lookups_give_what_datafusion_gives() {
    let folder = folder().await;
    let node = folder.database();
    // Row order is that of the files in both, as each table is one file.
    let outputs = ["*", "name, id", "id AS n, name \"N\", t.ok", "\"Two Words\"", "tags, id", "day, at, price, kind"];
    let columns = ["id", "small", "tiny", "big", "name", "kind", "ok", "ratio", "price", "day", "\"Two Words\"", "ID"];
    let values = ["7", "-1", "300", "99999", "9223372036854775807", "'x'", "'7'", "''", "true", "1.5", "NULL", "$1"];
    let comparisons = ["=", "<>", "<", "<=", ">", ">="];
    // All of them with many cases, usually each fifth: 5 has no factor in common with the numbers of columns, values and comparisons.
    let step = if Config::default().cases <= 256 { 5 } else { 1 };
    let (mut numbers, mut statements, mut lookups) = (0.., 0, 0);
    for table in ["t", "m", "a", "c", "j"] {
        for (number, column) in columns.iter().enumerate() {
            for (at, value) in values.iter().enumerate() {
                for (turn, comparison) in comparisons.iter().enumerate() {
                    if numbers.next().is_some_and(|number| number % step != 0) {
                        continue;
                    }
                    let output = outputs[(number + at + turn) % outputs.len()];
                    let suffix = ["", " AND id > 0", " LIMIT 2", " LIMIT 1 OFFSET 1"][(at + turn) % 4];
                    let sql = format!("SELECT {output} FROM {table} AS t WHERE {column} {comparison} {value}{suffix}");
                    let parameters = match (*value, number % 3) {
                        ("$1", 0) => vec![Parameter::Integer(7)],
                        ("$1", 1) => vec![Parameter::Text("x".to_owned())],
                        ("$1", _) => vec![Parameter::Boolean(true)],
                        _ => Vec::new(),
                    };
                    let (looked_up, is_lookup) = outcome(&node, &sql, &parameters).await;
                    statements += 1;
                    if is_lookup {
                        let planned = outcome(&node, &format!("SELECT * FROM ({sql}) AS q"), &parameters).await;
                        assert_eq!((looked_up, false), planned, "{sql}");
                        lookups += 1;
                    }
                }
            }
        }
    }
    assert!(lookups * 10 > statements, "{lookups} of {statements} are lookups");
}

#[tokio::test]
async fn lookups_read_all_files_of_partitions() {
    let folder = Folder::new();
    for part in 1..=3 {
        let name = format!("p/part={part}/rows.csv");
        folder.write(&name, format!("id,name\n{part},x\n7,y{part}\n"));
        settle(&folder.join(&name), 1).await;
    }
    let node = folder.database();
    for sql in
        ["SELECT * FROM p", "SELECT part, name FROM p WHERE id = 7", "SELECT id FROM p WHERE part = 2 AND id < 7"]
    {
        let sorted = |outcome: Outcome| {
            let (schema, rows) = outcome.unwrap();
            let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
            rows.sort();
            (schema, rows)
        };
        let (looked_up, is_lookup) = outcome(&node, sql, &[]).await;
        let (planned, is_planned) = outcome(&node, &format!("SELECT * FROM ({sql}) AS q"), &[]).await;
        assert_eq!((is_lookup, is_planned), (true, false), "{sql}");
        assert_eq!(sorted(looked_up), sorted(planned), "{sql}");
    }
}

#[tokio::test]
async fn which_statements_are_lookups() {
    let folder = folder().await;
    folder.write("large.csv", numbers_csv(100_000));
    let long = "x".repeat(1_000);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..2_000).map(|_| long.as_str())));
    write_parquet(&folder.join("wide.parquet"), &RecordBatch::try_from_iter([("id", texts)]).unwrap(), 2_000);
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 40_000]));
    write_parquet(&folder.join("many.parquet"), &RecordBatch::try_from_iter([("ok", flags)]).unwrap(), 40_000);
    for name in ["large.csv", "wide.parquet", "many.parquet"] {
        settle(&folder.join(name), 1).await;
    }
    assert!(std::fs::metadata(folder.join("wide.parquet")).unwrap().len() < 100_000);
    folder.write("young.csv", "id\n1\n");
    let node = folder.database();
    for (sql, expected) in [
        ("SELECT id FROM t WHERE id = 7", true),
        ("SELECT * FROM t", true),
        ("SELECT id FROM t WHERE name = 'x' AND small < 3 AND ok = true LIMIT 1", true),
        ("SELECT id FROM c WHERE small = 7", true),
        ("SELECT ID FROM t WHERE id = 7", false),
        ("SELECT id FROM T WHERE id = 7", false),
        ("SELECT id, id FROM t WHERE id = 7", false),
        ("SELECT id FROM t WHERE id = '7'", false),
        ("SELECT id FROM t WHERE small = 99999", false),
        ("SELECT id FROM t WHERE big = 7", false),
        ("SELECT id FROM t WHERE ratio = 7", false),
        ("SELECT id FROM young", false),
        ("SELECT id FROM large WHERE id = '1'", false),
        ("SELECT id FROM wide WHERE id = '1'", false),
        ("SELECT ok FROM many WHERE ok = true LIMIT 1", false),
    ] {
        let (outcome, is_lookup) = outcome(&node, sql, &[]).await;
        assert_eq!(is_lookup, expected, "{sql}: {outcome:?}");
    }
}

#[tokio::test]
async fn lookups_see_changed_files() {
    let folder = Folder::with(&[("c.csv", "id,name\n7,old\n")]);
    let path = folder.join("c.csv");
    settle(&path, 2).await;
    let node = folder.database();
    let name = async || {
        let (outcome, is_lookup) = outcome(&node, "SELECT name FROM c WHERE id = 7", &[]).await;
        (outcome.map(|(_, rows)| rows), is_lookup)
    };
    assert_eq!(name().await, (Ok("old".to_owned()), true));
    // The file is new for two seconds. A query that begins later is too late.
    wait_until("an answer while the file may change again", async || {
        folder.write("c.csv", "id,name\n7,new\n");
        let (rows, is_lookup) = name().await;
        assert_eq!(rows, Ok("new".to_owned()));
        !is_lookup
    })
    .await;
    settle(&path, 1).await;
    assert_eq!(name().await, (Ok("new".to_owned()), true));
    folder.write("c.csv", "id,name\n7.5,a\n7,b\n");
    settle(&path, 1).await;
    assert_eq!(name().await, (Ok("b".to_owned()), false), "the type of the column changed");
    folder.remove("c.csv");
    assert!(name().await.0.unwrap_err().contains("there is no table"));
}

/// Between two scans, too.
#[tokio::test]
async fn lookups_see_files_that_changed_since_the_last_scan() {
    let folder = Folder::with(&[("c.csv", "id,name\n7,old\n")]);
    settle(&folder.join("c.csv"), 2).await;
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), no_rescan_limits());
    let sql = "SELECT name FROM c WHERE id = 7";
    assert_eq!(outcome(&node, sql, &[]).await.0.unwrap().1, "old");
    assert_eq!(node.database.small_table_reads(), 1);
    folder.write("other.csv", "id,name\n7,new\n");
    std::fs::rename(folder.join("other.csv"), folder.join("c.csv")).unwrap();
    assert_eq!(outcome(&node, sql, &[]).await.0.unwrap().1, "new");
    folder.write("c.csv", "id,name\n7,new\n7,newer\n");
    assert_eq!(outcome(&node, sql, &[]).await.0.unwrap().1, "new\nnewer");
}

/// All tables of a database are built anew when one file changes.
#[tokio::test]
async fn rows_stay_in_memory_when_other_files_change() {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &numbers(100), 100);
    settle(&folder.join("t.parquet"), 1).await;
    let node = folder.database();
    let sql = "SELECT name FROM t WHERE id = 7";
    assert_eq!(outcome(&node, sql, &[]).await.0.unwrap().1, "name 7");
    let kept = node.database.small_table_reads();
    for number in 0..3 {
        folder.write("other.csv", format!("id\n{number}\n"));
        let (outcome, is_lookup) = outcome(&node, sql, &[]).await;
        assert_eq!((outcome.unwrap().1.as_str(), is_lookup), ("name 7", true));
    }
    assert_eq!((kept, node.database.small_table_reads()), (1, 1));
}

/// More tables than fit: those that were used last are kept, and all are answered.
#[tokio::test]
async fn kept_rows_are_bounded() {
    let folder = Folder::new();
    for number in 0..80 {
        let name = format!("t{number}.parquet");
        // A third of a mebibyte in memory.
        write_parquet(&folder.join(&name), &numbers(6_000), 6_000);
        make_old(&folder.join(&name), 1);
    }
    wait_until_settled(&folder.join("t79.parquet")).await;
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), no_delay_limits());
    for _ in 0..2 {
        for number in 0..80 {
            let (outcome, is_lookup) =
                outcome(&node, &format!("SELECT name FROM t{number} WHERE id = 5999"), &[]).await;
            assert_eq!(outcome.unwrap().1, "name 5999");
            assert!(is_lookup);
        }
    }
    assert!(node.database.small_table_bytes() <= 16 << 20);
    assert!(node.database.small_table_bytes() >= 8 << 20);
}
