//! What differs between the databases: names, aggregates, matching of text, placeholders.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, Principal};
use tidegate_query::QuerySpec;
use tidegate_sql::{SqlDialect, Statement};

use crate::fake::FakeDatabase;
use crate::properties::{question, wait};

const DATABASES: [SqlDialect; 2] = [SqlDialect::Postgres, SqlDialect::Sqlite];

fn render(question: &Map<String, Value>, dialect: SqlDialect) -> Result<Statement, Error> {
    wait(QuerySpec::from_json(question)?.render(&FakeDatabase::with_dialect(dialect), &Principal::anonymous()))
}

/// What PostgreSQL and SQLite are asked, or why they are not.
fn check(question: Value) -> String {
    let Value::Object(question) = question else { panic!("a question is an object") };
    let requested = DATABASES.map(|dialect| match render(&question, dialect) {
        Ok(statement) if statement.parameters().is_empty() => statement.text().to_owned(),
        Ok(statement) => format!("{}\n{:?}", statement.text(), statement.parameters()),
        Err(error) => error.to_string(),
    });
    requested.join("\n\n")
}

#[test]
fn text_is_matched_alike_in_each_database() {
    let conditions = json!([
        {"column": "carrier", "op": "like", "value": "U%_\\%*"},
        {"column": "carrier", "op": "not_like", "value": "U_"},
        {"column": "carrier", "op": "ilike", "value": "u\\_%"},
        {"column": "carrier", "op": "contains", "value": "50%_\\*"},
        {"column": "carrier", "op": "starts_with", "value": "[a]"},
    ]);
    insta::assert_snapshot!(check(json!({"table": "flights", "where": conditions})), @r#"
    SELECT * FROM "flights" WHERE "carrier" LIKE $1 AND "carrier" NOT LIKE $2 AND "carrier" ILIKE $3 AND "carrier" LIKE $4 AND "carrier" LIKE $5 LIMIT 101
    [Text("U%_\\%*"), Text("U_"), Text("u\\_%"), Text("%50\\%\\_\\\\*%"), Text("[a]%")]

    SELECT * FROM `flights` WHERE (`carrier` GLOB ?1) AND (`carrier` NOT GLOB ?2) AND `carrier` LIKE ?3 ESCAPE '\' AND (`carrier` GLOB ?4) AND (`carrier` GLOB ?5) LIMIT 101
    [Text("U*?%[*]"), Text("U?"), Text("u\\_%"), Text("*50%_\\[*]*"), Text("[[]a]*")]
    "#);
}

#[test]
fn aggregates_have_the_names_of_their_database() {
    let select = json!([
        "carrier",
        {"function": "count"},
        {"function": "count_distinct", "column": "dest"},
        {"function": "avg", "column": "distance"},
        {"function": "median", "column": "dep_delay"},
        {"function": "stddev", "column": "dep_delay", "distinct": true},
        {"function": "variance", "column": "dep_delay"},
    ]);
    insta::assert_snapshot!(check(json!({
        "table": "flights", "select": select, "group_by": ["carrier"],
        "having": {"column": "median_dep_delay", "op": ">", "value": 5}, "order_by": ["-median_dep_delay"],
    })), @r#"
    SELECT "carrier", count(*) AS "count", count(DISTINCT "dest") AS "count_distinct_dest", avg("distance") AS "avg_distance", percentile_cont(0.5) WITHIN GROUP (ORDER BY "dep_delay") AS "median_dep_delay", stddev_samp(DISTINCT "dep_delay") AS "stddev_dep_delay", var_samp("dep_delay") AS "variance_dep_delay" FROM "flights" GROUP BY "carrier" HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY "dep_delay") > $1 ORDER BY "median_dep_delay" DESC NULLS LAST LIMIT 101
    [Integer(5)]

    the query does not match the tables:
    - select[4]: SQLite has no median; it has count, count_distinct, sum, avg, min and max
    - select[5]: SQLite has no stddev; it has count, count_distinct, sum, avg, min and max
    - select[6]: SQLite has no variance; it has count, count_distinct, sum, avg, min and max
    - having: there is no column "median_dep_delay"; nearest: dep_delay, arr_delay
    - order_by[0]: there is no column "median_dep_delay"; nearest: dep_delay, arr_delay
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#);
    let median = json!([{"function": "median", "column": "distance", "distinct": true}]);
    insta::assert_snapshot!(check(json!({"table": "flights", "select": median})), @r#"
    the query does not match the tables:
    - select[0]: PostgreSQL has no median of distinct values; leave out "distinct"
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number

    the query does not match the tables:
    - select[0]: SQLite has no median; it has count, count_distinct, sum, avg, min and max
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#);
}

#[test]
fn sqlite_has_no_arbitrary_rows_of_groups() {
    let select = json!([{"expression": "upper(carrier)"}, {"expression": "dep_delay + max(distance)"}]);
    insta::assert_snapshot!(check(json!({"table": "flights", "select": select, "group_by": ["carrier"]})), @r#"
    SELECT upper("carrier"), "dep_delay" + max("distance") FROM "flights" GROUP BY "carrier" LIMIT 101

    the query does not match the tables:
    - select[1]: the column `dep_delay` is neither grouped nor aggregated; add it to group_by or aggregate it
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#);
    let select = json!([{"expression": "max(dep_delay, 0)"}, "carrier"]);
    let requested = check(json!({"table": "flights", "select": select, "offset": 3}));
    assert!(
        requested.ends_with("SELECT max(`dep_delay`, 0), `carrier` FROM `flights` LIMIT 101 OFFSET 3"),
        "{requested}"
    );
}

#[test]
fn tables_of_other_schemas_are_qualified() {
    insta::assert_snapshot!(check(json!({"table": "archive.flights", "where": "flights.distance > 5 OR distance < 1"})), @r#"
    SELECT * FROM "archive"."flights" WHERE "distance" > 5 OR "distance" < 1 LIMIT 101

    SELECT * FROM `archive`.`flights` WHERE `distance` > 5 OR `distance` < 1 LIMIT 101
    "#);
    insta::assert_snapshot!(check(json!({"table": "archive.\"2013.csv\"", "order_by": ["-n"]})), @r#"
    SELECT * FROM "archive"."2013.csv" ORDER BY "n" DESC NULLS LAST LIMIT 101

    SELECT * FROM `archive`.`2013.csv` ORDER BY `n` DESC NULLS LAST LIMIT 101
    "#);
    insta::assert_snapshot!(check(json!({
        "table": "archive.flights",
        "select": ["archive.flights.distance", "name"],
        "joins": [{"table": "airlines", "on": [{"left": "carrier", "right": "carrier"}]}],
    })), @r#"
    SELECT "archive"."flights"."distance", "airlines"."name" FROM "archive"."flights" INNER JOIN "airlines" ON "archive"."flights"."carrier" = "airlines"."carrier" LIMIT 101

    SELECT `archive`.`flights`.`distance`, `airlines`.`name` FROM `archive`.`flights` INNER JOIN `airlines` ON `archive`.`flights`.`carrier` = `airlines`.`carrier` LIMIT 101
    "#);
    insta::assert_snapshot!(check(json!({
        "table": "flights",
        "joins": [{"table": "archive.flights", "on": [{"left": "carrier", "right": "carrier"}]}],
    })), @r#"
    the table "archive.flights" is used twice
    Give the joined table an alias: {"table": …, "as": "other", "on": …}.

    the table "archive.flights" is used twice
    Give the joined table an alias: {"table": …, "as": "other", "on": …}.
    "#);
    insta::assert_snapshot!(check(json!({
        "table": "flights",
        "select": ["old.distance"],
        "joins": [{"table": "archive.flights", "as": "old", "on": "old.carrier = flights.carrier"}],
    })), @r#"
    SELECT "old"."distance" FROM "flights" INNER JOIN "archive"."flights" AS "old" ON "old"."carrier" = "flights"."carrier" LIMIT 101

    SELECT `old`.`distance` FROM `flights` INNER JOIN `archive`.`flights` AS `old` ON `old`.`carrier` = `flights`.`carrier` LIMIT 101
    "#);
}

#[test]
fn expressions_are_read_in_the_database_s_own_sql() {
    insta::assert_snapshot!(check(json!({
        "table": "flights",
        "where": "carrier ~ '^U' AND dep_delay BETWEEN SYMMETRIC 5 AND 1 AND '{1}'::int[] @> ARRAY[distance]",
    })), @r#"
    SELECT * FROM "flights" WHERE "carrier" ~ '^U' AND "dep_delay" BETWEEN SYMMETRIC 5 AND 1 AND '{1}'::INT[] @> ARRAY["distance"] LIMIT 101

    the query does not match the tables:
    - where: SQL syntax error at line 1, column 48: expected AND, found 5. Near: y BETWEEN SYMMETRIC 5 AND 1 AND '{1}'::int[] @> ARRAY[distan
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#);
    insta::assert_snapshot!(check(json!({
        "table": "flights", "where": "carrier GLOB 'U*' AND origin IS NOT dest AND dep_delay ISNULL",
    })), @r#"
    the query does not match the tables:
    - where: SQL syntax error at line 1, column 9: expected the end of the expression, found GLOB. Near: carrier GLOB 'U*' AND origin IS NOT dest AND dep_delay ISNUL
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number

    SELECT * FROM `flights` WHERE `carrier` GLOB 'U*' AND `origin` IS NOT `dest` AND `dep_delay` IS NULL LIMIT 101
    "#);
    insta::assert_snapshot!(check(json!({"table": "flights", "where": "pg_sleep(1) IS NULL AND load_extension('x')"})), @r#"
    the query does not match the tables:
    - where: the function pg_sleep is refused: it only consumes time. Leave it out.
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number

    the query does not match the tables:
    - where: the function load_extension is refused: it accesses files, and only the tables of the catalog can be read. Leave it out.
    Columns of flights: flight_date, carrier, origin, dest, dep_delay, arr_delay, distance, Tail Number
    "#);
}

#[test]
fn table_names_split_and_join() {
    let parts = |name: &str| SqlDialect::Postgres.table_parts(name);
    assert_eq!(parts("orders"), ["orders"]);
    assert_eq!(parts("archive.orders"), ["archive", "orders"]);
    assert_eq!(parts("\"2013.csv\""), ["2013.csv"]);
    assert_eq!(parts("a.\"b \"\"c\"\".d\""), ["a", "b \"c\".d"]);
    assert_eq!(SqlDialect::Sqlite.table_parts("a.b"), ["a", "b"]);
    assert_eq!(SqlDialect::DataFusion.table_parts("a.b"), ["a.b"]);
    assert_eq!(SqlDialect::Postgres.quote_table("archive.Orders"), "\"archive\".\"Orders\"");
    assert_eq!(SqlDialect::Sqlite.quote_table("a.`b"), "`a`.```b`");
    assert_eq!(SqlDialect::DataFusion.quote_table("a.b"), "\"a.b\"");
}

#[test]
fn placeholders_are_those_of_the_database() {
    let text = |sql: &str, dialect| Statement::parse(sql, dialect).map(|statement| statement.text().to_owned());
    assert_eq!(text("SELECT $2, $1", SqlDialect::Postgres).unwrap(), "SELECT $2, $1");
    assert_eq!(text("SELECT ?, ? LIMIT ?, ?", SqlDialect::Sqlite).unwrap(), "SELECT ?1, ?2 LIMIT ?3, ?4");
    assert_eq!(text("SELECT $2, ?1", SqlDialect::Sqlite).unwrap(), "SELECT ?2, ?1");
    assert_eq!(text("SELECT '{}'::jsonb ? 'a'", SqlDialect::Postgres).unwrap(), "SELECT '{}'::jsonb ? 'a'");
    insta::assert_snapshot!(text("SELECT $name", SqlDialect::Sqlite).unwrap_err(), @r#"
    unsupported placeholder $name
    Write placeholders as $1, $2, … in the order of the parameters.
    "#);
    insta::assert_snapshot!(text("SELECT ?, $1", SqlDialect::Sqlite).unwrap_err(), @r#"
    the statement mixes ? and $1
    Write placeholders as $1, $2, … or as ?; not both in one statement.
    "#);
}

#[test]
fn sends_unambiguous_sql() {
    let text = |sql: &str, dialect| match Statement::parse(sql, dialect) {
        Ok(statement) => statement.text().to_owned(),
        Err(error) => error.to_string(),
    };
    let spelt = [
        "SELECT - -1, 1- -1, 1--1\n+1",
        "SELECT 'a\\', E'\\'', $$a'b\\$$, U&'\\0061', 'one'\n 'two'",
        "SELECT a.b, \"a\".\"b\"\"c\" /* x */ , c -- d",
        "SELECT $1::int+1, x->>'a'||'b', 5 & 3, u&3",
        "SELECT 1+-2, 1*-2, 1@-2, 1 <-> 2",
        "TABLE a.\"B\" UNION ALL TABLE c",
    ];
    let spelt = spelt.map(|sql| text(sql, SqlDialect::Postgres)).join("\n");
    insta::assert_snapshot!(spelt, @r#"
    SELECT - -1, 1- -1, 1 +1
    SELECT E'a\\', '''', E'a''b\\', 'a', 'onetwo'
    SELECT a.b, "a"."b""c" , c
    SELECT $1::int+1, x->>'a'||'b', 5 & 3, u & 3
    SQL syntax error at line 1, column 23: expected a valid binary operator after '@-'
    Near: LECT 1+-2, 1*-2, 1@-2, 1 <-> 2
    SELECT * FROM a."B" UNION ALL SELECT * FROM c
    "#);
    let spelt = ["SELECT [a b], \"c\", `d``e`, 'x\\', 0x1f, x'00'", "SELECT a->'$.b'->>1, -5, 1<<2, a IS b"];
    insta::assert_snapshot!(spelt.map(|sql| text(sql, SqlDialect::Sqlite)).join("\n"), @r#"
    SELECT `a b`, `c`, `d``e`, 'x\', 0x1f, x'00'
    SELECT a->'$.b'->>1, -5, 1<<2, a IS b
    "#);
}

#[test]
fn folded_names_are_those_of_the_database() {
    let tables = |sql: &str, dialect| Statement::parse(sql, dialect).unwrap().tables().join(" ");
    let sql = "SELECT * FROM Orders, \"Orders\", archive.\"2013.csv\", É";
    assert_eq!(tables(sql, SqlDialect::Postgres), "orders Orders archive.2013.csv É");
    assert_eq!(tables(sql, SqlDialect::Sqlite), "orders archive.2013.csv É");
    assert_eq!(tables("TABLE \"Orders\" UNION TABLE Orders", SqlDialect::Postgres), "Orders orders");
    assert_eq!(tables("WITH a AS (SELECT 1) SELECT * FROM \"A\"", SqlDialect::Sqlite), "");
}

/// Pieces of SQL that make lexers disagree.
fn text() -> impl Strategy<Value = String> {
    "(SELECT|FROM|WITH|AS|TABLE|'|\"|\\(|\\)|,| |\n|\r|a|f\\(|1|\\.|\\$1|\\?|--|/\\*|\\*/|;|=|-|\\+|@|<|>|!|~|#|%|&|\\||`|\\[|\\]|CASE|END|::|:|U&|E'|B'|X'|N'|\\\\|\\$\\$|\\$x\\$|UNION|GLOB|IS|NOT|0x1|1e|\\PC){0,25}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_refused_or_reaches_the_database_as_it_was_checked(text in text()) {
        for dialect in DATABASES {
            for text in [text.clone(), format!("SELECT {text}"), format!("SELECT '{text}'"), format!("SELECT a{text}b")] {
                if let Ok(statement) = Statement::parse(&text, dialect) {
                    let retried = Statement::parse(statement.text(), dialect).unwrap();
                    prop_assert_eq!(retried.ast(), statement.ast());
                    prop_assert_eq!(retried.text(), statement.text());
                }
            }
        }
    }

    #[test]
    fn any_string_keeps_its_value(value in "[^\0]{0,20}") {
        for dialect in DATABASES {
            let sql = format!("SELECT '{}'", value.replace('\'', "''"));
            let statement = Statement::parse(&sql, dialect).unwrap();
            let retried = Statement::parse(statement.text(), dialect).unwrap();
            prop_assert_eq!(retried.ast(), statement.ast());
            let literal = statement.text().strip_prefix("SELECT ").unwrap();
            let (body, escapes) = match literal.strip_prefix('E') {
                Some(body) => (body, true),
                None => (literal, false),
            };
            let body = body.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap().replace("''", "'");
            let read = if escapes { body.replace("\\\\", "\\") } else { body };
            prop_assert_eq!(escapes, dialect == SqlDialect::Postgres && value.contains('\\'));
            prop_assert_eq!(read, value.clone());
        }
    }

    #[test]
    fn any_table_name_splits_and_joins(parts in prop::collection::vec("[a.\" ü]{1,6}", 1..3)) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        prop_assert_eq!(SqlDialect::Postgres.table_parts(&SqlDialect::Postgres.table_name(&parts)), parts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn renders_query_in_each_dialect(question in question()) {
        for dialect in DATABASES {
            match render(&question, dialect) {
                Ok(statement) => {
                    let retried = Statement::parse(statement.text(), dialect).unwrap();
                    prop_assert_eq!(retried.ast(), statement.ast());
                    prop_assert!(!statement.text().contains('§'), "{}", statement.text());
                }
                Err(error) => {
                    let lacks = ["SQLite has no", "PostgreSQL has no", "cannot be rewritten"];
                    let text = error.to_string();
                    prop_assert!(lacks.iter().any(|reason| text.contains(reason)), "{text}");
                }
            }
        }
    }
}
