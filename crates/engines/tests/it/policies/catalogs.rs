//! The system catalogs contain the caller's own tables and columns, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tidegate_engines::{Engine, FederatedDatabase, FileDatabase};
use tidegate_query::{Database, Freshness, Mask, RowPolicies};
use tidegate_sql::{SqlDialect, Statement};

use super::{RestrictedDatabase, key, policy, test_principal};
use crate::support::{Folder, no_delay_limits, two_thread_options};

const STAFF: &str = "id,name,salary,at\n1,Ann,10.5,2024-01-01\n2,Bob,20.5,2024-01-02\n3,Cid,30.5,2024-01-03\n";

/// Each statement returns the visible columns of `staff`.
const COLUMNS: &[&str] = &[
    "SELECT column_name FROM information_schema.columns WHERE table_name = 'staff' ORDER BY ordinal_position",
    "SELECT column_name FROM information_schema.column_privileges WHERE table_name = 'staff' ORDER BY 1",
    "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = 'public.staff'::regclass ORDER BY attnum",
    "SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname = 'staff' ORDER BY 1",
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
    assert_eq!(limited.rows("SELECT relnatts FROM pg_class WHERE relname = 'staff'").await, "3");
    for table in ["columns", "column_privileges", "role_column_grants"] {
        let sql = format!("SELECT count(*) FROM information_schema.{table} WHERE column_name IN ('salary', 'secret')");
        assert_eq!(limited.rows(&sql).await, "0", "{table}");
    }
    assert_eq!(limited.rows("SELECT count(*) FROM pg_attribute WHERE attname IN ('salary', 'secret')").await, "0");
    let refusal = limited.refusal("SELECT has_column_privilege('staff', 'salary', 'SELECT')").await;
    let absent = limited.refusal("SELECT has_column_privilege('staff', 'absent', 'SELECT')").await;
    assert_eq!(refusal, absent.replace("absent", "salary"));
}

#[tokio::test]
async fn the_rows_of_a_limited_table_are_not_counted() {
    let folder = folder();
    let limited = open(&folder);
    assert_eq!(
        limited.rows("SELECT relname, reltuples::bigint FROM pg_class ORDER BY 1").await,
        "closed|-1\nfree|1\nstaff|-1"
    );
    let counted = "SELECT relname, n_live_tup FROM pg_stat_user_tables ORDER BY 1";
    assert_eq!(limited.rows(counted).await, "closed|null\nfree|1\nstaff|null");
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
    assert_eq!(auditing.rows("SELECT has_column_privilege('staff', 'salary', 'SELECT')").await, "true");
    assert_eq!(auditing.rows("SELECT reltuples::bigint FROM pg_class WHERE relname = 'staff'").await, "3");
}

#[tokio::test]
async fn federated_catalog_shows_only_member_visible_columns() {
    let folder = folder();
    let engine = Engine::start(two_thread_options()).unwrap();
    let member =
        FileDatabase::open_with("files", vec![folder.path()], &engine, no_delay_limits(), BTreeMap::new()).unwrap();
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
    for sql in ["SELECT * FROM information_schema.tables", "SELECT to_regclass('free')", "SELECT 'free'::regclass"] {
        let statement = Statement::parse(sql, SqlDialect::DataFusion).unwrap();
        assert_eq!(limited.database.freshness(&statement, &limited.principal).await, Freshness::Never, "{sql}");
    }
}

#[tokio::test]
async fn a_table_called_like_a_catalog_is_read() {
    let folder = Folder::with(&[("pg_class.csv", "mine\n1\n")]);
    let engine = Engine::start(two_thread_options()).unwrap();
    let limited = RestrictedDatabase::open(&folder.path(), &engine, Vec::new(), test_principal(&json!({})));
    assert_eq!(limited.rows("SELECT mine FROM pg_class").await, "1");
    assert_eq!(limited.rows("SELECT relname FROM pg_catalog.pg_class").await, "pg_class");
}
