//! The system catalogs contain the caller's own tables and columns, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tidegate_engines::{EmbeddedDatabase, Engine, FederatedDatabase};
use tidegate_query::{Database, Freshness, Mask, RowPolicies};
use tidegate_sql::{SqlDialect, Statement};

use super::{RestrictedDatabase, key, policy, test_principal};
use crate::support::{Folder, no_delay_limits, two_thread_options};

const STAFF: &str = "id,name,salary,at\n1,Ann,10.5,2024-01-01\n2,Bob,20.5,2024-01-02\n3,Cid,30.5,2024-01-03\n";

/// Each statement returns the visible columns of `staff`.
const COLUMNS: &[&str] = &[
    "SELECT column_name FROM information_schema.columns WHERE table_name = 'staff' ORDER BY ordinal_position",
    "SELECT column_name FROM information_schema.column_privileges WHERE table_name = 'staff' ORDER BY 1",
    "SELECT column_name FROM information_schema.role_column_grants WHERE table_name = 'staff' ORDER BY 1",
];

fn policies() -> Vec<tidegate_query::RowPolicy> {
    vec![
        policy("staff", "id < 2", &[("salary", Mask::Deny), ("name", Mask::Hash)]),
        // The policy fits no column, so the table is inaccessible.
        policy("closed", "nothing = 1", &[]),
    ]
}

fn open(folder: &Folder) -> RestrictedDatabase {
    let engine = Engine::start(two_thread_options()).unwrap();
    RestrictedDatabase::open(&folder.path(), &engine, policies(), test_principal(&json!({})))
}

fn folder() -> Folder {
    Folder::with(&[("staff.csv", STAFF), ("closed.csv", "secret\n1\n"), ("free.csv", "a,b\n1,2\n")])
}

#[tokio::test]
async fn denied_columns_are_in_no_catalog() {
    let folder = folder();
    let limited = open(&folder);
    for sql in COLUMNS {
        let mut rows: Vec<String> = limited.rows(sql).await.lines().map(str::to_owned).collect();
        rows.sort();
        assert_eq!(rows, ["at", "id", "name"], "{sql}");
    }
    // The positions do not reveal hidden columns.
    let positions = "SELECT ordinal_position, column_name FROM information_schema.columns WHERE table_name = 'staff'";
    assert_eq!(limited.rows(positions).await, "1|id\n2|name\n3|at");
    for table in ["columns", "column_privileges", "role_column_grants"] {
        let sql = format!("SELECT count(*) FROM information_schema.{table} WHERE column_name IN ('salary', 'secret')");
        assert_eq!(limited.rows(&sql).await, "0", "{table}");
    }
}

#[tokio::test]
async fn another_caller_sees_what_it_may_see() {
    let folder = folder();
    let limited = open(&folder);
    let mut auditor = limited.principal.clone();
    auditor.roles.insert("auditor".to_owned());
    let auditing = RestrictedDatabase { database: limited.database, principal: auditor };
    for sql in COLUMNS {
        assert!(auditing.rows(sql).await.contains("salary"), "{sql}");
    }
}

#[tokio::test]
async fn federated_catalog_shows_only_member_visible_columns() {
    let folder = folder();
    let engine = Engine::start(two_thread_options()).unwrap();
    let member =
        EmbeddedDatabase::open_with("files", vec![folder.path()], &engine, no_delay_limits(), BTreeMap::new()).unwrap();
    let member = member.with_row_policies(RowPolicies::new(policies(), key()));
    let all = FederatedDatabase::new("all", [Arc::new(member) as Arc<dyn Database>], &engine).unwrap();
    let sql =
        "SELECT table_schema, table_name, column_name FROM information_schema.columns ORDER BY 1, 2, ordinal_position";
    let rows = super::run_statement(&all, sql, &test_principal(&json!({}))).await.answer.unwrap();
    assert_eq!(rows, "files|free|a\nfiles|free|b\nfiles|staff|id\nfiles|staff|name\nfiles|staff|at");
    let sql = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2";
    let rows = super::run_statement(&all, sql, &test_principal(&json!({}))).await.answer.unwrap();
    assert_eq!(rows, "files|closed\nfiles|free\nfiles|staff");
}

#[tokio::test]
async fn an_answer_from_the_catalogs_is_never_kept() {
    let folder = folder();
    let limited = open(&folder);
    for sql in ["SELECT * FROM information_schema.tables", "SELECT tablename FROM pg_tables", "SELECT current_user"] {
        let statement = Statement::parse(sql, SqlDialect::DataFusion).unwrap();
        assert_eq!(limited.database.freshness(&statement, &limited.principal).await, Freshness::Never, "{sql}");
    }
}

#[tokio::test]
async fn a_table_called_like_a_catalog_is_read() {
    let folder = Folder::with(&[("pg_tables.csv", "mine\n1\n"), ("pg_class.csv", "mine\n2\n")]);
    let engine = Engine::start(two_thread_options()).unwrap();
    let limited = RestrictedDatabase::open(&folder.path(), &engine, Vec::new(), test_principal(&json!({})));
    assert_eq!(limited.rows("SELECT mine FROM pg_tables").await, "1");
    assert_eq!(limited.rows("SELECT mine FROM pg_class").await, "2");
    assert_eq!(limited.rows("SELECT tablename FROM pg_catalog.pg_tables ORDER BY 1").await, "pg_class\npg_tables");
}

#[tokio::test]
async fn a_refusal_of_an_absent_catalog_names_what_to_use() {
    let folder = folder();
    let limited = open(&folder);
    for (sql, advice) in [
        ("SELECT * FROM pg_class", "pg_catalog.pg_class is not there\nUse information_schema.tables"),
        (
            "SELECT * FROM PG_CATALOG.pg_attribute",
            "pg_catalog.pg_attribute is not there\nUse information_schema.columns",
        ),
        ("SELECT * FROM pg_stat_user_tables", "Use the tool list_tables"),
        ("SELECT * FROM pg_settings", "Use SELECT current_setting('name')"),
        ("SELECT to_regclass('free')", "Use information_schema.tables"),
        ("SELECT has_column_privilege('staff', 'salary', 'SELECT')", "Use information_schema.columns"),
        ("SELECT pg_total_relation_size('free')", "use the tool list_tables"),
        ("SELECT 23::oid", "the type oid is not supported"),
        ("SELECT * FROM pg_catalog.generate_series(1, 2)", "FROM accepts"),
    ] {
        let refusal = limited.refusal(sql).await;
        assert!(refusal.contains(advice), "{sql}: {refusal}");
    }
    let engine = Engine::start(two_thread_options()).unwrap();
    let member = Arc::new(limited.database) as Arc<dyn Database>;
    let all = FederatedDatabase::new("all", [member], &engine).unwrap();
    for sql in ["SELECT * FROM pg_class", "SELECT * FROM pg_catalog.pg_class"] {
        let refusal = super::run_statement(&all, sql, &limited.principal).await.answer.unwrap_err();
        assert!(refusal.contains("Use information_schema.tables"), "{sql}: {refusal}");
    }
}
