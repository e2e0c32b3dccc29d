//! The errors that callers receive for invalid statements.

use insta::assert_snapshot;
use tidegate_sql::Parameter;

use crate::support::{Folder, TestNode};

fn database() -> (Folder, TestNode) {
    let folder = Folder::with(&[
        ("flights.csv", "id,tailNum,dest,delay,day\n1,N1,JFK,5,2024-01-01\n2,N2,LAX,-3,2024-01-02\n"),
        ("planes.csv", "tailNum,seats\nN1,180\n"),
        ("bad.csv", ""),
    ]);
    let node = folder.database();
    (folder, node)
}

#[tokio::test]
async fn values_of_different_types_in_between_are_named() {
    let (_folder, node) = database();
    assert_snapshot!(node.refusal("SELECT * FROM flights WHERE day BETWEEN true AND '2024-01-02'").await, @"
    invalid_arguments: Failed to coerce types date and boolean in BETWEEN expression
    Cast the values to one type: x::text.
    ");
}

#[tokio::test]
async fn unknown_tables_get_the_nearest_names() {
    let (_folder, node) = database();
    assert_snapshot!(node.refusal("SELECT * FROM flight").await, @r#"
    not_found: there is no table "flight" in database "db"
    Valid choices: flights
    Use the tool list_tables to see the tables.
    "#);
    assert_snapshot!(node.refusal("SELECT * FROM xyzzy").await, @r#"
    not_found: there is no table "xyzzy" in database "db"
    Valid choices: bad, flights, planes
    Use the tool list_tables to see the tables.
    "#);
    assert_snapshot!(node.refusal("SELECT * FROM other.flights").await, @r#"
    not_found: there is no table "other.flights" in database "db"
    Valid choices: flights
    Use the tool list_tables to see the tables.
    "#);
    assert_snapshot!(node.refusal("SELECT * FROM a.b.flights").await, @r#"
    not_found: there is no table "a.b.flights" in database "db"
    Valid choices: flights
    Use the tool list_tables to see the tables.
    "#);
    assert_snapshot!(node.refusal("SELECT * FROM bad").await, @r#"unavailable: the table "bad" cannot be read: the file is empty"#);
    assert_snapshot!(node.columns("flight").await.unwrap_err(), @r#"
    there is no table "flight" in database "db"
    Valid choices: flights
    Use the tool list_tables to see the tables.
    "#);
    assert_snapshot!(node.refusal("SELECT * FROM information_schema.nothing").await, @r#"
    not_found: there is no table "information_schema.nothing" in database "db"
    Valid choices: bad, flights, planes
    Use the tool list_tables to see the tables.
    "#);
}

#[tokio::test]
async fn unknown_columns_get_the_columns_of_the_table() {
    let (_folder, node) = database();
    assert_snapshot!(node.refusal("SELECT dealy FROM flights").await, @r#"
    invalid_arguments: there is no column "dealy"
    Valid choices: delay, day, dest, id, tailNum
    "#);
    assert_snapshot!(node.refusal("SELECT f.seats FROM flights f JOIN planes p ON f.tailNum = p.tailNum").await, @r#"
    invalid_arguments: there is no column "seats" in "f"
    Valid choices: dest, delay, id, tailNum, day
    "#);
    assert_snapshot!(node.refusal("SELECT x.id FROM flights f").await, @r#"
    invalid_arguments: there is no table, alias or column "x" at x.id
    Valid choices: f
    "#);
    assert_snapshot!(node.refusal("SELECT dealy.key, f.id FROM flights f, planes p").await, @r#"
    invalid_arguments: there is no table, alias or column "dealy" at dealy.key
    Valid choices: delay, f, p
    "#);
    assert_snapshot!(node.refusal("SELECT f.dealy.key FROM flights f, planes p").await, @r#"
    invalid_arguments: there is no column "dealy" in "f"
    Valid choices: delay, day, dest, id, tailNum
    "#);
    assert_snapshot!(node.refusal("SELECT tailNum FROM flights f JOIN planes p ON f.tailNum = p.tailNum").await, @r#"
    invalid_arguments: the column "tailNum" is in several tables of the query
    Write the table before it: table.column.
    "#);
    assert_snapshot!(node.refusal("SELECT count(*) AS n FROM flights GROUP BY dest HAVING m > 1").await, @r#"
    invalid_arguments: there is no column "m"
    Valid choices: n, id, tailNum, dest, delay, day
    "#);
    assert_snapshot!(node.refusal("SELECT id, count(*) FROM flights GROUP BY dest").await, @r#"invalid_arguments: Column in SELECT must be in GROUP BY or an aggregate function: column "flights.id" must appear in the GROUP BY clause or must be part of an aggregate function, currently only "flights.dest, count(1)" appears in the SELECT clause satisfies this requirement"#);
    assert_snapshot!(node.refusal("SELECT 1 WHERE id = 1").await, @r#"invalid_arguments: there is no column "id""#);
}

#[tokio::test]
async fn mistyped_expressions_say_what_does_not_fit() {
    let (_folder, node) = database();
    assert_snapshot!(node.refusal("SELECT dest + 1 FROM flights").await, @"invalid_arguments: operator does not exist: text + integer; cast the text to a number, for instance x::numeric");
    assert_snapshot!(node.refusal("SELECT sum(dest) FROM flights").await, @"invalid_arguments: functions sum(text) and avg(text) do not exist; cast the argument to a number, for instance x::numeric");
    assert_snapshot!(node.refusal("SELECT * FROM flights WHERE delay > 'late'").await, @r#"
    invalid_arguments: invalid input syntax for type bigint: "late"
    TRY_CAST(x AS type) gives NULL where a value does not fit; sums and averages leave these rows out.
    "#);
    assert_snapshot!(node.refusal("SELECT CAST(dest AS BIGINT) FROM flights").await, @r#"
    invalid_arguments: invalid input syntax for type bigint: "JFK"
    TRY_CAST(x AS type) gives NULL where a value does not fit; sums and averages leave these rows out.
    "#);
    assert_snapshot!(node.refusal("SELECT * FROM flights WHERE day > 'some day'").await, @r#"
    invalid_arguments: invalid input syntax for type date: "some day"
    TRY_CAST(x AS type) gives NULL where a value does not fit; sums and averages leave these rows out.
    "#);
    assert_snapshot!(node.refusal("SELECT delay / 0 FROM flights").await, @r"
    invalid_arguments: division by zero
    Use x / NULLIF(y, 0) to get NULL instead.
    ");
    assert_snapshot!(node.refusal("SELECT * FROM flights WHERE dest").await, @"invalid_arguments: Cannot create filter with non-boolean predicate 'flights.dest' returning text");
    assert_snapshot!(node.refusal("SELECT id FROM flights UNION SELECT tailNum, seats FROM planes").await, @"invalid_arguments: UNION queries have different number of columns");
}

#[tokio::test]
async fn the_advice_for_texts_and_other_types_beside_numbers_loses_no_rows() {
    let folder = Folder::with(&[(
        "orders.csv",
        "sku;price;day;ok\n00004;\"1,699.52\";2024-01-01;true\n00005;12.5;2024-01-02;false\nX1;7;2024-01-03;true\n",
    )]);
    let node = folder.database();
    assert_snapshot!(node.refusal("SELECT * FROM orders WHERE sku = 00004").await, @"invalid_arguments: operator does not exist: text = integer; write the text in quotes, such as '00004', or cast it to a number, for instance x::numeric");
    let refusal = node.refusal("SELECT * FROM orders WHERE sku <> 4").await;
    assert!(refusal.starts_with("invalid_arguments: operator does not exist: text <> integer; write"), "{refusal}");
    assert_eq!(node.rows("SELECT day FROM orders WHERE sku = '00004'").await, "2024-01-01");
    assert_snapshot!(node.refusal("SELECT sum(price) FROM orders").await, @"invalid_arguments: functions sum(text) and avg(text) do not exist; cast the argument to a number, for instance x::numeric");
    assert_snapshot!(node.refusal("SELECT sum(price::numeric) FROM orders").await, @r#"
    invalid_arguments: invalid input syntax for type numeric: "1,699.52"
    A table of text files or sheets reads such numbers with thousands: "," among its options in tidegate.yaml; the tool get_schema has the options for each column. TRY_CAST(x AS type) gives NULL where a value does not fit; sums and averages leave these rows out.
    "#);
    assert_snapshot!(node.refusal("SELECT avg(day) FROM orders").await, @"invalid_arguments: functions sum(date) and avg(date) do not exist; use a number as the argument, for instance extract(epoch FROM x)");
    assert_eq!(node.rows("SELECT to_timestamp(avg(extract(epoch FROM day)))::date FROM orders").await, "2024-01-02");
    assert_snapshot!(node.refusal("SELECT sum(ok) FROM orders").await, @"invalid_arguments: functions sum(boolean) and avg(boolean) do not exist; count the rows with count(*) FILTER (WHERE x), or cast the argument to an integer: x::int");
    assert_snapshot!(node.refusal("SELECT stddev(ok::numeric) FROM orders").await, @"invalid_arguments: cannot cast type boolean to numeric; cast it to an integer: x::int");
    assert_eq!(node.rows("SELECT count(*) FILTER (WHERE ok), sum(ok::int) FROM orders").await, "2|2");
}

#[tokio::test]
async fn unknown_functions_get_a_hint() {
    let (_folder, node) = database();
    assert_snapshot!(node.refusal("SELECT cuont(id) FROM flights").await, @r#"
    invalid_arguments: there is no function "cuont"; did you mean "count"?
    The functions are listed on the page "SQL over files" (docs/reference/sql.md).
    "#);
    assert_snapshot!(node.refusal("SELECT year(day) FROM flights").await, @r#"
    invalid_arguments: there is no function "year"
    Write extract(year FROM x) or date_part('year', x).
    "#);
    assert_snapshot!(node.refusal("SELECT GROUP_CONCAT(dest) FROM flights").await, @r#"
    invalid_arguments: there is no function "group_concat"
    Write string_agg(x, ',').
    "#);
    assert_snapshot!(node.refusal("SELECT substr(dest) FROM flights").await, @"invalid_arguments: substring(text) does not exist; write substring(x FROM 1 FOR 3)");
    assert_snapshot!(node.refusal("SELECT date_trunc('fortnight', day) FROM flights").await, @r#"invalid_arguments: unit "fortnight" not recognized for type timestamp with time zone"#);
    for call in ["unaccent(dest)", "json_get(dest, 'a')", "yearly(dest) OVER ()"] {
        let refusal = node.refusal(&format!("SELECT {call} FROM flights")).await;
        let (name, _) = call.split_once('(').unwrap();
        let expected = format!(
            "invalid_arguments: there is no function {name:?}\nThe functions are listed on the page \"SQL over files\" (docs/reference/sql.md)."
        );
        assert_eq!(refusal, expected);
    }
}

#[tokio::test]
async fn binds_parameters_and_reports_wrong_ones() {
    let (_folder, node) = database();
    let text = |value: &str| Parameter::Text(value.to_owned());
    let ask = async |sql: &str, parameters: Vec<Parameter>| match node.batches(sql, parameters).await {
        Ok(batches) => crate::support::lines(&batches),
        Err(error) => format!("{}: {error}", error.kind().name()),
    };
    let sql = "SELECT id FROM flights WHERE dest = $1 AND delay < $2";
    assert_eq!(ask(sql, vec![text("JFK"), Parameter::Integer(6)]).await, "1");
    assert_eq!(ask(sql, vec![text("JFK"), Parameter::Float(5.5)]).await, "1");
    assert_eq!(ask(sql, vec![text("x' OR '1'='1"), Parameter::Integer(6)]).await, "");
    assert_eq!(ask("SELECT id FROM flights WHERE day = $1", vec![text("2024-01-02")]).await, "2");
    assert_eq!(ask("SELECT id FROM flights ORDER BY id LIMIT $1", vec![Parameter::Integer(1)]).await, "1");
    assert_eq!(
        ask("SELECT $1, $2, $3", vec![Parameter::Null, Parameter::Boolean(true), text("a")]).await,
        "null|true|a"
    );
    assert_eq!(
        ask("SELECT id FROM flights WHERE id IN (?, ?)", vec![Parameter::Integer(2), Parameter::Integer(3)]).await,
        "2"
    );
    // PostgreSQL infers that a parameter beside a real is one. A literal is a numeric.
    let sql = "SELECT r = $1, $1 < r, r IN ($1, 5), r BETWEEN $1 AND $1, r = 0.1, $1 FROM (SELECT 0.1::real AS r) t";
    assert_eq!(ask(sql, vec![Parameter::Float(0.1)]).await, "true|false|true|true|false|0.1");
    assert_eq!(ask("SELECT 0.1::real < $1", vec![Parameter::Float(1e300)]).await, "true");
    let sql = "SELECT r = $1, r IN ($1), r BETWEEN $1 AND $1, r = 16777217, r > $2 FROM (SELECT 16777216::real AS r) t";
    let parameters = vec![Parameter::Integer(16_777_217), Parameter::Integer(0)];
    assert_eq!(ask(sql, parameters).await, "true|true|true|false|true");
    // Beside a numeric it is a numeric, so that no digit of the column is lost.
    let sql = "SELECT n = $1, n > $1, n IN ($1), n + $1 FROM (SELECT 12345678901234567.1::numeric(18, 1) AS n) t";
    assert_eq!(ask(sql, vec![Parameter::Float(0.1)]).await, "false|true|false|12345678901234567.2");
    assert_snapshot!(ask("SELECT id FROM flights WHERE day = $1", vec![text("soon")]).await, @r#"
    invalid_arguments: invalid input syntax for type date: "soon"
    TRY_CAST(x AS type) gives NULL where a value does not fit; sums and averages leave these rows out.
    "#);
    assert_snapshot!(ask("SELECT id FROM flights LIMIT $1", vec![text("many")]).await, @"invalid_arguments: Expected LIMIT to be an integer or null, but got text");
}

#[tokio::test]
async fn numbers_are_no_dates_and_times() {
    let (_folder, node) = database();
    let of_dates = "a date is written in quotes, such as '2025-03-01'; for seconds since 1970 write to_timestamp(x)";
    for (sql, expected) in [
        ("SELECT * FROM flights WHERE 19723.5::float8 = day", "operator does not exist: double precision = date"),
        ("SELECT * FROM flights WHERE day NOT IN ('2024-01-01', id)", "operator does not exist: date <> bigint"),
        ("SELECT * FROM flights WHERE day BETWEEN '2024-01-01' AND id", "operator does not exist: date <= bigint"),
        ("SELECT * FROM flights WHERE day IN (SELECT id FROM flights)", "operator does not exist: date = bigint"),
        ("SELECT * FROM flights f JOIN planes p ON f.day = p.seats", "operator does not exist: date = bigint"),
        ("SELECT day FROM flights INTERSECT SELECT id FROM flights", "operator does not exist: date = bigint"),
        ("SELECT day FROM flights UNION ALL SELECT id FROM flights", "UNION types date and bigint cannot be matched"),
        ("SELECT CASE day WHEN id THEN 1 END FROM flights", "operator does not exist: date = bigint"),
        ("SELECT CASE WHEN id = 1 THEN day ELSE id END FROM flights", "CASE types date and bigint cannot be matched"),
        ("SELECT nullif(day, id) FROM flights", "NULLIF types date and bigint cannot be matched"),
        (
            "WITH RECURSIVE r AS (SELECT day, id FROM flights UNION ALL SELECT id, id + 1 FROM r) SELECT 1 FROM r",
            "UNION types date and bigint cannot be matched",
        ),
    ] {
        assert_eq!(node.refusal(sql).await, format!("invalid_arguments: {expected}; {of_dates}"), "{sql}");
    }
    let refusal = node.refusal("SELECT lag(day, 1, 5) OVER () FROM flights").await;
    assert!(refusal.contains("function lag(date, integer, ") && refusal.ends_with(of_dates), "{refusal}");
    for condition in ["day > $1", "day IN ($1, '2024-01-01')", "day BETWEEN $1 AND $1", "$1 <> day"] {
        let sql = format!("SELECT * FROM flights WHERE {condition}");
        let error = node.batches(&sql, vec![Parameter::Integer(2025)]).await.unwrap_err().to_string();
        let is_named = error.starts_with("operator does not exist: ") && error.ends_with(of_dates);
        assert!(is_named && error.contains("bigint"), "{sql}: {error}");
    }
    let sql =
        "SELECT * FROM (SELECT day::timestamp AS t, '10:00'::time AS c, '1 day'::interval AS i FROM flights) x WHERE ";
    for (condition, expected) in [
        ("t > 2024", "operator does not exist: timestamp > integer; a timestamp is written in quotes, such as '2025"),
        ("c = 10", "operator does not exist: time = integer; a time is written in quotes, such as '10:00:00'"),
        ("i BETWEEN 1 AND 2", "operator does not exist: interval >= integer; an interval is written in quotes"),
    ] {
        let refusal = node.refusal(&format!("{sql}{condition}")).await;
        assert!(refusal.starts_with(&format!("invalid_arguments: {expected}")), "{condition}: {refusal}");
    }
    assert_eq!(node.rows("SELECT id FROM flights WHERE day > '2024-01-01'").await, "2");
    assert_eq!(node.rows("SELECT id FROM flights WHERE day = to_timestamp(1704067200)").await, "1");
    assert_eq!(
        node.rows("SELECT day + 1, day - 1, day - date '2023-12-31' FROM flights WHERE id = 1").await,
        "2024-01-02|2023-12-31|1"
    );
}

#[tokio::test]
async fn the_longest_chains_that_are_allowed_do_not_break_the_process() {
    let (_folder, node) = database();
    for (subject, sql) in [
        ("negations", format!("SELECT {}true AS x", "NOT ".repeat(250))),
        ("brackets", format!("SELECT {}1{} AS x", "(".repeat(55), ")".repeat(55))),
        ("additions", format!("SELECT id{} AS x FROM flights", " + id".repeat(250))),
        ("calls", format!("SELECT {}-1{} AS x", "abs(".repeat(50), ")".repeat(50))),
    ] {
        if let Err(error) = node.batches(&sql, Vec::new()).await {
            assert_ne!(error.kind(), tidegate_core::ErrorKind::Internal, "{subject}: {error}");
        }
    }
}

#[tokio::test]
async fn membership_in_rows_that_depend_on_random_rows_is_refused() {
    let (_folder, node) = database();
    let rows = "(SELECT id, dest, random() AS chance FROM flights) f";
    let found = "f.dest NOT IN (SELECT p.tailNum FROM planes p WHERE p.seats > f.chance)";
    assert_snapshot!(node.refusal(&format!("SELECT id FROM {rows} WHERE id = 1 OR {found}")).await, @"invalid_arguments: IN and NOT IN with a subquery are not supported here for rows with random values; write EXISTS or NOT EXISTS in WHERE");
    let missing = "NOT EXISTS (SELECT FROM planes p WHERE p.tailNum = f.dest AND p.seats > f.chance)";
    let batches =
        node.batches(&format!("SELECT id FROM {rows} WHERE id = 1 OR {missing} ORDER BY id"), Vec::new()).await;
    assert_eq!(crate::support::lines(&batches.unwrap()), "1\n2");
    assert_snapshot!(node.refusal(&format!("SELECT id, {found} AS found FROM {rows}")).await, @"invalid_arguments: IN and NOT IN with a subquery are not supported here for rows with random values; write EXISTS or NOT EXISTS in WHERE");
}

#[tokio::test]
async fn subqueries_without_a_plan_are_refused_in_words_of_the_statement() {
    let (_folder, node) = database();
    let recursive = |part: &str| {
        format!("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE {part}) SELECT n FROM t")
    };
    let inside = recursive("n < (SELECT max(n) + 1 FROM t)");
    assert_snapshot!(node.refusal(&inside).await, @r#"invalid_arguments: recursive reference to query "t" must not appear within a subquery; join it in FROM instead"#);
    let uses = recursive("n < 5 AND EXISTS (SELECT 1 FROM planes p WHERE p.seats > t.n LIMIT 1)");
    assert_snapshot!(node.refusal(&uses).await, @"invalid_arguments: a subquery or LATERAL that uses columns of a recursive query is not supported here; join its tables in FROM of the recursive part instead");
    let sets = "SELECT id, (SELECT count(*) FROM (SELECT 1 FROM planes p WHERE p.tailNum = f.dest GROUP BY \
                GROUPING SETS ((), ())) q) AS n FROM flights f";
    assert_snapshot!(node.refusal(sets).await, @"invalid_arguments: a subquery with several empty grouping sets is not supported where it uses f.dest of an outer query; write it as a query in FROM without that column, and join it");
    let of_both = "SELECT f.id FROM flights f LEFT JOIN planes p ON EXISTS (SELECT 1 FROM planes q WHERE \
                   q.tailNum = f.tailNum AND q.seats = p.seats)";
    assert_snapshot!(node.refusal(of_both).await, @"invalid_arguments: a subquery in ON of an outer join is not supported where it uses columns of both tables; join the tables in a query in FROM, and use the subquery there");
    let window = "SELECT sum(id) OVER (PARTITION BY generate_series(1, 2)) AS s FROM flights";
    assert_snapshot!(node.refusal(window).await, @r"
    invalid_arguments: an expression is not supported at its place in the statement
    Compute the expression in SELECT of a query in FROM, and use its column.
    ");
    let distinct = "SELECT DISTINCT ON (id) id, generate_series(1, 2) AS s FROM flights ORDER BY id";
    assert_snapshot!(node.refusal(distinct).await, @r#"
    invalid_arguments: this is not supported: set-returning functions beside DISTINCT ON and ORDER BY that do not name them; write DISTINCT ON and ORDER BY in a subquery in FROM, and the function in the query around it
    The SQL is PostgreSQL's; the page "SQL over files" (docs/reference/sql.md) lists the differences.
    "#);
}
