//! Several databases asked as one: files joined with SQLite. With PostgreSQL: `cli/federated.rs`.

use std::sync::Arc;

use insta::assert_snapshot;
use proptest::prelude::*;
use tempfile::TempDir;
use tidegate::Node;
use tidegate::core::{CallOrigin, CallTarget, Caller, Content, Principal, TransportKind};
use tidegate::engines::{EmbeddedDatabase, Engine, EngineOptions, FederatedDatabase};
use tidegate::query::Database;
use tidegate::runtime::{Call, ReplyPart};
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

/// Files and a SQLite file, each by itself and together.
struct FederatedFixture {
    node: Node,
    folder: TempDir,
    _engine: Engine,
}

const ORDERS: &str = "id,customer_id,total,placed,state
1,1,9.5,2024-01-05,new
2,2,20,2024-01-06,paid
3,1,0.99,2024-02-01,new
4,3,7.25,2024-02-03,
5,9,1,2024-03-01,paid
";
const CUSTOMERS: &str = "
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT COLLATE NOCASE, score NUMERIC, since DATE);
    INSERT INTO customers VALUES
        (1, 'Ann', 'de', 1.5, '2020-01-01'), (2, 'Ben', 'FR', 2, '2021-06-01'), (3, 'Cy', NULL, NULL, NULL);
    CREATE TABLE visits (customer_id INTEGER, pages INTEGER) STRICT;
    INSERT INTO visits VALUES (1, 3), (1, 5), (2, 1), (NULL, 8);
    CREATE TABLE mixed (id INTEGER PRIMARY KEY, number INTEGER);
    INSERT INTO mixed VALUES (1, 10), (2, 'ten');";

fn federated_fixture() -> FederatedFixture {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    std::fs::create_dir_all(files.join("2024")).unwrap();
    std::fs::write(files.join("orders.csv"), ORDERS).unwrap();
    std::fs::write(files.join("2024/names.csv"), "id,name\n1,Ann\n").unwrap();
    let crm = folder.path().join("crm.db");
    rusqlite::Connection::open(&crm).unwrap().execute_batch(CUSTOMERS).unwrap();
    let options = EngineOptions { threads: 2, ..EngineOptions::with_memory(256 << 20) };
    let engine = Engine::start(options).unwrap();
    let files: Arc<dyn Database> = Arc::new(EmbeddedDatabase::open("sales", vec![files], &engine).unwrap());
    let crm: Arc<dyn Database> = Arc::new(SqliteDatabase::open("crm", vec![crm], SqliteOptions::default()).unwrap());
    let all = FederatedDatabase::new("all", [files.clone(), crm.clone()], &engine).unwrap();
    let node = Node::builder().database(files).database(crm).database(Arc::new(all)).build();
    FederatedFixture { node, folder, _engine: engine }
}

impl FederatedFixture {
    /// What a tool answers: its text, or its failure.
    async fn call(&self, tool: &str, arguments: &[(&str, &str)]) -> String {
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), Caller::new(Principal::process_user(), origin));
        call.arguments.extend(arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        let mut reply = self.node.registry().call(call).unwrap();
        let mut output = String::new();
        while let Some(part) = reply.next().await {
            match part {
                ReplyPart::Text(text) | ReplyPart::Item(Content::Text { text, .. }) => output.push_str(&text),
                ReplyPart::End(Err(error)) => output.push_str(&format!("{}: {error}", error.kind().name())),
                _ => {}
            }
        }
        output
    }

    async fn query(&self, database: &str, sql: &str) -> String {
        self.call("sql", &[("database", database), ("sql", sql), ("format", "csv")]).await
    }

    async fn query_all(&self, sql: &str) -> String {
        self.query("all", sql).await
    }

    /// What is asked of which database.
    async fn pushed_down_sql(&self, sql: &str) -> String {
        let explained = self.call("explain", &[("database", "all"), ("sql", sql)]).await;
        let skip = explained.lines().skip_while(|line| *line != "Queries sent to the databases:").skip(1);
        skip.take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join("\n")
    }
}

#[tokio::test]
async fn tables_of_several_databases_are_joined() {
    let scene = federated_fixture();
    assert_snapshot!(scene.query_all("
        SELECT c.name, count(*) AS orders, sum(o.total) AS total
        FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id GROUP BY c.name ORDER BY c.name").await, @r"
    name,orders,total
    Ann,2,10.49
    Ben,1,20.0
    Cy,1,7.25
    ");
    assert_snapshot!(scene.query_all("
        SELECT o.id, c.name FROM sales.orders o LEFT JOIN crm.customers c ON c.id = o.customer_id ORDER BY o.id").await, @r"
    id,name
    1,Ann
    2,Ben
    3,Ann
    4,Cy
    5,
    ");
    // Names as the catalog lists them, and tables of folders.
    assert_snapshot!(scene.query_all("SELECT name FROM \"crm.customers\" ORDER BY id LIMIT 1").await, @r"
    name
    Ann
    ");
    assert_snapshot!(scene.query_all("SELECT ID, Name FROM crm.customers WHERE Id = 1").await, @r"
    id,name
    1,Ann
    ");
}

#[tokio::test]
async fn the_catalog_is_that_of_all_members() {
    let scene = federated_fixture();
    assert_snapshot!(scene.call("list_tables", &[("database", "all"), ("format", "csv")]).await, @r"
    database,name,rows,comment
    all,crm.customers,,
    all,crm.mixed,,
    all,crm.visits,,
    all,sales.2024.names,1,CSV file
    all,sales.orders,5,CSV file
    ");
    assert_snapshot!(scene.call("get_schema", &[("database", "all"), ("table", "crm.customers"), ("format", "csv")]).await, @r"
    name,type,nullable,comment
    id,INTEGER,false,primary key
    name,TEXT,true,
    country,TEXT,true,
    score,NUMERIC,true,
    since,DATE,true,
    ");
    // Its tables are asked by their names as any others.
    assert_snapshot!(scene.call("query", &[("database", "all"), ("table", "crm.customers"), ("extract", "name")]).await, @r#"["Ann","Ben","Cy"]"#);
}

#[tokio::test]
async fn pushes_down_supported_operations() {
    let scene = federated_fixture();
    let join = "FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id";
    for (name, sql) in [
        (
            "projections and filters",
            format!("SELECT o.total, c.name {join} WHERE c.id > 1 AND o.placed >= DATE '2024-02-01'"),
        ),
        ("collation filter is reapplied locally", format!("SELECT o.id {join} WHERE c.country = 'DE'")),
        ("collation order stays local", format!("SELECT o.id {join} WHERE c.name > 'B'")),
        ("a limit", "SELECT id FROM crm.customers LIMIT 2".to_owned()),
        (
            "a whole join",
            "SELECT c.name, v.pages FROM crm.customers c JOIN crm.visits v ON v.customer_id = c.id WHERE v.pages > 2"
                .to_owned(),
        ),
        (
            "a whole aggregate",
            "SELECT customer_id, count(*), sum(pages), avg(pages), max(pages) FROM crm.visits GROUP BY customer_id"
                .to_owned(),
        ),
        (
            "single database subplan",
            format!(
                "SELECT o.id, v.visits {join} JOIN (SELECT customer_id, count(*) AS visits FROM crm.visits GROUP BY 1) v ON v.customer_id = c.id"
            ),
        ),
        ("the first rows", "SELECT id, name FROM crm.customers ORDER BY id DESC LIMIT 1".to_owned()),
        ("rows that are only counted", "SELECT count(*) FROM crm.customers, sales.orders".to_owned()),
    ] {
        assert_snapshot!(name.replace(' ', "_"), format!("{sql}\n\n{}", scene.pushed_down_sql(&sql).await));
    }
}

#[tokio::test]
async fn push_down_does_not_change_answers() {
    let scene = federated_fixture();
    assert_snapshot!(scene.query_all("
        SELECT o.id FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id WHERE c.country = 'DE'").await, @"id");
    assert_snapshot!(scene.query_all("
        SELECT o.id FROM sales.orders o JOIN crm.customers c ON c.id = o.customer_id WHERE c.country = 'de' ORDER BY 1").await, @r"
    id
    1
    3
    ");
    assert_snapshot!(scene.query_all("SELECT name FROM crm.customers WHERE name > 'B' ORDER BY name DESC").await, @r"
    name
    Cy
    Ben
    ");
    assert_snapshot!(scene.query_all("SELECT c.name, v.pages FROM crm.customers c LEFT JOIN crm.visits v ON v.customer_id = c.id AND v.pages > 2 ORDER BY 1, 2").await, @r"
    name,pages
    Ann,3
    Ann,5
    Ben,
    Cy,
    ");
    assert_snapshot!(scene.query_all("SELECT customer_id, count(*), sum(pages), avg(pages), max(pages) FROM crm.visits GROUP BY customer_id ORDER BY 1").await, @r"
    customer_id,count,sum,avg,max
    1,2,8,4.0000000000000000000,5
    2,1,1,1.0000000000000000000,1
    ,1,8,8.0000000000000000000,8
    ");
    assert_snapshot!(scene.query_all("SELECT count(*), sum(pages) FROM crm.visits WHERE pages > 100").await, @r"
    count,sum
    0,
    ");
    assert_snapshot!(scene.query_all("SELECT id, name FROM crm.customers ORDER BY id DESC LIMIT 1").await, @r"
    id,name
    3,Cy
    ");
    assert_snapshot!(scene.query_all("SELECT count(*) FROM crm.customers, sales.orders").await, @r"
    count
    15
    ");
    assert_snapshot!(scene.query_all("SELECT score, since FROM crm.customers ORDER BY id").await, @r"
    score,since
    1.5,2020-01-01
    2.0,2021-06-01
    ,
    ");
}

/// What a member would refuse as too much is done here.
#[tokio::test]
async fn oversized_filters_run_locally() {
    let scene = federated_fixture();
    let numbers = |count: i32| (3..count).map(|number| number.to_string()).collect::<Vec<_>>();
    let list = format!("SELECT id FROM crm.customers WHERE id IN ({}) ORDER BY id", numbers(1_500).join(", "));
    assert_eq!(scene.query_all(&list).await.lines().collect::<Vec<_>>(), ["id", "3"]);
    let chain = |count: i32| {
        let each = numbers(count).into_iter().map(|number| format!("(c.id = {number} AND v.pages > 0)"));
        let each = each.collect::<Vec<_>>().join(" OR ");
        format!("SELECT c.id FROM crm.customers c JOIN crm.visits v ON v.pages > c.id - 3 WHERE {each}")
    };
    for count in [50, 90] {
        assert_eq!(
            scene.query_all(&chain(count)).await.lines().collect::<Vec<_>>(),
            ["id", "3", "3", "3", "3"],
            "{count}"
        );
    }
}

#[tokio::test]
async fn reports_query_errors() {
    let scene = federated_fixture();
    assert_snapshot!(scene.query_all("SELECT * FROM customers").await, @r#"
    not_found: table "customers" needs the name of its database: database.table
    Valid choices: crm.customers, crm.visits
    "#);
    assert_snapshot!(scene.query_all("SELECT * FROM cmr.customers").await, @r#"
    not_found: there is no database "cmr" in all
    Valid choices: crm, sales
    "#);
    assert_snapshot!(scene.query_all("SELECT * FROM crm.customer").await, @r#"
    not_found: there is no table "customer" in "crm"
    Valid choices: customers
    "#);
    assert_snapshot!(scene.query_all("SELECT nam FROM crm.customers").await, @r#"
    invalid_arguments: there is no column "nam"
    Valid choices: name, id, country, score, since
    "#);
    assert_snapshot!(scene.query_all("SELECT number FROM crm.mixed").await, @r#"
    invalid_arguments: column "number" has a value that is not of type bigint: a text
    Query that database directly, where each value keeps its type, or leave the column out.
    "#);
    assert_snapshot!(scene.query_all("DELETE FROM crm.customers").await, @r"
    invalid_arguments: DELETE is refused: it would change data, and only reading is allowed
    Only SELECT statements are allowed, including those with WITH, UNION or VALUES.
    ");
    assert_snapshot!(scene.query_all("SELECT * FROM crm.sqlite_master").await, @r#"
    not_found: there is no table "sqlite_master" in "crm"
    Valid choices: mixed, visits, customers
    "#);
}

/// Conditions on the columns of `customers` and `visits`.
fn condition() -> impl Strategy<Value = String> {
    let comparison = prop_oneof![Just("="), Just("<>"), Just("<"), Just("<="), Just(">"), Just(">=")];
    let simple = prop_oneof![
        (comparison.clone(), -1..6_i64).prop_map(|(op, value)| format!("c.id {op} {value}")),
        (comparison.clone(), 0..9_i64).prop_map(|(op, value)| format!("{value} {op} v.pages")),
        (comparison.clone(), prop_oneof![Just("Ann"), Just("Ben"), Just("ann"), Just("")])
            .prop_map(|(op, value)| format!("c.name {op} '{value}'")),
        Just("v.pages IS NULL".to_owned()),
        Just("c.name IS NOT NULL".to_owned()),
        (any::<bool>(), 0..4_i64, 0..9_i64)
            .prop_map(|(not, low, high)| format!("v.pages {} BETWEEN {low} AND {high}", if not { "NOT" } else { "" })),
        any::<bool>().prop_map(|not| format!("c.id {} IN (1, 3, 7)", if not { "NOT" } else { "" })),
        comparison.prop_map(|op| format!("c.id {op} v.pages")),
    ];
    simple.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} AND {right})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} OR {right})")),
            inner.prop_map(|inner| format!("(NOT {inner})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// A question that one member can answer alone has the same answer when it is asked of all.
    #[test]
    fn member_and_federation_agree(filter in condition(), left in any::<bool>(), grouped in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let scene = federated_fixture();
            let join = if left { "LEFT JOIN" } else { "JOIN" };
            let select = if grouped { "c.id, count(*) AS n, count(v.pages) AS seen, sum(v.pages) AS total, min(v.pages) AS least" } else { "c.id, c.name, v.pages" };
            let group = if grouped { "GROUP BY c.id" } else { "" };
            let sql = |prefix: &str| format!(
                "SELECT {select} FROM {prefix}customers c {join} {prefix}visits v ON v.customer_id = c.id WHERE {filter} {group}"
            );
            let sorted = |rows: String| {
                let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
                rows.sort();
                rows
            };
            let alone = sorted(scene.query("crm", &sql("")).await);
            let together = sorted(scene.query_all(&sql("crm.")).await);
            prop_assert_eq!(alone, together, "{}", sql("crm."));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn unreachable_member_hides_only_its_tables() {
    let scene = federated_fixture();
    std::fs::remove_file(scene.folder.path().join("crm.db")).unwrap();
    let tables = scene.call("list_tables", &[("database", "all"), ("format", "csv")]).await;
    assert!(tables.contains("sales.orders"), "{tables}");
    assert_snapshot!(scene.query_all("SELECT count(*) AS n FROM sales.orders").await, @r"
    n
    5
    ");
}
