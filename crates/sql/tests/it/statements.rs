//! Which SQL passes, which is refused, and in what words; bounds; placeholders; the cache.

use std::num::NonZeroUsize;

use serde_json::json;
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::{Parameter, SqlDialect, Statement, StatementCache};

fn parse(sql: &str) -> Result<Statement, Error> {
    Statement::parse(sql, SqlDialect::DataFusion)
}

const HONEST: &[&str] = &[
    "SELECT 1",
    "SELECT 1;",
    "  -- a comment\n/* another /* nested */ */ SELECT 1 ; ",
    "VALUES (1, 'a'), (2, 'b')",
    "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 LIMIT 1 OFFSET 1",
    "SELECT * FROM flights WHERE carrier = 'UA' AND NOT (dep_delay > 60 OR arr_delay IS NULL)",
    "SELECT \"Tail Number\", count(*) FROM flights GROUP BY 1 HAVING count(*) > 3 ORDER BY 2 DESC NULLS LAST",
    "SELECT * FROM \"my table.v2\"",
    "SELECT * FROM \"2013 flights (new)\"",
    "SELECT * FROM public.flights, information_schema.columns",
    "WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a JOIN b ON a.x < b.y",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT * FROM t",
    "SELECT rank() OVER (PARTITION BY carrier ORDER BY dep_delay DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM flights",
    "SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY y)",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY dep_delay) FROM flights",
    "SELECT count(*) FILTER (WHERE dep_delay > 0), count(DISTINCT carrier) FROM flights",
    "SELECT * FROM flights f, LATERAL (SELECT max(dep_delay) FROM flights g WHERE g.carrier = f.carrier) m",
    "SELECT * FROM flights f CROSS JOIN LATERAL (SELECT f.distance * 2) d(x)",
    "SELECT carrier, dep_delay FROM flights QUALIFY row_number() OVER (PARTITION BY carrier ORDER BY dep_delay) = 1",
    "SELECT data->'a'->>'b', tags[1], [1, 2, 3], ARRAY[1, 2] @> ARRAY[1] FROM events",
    "SELECT unnest([1, 2, 3])",
    "SELECT * FROM unnest(ARRAY[1, 2, 3]) AS u(x)",
    "SELECT * FROM generate_series(1, 10) AS g(n)",
    "SELECT * FROM range(1, 10)",
    "SELECT CASE WHEN x > 0 THEN 'up' ELSE 'down' END, CAST(x AS text), x::int, TRY_CAST(y AS double) FROM t",
    "SELECT extract(year FROM flight_date), date_trunc('month', flight_date), interval '1 day', now() FROM flights",
    "SELECT DATE '2013-01-01', TIMESTAMP '2013-01-01 00:00:00', '2013-01-01'::date",
    "SELECT * FROM a NATURAL JOIN b LEFT JOIN c USING (id) FULL JOIN d ON true WHERE EXISTS (SELECT 1 FROM e)",
    "SELECT x IN (SELECT y FROM u), x = ANY (SELECT y FROM u), (SELECT max(y) FROM u) FROM t",
    "SELECT regexp_like(name, '^A.*'), name ILIKE '%a%', name ~ 'x', substring(name FROM 1 FOR 2), trim(both ' ' FROM name) FROM t",
    "SELECT ROLLUP FROM t",
    "SELECT a, b, sum(c) FROM t GROUP BY GROUPING SETS ((a), (b), ())",
    "SELECT a FROM t EXCEPT SELECT b FROM u INTERSECT SELECT c FROM v",
    "SELECT * EXCEPT (a), t.* FROM t",
    "SELECT 'it''s', 'C:\\dir\\', 'C:\\dir\\''s', '''quoted''', '''''', E'a\\nb', \"a\"\"b\" FROM t",
    "SELECT replace(x, '''', '''''') FROM t",
    "SELECT DISTINCT ON (carrier) * FROM flights",
    "SELECT struct(1 AS a), named_struct('a', 1)['a']",
    "SELECT 'COPY t TO ''x''; DROP TABLE t' AS text, \"delete\", \"set\" FROM \"insert\"",
    "SELECT st_distance(a, b), st_geomfromtext('POINT(0 0)') FROM places",
    "SELECT * FROM t WHERE x = $1 AND y > $2 LIMIT $3",
    "SELECT * FROM t WHERE x = ? AND y > ? LIMIT ?",
    "SELECT set, copy, execute FROM t",
    "FROM flights SELECT carrier",
    "SELECT * FROM flights TABLESAMPLE BERNOULLI (10)",
    "SELECT a FROM t GROUP BY GROUPING SETS (a, GROUPING SETS ((b), ROLLUP (a, b)), CUBE (a, b))",
    "SELECT * FROM a LEFT JOIN b JOIN c ON b.x = c.x ON a.x = b.x, d JOIN e ON d.x = e.x JOIN f USING (y)",
    "SELECT concat(VARIADIC a), make_interval(years := 2), '$.a'::jsonpath, name 'x', jsonpath '$.b' FROM t",
    "SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN '1 day'::interval PRECEDING AND 2::int FOLLOWING) FROM t",
    "SELECT - -a, 5 - -1, - + -b, - - - c, - @ -d, 'C:\\dir\\''s' FROM t WHERE a = - -1",
];

#[test]
fn honest_sql_passes_and_its_text_means_the_same() {
    for sql in HONEST {
        let statement = parse(sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let retried = parse(statement.text()).unwrap_or_else(|error| panic!("{sql}\n{}\n{error}", statement.text()));
        assert_eq!(retried.ast(), statement.ast(), "{sql}\n{}", statement.text());
        assert_eq!(retried.text(), statement.text());
    }
}

const REFUSED: &[&str] = &[
    "",
    " ; -- nothing",
    "SELECT 1; SELECT 2",
    "COMMIT; DROP SCHEMA public CASCADE",
    "INSERT INTO flights VALUES (1)",
    "UPDATE flights SET carrier = 'X'",
    "DELETE FROM flights",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
    "TRUNCATE flights",
    "DROP TABLE flights",
    "ALTER TABLE flights ADD COLUMN x int",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE FUNCTION f() RETURNS int RETURN 1",
    "COPY flights TO '/tmp/x.csv'",
    "COPY (SELECT 1) TO PROGRAM 'curl evil'",
    "copy flights from '/etc/passwd'",
    "SET datafusion.execution.batch_size = 1",
    "SET ROLE admin",
    "RESET ROLE",
    "BEGIN",
    "COMMIT",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "CALL f()",
    "DO $$ BEGIN END $$",
    "GRANT SELECT ON t TO u",
    "VACUUM",
    "ANALYZE flights",
    "LOCK TABLE t",
    "LISTEN x",
    "PRAGMA table_info(t)",
    "ATTACH DATABASE 'x' AS y",
    "LOAD 'x.so'",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "DESCRIBE flights",
    "SHOW TABLES",
    "KILL 1",
    "DECLARE c CURSOR FOR SELECT 1",
    "WITH x AS (DELETE FROM flights RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x",
    "SELECT * INTO t FROM flights",
    "SELECT 1 UNION SELECT * INTO t FROM flights",
    "SELECT * FROM (SELECT * FROM flights FOR UPDATE) x",
    "SELECT * FROM flights FOR SHARE",
    "SELECT * FROM 'file.csv'",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM \"/etc/passwd\"",
    "SELECT * FROM \"data.csv\"",
    "SELECT * FROM `data.parquet`",
    "SELECT * FROM \"data.csv.GZ\"",
    "SELECT * FROM \"s3://bucket/key\"",
    "SELECT * FROM \"C:\\secrets\"",
    "SELECT * FROM \"..\\x\"",
    "SELECT * FROM a JOIN \"http://x/y\" ON true",
    "SELECT (SELECT count(*) FROM \"x.json\")",
    "SELECT * FROM t WHERE a IN (SELECT b FROM 'x.parquet')",
    "WITH \"a.csv\" AS (SELECT 1) SELECT * FROM \"a.csv\"",
    "SELECT * FROM t ORDER BY (SELECT 1 FROM \"/x\")",
    "SELECT sum(x) FILTER (WHERE EXISTS (SELECT 1 FROM \"/x\")) FROM t",
    "SELECT sum(x) OVER (ORDER BY (SELECT 1 FROM \"/x\")) FROM t",
    "SELECT 1 LIMIT (SELECT 1 FROM \"/x\")",
    "SELECT 1 UNION ALL SELECT 2 UNION ALL TABLE \"/x\"",
    "VALUES ((SELECT 1 FROM \"/x\"))",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM READ_PARQUET('x')",
    "SELECT * FROM \"read_csv\"('x')",
    "SELECT * FROM a, LATERAL read_json('x')",
    "SELECT * FROM TABLE(read_csv('x'))",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM s.generate_series(1, 2)",
    "SELECT * FROM json_table('x', '$[*]' COLUMNS(a INT PATH '$.a'))",
    "SELECT * FROM flights |> CALL read_csv('x')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT PG_CATALOG.pg_read_file('/etc/passwd')",
    "SELECT \"pg_read_file\"('/etc/passwd')",
    "SELECT U&\"pg\\005fread_file\"('/etc/passwd')",
    "SELECT * FROM pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT * FROM dblink('host=x', 'SELECT 1') AS t(a int)",
    "SELECT pg_terminate_backend(1)",
    "SELECT set_config('role', 'admin', false)",
    "SELECT 1 WHERE nextval('s') > 0",
    "SELECT query_to_xml('DROP TABLE t', true, true, '')",
    "SELECT load_extension('x')",
    "SELECT pg_sleep(100)",
    "SELECT * FROM t ORDER BY pg_sleep(1)",
    "SELECT * FROM flights FORMAT JSON",
    "SELECT * FROM flights SETTINGS max_threads = 1",
    "SELECT * FROM flights FOR JSON AUTO",
    "SELECT * FROM identifier('flights')",
    "SELECT * FROM ONLY flights",
    "SELECT * FROM a, only (flights)",
    "SELECT * FROM a JOIN ONLY public.flights AS f ON true",
    "SELECT * FRM flights",
    "SELECT 'open",
    "SELECT \"open",
    "SELECT\n  a,\n  b b b\nFROM t",
    "SELEC 1",
    "SELECT :name",
    "SELECT 1 END",
    "SELECT 1 END; DROP TABLE t",
    "SELECT 1)",
    "SELECT (1",
    "SELECT $1, ?",
    "SELECT $0",
];

#[test]
fn refusals_name_the_part_and_what_to_use_instead() {
    let mut out = String::new();
    for sql in REFUSED {
        let error = match parse(sql) {
            Err(error) => error,
            Ok(statement) => panic!("passed: {sql}\n{}", statement.text()),
        };
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{sql}");
        out.push_str(&format!("{}\n    {}\n", sql.replace('\n', "⏎"), error.to_string().replace('\n', "\n    ")));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn tables_and_functions_are_known() {
    let found = |sql: &str| {
        let statement = parse(sql).unwrap();
        format!("{} | {}", statement.tables().join(" "), statement.functions().join(" "))
    };
    assert_eq!(
        found("SELECT Max(x) FROM Flights f, \"Flights\", s.T JOIN flights USING (a)"),
        "flights Flights s.t | max"
    );
    // A common table expression is no table, but what it is made of is; outside its query it is unknown.
    assert_eq!(found("WITH flights AS (SELECT * FROM flights) SELECT * FROM flights"), "flights | ");
    assert_eq!(found("WITH a AS (SELECT 1), b AS (SELECT * FROM a, c) SELECT * FROM a, b"), "c | ");
    assert_eq!(found("WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) SELECT * FROM a"), " | ");
    assert_eq!(found("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, a"), "a | ");
    assert_eq!(found("WITH a AS (SELECT 1) SELECT * FROM (SELECT * FROM (SELECT * FROM a))"), " | ");
    assert_eq!(found("WITH a AS (SELECT 1) SELECT * FROM \"A\""), "A | ");
    assert_eq!(found("SELECT * FROM generate_series(1, 2), unnest([1])"), " | generate_series unnest");
    assert_eq!(found("SELECT count(*) FILTER (WHERE abs(x) > 1) FROM t UNION TABLE u"), "t u | count abs");
}

/// As PostgreSQL reads a statement, and not as the parser does.
#[test]
fn tables_after_only_are_known() {
    let tables = |sql: &str, dialect| Statement::parse(sql, dialect).unwrap().tables().join(" ");
    for (sql, expected) in [
        ("SELECT * FROM ONLY orders", "orders"),
        ("SELECT * FROM only (s.orders) o, ONLY customers AS c", "s.orders customers"),
        ("SELECT * FROM (ONLY a x JOIN ONLY (\"B\") ON true) FETCH FIRST ROW ONLY", "a B"),
        ("TABLE ONLY orders", "orders"),
        ("WITH only_one AS (SELECT 1 AS only) SELECT o.only FROM ONLY orders o", "orders"),
        ("SELECT * FROM \"only\" orders", "only"),
    ] {
        assert_eq!(tables(sql, SqlDialect::Postgres), expected, "{sql}");
        let statement = Statement::parse(sql, SqlDialect::Postgres).unwrap();
        assert!(statement.text().to_lowercase().contains("only"), "{}", statement.text());
    }
    // SQLite has no such word.
    assert_eq!(tables("SELECT * FROM only orders", SqlDialect::Sqlite), "only");
    assert_eq!(tables("SELECT * FROM \"only\" orders", SqlDialect::DataFusion), "only");
    assert_eq!(tables("SELECT only.a FROM only", SqlDialect::DataFusion), "only");
}

/// PostgreSQL finds a function by its name also where the parser has a form for it. What is no call in PostgreSQL's
/// grammar means its own function.
#[test]
fn functions_that_the_parser_has_forms_for_are_known() {
    let functions = |sql: &str| {
        Statement::parse(&format!("SELECT {sql} FROM t"), SqlDialect::Postgres).unwrap().functions().join(" ")
    };
    for (sql, expected) in [
        ("ceil(a), Floor(b), ceiling(c), CEIL(f(d), 2)", "ceil floor ceiling f"),
        ("substr(a, 1), substr(f(b), 1, g(2))", "substr f g"),
        ("substring(a, 1)", "substring"),
        ("substring(a)", "substring"),
        ("\"substring\"(a, 1), mine.substr(a, 1)", "substring substr"),
        ("convert(a, text), try_convert(b, evil(1)), convert(c, 'UTF8', 'LATIN1')", "convert try_convert evil"),
        ("sum(ceil(a)) FILTER (WHERE floor(b) > 1)", "sum ceil floor"),
        ("substring(a FROM f(1)), substring(a FROM 1 FOR 2), substring(a FOR 2)", "f"),
        ("position('a' IN b), trim(a), trim(LEADING 'a' FROM b), overlay(a PLACING b FROM 1)", ""),
        ("extract(year FROM a), a AT TIME ZONE 'UTC', CAST(a AS int), a COLLATE \"C\", ceil, substr", ""),
    ] {
        assert_eq!(functions(sql), expected, "{sql}");
    }
}

#[test]
fn a_form_that_cannot_be_printed_is_named() {
    let Err(error) = parse(r"SELECT U&'x!0061' UESCAPE '!', '\'''") else { panic!("it is printed now") };
    let text = error.to_string();
    assert!(text.contains("is not supported in this statement"), "{text}");
    assert!(text.contains("parameters ($1)"), "{text}");
}

#[test]
fn deep_and_long_sql_is_an_error_and_no_overflow() {
    // More levels than the stack has room for: a frame has more than a hundred bytes.
    const DEEP: usize = 20_000;
    let deep = [
        format!("SELECT {}1{}", "(".repeat(DEEP), ")".repeat(DEEP)),
        format!("SELECT {}1", "-".repeat(DEEP + 1).replace("--", "- ")),
        format!("SELECT {}1", "NOT ".repeat(DEEP)),
        format!("SELECT 1{}", " + 1".repeat(DEEP)),
        format!("SELECT 1{}", " OR true".repeat(DEEP)),
        format!("SELECT 1{}", " IS NULL".repeat(DEEP)),
        format!("SELECT 1{}", "::int".repeat(DEEP)),
        format!("SELECT 1::int{}", "[]".repeat(DEEP)),
        format!("SELECT a{}", "[1]".repeat(DEEP)),
        format!("SELECT a{}", " COLLATE x".repeat(DEEP)),
        format!("SELECT 1{}", " AT TIME ZONE 'x'".repeat(DEEP)),
        format!("SELECT {}1{}", "f(".repeat(DEEP), ")".repeat(DEEP)),
        format!("SELECT {}1{}", "CASE WHEN 1 THEN ".repeat(DEEP), " END".repeat(DEEP)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(DEEP), ")".repeat(DEEP)),
        format!("{}SELECT 1", "SELECT 1 UNION ".repeat(DEEP)),
        format!("SELECT * FROM t{}", " PIVOT(sum(a) FOR b IN ('x'))".repeat(DEEP)),
        format!("SELECT * FROM {}t{}", "(".repeat(DEEP), ")".repeat(DEEP)),
        format!("{}SELECT 1", "WITH a AS (".repeat(DEEP)),
        format!("SELECT CAST(1 AS {}int{})", "ARRAY<".repeat(DEEP), ">".repeat(DEEP)),
        format!("SELECT 1 WHERE {}", "EXISTS (SELECT 1 WHERE ".repeat(DEEP)),
        // Each level of these is parsed several times, as long as there is no bound.
        format!("SELECT {}1{}", "CAST(".repeat(50), ")".repeat(50)),
        format!("SELECT {}1{}", "POSITION(".repeat(50), ")".repeat(50)),
        format!("SELECT {}1", "CASE WHEN 1 THEN ".repeat(50)),
        format!("SELECT {}1{}", "CASE WHEN CEIL(SUBSTRING(".repeat(15), "))".repeat(15)),
        // What the grammars of single databases have of their own.
        format!("SELECT 1 WHERE 1{}", " ISNULL".repeat(10_000)),
        format!("SELECT 1 WHERE 1{}", " GLOB 1".repeat(10_000)),
        format!("SELECT 1 WHERE 1{}", " NOT GLOB 1".repeat(10_000)),
        format!("SELECT 1 WHERE 1{}", " IS 1".repeat(10_000)),
        format!("SELECT f({}1)", "VARIADIC ".repeat(10_000)),
        format!("SELECT 1{}", " @@@ 1".repeat(10_000)),
        format!("SELECT 1{}", "+".repeat(10_000)),
        // Words at which a clause may begin, without its end.
        format!("SELECT {}", "grouping sets (],".repeat(60_000)),
    ];
    // On a stack no larger than the smallest that a runtime gives its threads.
    std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(move || {
            let dialects = [SqlDialect::DataFusion, SqlDialect::Postgres, SqlDialect::Sqlite];
            for (sql, dialect) in deep.iter().flat_map(|sql| dialects.map(|dialect| (sql, dialect))) {
                let Err(error) = Statement::parse(sql, dialect) else { panic!("passed: {}", &sql[..60]) };
                assert!(matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::InvalidArguments), "{error}");
                assert!(error.to_string().len() < 1_000, "{error}");
            }
            // The deepest that passes can be cloned, printed, compared and dropped.
            let chains = [
                format!("SELECT 1{}", " + 1".repeat(300)),
                format!("SELECT 1 WHERE a = 1{}", " OR a = 1".repeat(149)),
                format!("SELECT {}1{}", "(".repeat(58), ")".repeat(58)),
                format!("{}SELECT 1", "SELECT 1 UNION ALL ".repeat(50)),
                format!("SELECT 1{}", "::int".repeat(150)),
                format!("SELECT {}1{}", "CASE WHEN a THEN ".repeat(58), " END".repeat(58)),
            ];
            for (sql, dialect) in chains.iter().flat_map(|sql| dialects.map(|dialect| (sql, dialect))) {
                let statement = Statement::parse(sql, dialect).unwrap();
                let retried = Statement::parse(statement.text(), dialect).unwrap();
                assert_eq!(retried.ast(), statement.ast());
            }
        })
        .unwrap()
        .join()
        .unwrap();
    let long = format!("SELECT '{}'", "x".repeat(2 * 1024 * 1024));
    insta::assert_snapshot!(parse(&long).unwrap_err(), @"the SQL is 2097161 bytes long; the limit is 1048576");
    insta::assert_snapshot!(parse(&format!("SELECT 1{}", " + 1".repeat(5_000))).unwrap_err(), @r"
    the SQL is nested too deeply or chains too many operators
    Use IN (…) instead of many ORs, joins or WITH instead of nested subqueries, several calls instead of many UNIONs.
    ");
    let names: Vec<String> = (0..300).map(|n| format!("t{n}")).collect();
    insta::assert_snapshot!(parse(&format!("SELECT * FROM {}", names.join(", "))).unwrap_err(), @"the statement names more than 200 tables or functions");
    let list = format!("SELECT * FROM t WHERE a IN ({})", vec!["12345"; 20_000].join(", "));
    assert!(parse(&list).is_ok());
}

#[test]
fn placeholders_are_numbered_and_counted() {
    let statement = parse("SELECT * FROM t WHERE a = ? AND b IN (?, ?) LIMIT ?").unwrap();
    assert_eq!(statement.text(), "SELECT * FROM t WHERE a = $1 AND b IN ($2, $3) LIMIT $4");
    assert_eq!(statement.placeholders(), 4);
    assert_eq!(parse("SELECT $2, $1, $2").unwrap().placeholders(), 2);
    let bound = parse("SELECT $1").unwrap().with_parameters(vec![Parameter::Integer(1)]).unwrap();
    assert_eq!(bound.parameters(), [Parameter::Integer(1)]);
    insta::assert_snapshot!(statement.with_parameters(vec![Parameter::Null]).unwrap_err(), @r"
    the statement has 4 placeholders ($1 to $4), but parameters has 1 values
    Give exactly one value for each placeholder, in their order.
    ");
    insta::assert_snapshot!(parse("SELECT 1").unwrap().with_parameters(vec![Parameter::Null]).unwrap_err(), @r"
    the statement has no placeholders, but parameters has 1 values
    Give exactly one value for each placeholder, in their order.
    ");
}

#[test]
fn parameters_come_from_json() {
    assert_eq!(Parameter::from_json(&json!(null)).unwrap(), Parameter::Null);
    assert_eq!(Parameter::from_json(&json!(true)).unwrap(), Parameter::Boolean(true));
    assert_eq!(Parameter::from_json(&json!(i64::MIN)).unwrap(), Parameter::Integer(i64::MIN));
    assert_eq!(Parameter::from_json(&json!(1.5)).unwrap(), Parameter::Float(1.5));
    assert_eq!(Parameter::from_json(&json!("x")).unwrap(), Parameter::Text("x".to_owned()));
    let refused = |value| Parameter::from_json(&value).unwrap_err().to_string();
    insta::assert_snapshot!(refused(json!(u64::MAX)), @"18446744073709551615 is beyond 64-bit integers; pass it as a string and cast it in the SQL");
    insta::assert_snapshot!(refused(json!([1])), @"an array cannot be a parameter; expected a string, a number, true, false or null");
    insta::assert_snapshot!(refused(json!({})), @"an object cannot be a parameter; expected a string, a number, true, false or null");
}

#[test]
fn cache_keeps_accepted_statements_within_bound() {
    let cache = StatementCache::new(NonZeroUsize::new(2).unwrap());
    let first = cache.parse("SELECT 1", SqlDialect::DataFusion).unwrap();
    let statement = cache.parse("SELECT 1", SqlDialect::DataFusion).unwrap();
    assert!(std::ptr::eq(first.ast().unwrap(), statement.ast().unwrap()));
    assert!(cache.parse("DROP TABLE t", SqlDialect::DataFusion).is_err());
    let long = format!("SELECT '{}'", "x".repeat(10_000));
    assert!(cache.parse(&long, SqlDialect::DataFusion).is_ok());
    assert_eq!(cache.len(), 1);
    for sql in ["SELECT 2", "SELECT 3", "SELECT 4"] {
        cache.parse(sql, SqlDialect::DataFusion).unwrap();
    }
    assert_eq!(cache.len(), 2);
}

#[test]
fn cache_keeps_generated_statements_without_their_values() {
    let cache = StatementCache::new(NonZeroUsize::new(2).unwrap());
    let query = |sql: &str| match Statement::parse(sql, SqlDialect::DataFusion).unwrap().ast().unwrap() {
        sqlparser::ast::Statement::Query(query) => (**query).clone(),
        other => panic!("{other} is no query"),
    };
    let generated =
        |sql: &str, parameters: Vec<Parameter>| cache.generated(query(sql), parameters, SqlDialect::DataFusion);
    let first = generated("SELECT a FROM t WHERE a = $1", vec![Parameter::Integer(1)]).unwrap();
    let second = generated("SELECT a FROM t WHERE a = $1", vec![Parameter::Integer(2)]).unwrap();
    assert!(std::ptr::eq(first.ast().unwrap(), second.ast().unwrap()));
    assert_eq!((first.parameters(), second.parameters()), (&[Parameter::Integer(1)][..], &[Parameter::Integer(2)][..]));
    assert_eq!(second.text(), "SELECT a FROM t WHERE a = $1");
    assert!(generated("SELECT a FROM t WHERE a = $1", Vec::new()).is_err(), "a value is missing");
    let other = generated("SELECT a FROM t WHERE a = 1", Vec::new()).unwrap();
    assert_ne!(other.text(), first.text());
    let in_sqlite = cache.generated(query("SELECT a FROM t WHERE a = 1"), Vec::new(), SqlDialect::Sqlite).unwrap();
    assert_eq!((in_sqlite.dialect(), cache.len()), (SqlDialect::Sqlite, 2));
}

#[test]
fn names_are_quoted_whatever_is_in_them() {
    assert_eq!(SqlDialect::DataFusion.quote_identifier("a\"b"), "\"a\"\"b\"");
    assert_eq!(SqlDialect::DataFusion.quote_identifier("a\\\" --"), "\"a\\\"\" --\"");
}
