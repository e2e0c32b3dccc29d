use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use insta::assert_snapshot;
use tidegate_core::ErrorKind;
use tidegate_postgres::PostgresOptions;
use tidegate_query::{ExtensionType, WriteTarget as _};

use super::{Target, open, refusal, refusal_line, request};
use crate::test_database::{OpenDatabase as _, TestDatabase, TestJob, collect_batches, owner_statement};
use tidegate_query::Database as _;

/// Each type, with a row of smallest and one of largest values, and one of nulls.
const SAMPLE: &str = r#"
    CREATE TYPE mood AS ENUM ('sad', 'so "so"', '{,}');
    CREATE DOMAIN price AS numeric(10, 2) CHECK (VALUE > -1000);
    CREATE DOMAIN gross AS price;
    CREATE TABLE sample (
        id int, b bool, i2 int2, i4 int4, i8 int8, o oid, f4 float4, f8 float8,
        n numeric, n38 numeric(38, 10), n76 numeric(76, 38), n0 numeric(5), tiny numeric(2, 5), gross gross,
        t text, v varchar(5), c char(5), u uuid, j json, jb jsonb, m mood, bytes bytea, a inet, net cidr,
        d date, tm time, tm3 time(3), ts timestamp, tz timestamptz, ts0 timestamp(0), tz2 timestamptz(2),
        ints int4[], texts text[], nums numeric(6, 2)[], moods mood[], moments timestamptz(3)[], uuids uuid[]);
    INSERT INTO sample VALUES
    (1, false, -32768, -2147483648, -9223372036854775808, 0, '-Infinity', '-Infinity',
     -99999999999999999999999999999999999999.99999999999999999999999999999999999999,
     -9999999999999999999999999999.9999999999, -99999999999999999999999999999999999999.00000000000000000000000000000000000001,
     -99999, -0.00099, -999.99,
     '', '', 'a', '00000000-0000-0000-0000-000000000000', '{"a": 1,  "a": 2}', '{"a": 1e400}', 'sad', '', '0.0.0.0',
     '10.0.0.0/8', '4713-01-01 BC', '00:00', '00:00:00', '4713-01-01 00:00 BC', '4713-01-01 00:00+00 BC',
     '1969-12-31 23:59:59', '1969-12-31 23:59:59.99+00', '{}', '{}', '{}', '{}', '{}', '{}'),
    (2, true, 32767, 2147483647, 9223372036854775807, 4294967295, 'NaN', 'NaN',
     0.00000000000000000000000000000000000001, 0.0000000001, 1, 0, 0.00099, 99999999.99,
     E'\u00e4\n\t"\\', 'äöü€𝄞', 'äöü€𝄞', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '[null, "x"]', '{"b": [1.50]}', '{,}', '\x00ff',
     'fe80::1/10', '2001:db8::/32', 'infinity', '24:00', '23:59:59.999', 'infinity', '-infinity',
     '9999-12-31 23:59:59', '294246-12-31 23:59:59.99+00', '{1,NULL,-2147483648}', '{"",NULL,"a\"b,{}"}',
     '{-9999.99,0,NULL,0.10}', '{sad,"{,}",NULL}', '{1970-01-01 00:00:00.001+00,infinity,NULL}',
     '{00000000-0000-0000-0000-000000000001}'),
    (3, true, 0, 0, 0, 7, '-0', '1e-323', 10000, 10000, 10000.0001, 10000, 0.00001, 1e6,
     'x', 'x', 'x    ', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '"x"', 'null', 'so "so"', '\x', '10.0.0.1', '0.0.0.0/0',
     '-infinity', '12:34:56.123456', '12:34:56.1', '2000-01-01 00:00:00.000001', '2000-01-01 00:00:00.000001+00',
     'infinity', '2000-01-01+00', '{5}', '{NULL}', '{}', '{sad}', '{2000-01-01+00}', NULL),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CREATE TABLE copy (LIKE sample);
    GRANT SELECT ON sample, copy TO {login}; GRANT INSERT ON copy TO {login};"#;

/// The rows of `sample` as the engine reads them, with the columns of a body.
async fn sample_rows(scene: &TestDatabase, target: &Target) -> Vec<RecordBatch> {
    let job = TestJob::start().await;
    let statement = owner_statement("SELECT * FROM sample ORDER BY id", Vec::new());
    let node = scene.open(PostgresOptions::default());
    let plan = node.database.plan(&statement, &tidegate_core::Principal::process_user()).await.unwrap();
    let batches = collect_batches(plan.run(&job.job).await.unwrap()).await.unwrap();
    let schema = target.schema("copy", &[]).await;
    let converted = |batch: &RecordBatch| {
        let read = batch.schema();
        // A numeric without a precision is read as text.
        let columns = batch.columns().iter().zip(read.fields()).zip(schema.fields()).map(|((array, from), to)| {
            match ExtensionType::from_field(from) {
                Some(ExtensionType::Number) => cast(array, to.data_type()).unwrap(),
                _ => array.clone(),
            }
        });
        let columns: Vec<ArrayRef> = columns.collect();
        let fields = read
            .fields()
            .iter()
            .zip(&columns)
            .map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true));
        RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns.clone()).unwrap()
    };
    batches.iter().map(converted).collect()
}

#[tokio::test]
async fn values_of_each_type_round_trip() {
    let scene = TestDatabase::new(SAMPLE).await;
    let target = open(&scene, &["copy"]);
    let rows = sample_rows(&scene, &target).await;
    let receipt = target.append("copy", rows).await.unwrap();
    assert_eq!(receipt.rows, [4]);
    let text = |table: &str| format!("SELECT string_agg(t::text, E'\\n' ORDER BY id) FROM {table} AS t");
    let expected = scene.value(&text("sample")).await;
    // Only the zeros behind the point of a numeric without a precision are not kept.
    assert_eq!(scene.value(&text("copy")).await, expected);
    target.wait_until_idle().await;
}

#[tokio::test]
async fn body_has_the_columns_that_take_values() {
    let scene = TestDatabase::new(
        "CREATE DOMAIN needed AS text NOT NULL; CREATE DOMAIN filled AS int DEFAULT 5 NOT NULL;
         CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, own int GENERATED BY DEFAULT AS IDENTITY,
             code text NOT NULL, made timestamptz(0) NOT NULL DEFAULT now(), twice int GENERATED ALWAYS AS (own * 2) STORED,
             span interval, needed needed, filled filled, amount numeric, small numeric(3, -1), document jsonb,
             secret int, times time(2)[]);
         CREATE TABLE spans (span interval NOT NULL); CREATE TABLE hidden (id int);
         ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; CREATE VIEW seen AS SELECT 1 AS id;
         GRANT INSERT (own, code, made, span, needed, filled, amount, small, document, times) ON t TO {login};
         GRANT INSERT ON spans, hidden, seen TO {login}; CREATE TABLE closed (id int);",
    )
    .await;
    let target = open(&scene, &["t", "spans", "hidden", "seen", "closed", "gone", "public.t"]);
    let schema = target.schema("t", &[]).await;
    let lines: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| {
            let null = if field.is_nullable() { "" } else { " not null" };
            let data_type = match field.data_type() {
                DataType::List(item) => format!("list of {}", item.data_type()),
                other => other.to_string(),
            };
            format!("{} {data_type}{null}", field.name())
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    own Int32
    code Utf8 not null
    made Timestamp(s, "UTC")
    needed Utf8 not null
    filled Int32
    amount Decimal256(76, 38)
    document Utf8
    times list of Time32(ms)
    "#);
    assert_eq!(*target.schema("public.t", &[]).await, *schema);
    let mut refusals = Vec::new();
    for table in ["spans", "hidden", "seen", "closed", "gone", "tt"] {
        let error = refusal(target.ingest.table(table).await);
        refusals.push(format!("{}: {error}", error.kind().name()).replace(&scene.login(), "LOGIN"));
    }
    assert_snapshot!(refusals.join("\n"), @r#"
    invalid_arguments: the table "spans" of the database shop takes no rows: the column "span" needs values of the type interval, which cannot be written here
    Give the column a default.
    invalid_arguments: the table "hidden" of the database shop takes no rows: row-level security applies to the role LOGIN, and COPY does not support it
    Let the node write with a role that has BYPASSRLS or owns the table.
    invalid_arguments: the table "seen" of the database shop takes no rows: it is a view
    Declare the table whose rows it has.
    invalid_arguments: the table "closed" of the database shop takes no rows: the role LOGIN may not insert into it
    Its owner grants it: GRANT INSERT ON "public"."closed" TO "LOGIN";
    not_found: the table "gone" is declared, but the database shop has none
    The owner of the node corrects the name, or grants USAGE on its schema.
    not_found: the database "shop" has no table "tt" that takes rows
    Valid choices: t
    The owner of the node adds an existing table under ingest: [tt].
    "#);
    assert_eq!(refusal(target.ingest.drop_table("t").await).kind(), ErrorKind::InvalidArguments);
    target.wait_until_idle().await;
}

#[tokio::test]
async fn values_that_would_change_are_refused() {
    let scene = TestDatabase::new(
        "CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN price AS numeric(10, 2);
         CREATE TABLE t (v varchar(3), c char(3), n numeric(5, 2), p price, ts timestamp(0), u uuid, a inet, jb jsonb, m mood);
         GRANT INSERT ON t TO {login};",
    )
    .await;
    let target = open(&scene, &["t"]);
    let text = |text: &str| Arc::new(StringArray::from(vec![Some("abc"), Some(text)])) as ArrayRef;
    let decimal = |value: i128| {
        Arc::new(Decimal128Array::from(vec![0, value]).with_precision_and_scale(38, 3).unwrap()) as ArrayRef
    };
    let wide = Decimal256Array::from_iter_values([arrow::datatypes::i256::from_i128(100_001)]);
    let cases: Vec<(&str, ArrayRef)> = vec![
        ("v", text("abc ")),
        ("c", text("abc ")),
        ("v", text("a\0")),
        ("n", decimal(1_001)),
        ("n", decimal(1_000_000)),
        ("p", decimal(1_005)),
        ("p", Arc::new(wide.with_precision_and_scale(76, 3).unwrap())),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![0, 500_000]))),
        ("u", Arc::new(StringArray::from(vec!["{x}"]))),
        ("a", Arc::new(StringArray::from(vec!["10.0.0.1/33"]))),
        ("jb", Arc::new(StringArray::from(vec!["{"]))),
        ("m", Arc::new(StringArray::from(vec!["glad"]))),
    ];
    let mut refusals = Vec::new();
    for (name, array) in cases {
        let batch = RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap();
        refusals.push(refusal_line(&refusal(target.append("t", vec![batch]).await)));
    }
    assert_snapshot!(refusals.join("\n"), @r#"
    invalid_arguments: row 1: the text has more than 3 characters (column v)
    invalid_arguments: row 1: the text has more than 3 characters (column c)
    invalid_arguments: row 1: the text holds a NUL character, which PostgreSQL cannot store (column v)
    invalid_arguments: row 1: the number has 3 digits after the point; 2 fit (column n)
    invalid_arguments: row 1: numeric field overflow (column n)
    invalid_arguments: row 1: the number has 3 digits after the point; 2 fit (column p)
    invalid_arguments: row 0: the number has 3 digits after the point; 2 fit (column p)
    invalid_arguments: row 1: the value has more digits of a second than the column (column ts)
    invalid_arguments: row 0: the text is no UUID (column u)
    invalid_arguments: row 0: the text is no address of IPv4 or IPv6 (column a)
    invalid_arguments: row 0: invalid input syntax for type json (column jb)
    invalid_arguments: row 0: invalid input value for enum mood: "glad" (column m)
    "#);
    assert_eq!(scene.value("SELECT count(*) FROM t").await, "0");
}

#[tokio::test]
async fn columns_that_do_not_fit_are_named() {
    let scene =
        TestDatabase::new("CREATE TABLE t (id int NOT NULL, at timestamptz, note text); GRANT INSERT ON t TO {login};")
            .await;
    let target = open(&scene, &["t"]);
    let schema = Arc::new(Schema::new(vec![
        Field::new("at", DataType::Utf8, true),
        Field::new("Note", DataType::Utf8, true),
        Field::new("note", DataType::LargeUtf8, true),
    ]));
    assert_snapshot!(refusal(target.begin(request("t", &schema, None)).await), @r#"
    the columns do not fit the table "t"
    - at: the rows have Utf8, and the column takes Timestamp(µs, "UTC")
    - Note: the table has no such column that takes values
    - id: each row needs a value, and the rows have no such column
    "#);
    target.wait_until_idle().await;
}
