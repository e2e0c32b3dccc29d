//! Answers that are tables: stored, asked again, joined, and only of their owner.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tidegate::Node;
use tidegate::core::{
    AllowedNames, AuthMethod, CallOrigin, CallTarget, Caller, Content, Grants, Principal, TransportKind,
};
use tidegate::engines::{EmbeddedDatabase, Engine, EngineOptions, FederatedDatabase, ResultDatabases};
use tidegate::query::{Database, Databases};
use tidegate::results::{ResultStore, StoreLimits};
use tidegate::runtime::{Call, ReplyPart};
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

const ORDERS: &str = "id,customer_id,total\n1,1,9.5\n2,2,20\n3,1,0.99\n4,3,7.25\n5,9,1\n";
const CUSTOMERS: &str = "
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT, score NUMERIC);
    INSERT INTO customers VALUES (1, 'Ann', 'de', 1.5), (2, 'Ben', 'FR', 2), (3, 'Cy', NULL, NULL);
    CREATE TABLE mixed (id INTEGER PRIMARY KEY, number INTEGER);
    INSERT INTO mixed VALUES (1, 10), (2, 'ten');";
const BY_CUSTOMER: &str = "SELECT customer_id, sum(total) AS total FROM orders GROUP BY customer_id";

/// Files and a SQLite file, each by itself and together, on a node that stores results.
struct ResultTablesFixture {
    node: Node,
    crm: Arc<dyn Database>,
    _engine: Engine,
    _folder: TempDir,
}

impl ResultTablesFixture {
    async fn new() -> Self {
        Self::with_files("sales").await
    }

    /// The files are the database `name`.
    async fn with_files(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("orders.csv"), ORDERS).unwrap();
        let crm = folder.path().join("crm.db");
        rusqlite::Connection::open(&crm).unwrap().execute_batch(CUSTOMERS).unwrap();
        let options = EngineOptions { threads: 2, ..EngineOptions::with_memory(256 << 20) };
        let engine = Engine::start(options).unwrap();
        let sales: Arc<dyn Database> = Arc::new(EmbeddedDatabase::open(name, vec![files], &engine).unwrap());
        let crm: Arc<dyn Database> =
            Arc::new(SqliteDatabase::open("crm", vec![crm], SqliteOptions::default()).unwrap());
        let every = FederatedDatabase::new("every", [sales.clone(), crm.clone()], &engine).unwrap();
        let limits = StoreLimits { free_bytes: 0, ..StoreLimits::default() };
        let store = ResultStore::open(&folder.path().join("spool"), limits).await.unwrap();
        let node = Node::builder().database(sales).database(crm.clone()).database(Arc::new(every));
        let node = node.results(Some(store)).result_tables(Some(Arc::new(ResultDatabases::new(&engine)))).build();
        Self { node, crm, _engine: engine, _folder: folder }
    }

    /// What `tool` answers to the principal `name`: its text, or its failure.
    async fn call_as(&self, name: &str, tool: &str, arguments: Value) -> String {
        let principal = Principal::new(name, AuthMethod::Key, Arc::new(Grants::everything()));
        let origin = CallOrigin { transport: TransportKind::Rest, peer: None };
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), Caller::new(Arc::new(principal), origin));
        let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
        call.arguments.extend(arguments);
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

    async fn call(&self, tool: &str, arguments: Value) -> String {
        self.call_as("ann", tool, arguments).await
    }

    async fn save(&self, name: &str, database: &str, sql: &str) -> String {
        self.call("sql", json!({"database": database, "sql": sql, "save_as": name})).await
    }

    /// The lines of the answer to `sql`, which names the databases of its tables.
    async fn lines(&self, sql: &str) -> Vec<String> {
        let text = self.call("sql", json!({"sql": sql, "format": "csv"})).await;
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn an_answer_is_queried_again_and_joined() {
    let fixture = ResultTablesFixture::new().await;
    let stored = fixture.save("top", "sales", BY_CUSTOMER).await;
    for part in [
        "The answer is the table results.top, for sql and query, until ",
        "It has 4 rows so far",
        r#""column":"customer_id","type":"#,
    ] {
        assert!(stored.contains(part), "{part}: {stored}");
    }
    assert!(!stored.contains("cursor"), "{stored}");
    assert_eq!(fixture.lines("SELECT count(*) AS n FROM results.top").await, ["n", "4"]);
    assert_eq!(fixture.lines("SELECT count(*) AS n FROM \"results.top\"").await, ["n", "4"]);
    let join = "SELECT c.name FROM results.top t JOIN crm.customers c ON c.id = t.customer_id ORDER BY c.name";
    assert_eq!(fixture.lines(join).await, ["name", "Ann", "Ben", "Cy"]);
    let all = "SELECT count(*) AS n FROM results.top t JOIN sales.orders o ON o.customer_id = t.customer_id
        JOIN crm.customers c ON c.id = t.customer_id";
    assert_eq!(fixture.lines(all).await, ["n", "4"]);
    let named = |database: &str, table: &str| {
        let sql = format!("SELECT count(*) AS n FROM results.top t JOIN {table} o ON o.customer_id = t.customer_id");
        json!({"database": database, "sql": sql, "format": "csv"})
    };
    for (database, table) in [("every", "every.sales.orders"), ("sales", "sales.orders"), ("results", "sales.orders")] {
        let text = fixture.call("sql", named(database, table)).await;
        assert_eq!(text.lines().collect::<Vec<_>>(), ["n", "5"], "{database}");
    }
    let unnamed = fixture.call("sql", named("sales", "orders")).await;
    assert!(unnamed.contains("needs the name of its database") && unnamed.contains("sales.orders"), "{unnamed}");
    let bare = json!({"database": "results", "sql": "SELECT count(*) AS n FROM top", "format": "csv"});
    assert_eq!(fixture.call("sql", bare).await.lines().collect::<Vec<_>>(), ["n", "4"]);
    let query = json!({
        "table": "results.top", "select": ["customer_id"], "order_by": ["-customer_id"], "limit": 2, "format": "csv",
        "joins": [{"table": "crm.customers", "on": [{"left": "customer_id", "right": "id"}]}],
    });
    assert_eq!(fixture.call("query", query).await.lines().collect::<Vec<_>>(), ["customer_id", "3", "2"]);
    let explained = fixture.call("explain", json!({"sql": join})).await;
    assert!(explained.contains("ResultTableExec: table=results.top"), "{explained}");
}

#[tokio::test]
async fn lists_and_schemas_have_the_tables_of_the_caller() {
    let fixture = ResultTablesFixture::new().await;
    let databases = || fixture.call("list_databases", json!({"extract": "name"}));
    assert_eq!(databases().await, r#"["crm","every","sales"]"#);
    fixture.save("top", "sales", BY_CUSTOMER).await;
    assert_eq!(databases().await, r#"["crm","every","results","sales"]"#);
    // Then all rows are stored.
    assert_eq!(fixture.lines("SELECT count(*) AS n FROM results.top").await, ["n", "4"]);
    let listed = fixture.call("list_tables", json!({"database": "results", "format": "csv"})).await;
    assert!(
        listed.lines().nth(1).is_some_and(|line| line.starts_with("results,top,4,\"Answer of sql, also called r_"))
    );
    let columns = fixture.call("get_schema", json!({"table": "results.top", "extract": "name"})).await;
    assert_eq!(columns, r#"["customer_id","total"]"#);
    let catalog = "SELECT column_name FROM information_schema.columns WHERE table_name = 'top' ORDER BY 1";
    let catalog = fixture.call("sql", json!({"database": "results", "sql": catalog, "format": "csv"})).await;
    assert_eq!(catalog.lines().collect::<Vec<_>>(), ["column_name", "customer_id", "total"]);
    let of_bob = fixture.call_as("bob", "list_databases", json!({"extract": "name"})).await;
    assert_eq!(of_bob, r#"["crm","every","sales"]"#);
}

#[tokio::test]
async fn columns_keep_their_types_and_values() {
    let fixture = ResultTablesFixture::new().await;
    let typed = "SELECT 1::smallint AS a, 2::bigint AS b, 1.50::numeric(10,2) AS c, 'x' AS d, DATE '2024-01-02' AS e,
        TIMESTAMP '2024-01-02 03:04:05' AS f, true AS g, 1.5::double precision AS h, NULL::integer AS i,
        ARRAY[1, 2] AS j, TIMESTAMPTZ '2024-01-02 03:04:05+01' AS k";
    let whole = async |sql: &str| {
        let text = fixture.call("sql", json!({"database": "sales", "sql": sql, "format": "json"})).await;
        let mut answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        answer.as_object_mut().unwrap().remove("elapsed_ms");
        answer
    };
    fixture.save("typed", "sales", typed).await;
    assert_eq!(whole("SELECT * FROM results.typed").await, whole(typed).await);
}

/// SQLite has the type of each value, and a column of a table has one.
#[tokio::test]
async fn columns_of_sqlite_have_the_type_of_their_values() {
    let fixture = ResultTablesFixture::new().await;
    let by_country = "SELECT country, count(*) AS n, sum(score) AS score FROM customers GROUP BY country";
    fixture.save("by_country", "crm", by_country).await;
    let sums = "SELECT sum(n) AS n, max(score) AS score FROM results.by_country";
    assert_eq!(fixture.lines(sums).await, ["n,score", "3,2.0"]);
    fixture.save("mixed", "crm", "SELECT id, number FROM mixed").await;
    let refused = fixture.lines("SELECT number FROM results.mixed").await.join("\n");
    assert!(
        refused.starts_with(
            "invalid_arguments: the column \"number\" of results.mixed has values of several types: integers, texts"
        ),
        "{refused}"
    );
    fixture.save("mixed", "crm", "SELECT id, CAST(number AS TEXT) AS number FROM mixed").await;
    assert_eq!(fixture.lines("SELECT max(number) AS most FROM results.mixed").await, ["most", "ten"]);
}

#[tokio::test]
async fn others_have_no_such_table() {
    let fixture = ResultTablesFixture::new().await;
    fixture.save("top", "sales", BY_CUSTOMER).await;
    let listed = fixture.call("list_tables", json!({"database": "results", "extract": "comment"})).await;
    let id = listed.split("r_").nth(1).and_then(|rest| rest.get(..32)).unwrap().to_owned();
    assert_eq!(fixture.lines(&format!("SELECT count(*) AS n FROM results.r_{id}")).await, ["n", "4"]);
    let absent_id = "0123456789ab4cde8f0123456789abcd";
    for (name, absent) in [("top", "tip"), (&*format!("r_{id}"), &*format!("r_{absent_id}"))] {
        for (tool, argument) in [("sql", "sql"), ("query", "table"), ("get_schema", "table")] {
            let ask = async |name: &str| {
                let table = format!("results.{name}");
                let text = if tool == "sql" { format!("SELECT * FROM {table}") } else { table };
                fixture.call_as("bob", tool, json!({argument: text})).await
            };
            let refused = ask(name).await;
            assert!(refused.starts_with("not_found: there is no table "), "{refused}");
            assert_eq!(refused, ask(absent).await.replace(absent, name), "{tool}");
        }
    }
}

#[tokio::test]
async fn a_part_of_an_answer_is_no_table() {
    let fixture = ResultTablesFixture::new().await;
    let limited = json!({"database": "sales", "sql": "SELECT id FROM orders", "max_rows": 2, "delivery": "blocks"});
    let stored = fixture.call("sql", limited).await;
    let id = stored.split("tidegate://results/").nth(1).and_then(|rest| rest.get(..36)).unwrap().replace('-', "");
    let refused = fixture.lines(&format!("SELECT count(*) AS n FROM results.r_{id}")).await.join("\n");
    assert!(refused.contains("lacks rows: its answer ended at 2 rows (limit, max_rows)"), "{refused}");
    // A caller that requests a table with so many rows gets it.
    let two = json!({"database": "sales", "sql": "SELECT id FROM orders", "max_rows": 2, "save_as": "two"});
    fixture.call("sql", two).await;
    assert_eq!(fixture.lines("SELECT count(*) AS n FROM results.two").await, ["n", "2"]);
}

/// An earlier answer is not reused: it was not requested as a table.
#[tokio::test]
async fn a_table_without_a_name_is_listed() {
    let fixture = ResultTablesFixture::new().await;
    let mut names = Vec::new();
    for delivery in ["blocks", "table"] {
        let stored = json!({"database": "sales", "sql": "SELECT id FROM orders", "delivery": delivery});
        let stored = fixture.call("sql", stored).await;
        names.extend(
            stored.split("the table results.").nth(1).and_then(|rest| rest.split(',').next().map(str::to_owned)),
        );
    }
    let listed = fixture.call("list_tables", json!({"database": "results", "extract": "name"})).await;
    assert_eq!(serde_json::from_str::<Vec<String>>(&listed).unwrap(), names);
    assert_eq!(fixture.lines(&format!("SELECT count(*) AS n FROM results.{}", names[0])).await, ["n", "5"]);
}

#[tokio::test]
async fn a_page_gets_no_name() {
    let fixture = ResultTablesFixture::new().await;
    let mut arguments = json!({"database": "sales", "sql": "SELECT id FROM orders", "delivery": "blocks"});
    let stored = fixture.call("sql", arguments.clone()).await;
    let cursor = stored.split("\"cursor\": \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    arguments["cursor"] = json!(cursor);
    assert!(!fixture.call("sql", arguments.clone()).await.contains("invalid_arguments"));
    arguments["delivery"] = json!("table");
    arguments["save_as"] = json!("top");
    let refused = fixture.call("sql", arguments).await;
    assert!(refused.contains("save_as names a whole answer"), "{refused}");
}

#[tokio::test]
async fn columns_of_one_name_have_the_names_of_the_preview() {
    let fixture = ResultTablesFixture::new().await;
    fixture.save("twice", "crm", "SELECT c.id, m.id FROM customers c JOIN mixed m ON m.id = c.id").await;
    assert_eq!(fixture.lines("SELECT count(*) AS n, max(id_2) AS id FROM results.twice").await, ["n,id", "2,2"]);
}

/// The name of a folder on the command line may have capital letters.
#[tokio::test]
async fn another_database_keeps_the_name() {
    let fixture = ResultTablesFixture::with_files("Results").await;
    assert_eq!(fixture.lines("SELECT count(*) AS n FROM \"Results\".orders").await, ["n", "5"]);
    let refused = fixture.save("top", "Results", BY_CUSTOMER).await;
    assert!(refused.contains("answers are no tables here"), "{refused}");
}

#[tokio::test]
async fn names_and_deliveries_that_do_not_fit_are_refused() {
    let fixture = ResultTablesFixture::new().await;
    for name in ["Top Customers", "1st", "größe", "r_0123456789ab4cde8f0123456789abcd", &"a".repeat(64)] {
        let refused = fixture.save(name, "sales", BY_CUSTOMER).await;
        assert!(refused.contains("cannot be the name of a table"), "{name}: {refused}");
    }
    let inline = json!({"database": "sales", "sql": BY_CUSTOMER, "save_as": "top", "delivery": "inline"});
    let refused = fixture.call("sql", inline).await;
    assert!(refused.contains("delivery is \"inline\""), "{refused}");
    assert_eq!(fixture.call("list_databases", json!({"extract": "name"})).await, r#"["crm","every","sales"]"#);
}

/// The newest answer has a name, and is computed before it has it.
#[tokio::test]
async fn a_name_moves_to_the_newest_answer() {
    let fixture = ResultTablesFixture::new().await;
    fixture.save("top", "sales", BY_CUSTOMER).await;
    fixture.save("top", "results", "SELECT * FROM top WHERE customer_id < 3").await;
    assert_eq!(fixture.lines("SELECT count(*) AS n FROM results.top").await, ["n", "2"]);
    let names = fixture.call("list_tables", json!({"database": "results", "extract": "name"})).await;
    let names: Vec<String> = serde_json::from_str(&names).unwrap();
    assert_eq!((names.len(), names[0].starts_with("r_"), &*names[1]), (2, true, "top"));
}

#[tokio::test]
async fn a_lost_database_takes_what_was_computed_from_it() {
    let fixture = ResultTablesFixture::new().await;
    fixture.save("top", "sales", BY_CUSTOMER).await;
    fixture.save("people", "crm", "SELECT id, name FROM customers").await;
    let joined = "SELECT p.name FROM results.people p JOIN results.top t ON t.customer_id = p.id";
    fixture.save("joined", "results", joined).await;
    fixture.save("again", "results", "SELECT upper(name) AS name FROM joined").await;
    let counts = |table: &str| format!("SELECT count(*) AS n FROM results.{table}");
    for table in ["top", "people", "joined", "again"] {
        assert_eq!(fixture.lines(&counts(table)).await[0], "n", "{table}");
    }
    let databases = Databases::new([fixture.crm.clone()]);
    fixture.node.enter_state(fixture.node.new_state(databases, &AllowedNames::Everything));
    for table in ["top", "joined", "again"] {
        let refused = fixture.lines(&counts(table)).await.join("\n");
        assert!(refused.starts_with(&format!("not_found: there is no table {table:?}")), "{refused}");
    }
    assert_eq!(fixture.lines(&counts("people")).await, ["n", "3"]);
}
