//! Types as they are stated: a table of all of them, types of users, what is selected as text, what is refused.

use tidegate_core::{ErrorKind, Format};
use tidegate_postgres::values::{ColumnDecoder, type_name};

use crate::rendering::render_batches;
use crate::shared_server::{batches, connect, decoders_for};

/// One row of each common type, then one of NULLs.
const EVERYTHING: &str = r#"
    CREATE TYPE pg_temp.mood AS ENUM ('sad', 'so "so"');
    CREATE DOMAIN pg_temp.percent AS numeric(5,2) CHECK (VALUE <= 100);
    CREATE TYPE pg_temp.part AS (label text, amount numeric, moods pg_temp.mood[], share pg_temp.percent);
    CREATE TYPE pg_temp.whole AS ("the part" pg_temp.part, parts pg_temp.part[], note json);
    CREATE TEMP TABLE everything (
        yes bool, small int2, whole int4, big int8, "real" float4, double float8,
        price numeric(12,2), exact numeric(60,30), any_number numeric,
        letters text, at_most varchar(20), padded char(5), identifier name, letter "char",
        id uuid, document json, binary_document jsonb, bytes bytea,
        day date, hour time, local timestamp, moment timestamptz, span interval,
        address inet, network cidr, mac macaddr, bits bit(5), more_bits varbit,
        object oid, mood pg_temp.mood, share pg_temp.percent,
        numbers int8[], words text[], moods pg_temp.mood[], shares pg_temp.percent[], thing pg_temp.whole
    );
    INSERT INTO everything VALUES (
        true, -1, 2147483647, 9007199254740993, 0.1, 1e300,
        12.50, 1234567890.123456789, 123456789012345678901234567890123456789012345678901234567890123456789012345678.5,
        E'line\nbreak "q"', 'é', 'ab', 'pg_class', 'x',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', E'{"b":1,\n "a":[]}', '{"b":1,"a":[1.50]}', '\x00ff',
        '2024-02-29', '12:34:56.5', '2024-02-29 12:34:56', '2024-02-29 12:34:56.123456+02', '1 year -2 days 00:00:01.5',
        '192.168.0.1/24', '10.0.0.0/8', '08:00:2b:01:02:03', '10101', '101',
        1259, 'so "so"', 99.9,
        '{1,NULL,3}', '{"a,b",NULL,""}', '{sad,NULL}', '{1,2.55}',
        ROW(ROW('a "b"', 1.10, '{sad}', 5), ARRAY[ROW(NULL, 'NaN', NULL, NULL), NULL]::pg_temp.part[], '{"x": null}')
    );
    INSERT INTO everything DEFAULT VALUES;
"#;

#[tokio::test]
async fn common_types_have_a_json_form() {
    let client = connect().await;
    client.batch_execute(EVERYTHING).await.unwrap();
    let text = render_batches(batches(&client, "SELECT * FROM everything", 100).await.unwrap(), Format::Json).await;
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    // One column a line; the time that it took differs.
    let text = text.split(",\"elapsed_ms\"").next().unwrap();
    insta::assert_snapshot!(text.replace(",\"", ",\n\""));
}

#[tokio::test]
async fn type_names_match_the_server() {
    let client = connect().await;
    client.batch_execute(EVERYTHING).await.unwrap();
    client
        .batch_execute(
            "CREATE TEMP TABLE more (a timestamp(3), b timestamptz(0)[], c time(2), d timetz, e bpchar, f varchar,
                g varbit(7), h numeric(5,-2), i varchar(3)[], j int4range, k money, l numeric(1000,0), m tsvector[])",
        )
        .await
        .unwrap();
    for table in ["everything", "more"] {
        let sql = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum";
        let expected: Vec<String> = client.query(sql, &[&table]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let statement = client.prepare(&format!("SELECT * FROM {table}")).await.unwrap();
        let named = |column: &tokio_postgres::Column| type_name(column.type_(), column.type_modifier());
        for (expected, column) in expected.iter().zip(statement.columns()) {
            // A column of a domain is described as what is below it; temporary types have no other schema.
            if expected != "percent" {
                assert_eq!(named(column), *expected);
            }
        }
    }
}

#[tokio::test]
async fn unknown_binary_types_are_selected_as_text() {
    let client = connect().await;
    let expressions = [
        "int4range(1, 5)",
        "'{[1,2)}'::int4multirange",
        "ARRAY[int4range(1, 5)]",
        "1::money",
        "'a b'::tsvector",
        "'12:00+02'::timetz",
        "point(1, 2)",
        "ROW(1, 'a')",
        // A server may be built without XML, and has the type all the same.
        "NULL::xml",
        "'pg_class'::regclass",
        "'$.a'::jsonpath",
        "'0/16B3748'::pg_lsn",
    ];
    for expression in expressions {
        let statement = client.prepare(&format!("SELECT {expression} AS v")).await.unwrap();
        let described = &statement.columns()[0];
        assert!(decoders_for(&statement)[0].is_none(), "{expression}");
        // All of them can be.
        let statement = client.prepare(&format!("SELECT ({expression})::text AS v")).await.unwrap();
        assert!(decoders_for(&statement)[0].is_some(), "{expression}");
        let column = ColumnDecoder::for_text("v", described.type_(), described.type_modifier());
        assert_eq!(column.field().metadata()["tidegate.type"], type_name(described.type_(), -1));
    }
}

#[tokio::test]
async fn unrepresentable_values_are_rejected_with_a_hint() {
    let client = connect().await;
    let mut out = String::new();
    for expression in [
        "'NaN'::numeric(5,2)",
        "'NaN'::numeric(50,2)",
        "'294247-01-10 04:00:54.775807'::timestamp",
        "'294276-12-31 23:59:59.999999+00'::timestamptz",
        "'2562047 hours 48 minutes'::interval",
        "'{{1,2},{3,4}}'::int4[]",
    ] {
        let refused = batches(&client, &format!("SELECT {expression} AS \"the value\""), 10).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArguments, "{expression}");
        out.push_str(&format!("{expression}\n{refused}\n\n"));
    }
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn unnamed_columns_are_distinguished() {
    let client = connect().await;
    let sql = r#"SELECT 1, 2, 3 AS "say ""x""", 4 AS "say ""x""", true AS bool, false AS bool"#;
    let text = render_batches(batches(&client, sql, 10).await.unwrap(), Format::Mcp).await;
    insta::assert_snapshot!(text, @r#"[{"?column?":1,"?column?_2":2,"say \"x\"":3,"say \"x\"_2":4,"bool":true,"bool_2":false}]"#);
}

#[tokio::test]
async fn rows_without_columns_and_columns_without_rows() {
    let client = connect().await;
    let none = batches(&client, "SELECT FROM generate_series(1, 3)", 10).await.unwrap();
    assert_eq!(render_batches(none, Format::Mcp).await, "[{},{},{}]");
    let nothing = batches(&client, "SELECT pg_sleep(0) AS v", 10).await.unwrap();
    assert_eq!(render_batches(nothing, Format::Mcp).await, "[{\"v\":\"\"}]");
    let none = batches(&client, "SELECT 1 AS a, 'x' AS b WHERE false", 10).await.unwrap();
    assert_eq!(render_batches(none, Format::Csv).await, "a,b\r\n");
}
