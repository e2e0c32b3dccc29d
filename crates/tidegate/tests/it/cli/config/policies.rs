//! Row policies in a configuration: what is wrong with them, and what they do.

use std::path::Path;

use super::super::ConfiguredFolder;

const SHOP: &str = "databases:\n  - name: shop\n    files: shop\n    policies:\n";
const ROLES: &str = "roles: [{name: auditor, toolsets: ['*'], databases: ['*']}]\n";

fn check(policies: &str) -> String {
    ConfiguredFolder::new(&format!("{SHOP}{policies}{ROLES}")).usage_error(&["config", "check"])
}

#[test]
fn reports_policy_problems_with_position() {
    insta::assert_snapshot!(check(
        "      - {table: orders, rows: 'lower(id) = 1'}\n      - {table: order, rows: 'TRUE', except_roles: [auditr]}\n      \
         - {table: orders, columns: {id: {}}}\n      - {table: orders}\n"
    ));
    insta::assert_snapshot!(check(
        "      - {table: order, rows: 'TRUE'}\n      - {table: orders, rows: 'tenant = 1', columns: {emial: hash}}\n"
    ));
    let configured = ConfiguredFolder::new(
        "databases:\n  - {name: pg, postgres: 'host=127.0.0.1 port=1', policies: [{table: t, rows: 'TRUE'}]}\n  - {name: shop, files: \
         shop}\n  - {name: all, federated: [shop], policies: [{table: t, rows: 'TRUE'}]}\n",
    );
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]));
}

#[test]
fn policy_applies_to_every_caller() {
    let shop = "databases:\n  - name: shop\n    files: shop\n    policies:\n      - table: orders\n        rows: customer = \
                :subject OR customer = 'Ann'\n        columns: {amount: null, customer: {keep_last: 2}}\n        \
                except_roles: [auditor]\n";
    let ask = |more: &str| {
        let configured = ConfiguredFolder::new(&format!("{shop}{ROLES}{more}"));
        let ran = configured.run(&["call", "query", "table=orders", "format=csv"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    assert_eq!(ask(""), "id,customer,amount\r\n1,*nn,\r\n3,*nn,\r\n");
    assert_eq!(ask("auth: {local: [auditor]}\n"), "id,customer,amount\r\n1,Ann,12.5\r\n2,Bob,7.0\r\n3,Ann,\r\n");
}

#[test]
fn strictest_column_mask_wins_in_every_query() {
    let offers = "tools: [{name: orders_all, description: O, sql: SELECT * FROM orders ORDER BY id}]\n";
    let shop = |policies: &str| ConfiguredFolder::new(&format!("{SHOP}{policies}{offers}"));
    let call = |configured: &ConfiguredFolder, arguments: &[&str]| {
        let ran = configured.run(&[&["call"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.replace("\r\n", "\n")
    };
    // The same value has the same hash, so that tables are joined; and it is no value.
    let hashed = shop("      - {table: orders, columns: {customer: hash, amount: {keep_first: 1}}}\n");
    let pairs = "sql=SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer ORDER BY 1, 2";
    assert_eq!(call(&hashed, &["sql", pairs, "format=csv"]), "id,other\n1,1\n1,3\n2,2\n3,1\n3,3\n");
    let found = call(&hashed, &["query", "table=orders", "where=customer = 'Ann'"]);
    assert_eq!(found.trim_end(), "[]");
    let rows = call(&hashed, &["orders_all", "format=csv"]);
    let customers: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect();
    assert!(customers.iter().all(|hash| hash.len() == 16) && customers[0] == customers[2], "{rows}");
    assert!(rows.contains(",1***\n") && rows.contains(",7**\n"), "{rows}");

    let strict = shop(
        "      - {table: '*', columns: {amount: null}}\n      - {table: orders, rows: 'id < 3', columns: {amount: {keep_last: 1}}}\n      \
         - {table: orders, rows: 'id > 1', columns: {customer: deny}}\n      - {table: orders, columns: {customer: hash}}\n",
    );
    assert_eq!(call(&strict, &["orders_all", "format=csv"]), "id,amount\n2,\n");
    let schema = call(&strict, &["get_schema", "table=orders", "samples=3", "format=csv"]);
    let columns: Vec<&str> = schema.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    assert_eq!(columns, ["id", "amount"]);
    assert!(
        !schema.contains("12.5") && !schema.contains("\"\"1\"\""),
        "samples are of the rows that are shown: {schema}"
    );
}

/// The table is closed, and the rest of the node works: the owner finds the policy, the table and the column.
#[test]
fn table_without_the_column_of_a_policy_for_all_tables_is_closed() {
    let offers = "tools: [{name: notes_all, description: N, sql: SELECT * FROM notes}]\n";
    let policy = "      - {table: '*', rows: \"customer = 'Ann'\"}\n";
    let configured = ConfiguredFolder::new(&format!("{SHOP}{policy}{offers}"));
    std::fs::write(configured.folder().join("shop/notes.csv"), "id,note\n1,a\n").unwrap();
    let reason = "policies[0].rows: it does not match the table notes, which cannot be read: there is no column \
                  \"customer\"";
    for (arguments, code) in [(&["config", "check"][..], 0), (&["doctor"], 1)] {
        let ran = configured.run(arguments);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == Some(code) && text.contains(reason), "{text}");
    }
    let refusal = "the table \"notes\" cannot be read: its row policy does not fit it";
    for call in [&["call", "query", "table=notes"][..], &["call", "notes_all"]] {
        let ran = configured.run(call);
        assert!(ran.stderr.contains(refusal) && ran.stderr.contains("there is no column"), "{ran:?}");
    }
    assert!(configured.run(&["call", "list_tables"]).stdout.contains("its row policy does not fit it"));
    let orders = configured.run(&["call", "query", "table=orders", "format=csv"]);
    assert_eq!(orders.stdout.lines().count(), 3, "{orders:?}");
}

/// What a SQLite database holds.
const CRM: &str = "
    CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, phone TEXT, country TEXT, salary REAL);
    INSERT INTO people VALUES (1, 'Ann', '+41 79 111', 'ch', 10), (2, 'Bob', '+41 79 222', 'de', 20),
        (3, 'Cy', NULL, 'ch', 30);
    CREATE TABLE visits (person INTEGER, pages INTEGER);
    INSERT INTO visits VALUES (1, 3), (2, 5);";

fn crm(folder: &Path) {
    rusqlite::Connection::open(folder.join("crm.db")).unwrap().execute_batch(CRM).unwrap();
}

/// Files and a SQLite database, both under policies, and both together.
fn both(more: &str) -> ConfiguredFolder {
    let configured = ConfiguredFolder::new(&format!(
        "databases:
  - name: sales
    files: shop
    policies: [{{table: orders, rows: \"customer = 'Ann'\", columns: {{amount: null}}, except_roles: [auditor]}}]
  - name: crm
    sqlite: crm.db
    policies:
      - table: PEOPLE
        rows: country = 'ch'
        columns: {{phone: {{keep_last: 3}}, salary: deny}}
        except_roles: [auditor]
  - {{name: all, federated: [sales, crm]}}
{ROLES}{more}"
    ));
    crm(configured.folder());
    configured
}

fn query(configured: &ConfiguredFolder, database: &str, sql: &str) -> String {
    let (database, sql) = (format!("database={database}"), format!("sql={sql}"));
    let ran = configured.run(&["call", "sql", &database, &sql, "format=csv"]);
    // Lines of CSV end as RFC 4180 wants it.
    let stderr = ran.stderr.lines().filter(|line| !line.contains(" WARN "));
    format!("{}{}", ran.stdout.replace("\r\n", "\n"), stderr.collect::<Vec<_>>().join("\n"))
}

const AS_AUDITOR: &str = "auth: {local: [auditor]}\n";

#[test]
fn sqlite_policies_apply_to_every_caller() {
    let configured = both("");
    let ask_crm = |sql: &str| query(&configured, "crm", sql);
    assert_eq!(ask_crm("SELECT * FROM people"), "id,name,phone,country\n1,Ann,*******111,ch\n3,Cy,,ch\n");
    assert_eq!(ask_crm("SELECT count(*) AS n FROM people WHERE country = 'de'"), "n\n0\n");
    assert_eq!(ask_crm("SELECT * FROM visits"), "person,pages\n1,3\n2,5\n");
    assert_eq!(ask_crm("SELECT name, pages FROM people JOIN visits ON person = id"), "name,pages\nAnn,3\n");
    insta::assert_snapshot!(ask_crm("SELECT salary FROM people"));
    let schema = configured.run(&["call", "get_schema", "database=crm", "table=people", "format=csv"]);
    insta::assert_snapshot!(schema.stdout);
    let auditing = both(AS_AUDITOR);
    let answer = query(&auditing, "crm", "SELECT id, phone, salary FROM people WHERE id = 2");
    assert_eq!(answer, "id,phone,salary\n2,+41 79 222,20.0\n");
}

#[test]
fn member_policies_apply_in_federated_queries() {
    let join = "SELECT o.id, o.customer, o.amount, p.phone FROM sales.orders o JOIN crm.people p ON p.name = o.customer \
                ORDER BY o.id";
    let configured = both("");
    let ask_all = |sql: &str| query(&configured, "all", sql);
    assert_eq!(ask_all(join), "id,customer,amount,phone\n1,Ann,,*******111\n3,Ann,,*******111\n");
    assert_eq!(ask_all("SELECT count(*) AS n FROM sales.orders"), "n\n2\n");
    assert_eq!(ask_all("SELECT count(*) AS n FROM crm.people WHERE country <> 'ch'"), "n\n0\n");
    assert_eq!(ask_all("SELECT id FROM sales.orders WHERE amount > 0"), "id\n");
    insta::assert_snapshot!(ask_all("SELECT salary FROM crm.people"));
    let explained = configured.run(&["call", "explain", "database=all", &format!("sql={join}")]).stdout;
    for hidden in ["'ch'", "'Ann'", "salary", ".csv", "country"] {
        assert!(!explained.contains(hidden), "{hidden} in {explained}");
    }
    let tables = configured.run(&["call", "list_tables", "database=all", "format=csv"]);
    insta::assert_snapshot!(tables.stdout);
    let unmasked = "id,customer,amount,phone\n1,Ann,12.5,+41 79 111\n2,Bob,7.0,+41 79 222\n3,Ann,,+41 79 111\n";
    assert_eq!(query(&both(AS_AUDITOR), "all", join), unmasked);
}

#[test]
fn reports_sqlite_policy_problems_with_position() {
    let configured = ConfiguredFolder::new(
        "databases:\n  - name: crm\n    sqlite: crm.db\n    policies:\n      - {table: poeple, rows: 'TRUE'}\n      - {table: people, \
         rows: 'contry = 1 AND name > 2', columns: {fone: hash}}\n      - {table: visits, rows: \"pages > 'many'\"}\n",
    );
    crm(configured.folder());
    insta::assert_snapshot!(configured.usage_error(&["config", "check"]));
}
