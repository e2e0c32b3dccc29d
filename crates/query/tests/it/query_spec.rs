//! Questions as data: the SQL they become, and the words of their errors.

use serde_json::{Map, Value, json};
use tidegate_core::{Error, Principal, Violation};
use tidegate_query::QuerySpec;
use tidegate_sql::Statement;

use crate::fake::FakeDatabase;

fn read(question: Value) -> Result<QuerySpec, Error> {
    let Value::Object(arguments) = question else { panic!("a question is an object") };
    QuerySpec::from_json(&arguments)
}

async fn render(question: Value) -> Result<Statement, Error> {
    let fake = FakeDatabase::counting(1, 1);
    read(question)?.render(&fake, &Principal::anonymous()).await
}

/// The SQL and its parameters, or the error's text.
async fn check(question: Value) -> String {
    match render(question).await {
        Ok(statement) if statement.parameters().is_empty() => statement.text().to_owned(),
        Ok(statement) => format!("{}\n{:?}", statement.text(), statement.parameters()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn columns_conditions_and_order() {
    insta::assert_snapshot!(check(json!({"table": "flights"})).await, @r#"SELECT * FROM "flights" LIMIT 101"#);
    insta::assert_snapshot!(
        check(json!({
            "table": "flights",
            "select": ["carrier", {"column": "tail number", "as": "tail"}, "flights.origin"],
            "where": {"and": [
                {"column": "dep_delay", "op": ">=", "value": 60},
                {"or": [
                    {"column": "carrier", "op": "in", "value": ["UA", "DL"]},
                    {"not": {"column": "origin", "value": "JFK"}},
                ]},
            ]},
            "order_by": ["-dep_delay", "carrier", {"column": "tail", "direction": "desc"}, "origin DESC"],
            "limit": 10,
        }))
        .await,
        @r#"
    SELECT "carrier", "Tail Number" AS "tail", "origin" FROM "flights" WHERE "dep_delay" >= $1 AND ("carrier" IN ($2, $3) OR (NOT ("origin" = $4))) ORDER BY "dep_delay" DESC NULLS LAST, "carrier" NULLS LAST, "tail" DESC NULLS LAST, "origin" DESC NULLS LAST LIMIT 11
    [Integer(60), Text("UA"), Text("DL"), Text("JFK")]
    "#
    );
}

#[tokio::test]
async fn every_operator() {
    let conditions = json!([
        {"column": "carrier", "value": "UA"},
        {"column": "carrier", "op": "!=", "value": "x' OR 1=1 --"},
        {"column": "distance", "op": "<", "value": 1},
        {"column": "distance", "op": "<=", "value": 1.5},
        {"column": "distance", "op": ">", "value": -1},
        {"column": "distance", "op": ">=", "value": true},
        {"column": "carrier", "op": "NOT IN", "value": ["a"]},
        {"column": "carrier", "op": "like", "value": "U%"},
        {"column": "carrier", "op": "not_like", "value": "U_"},
        {"column": "carrier", "op": "ilike", "value": "u%"},
        {"column": "flight_date", "op": "between", "value": ["2013-01-01", "2013-01-31"]},
        {"column": "carrier", "op": "is_null"},
        {"column": "carrier", "op": "IS NOT NULL"},
        {"column": "carrier", "op": "contains", "value": "50%_\\"},
        {"column": "carrier", "op": "starts_with", "value": "a_"},
        "dep_delay > arr_delay + 10 AND carrier IN ('UA', 'DL')",
    ]);
    insta::assert_snapshot!(check(json!({"table": "flights", "where": conditions})).await, @r#"
    SELECT * FROM "flights" WHERE "carrier" = $1 AND "carrier" <> $2 AND "distance" < $3 AND "distance" <= $4 AND "distance" > $5 AND "distance" >= $6 AND "carrier" NOT IN ($7) AND "carrier" LIKE $8 AND "carrier" NOT LIKE $9 AND "carrier" ILIKE $10 AND "flight_date" BETWEEN $11 AND $12 AND "carrier" IS NULL AND "carrier" IS NOT NULL AND "carrier" LIKE $13 AND "carrier" LIKE $14 AND ("dep_delay" > "arr_delay" + 10 AND "carrier" IN ('UA', 'DL')) LIMIT 101
    [Text("UA"), Text("x' OR 1=1 --"), Integer(1), Float(1.5), Integer(-1), Boolean(true), Text("a"), Text("U%"), Text("U_"), Text("u%"), Text("2013-01-01"), Text("2013-01-31"), Text("%50\\%\\_\\\\%"), Text("a\\_%")]
    "#);
}

#[tokio::test]
async fn group_by_and_having() {
    insta::assert_snapshot!(
        check(json!({
            "table": "flights",
            "select": [
                "carrier",
                {"function": "count"},
                {"function": "avg", "column": "dep_delay", "as": "delay"},
                {"function": "count_distinct", "column": "dest"},
                {"function": "sum", "column": "distance", "distinct": true, "as": "distance"},
                {"function": "median", "column": "Tail Number"},
            ],
            "group_by": ["carrier"],
            "having": {"and": [
                {"column": "count", "op": ">", "value": 100},
                {"column": "delay", "op": "is_not_null"},
                "distance > 5 AND max(distance) > 7",
            ]},
            "order_by": ["-delay", "count"],
            "limit": 5,
        }))
        .await,
        @r#"
    SELECT "carrier", count(*) AS "count", avg("dep_delay") AS "delay", count(DISTINCT "dest") AS "count_distinct_dest", sum(DISTINCT "distance") AS "distance", median("Tail Number") AS "median_Tail Number" FROM "flights" GROUP BY "carrier" HAVING count(*) > $1 AND avg("dep_delay") IS NOT NULL AND (sum(DISTINCT "distance") > 5 AND max("distance") > 7) ORDER BY "delay" DESC NULLS LAST, "count" NULLS LAST LIMIT 6
    [Integer(100)]
    "#
    );
    insta::assert_snapshot!(check(json!({"table": "flights", "group_by": ["origin", "dest"]})).await, @r#"SELECT "origin", "dest" FROM "flights" GROUP BY "origin", "dest" LIMIT 101"#);
}

#[tokio::test]
async fn joins_qualify_their_columns() {
    insta::assert_snapshot!(
        check(json!({
            "table": "flights",
            "select": ["name", "flights.carrier", "distance"],
            "joins": [
                {"table": "airlines", "type": "left", "on": [{"left": "carrier", "right": "carrier"}]},
                {"table": "flights", "as": "back", "on": [{"left": "flights.dest", "right": "origin"}, {"left": "flights.origin", "right": "back.dest"}]},
            ],
            "where": "airlines.name LIKE 'A%' AND back.distance > flights.distance",
            "order_by": ["-back.distance"],
        }))
        .await,
        @r#"
    the query does not match the tables:
    - select[2]: "distance" is a column of several tables; use one of: flights.distance, back.distance
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    Columns of airlines: carrier, name
    Columns of back: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#
    );
    insta::assert_snapshot!(
        check(json!({
            "table": "flights",
            "select": ["name", "flights.carrier", "back.distance"],
            "joins": [
                {"table": "airlines", "type": "left", "on": [{"left": "carrier", "right": "carrier"}]},
                {"table": "flights", "as": "back", "on": "back.origin = flights.dest"},
            ],
            "where": "airlines.name LIKE 'A%' AND back.distance > flights.distance",
            "order_by": ["-back.distance"],
        }))
        .await,
        @r#"SELECT "airlines"."name", "flights"."carrier", "back"."distance" FROM "flights" LEFT JOIN "airlines" ON "flights"."carrier" = "airlines"."carrier" INNER JOIN "flights" AS "back" ON "back"."origin" = "flights"."dest" WHERE "airlines"."name" LIKE 'A%' AND "back"."distance" > "flights"."distance" ORDER BY "back"."distance" DESC NULLS LAST LIMIT 101"#
    );
    insta::assert_snapshot!(check(json!({"table": "flights", "joins": [{"table": "flights", "on": "true"}]})).await, @r#"
    the table "flights" is used twice
    Give the joined table an alias: {"table": …, "as": "other", "on": …}.
    "#);
}

#[tokio::test]
async fn ambiguous_column_lists_its_qualified_names() {
    let joined = json!([{"table": "airlines", "on": [{"left": "carrier", "right": "carrier"}]}]);
    insta::assert_snapshot!(
        check(json!({
            "table": "flights",
            "select": ["carrier", "carier"],
            "joins": joined,
            "where": {"and": ["carrier = 'UA'", {"column": "carrier", "value": "UA"}, "a.carrier = 'UA'"]},
            "order_by": ["-carrier"],
        }))
        .await,
        @r#"
    the query does not match the tables:
    - select[0]: "carrier" is a column of several tables; use one of: flights.carrier, airlines.carrier
    - select[1]: there is no column "carier"; nearest: flights.carrier, airlines.carrier, flights.arr_delay, airlines.name
    - where.and[0]: "carrier" is a column of several tables; use one of: flights.carrier, airlines.carrier
    - where.and[1]: "carrier" is a column of several tables; use one of: flights.carrier, airlines.carrier
    - where.and[2]: there is no column "a.carrier"; nearest: flights.carrier, airlines.carrier, flights.arr_delay, flights.Tail Number
    - order_by[0]: "carrier" is a column of several tables; use one of: flights.carrier, airlines.carrier
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    Columns of airlines: carrier, name
    "#
    );
}

#[tokio::test]
async fn extract_asks_for_unique_values() {
    insta::assert_snapshot!(check(json!({"table": "flights", "extract": "carrier", "where": "distance > 100"})).await, @r#"SELECT DISTINCT "carrier" FROM "flights" WHERE "distance" > 100 ORDER BY "carrier" NULLS LAST LIMIT 101"#);
    // The ten longest flights, and of these the carriers.
    insta::assert_snapshot!(check(json!({"table": "flights", "extract": "carrier", "order_by": ["-distance"], "limit": 10})).await, @r#"SELECT * FROM "flights" ORDER BY "distance" DESC NULLS LAST LIMIT 10"#);
    insta::assert_snapshot!(check(json!({"table": "flights", "extract": "n", "select": [{"function": "count", "as": "n"}, "dest"], "group_by": ["dest"]})).await, @r#"SELECT count(*) AS "n", "dest" FROM "flights" GROUP BY "dest""#);
}

#[tokio::test]
async fn quotes_odd_names() {
    insta::assert_snapshot!(check(json!({"table": "odd \" name", "select": ["a\"b", "c.d"], "where": {"column": "c.d", "value": "x"}})).await, @r#"
    SELECT "a""b", "c.d" FROM "odd "" name" WHERE "c.d" = $1 LIMIT 101
    [Text("x")]
    "#);
}

#[tokio::test]
async fn names_that_do_not_exist() {
    insta::assert_snapshot!(check(json!({"table": "flight"})).await, @r#"
    there is no table "flight"
    Valid choices: flights, airlines, odd " name
    "#);
    insta::assert_snapshot!(
        check(json!({
            "table": "flights",
            "select": ["carier", "count(*)", {"function": "avg", "column": "delay"}],
            "where": {"or": [{"column": "xyzzy", "value": 1}, "dep_dely > 1 AND carrier = \"UA\" AND f.origin = 'x'"]},
            "group_by": ["origine"],
            "having": {"column": "avg_dely", "op": ">", "value": 1},
            "order_by": ["-distanc"],
        }))
        .await
    );
}

#[tokio::test]
async fn text_is_one_expression_and_nothing_else() {
    let mut out = String::new();
    for text in [
        "1 = 1; DROP TABLE flights",
        "distance > 1 UNION SELECT 1",
        "distance IN (SELECT 1)",
        "EXISTS (SELECT 1 FROM \"/etc/passwd\")",
        "pg_read_file('/etc/passwd') = ''",
        "distance > $1",
        "distance > ?",
        "distance >",
        "distance > 1) OR (1 = 1",
        "distance > 1 -- and so on",
        "(",
    ] {
        out.push_str(&format!(
            "{text}\n    {}\n",
            check(json!({"table": "flights", "where": text})).await.replace('\n', "\n    ")
        ));
    }
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn plain_columns_beside_functions_must_be_groups() {
    insta::assert_snapshot!(check(json!({"table": "flights", "select": ["carrier", "*", {"function": "count"}], "group_by": ["origin"]})).await, @r#"
    the query does not match the tables:
    - select[0]: the plain column "carrier" is neither grouped nor aggregated; add it to group_by or give it a function
    - select[1]: "*" cannot be combined with groups; name the columns
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#);
}

#[test]
fn reports_all_violations_with_paths() {
    insta::assert_snapshot!(
        read(json!({
            "tabel": "flights",
            "select": [5, {"function": "mean", "column": "x"}, {"function": "sum"}, {"col": "x"}, {"column": "x", "as": "a\"b"}],
            "where": {"and": [
                {"column": "a", "op": "=~", "value": 1},
                {"column": "b", "op": "in", "value": 1},
                {"column": "c", "op": "between", "value": [1]},
                {"column": "d", "value": null},
                {"column": "e", "value": [1, 2]},
                {"column": "f", "op": "like", "value": 3},
                {"field": "g", "value": 3},
                {"or": []},
                {"carrier": "UA"},
                7,
            ]},
            "joins": [{"table": "t", "type": "outer", "on": []}, "t"],
            "order_by": [{"column": "x", "direction": "down"}],
            "limit": 0,
            "format": "xml",
            "mode": 1,
        }))
        .unwrap_err()
    );
}

/// Models write lists and objects as their JSON text at any place.
#[tokio::test]
async fn parts_may_be_their_json_text() {
    let question = |as_text: bool| {
        let part = |json: Value| if as_text { Value::String(json.to_string()) } else { json };
        let carriers =
            json!([part(json!({"column": "flights.carrier", "op": "in", "value": part(json!(["UA", "DL"]))}))]);
        json!({
            "table": "flights",
            "select": [part(json!({"expression": "distance + 1", "as": "d"})), part(json!({"function": "count"}))],
            "joins": [part(json!({
                "table": "airlines", "on": part(json!([part(json!({"left": "carrier", "right": "carrier"}))])),
            }))],
            "where": {"or": part(carriers), "and": null},
            "group_by": [part(json!({"expression": "distance + 1", "as": "d"}))],
            "having": part(json!({"not": part(json!({"column": "count", "op": "between", "value": part(json!([1, 2]))}))})),
            "order_by": [part(json!({"column": "d", "direction": "desc"}))],
        })
    };
    let expected = check(question(false)).await;
    assert!(expected.starts_with("SELECT ") && expected.contains(" JOIN "), "{expected}");
    assert_eq!(check(question(true)).await, expected);
    // Where a text is compared, it stays one.
    let compared = check(json!({"table": "flights", "where": {"column": "carrier", "value": "[1]"}})).await;
    assert!(compared.contains("[Text(\"[1]\")]"), "{compared}");
}

#[tokio::test]
async fn null_is_absent_and_a_condition_may_be_its_text() {
    let condition = json!({"column": "carrier", "value": "UA"});
    let plain = json!({
        "table": "flights", "select": [{"function": "count"}], "where": condition, "order_by": [{"column": "count"}],
    });
    let expected = check(plain.clone()).await;
    assert!(expected.starts_with("SELECT count(*)"), "{expected}");
    let with_nulls = json!({
        "table": "flights", "database": null, "distinct": null, "joins": null, "group_by": null, "having": null,
        "select": [{"function": "count", "column": null, "as": null}], "limit": null, "format": "", "cursor": "",
        "where": {"column": "carrier", "op": null, "value": "UA", "and": null},
        "order_by": [{"column": "count", "direction": null}],
    });
    assert_eq!(check(with_nulls).await, expected);
    for text in [condition.to_string(), json!([condition]).to_string(), format!(" {condition}")] {
        let mut question = plain.clone();
        question["where"] = text.into();
        assert_eq!(check(question).await, expected);
    }
    // A part of JSON is neither a condition nor an expression.
    let refused = check(json!({"table": "flights", "where": "{\"column\": \"carrier\""})).await;
    assert!(refused.contains("- where: expected {column, op, value} or a SQL expression, not a part"), "{refused}");
    let compared = check(json!({"table": "flights", "where": {"column": "carrier", "value": null}})).await;
    assert!(compared.contains("for null use is_null or is_not_null"), "{compared}");
}

#[test]
fn conditions_have_bounds() {
    let deep = (0..100).fold(json!({"column": "a", "value": 1}), |inner, _| json!({"not": inner}));
    insta::assert_snapshot!(read(json!({"table": "t", "where": deep})).unwrap_err(), @r"
    invalid query arguments:
    - where.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not: too many conditions: the limits are 100 conditions and 20 levels; use in for lists
    ");
    let many: Vec<Value> = (0..1_000).map(|n| json!({"column": "a", "value": n})).collect();
    insta::assert_snapshot!(read(json!({"table": "t", "where": {"or": many}})).unwrap_err(), @r"
    invalid query arguments:
    - where.or[99]: too many conditions: the limits are 100 conditions and 20 levels; use in for lists
    ");
    let values: Vec<i64> = (0..1_000).collect();
    assert!(read(json!({"table": "t", "where": {"column": "a", "op": "in", "value": values}})).is_err());
}

#[tokio::test]
async fn the_largest_question_passes() {
    let conditions: Vec<Value> = (0..98).map(|n| json!({"not": {"column": "carrier", "value": n}})).collect();
    let question = json!({"table": "flights", "where": {"or": conditions[..49]}});
    assert!(render(question).await.is_ok());
    let values: Vec<i64> = (0..900).collect();
    assert!(
        render(json!({"table": "flights", "where": {"column": "distance", "op": "in", "value": values}})).await.is_ok()
    );
}

#[test]
fn the_schema_is_short_and_agrees_with_what_is_read() {
    let schema = QuerySpec::schema();
    let text = schema.to_string();
    assert!(text.len() < 1_950, "{}", text.len());
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap());

    // Each key of the schema is read, and no other.
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let odd: Map<String, Value> = keys.iter().map(|key| ((*key).clone(), json!(0.5))).collect();
    let message = QuerySpec::from_json(&odd).unwrap_err();
    for key in &keys {
        assert!(message.violations().iter().any(|Violation { path, .. }| path.starts_with(key.as_str())), "{key}");
    }
    assert!(!message.to_string().contains("unknown"), "{message}");
    // Defaults are what they are said to be.
    let bare = read(json!({"table": "t"})).unwrap();
    assert_eq!(schema["properties"]["limit"]["default"], bare.limit);
    assert_eq!(schema["properties"]["mode"]["default"], bare.mode.name());
    // Choices are those that are read.
    for key in ["format", "mode"] {
        for choice in schema["properties"][key]["enum"].as_array().unwrap() {
            assert!(read(json!({"table": "t", key: choice})).is_ok());
        }
    }
}

#[tokio::test]
async fn expressions_are_selected_and_grouped() {
    let by_month = json!({"expression": "date_trunc('month', flight_date)", "as": "month"});
    let expected = r#"SELECT date_trunc('month', "flight_date") AS "month", count(*) AS "count" FROM "flights" GROUP BY date_trunc('month', "flight_date") ORDER BY "month" DESC NULLS LAST LIMIT 101"#;
    for (select, group_by) in [
        (json!([by_month, {"function": "count"}]), json!(["month"])),
        (json!(["month", {"function": "count"}]), json!([by_month])),
        (json!([by_month, {"function": "count"}]), json!([{"expression": "date_trunc('month', flights.flight_date)"}])),
    ] {
        let query = json!({"table": "flights", "select": select, "group_by": group_by, "order_by": ["-month"]});
        assert_eq!(check(query).await, expected);
    }
    let grouped = json!({"table": "flights", "group_by": ["carrier", by_month, {"expression": "dep_delay > 0"}]});
    insta::assert_snapshot!(check(grouped).await, @r#"SELECT "carrier", date_trunc('month', "flight_date") AS "month", "dep_delay" > 0 FROM "flights" GROUP BY "carrier", date_trunc('month', "flight_date"), "dep_delay" > 0 LIMIT 101"#);
    let unselected = json!({
        "table": "flights", "select": {"function": "count"}, "group_by": [by_month], "order_by": "month",
        "having": "count > 5",
    });
    insta::assert_snapshot!(check(unselected).await, @r#"SELECT count(*) AS "count" FROM "flights" GROUP BY date_trunc('month', "flight_date") HAVING count(*) > 5 ORDER BY date_trunc('month', "flight_date") NULLS LAST LIMIT 101"#);
    let share = json!({
        "table": "flights",
        "select": ["carrier", {"expression": "sum(dep_delay) / count(*)", "as": "mean"}],
        "group_by": ["carrier"],
    });
    insta::assert_snapshot!(check(share).await, @r#"SELECT "carrier", sum("dep_delay") / count(*) AS "mean" FROM "flights" GROUP BY "carrier" LIMIT 101"#);
}

#[tokio::test]
async fn expressions_obey_the_policy_of_statements() {
    let refused = async |query: Value, expected: &str| {
        let answer = check(query).await;
        assert!(answer.contains(expected), "{answer}");
    };
    for (expression, expected) in [
        ("(SELECT max(name) FROM airlines)", "select[0]: a subquery in an expression is refused"),
        ("carrier, origin", "expected the end of the expression"),
        ("carrier FROM airlines", "expected the end of the expression"),
        ("pg_read_file('/etc/passwd')", "select[0]: the function pg_read_file is refused"),
        ("upper(carier)", "select[0]: there is no column \"carier\""),
        ("", "select[0].expression: expected a name, got \"\""),
    ] {
        refused(json!({"table": "flights", "select": [{ "expression": expression }]}), expected).await;
    }
    let unknown = json!({"table": "flights", "select": [{"expression": "1", "name": "x"}], "group_by": [5]});
    refused(unknown.clone(), "select[0].name: is unknown").await;
    refused(unknown, "group_by[0]: expected the name of a column or {expression, as}, got 5").await;
    let ungrouped = json!({"table": "flights", "select": ["carrier", {"expression": "sum(distance) / 2"}]});
    refused(ungrouped, "select[0]: the plain column \"carrier\" is neither grouped nor aggregated").await;
    let twice = json!({"table": "flights", "group_by": ["carrier", {"expression": "upper(carrier)", "as": "carrier"}]});
    refused(twice, "group_by[1].as: has the name of another key").await;
    let unselected = json!({"table": "flights", "select": "carrier", "distinct": true, "order_by": "origin"});
    refused(unselected, "order_by[0]: with distinct, only selected columns can be ordered by").await;
    refused(json!({"table": "flights", "offset": -1}), "offset: expected a whole number from 0, got -1").await;
}

#[tokio::test]
async fn distinct_rows_after_an_offset() {
    let query = json!({"table": "flights", "select": ["carrier", "origin"], "distinct": true, "offset": 20, "limit": 10, "order_by": ["origin"]});
    insta::assert_snapshot!(check(query).await, @r#"SELECT DISTINCT "carrier", "origin" FROM "flights" ORDER BY "origin" NULLS LAST LIMIT 11 OFFSET 20"#);
    let unselected =
        json!({"table": "flights", "select": ["carrier"], "distinct": true, "order_by": ["origin"], "offset": -1});
    insta::assert_snapshot!(check(unselected).await, @"
    invalid query arguments:
    - offset: expected a whole number from 0, got -1
    ");
}
