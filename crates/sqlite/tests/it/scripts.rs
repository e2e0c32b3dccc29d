//! The scripts of the embedded engine, replayed on the same data in a SQLite file.

use std::fs;
use std::path::Path;

use sqllogictest::{DefaultColumnType, QueryExpect, Record};
use tidegate_query::Format;

use crate::support::{Node, of};

/// The data of the scripts as far as SQLite has such tables: lists and structs it has not.
const DATA: &str = "
    CREATE TABLE employees (id INTEGER, name TEXT, department TEXT, salary REAL, hired DATE, manager INTEGER);
    INSERT INTO employees VALUES
        (1, 'Ada', 'engineering', 9000.5, '2019-03-01', NULL), (2, 'Ben', 'engineering', 7000, '2020-07-15', 1),
        (3, 'Cem', 'sales', 5000, '2021-01-10', 1), (4, 'Dia', 'sales', NULL, '2021-01-10', 3),
        (5, 'Eva', NULL, 6000, '2022-11-30', 1);
    CREATE TABLE departments (name TEXT, Floor INTEGER, \"Head Count\" INTEGER);
    INSERT INTO departments VALUES ('engineering', 3, 2), ('sales', 1, 2), ('legal', 2, 0);
    CREATE TABLE \"odd name;DROP\" (\"select\" INTEGER, \"from\" INTEGER);
    INSERT INTO \"odd name;DROP\" VALUES (1, 2);
    CREATE TABLE readings (sensor INTEGER, value INTEGER, year INTEGER);
    INSERT INTO readings VALUES (1, 10, 2023), (2, 20, 2023), (1, 30, 2024), (2, NULL, 2024);";

/// The values of an answer as the scripts have them, in order.
async fn values(node: &Node, sql: &str) -> Result<Vec<String>, String> {
    let text = node.answer(sql, Format::Ndjson).await.map_err(|error| error.to_string())?;
    let line = |line: &str| {
        let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let value = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        row.values().map(value).collect::<Vec<_>>().join(" ")
    };
    Ok(text.lines().map(line).collect())
}

#[tokio::test]
async fn all_scripts_are_replayed_as_far_as_sqlite_has_the_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engines/tests/slt");
    let (_folder, node) = of(DATA);
    let mut scripts: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    scripts.sort();
    let (mut same, mut other) = (0, Vec::new());
    for script in scripts {
        for record in sqllogictest::parse_file::<DefaultColumnType>(script).unwrap() {
            let Record::Query { sql, expected, .. } = record else { continue };
            let found = values(&node, &sql).await;
            let is_same = match (&expected, &found) {
                (QueryExpect::Results { results, sort_mode, .. }, Ok(found)) => {
                    let (mut results, mut found) = (results.clone(), found.clone());
                    if sort_mode.is_some() {
                        results.sort();
                        found.sort();
                    }
                    results == found
                }
                (QueryExpect::Error(expected), Err(found)) => expected.is_match(found, None),
                _ => false,
            };
            if is_same {
                same += 1;
            } else {
                let found = found
                    .map_or_else(|error| error.lines().next().unwrap_or_default().to_owned(), |rows| rows.join("|"));
                other.push(format!("{sql}\n    {found}"));
            }
        }
    }
    assert!(same >= 30, "{same} answers are the same");
    // What is here differs, and must not grow unseen.
    insta::assert_snapshot!(other.join("\n"), @r#"
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) FROM employees
        near "(": syntax error at line 1, column 42
    SELECT median(salary) FROM employees
        SQLite has no function "median"
    SELECT array_agg(id ORDER BY id) FROM employees
        SQLite has no function "array_agg"
    SELECT department, count(*) FROM employees GROUP BY ROLLUP (department) ORDER BY 2, 1
        SQLite has no function "ROLLUP"
    SELECT round(stddev(salary), 2), round(corr(id, salary), 3) FROM employees
        SQLite has no function "stddev"
    SELECT approx_distinct(department) FROM employees
        SQLite has no function "approx_distinct"
    SELECT sum(value) FROM generate_series(1, 10)
        there is no table "generate_series" in "shop"
    SELECT * FROM (VALUES (1, 2), (3, 4)) AS v(a, b) ORDER BY a
        near "(": syntax error at line 1, column 43
    SELECT hired, extract(year FROM hired) FROM employees WHERE hired >= '2021-01-01' ORDER BY hired, id
        near "FROM": syntax error at line 1, column 28
    SELECT date_trunc('year', hired)::date, count(*) FROM employees GROUP BY 1 ORDER BY 1
        unrecognized token: ":" at line 1, column 33
    SELECT (hired + INTERVAL '1 month')::date FROM employees WHERE id = 5
        near "'1 month'": syntax error at line 1, column 26
    SELECT to_char(hired, '%d.%m.%Y') FROM employees WHERE id = 1
        SQLite has no function "to_char"
    SELECT kind FROM events WHERE at::timestamp BETWEEN '2024-02-01' AND '2024-02-29T12:00:00'
        unrecognized token: ":" at line 1, column 33
    SELECT count(*) FROM employees WHERE hired BETWEEN DATE '2020-01-01' AND DATE '2021-12-31'
        near "'2020-01-01'": syntax error at line 1, column 57
    SELECT date_bin(INTERVAL '1 day', at::timestamp)::date FROM events ORDER BY 1
        near "'1 day'": syntax error at line 1, column 26
    SELECT events."where"['x'], events."where"['y'], cardinality(tags) FROM events
        there is no table "events" in "shop"
    SELECT unnest(tags) FROM events
        there is no table "events" in "shop"
    SELECT kind FROM events WHERE array_has(tags, 'b')
        there is no table "events" in "shop"
    SELECT array_to_string(tags, '-') FROM events WHERE ok
        there is no table "events" in "shop"
    SELECT kind, count(*) FROM events WHERE ok IS NOT NULL GROUP BY kind
        there is no table "events" in "shop"
    SELECT regexp_replace('2024-01', '([0-9]+)-([0-9]+)', '$2/$1')
        SQLite has no function "regexp_replace"
    SELECT split_part('a,b,c', ',', 2)
        SQLite has no function "split_part"
    SELECT TRY_CAST('x' AS BIGINT)
        near "AS": syntax error at line 1, column 21
    SELECT name FROM employees ORDER BY department, name
        Eva|Ada|Ben|Cem|Dia
    SELECT coalesce(nullif(salary, 5000), -1) FROM employees ORDER BY id
        9000.5|7000.0|-1|-1|6000.0
    SELECT "Head Count"::text, Floor FROM departments WHERE name = 'legal'
        unrecognized token: ":" at line 1, column 20
    SELECT name FROM employees WHERE name ~* '^(a|e)' ORDER BY 1
        near "~": syntax error at line 1, column 39
    SELECT name FROM employees QUALIFY row_number() OVER (PARTITION BY department ORDER BY id) = 1 ORDER BY name
        near "row_number": syntax error at line 1, column 36
    "#);
}
