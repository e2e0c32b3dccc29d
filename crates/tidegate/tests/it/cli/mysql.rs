//! MySQL and MariaDB from the command line and through a configuration, with a real server.

use std::process::Command;

use insta::assert_snapshot;

use super::{ConfiguredFolder, run};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set; run the tests as scripts/mariadb run -- cargo nextest run -p tidegate")
    })
}

/// Runs `sql` as root.
fn run_as_root(sql: &str) {
    let uri = variable("TIDEGATE_TEST_MARIADB");
    let socket = uri.split_once("socket=").unwrap().1;
    let ran = Command::new("mariadb")
        .args(["--no-defaults", "--user=root", &format!("--socket={socket}"), "--execute", sql])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A shop in a database of its own, and the connection string of an account that may read it.
fn shop(name: &str) -> String {
    let name = format!("{name}_{}", std::process::id());
    run_as_root(&format!(
        "CREATE DATABASE {name} CHARACTER SET utf8mb4; USE {name};
         CREATE TABLE stock (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL COMMENT 'as printed', price DECIMAL(10,2));
         INSERT INTO stock VALUES (1, 'Ann', 1.25), (2, 'Ben', 2.5), (3, 'Zoe', 3.75), (4, 'Ann', NULL);
         CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'p@ss/word'; GRANT SELECT ON {name}.* TO {name}@'127.0.0.1'"
    ));
    let address = variable("TIDEGATE_TEST_MARIADB_TCP");
    format!("mysql://{name}:p%40ss%2Fword@{address}/{name}")
}

fn configured(databases: &str) -> ConfiguredFolder {
    ConfiguredFolder::new(&format!(
        "databases:
{databases}
tools:
  - name: stock_of
    description: What has a name.
    database: shop
    sql: SELECT id, price FROM stock WHERE name = :name ORDER BY id
    input: {{name: {{type: string}}}}
"
    ))
}

fn call(configured: &ConfiguredFolder, arguments: &[&str]) -> String {
    let ran = configured.run(&[&["call"], arguments].concat());
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn a_uri_on_the_command_line_is_a_database() {
    let target = shop("direct");
    let ran = run(&["query", "SELECT name, sum(price) AS price FROM stock GROUP BY name ORDER BY name", &target]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["Ann", "1.25", "Zoe", "3.75"] {
        assert!(ran.stdout.contains(part), "{ran:?}");
    }
    let wrong = run(&["query", "SELECT 1", &target.replace("word", "wrong")]);
    assert!(wrong.code != Some(0) && wrong.stderr.contains("Access denied"), "{wrong:?}");
    assert!(!wrong.stderr.contains("p%40ss") && !wrong.stderr.contains("p@ss"), "{wrong:?}");
}

#[test]
fn tools_read_a_configured_database() {
    let configured = configured(&format!("  - {{name: shop, mysql: '{}', strict: true}}", shop("declared")));
    let checked = configured.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert_snapshot!(call(&configured, &["stock_of", "name=Ann"]), @r#"[{"id":1,"price":1.25},{"id":4,"price":null}]"#);
    assert_snapshot!(
        call(&configured, &["query", "table=stock", r#"select=[{"function":"count","as":"n"}]"#, r#"where={"column":"price","op":">","value":2}"#]),
        @r#"[{"n":2}]"#
    );
    assert_snapshot!(call(&configured, &["get_schema", "table=stock", "format=csv"]), @r#"
    name,type,nullable,comment
    id,int(11),false,primary key
    name,varchar(20),false,as printed
    price,"decimal(10,2)",true,
    "#);
    for (sql, reason) in [
        ("SELECT LOAD_FILE('/etc/passwd')", "load_file is refused"),
        ("SELECT /*!50000 SLEEP(1) */ 1", "comment"),
        ("DELETE FROM stock", "only reading"),
        ("SELECT nam FROM stock", "unknown column"),
    ] {
        let refused = call(&configured, &["sql", &format!("sql={sql}")]);
        assert!(refused.starts_with("error: ") && refused.to_lowercase().contains(reason), "{sql}: {refused}");
    }
}

#[test]
fn an_account_with_further_privileges_is_reported() {
    let target = shop("privileged");
    let name = target.rsplit_once('/').unwrap().1.to_owned();
    run_as_root(&format!("GRANT INSERT ON {name}.* TO {name}@'127.0.0.1'"));
    let lenient = configured(&format!("  - {{name: shop, mysql: '{target}'}}")).run(&["config", "check"]);
    assert_eq!(lenient.code, Some(0), "{lenient:?}");
    assert!(lenient.stderr.contains(&format!("may do more than read on `{name}`.*: INSERT")), "{lenient:?}");
    let strict = configured(&format!("  - {{name: shop, mysql: '{target}', strict: true}}")).run(&["config", "check"]);
    assert!(strict.code != Some(0) && strict.stderr.contains("databases[0].strict: "), "{strict:?}");
}

#[test]
fn files_are_joined() {
    let databases = format!(
        "  - {{name: all, federated: [sales, shop]}}\n  - {{name: sales, files: shop}}\n  - {{name: shop, mysql: '{}'}}",
        shop("joined")
    );
    let configured = configured(&databases);
    let join = "sql=SELECT s.name, o.amount, s.price FROM sales.orders o JOIN shop.stock s ON s.id = o.id \
                WHERE s.price > 2 ORDER BY s.id";
    assert_snapshot!(call(&configured, &["sql", "database=all", join, "format=csv"]), @r"
    name,amount,price
    Ben,7.0,2.50
    Zoe,,3.75
    ");
}

#[test]
fn the_sql_of_a_role_makes_an_account_that_reads() {
    let name = database_name(&shop("printed")).to_owned();
    let login = format!("r_{name}");
    let printed = run(&["mysql", "role", &login, "--host", "127.0.0.1", "--database", &name]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    run_as_root(&printed.stdout);
    let address = variable("TIDEGATE_TEST_MARIADB_TCP");
    let target = |mode: &str| format!("mysql://{login}:pw@{address}/{name}?ssl-mode={mode}");
    let locked = run(&["query", "SELECT 1", &target("REQUIRED")]);
    assert!(locked.code != Some(0), "{locked:?}");
    let last = printed.stdout.lines().last().unwrap().trim_start_matches("-- ").replace('…', "pw");
    run_as_root(&last);
    let read = run(&["query", "SELECT count(*) AS n FROM stock", &target("REQUIRED")]);
    assert_eq!((read.code, read.stdout.as_str()), (Some(0), "n\r\n4\r\n"), "{read:?}");
    assert!(run(&["query", "SELECT 1", &target("DISABLED")]).code != Some(0));
    let strict = configured(&format!("  - {{name: shop, mysql: '{}', strict: true}}", target("REQUIRED")));
    let checked = strict.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert_eq!(run(&["mysql", "role"]).code, Some(2));
}

/// The database of the account of `target`, whose name both have.
fn database_name(target: &str) -> &str {
    target.rsplit_once('/').unwrap().1
}

#[test]
fn texts_that_a_collation_takes_for_equal_differ_in_joined_databases() {
    let target = shop("collated");
    run_as_root(&format!(
        "USE {}; CREATE TABLE labels (id INT, label VARCHAR(9)); SET NAMES utf8mb4;
         INSERT INTO labels VALUES (1, 'x'), (2, 'X'), (3, 'x '), (4, 'é'), (5, 'e')",
        database_name(&target)
    ));
    let databases = format!(
        "  - {{name: all, federated: [shop, sales]}}\n  - {{name: sales, files: shop}}\n  - {{name: shop, mysql: '{target}'}}"
    );
    let configured = configured(&databases);
    let answer = |database: &str, condition: &str| {
        let sql = format!("sql=SELECT count(*) AS n, count(DISTINCT label) AS d FROM shop.labels WHERE {condition}");
        call(&configured, &["sql", &format!("database={database}"), &sql, "format=csv"])
    };
    for (condition, expected) in [
        ("label = 'x'", "n,d\r\n1,1\r\n"),
        ("label <> 'x'", "n,d\r\n4,4\r\n"),
        ("label IN ('X', 'E')", "n,d\r\n1,1\r\n"),
        ("label IN (SELECT b.label FROM shop.labels b WHERE b.id = 2)", "n,d\r\n1,1\r\n"),
    ] {
        assert_eq!(answer("all", condition), expected, "{condition}");
    }
    // By itself, the database compares as it does for others.
    assert_eq!(answer("shop", "label = 'x'"), "n,d\r\n3,1\r\n");
}

#[test]
fn policies_hold_for_tools_and_joined_databases() {
    let target = shop("limited");
    let shop = format!(
        "  - name: shop\n    mysql: '{target}'\n    policies:\n      - {{table: stock, rows: \"name <> 'ann' AND price > 2\", \
         columns: {{name: {{keep_first: 1}}}}}}"
    );
    let configured =
        configured(&format!("  - {{name: all, federated: [shop, sales]}}\n  - {{name: sales, files: shop}}\n{shop}"));
    let checked = configured.run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert_snapshot!(call(&configured, &["sql", "database=shop", "sql=SELECT * FROM stock ORDER BY id", "format=csv"]), @r"
    id,name,price
    2,B**,2.50
    3,Z**,3.75
    ");
    assert_snapshot!(call(&configured, &["stock_of", "name=Ben"]), @"[]");
    assert_snapshot!(call(&configured, &["stock_of", "name=Z**"]), @r#"[{"id":3,"price":3.75}]"#);
    let join = "sql=SELECT o.id, s.name FROM sales.orders o JOIN shop.stock s ON s.id = o.id ORDER BY o.id";
    assert_snapshot!(call(&configured, &["sql", "database=all", join, "format=csv"]), @r"
    id,name
    2,B**
    3,Z**
    ");
}

#[test]
fn a_mask_that_needs_a_key_is_a_problem() {
    let databases = "  - {name: shop, mysql: 'mysql://a@127.0.0.1/b', policies: [{table: t, columns: {a: hash}}]}";
    let checked = configured(databases).run(&["config", "check"]);
    assert!(checked.code != Some(0), "{checked:?}");
    assert!(
        checked.stderr.contains("databases[0].policies[0].columns.a: the mask hash is not for MySQL"),
        "{checked:?}"
    );
}
