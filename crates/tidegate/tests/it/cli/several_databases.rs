//! Several databases on one command line: the names of their tables, and the database that joins them.

use insta::assert_snapshot;
use serde_json::Value;

use super::server::Server;
use super::{ConfiguredFolder, Shop, run, tidegate};

/// The shop's files and a SQLite file `crm.db` with its customers, as arguments.
struct TwoDatabases {
    _shop: Shop,
    paths: [String; 2],
}

impl TwoDatabases {
    fn new() -> Self {
        let shop = Shop::new();
        let file = shop.0.path().join("crm.db");
        let customers = "CREATE TABLE customers (name TEXT, city TEXT);
            INSERT INTO customers VALUES ('Ann', 'Oslo'), ('Bob', 'Bergen'), ('Eve', 'Oslo');";
        rusqlite::Connection::open(&file).unwrap().execute_batch(customers).unwrap();
        Self { paths: [shop.argument(), file.display().to_string()], _shop: shop }
    }

    /// The output of a command with these databases, each one after `path_flag`.
    fn run(&self, arguments: &[&str], path_flag: &[&str]) -> String {
        let paths = self.paths.iter().flat_map(move |path| path_flag.iter().copied().chain([path.as_str()]));
        let ran = run(&arguments.iter().copied().chain(paths).collect::<Vec<_>>());
        format!("{}{}", ran.stdout, ran.stderr).replace('\r', "")
    }

    fn query(&self, sql: &str) -> String {
        self.run(&["query", sql], &[])
    }

    fn call(&self, arguments: &[&str]) -> String {
        self.run(&[&["call"], arguments, &["format=csv"]].concat(), &["--path"])
    }
}

#[test]
fn databases_of_one_command_line_are_joined() {
    let databases = TwoDatabases::new();
    let sql = "SELECT o.id, c.city FROM shop.orders o JOIN crm.customers c ON c.name = o.customer ORDER BY o.id";
    let expected = "id,city\n1,Oslo\n2,Bergen\n3,Oslo\n";
    assert_eq!(databases.query(sql), expected);
    assert_eq!(databases.query(&sql.replace("shop.orders", "all.shop.orders").replace("crm.c", "all.crm.c")), expected);
    assert_eq!(databases.run(&["query", sql, "--database", "all"], &[]), expected);
    let query = [
        "query",
        "table=shop.orders",
        r#"joins={"table": "crm.customers", "on": {"left": "customer", "right": "name"}}"#,
        r#"select=["id", "city"]"#,
        "order_by=id",
    ];
    assert_eq!(databases.call(&query), expected);
    assert_snapshot!(databases.call(&["list_databases"]), @"
    name,kind,dialect,tables,status
    all,federated,PostgreSQL (embedded engine),3,ok
    crm,sqlite,SQLite,1,ok
    shop,files,PostgreSQL (embedded engine),2,ok
    ");
    assert_snapshot!(databases.call(&["list_tables", "extract=name"]), @"
    2024
    customers
    orders
    ");
    assert_snapshot!(databases.call(&["list_tables", "database=all", "extract=name"]), @"
    crm.customers
    shop.2024
    shop.orders
    ");
}

#[test]
fn qualified_and_unqualified_names_are_alike() {
    let databases = TwoDatabases::new();
    for (database, table, column) in
        [("crm", "customers", "city"), ("shop", "orders", "amount"), ("shop", "2024", "name")]
    {
        let (named, full) = (format!("database={database}"), format!("{database}.{table}"));
        let (table, qualified) = (format!("table={table}"), format!("table={full}"));
        for tool in ["get_schema", "query"] {
            let expected = databases.call(&[tool, &named, &table]);
            assert!(!expected.contains("error"), "{expected}");
            assert_eq!(databases.call(&[tool, &named, &qualified]), expected);
            assert_eq!(databases.call(&[tool, &qualified]), expected);
            let upper = format!("table={}.{}", database.to_uppercase(), &table[6..]);
            assert_eq!(databases.call(&[tool, &upper]), expected);
        }
        let (quoted, name) = (format!("{database}.\"{}\"", &table[6..]), &table[6..]);
        let expected =
            databases.run(&["query", &format!("SELECT {column} FROM \"{name}\""), "--database", database], &[]);
        assert!(!expected.contains("error"), "{expected}");
        assert_eq!(databases.query(&format!("SELECT {quoted}.{column} FROM {quoted}")), expected);
    }
    assert_eq!(databases.query("SELECT t.city FROM CRM.Customers t LIMIT 1"), "city\nOslo\n");
    assert_eq!(databases.query("SELECT max(Orders.id) FROM SHOP.Orders"), "max\n3\n");
    let shop = [&*databases.paths[0]];
    let ran = run(&[&["query", "SELECT max(SHOP.orders.id) FROM SHOP.orders"][..], &shop].concat());
    assert_eq!(ran.lines(), ["max", "3"], "{}", ran.stderr);
    assert_snapshot!(databases.call(&["get_schema", r#"table=["crm.customers", "shop.2024"]"#]), @"
    table,name,type,nullable,comment
    crm.customers,name,TEXT,true,
    crm.customers,city,TEXT,true,
    shop.2024,name,text,true,
    ");
}

#[test]
fn expressions_are_grouped_in_each_database() {
    let databases = TwoDatabases::new();
    let count = |table: &str, expression: &str| {
        let select = format!(r#"select=[{{"expression": "{expression}", "as": "key"}}, {{"function": "count"}}]"#);
        databases.call(&["query", &format!("table={table}"), &select, "group_by=key", "order_by=key"])
    };
    assert_eq!(count("crm.customers", "substr(city, 1, 1)"), "key,count\nB,1\nO,2\n");
    assert_eq!(count("shop.orders", "left(customer, 1)"), "key,count\nA,2\nB,1\n");
    assert_eq!(count("all.crm.customers", "left(city, 1)"), "key,count\nB,1\nO,2\n");
    let refused = count("crm.customers", "(SELECT 1)");
    assert!(refused.contains("a subquery in an expression is refused"), "{refused}");
    let page = |further: &[&str]| {
        databases.call(&[&["query", "table=crm.customers", "select=city", "order_by=city"], further].concat())
    };
    assert_eq!(page(&["distinct=true"]), "city\nBergen\nOslo\n");
    assert_eq!(page(&["offset=1", "limit=5"]), "city\nOslo\nOslo\n");
}

#[tokio::test]
async fn a_server_says_how_its_databases_are_joined() {
    let databases = TwoDatabases::new();
    let mut server = Server::start(tidegate().args(["serve", "--listen", "127.0.0.1:0"]).args(&databases.paths));
    let line = server.wait_for_log("joins");
    assert_snapshot!(line.trim_end(), @r#"the database "all" joins tables of the others by their full names: FROM "crm".TABLE JOIN "shop".TABLE"#);
    let get = async |path: &str| {
        let address = format!("http://{}/rest/databases/{path}", server.address());
        reqwest::get(address).await.unwrap().text().await.unwrap()
    };
    let columns = get("crm/tables/crm.customers?extract=name").await;
    assert!(columns.contains(r#""Query":["city","name"]"#), "{columns}");
    let rows = "tables/crm.customers/rows?select=city&distinct=true&order_by=city&offset=1&format=csv";
    let distinct = get(&format!("crm/{rows}")).await;
    assert_eq!(distinct.lines().collect::<Vec<_>>(), ["city", "Oslo"]);
    assert_eq!(get(&format!("all/{rows}")).await, distinct);
}

#[test]
fn a_configuration_decides_itself_what_is_joined_and_listed() {
    let tools = |configuration: &str| {
        let folder = ConfiguredFolder::new(configuration);
        let tools: Value = serde_json::from_str(&folder.run(&["tools", "--json"]).stdout).unwrap();
        let listed = |name: &str| {
            let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
            ["mode", "delivery", "no_cache"].map(|name| tool["inputSchema"]["properties"].get(name).is_some())
        };
        (listed("sql"), listed("orders"), folder)
    };
    let configuration = "databases: [{name: shop, files: shop}, {name: other, files: shop}]
tools: [{name: orders, description: All orders., database: shop, sql: SELECT id FROM orders}]\n";
    let (sql, declared, folder) = tools(configuration);
    assert_eq!((sql, declared), ([false; 3], [false; 3]));
    assert_snapshot!(folder.run(&["call", "orders", "no_cache=true", "delivery=inline", "format=csv"]).stdout, @"
    id
    1
    2
    3
    ");
    assert_eq!(folder.run(&["call", "list_databases", "extract=name"]).stdout, "[\"other\",\"shop\"]\n");
    let (sql, declared, _) = tools(&format!("{configuration}advanced: true\n"));
    assert_eq!((sql, declared), ([true; 3], [false, true, true]));
}
