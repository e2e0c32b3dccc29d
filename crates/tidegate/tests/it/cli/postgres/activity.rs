//! The activity of PostgreSQL as live tables of the database of system tables.

use insta::assert_snapshot;

use super::{psql, shop};
use crate::cli::ConfiguredFolder;

/// A configuration with the shop and system tables; the command line is an operator.
fn configured(target: &str, system: &str) -> ConfiguredFolder {
    ConfiguredFolder::new(&format!(
        "databases:\n  - {{name: shop, postgres: '{target}'}}\n  - {{name: system, system: {system}}}\n"
    ))
}

#[test]
fn activity_of_postgres_is_in_live_tables() {
    let target = shop("activity");
    let name = target.rsplit("dbname=").next().unwrap().to_owned();
    psql(&name, "ANALYZE orders");
    let masked = configured(&target, "{}");
    let query = |configured: &ConfiguredFolder, sql: &str| {
        let ran = configured.run(&["query", sql, "--database", "system"]);
        let errors = ran.stderr.lines().filter(|line| !line.contains("WARN")).collect::<Vec<_>>().join("\n");
        format!("{}{errors}", ran.stdout).replace('\r', "")
    };
    assert_snapshot!(query(&masked, "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'shop%'"), @"
    table_name
    shop_activity
    shop_index_usage
    shop_locks
    shop_statements
    shop_table_sizes
    ");
    let sizes = "SELECT schema_name, table_name, rows, total_bytes > 0 AS has_size FROM shop_table_sizes";
    assert_eq!(query(&masked, sizes), "schema_name,table_name,rows,has_size\npublic,orders,3,true\n");
    let indexes = "SELECT index_name, is_unique, is_primary_key FROM shop_index_usage";
    assert_eq!(query(&masked, indexes), "index_name,is_unique,is_primary_key\norders_pkey,true,true\n");
    assert_eq!(query(&masked, "SELECT count(*) > 0 AS ok FROM shop_activity"), "ok\ntrue\n");
    assert_eq!(query(&masked, "SELECT count(*) >= 0 AS ok FROM shop_locks"), "ok\ntrue\n");
    assert_eq!(query(&masked, "SELECT DISTINCT query FROM shop_activity"), "query\n***\n");
    // A background process has no statement, and the mask hides even that.
    let granted = configured(&target, "{sensitive: machine.secrets}");
    let statements = "SELECT count(*) AS masked FROM shop_activity WHERE query = '***'";
    assert_eq!(query(&granted, statements), "masked\n0\n");
    let statements = query(&granted, "SELECT calls FROM shop_statements");
    assert!(statements.starts_with("calls") || statements.contains("CREATE EXTENSION"), "{statements}");
}
