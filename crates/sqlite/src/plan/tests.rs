//! Attempts to get out, with no parser and no policy in front of the engine.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use tidegate_core::{AuthMethod, Error, Grants, Principal};
use tidegate_query::{HashKey, Mask, RowCondition, RowPolicies, RowPolicy};

use super::{SqliteStatement, plan_statement, trailing_limit};
use crate::files::{DatabaseFiles, SqliteOptions};
use crate::policy_views::PolicyCaller;
use crate::pool::Pool;
use crate::session::ReadTransaction;

struct EscapeFixture {
    folder: tempfile::TempDir,
    pool: Arc<Pool>,
}

impl EscapeFixture {
    fn new() -> Self {
        Self::with_options(SqliteOptions::default())
    }

    fn with_options(options: SqliteOptions) -> Self {
        let folder = tempfile::Builder::new().prefix("attempts").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let secret = Connection::open(path("secret.db")).unwrap();
        secret.execute_batch("CREATE TABLE secrets (a); INSERT INTO secrets VALUES ('the secret')").unwrap();
        let data = Connection::open(path("data.db")).unwrap();
        let sql =
            "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2); CREATE VIEW extension AS SELECT load_extension('x');
            CREATE VIEW settings AS SELECT * FROM pragma_table_info('t');
            CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('the quick fox'), ('a lazy dog');
            CREATE VIRTUAL TABLE old_notes USING fts4(body); INSERT INTO old_notes VALUES ('the quick fox');
            CREATE VIRTUAL TABLE places USING rtree(id, low, high); INSERT INTO places VALUES (1, 2, 3);
            CREATE TRIGGER after_insert AFTER INSERT ON t BEGIN DELETE FROM t; END;";
        data.execute_batch(sql).unwrap();
        let files = DatabaseFiles::new("shop", vec![path("data.db")]).unwrap();
        let pool = Arc::new(Pool::new("shop".into(), files, options));
        Self { folder, pool }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Plans `sql`, and runs it to its end if it is accepted.
    async fn plan_and_run(&self, sql: &str) -> Result<usize, Error> {
        let sqlite_statement = SqliteStatement { sql: sql.to_owned(), ..SqliteStatement::default() };
        plan_statement(self.pool.clone(), None, sqlite_statement).await?;
        let sql = sql.to_owned();
        let work = move |reading: &ReadTransaction<'_>| {
            let mut statement = reading.prepare(&sql)?;
            let mut rows = statement.raw_query();
            let mut count = 0;
            while rows.next().map_err(|error| reading.classify_error(error))?.is_some() {
                count += 1;
            }
            Ok(count)
        };
        self.pool.read(None, work).await
    }

    /// Everything in the folder, byte for byte.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    }
}

#[tokio::test]
async fn escape_attempts_are_rejected_without_side_effects() {
    let attempts = EscapeFixture::new();
    let secret = attempts.path("secret.db").display().to_string();
    let new = attempts.path("new.db").display().to_string();
    let before = attempts.files();
    let statements = [
        format!("ATTACH '{secret}' AS s"),
        format!("ATTACH '{new}' AS s"),
        format!("ATTACH 'file:{secret}?mode=rw' AS s"),
        "ATTACH ':memory:' AS s".to_owned(),
        "DETACH main".to_owned(),
        format!("VACUUM INTO '{new}'"),
        "VACUUM".to_owned(),
        "PRAGMA writable_schema = ON".to_owned(),
        "PRAGMA query_only = OFF".to_owned(),
        "PRAGMA journal_mode = DELETE".to_owned(),
        "PRAGMA table_info(t)".to_owned(),
        "PRAGMA data_version = 1".to_owned(),
        "PRAGMA hard_heap_limit = 1".to_owned(),
        format!("PRAGMA temp_store_directory = '{}'", attempts.folder.path().display()),
        "SELECT * FROM pragma_table_info('t')".to_owned(),
        "SELECT * FROM pragma_database_list".to_owned(),
        "SELECT * FROM pragma_query_only(0)".to_owned(),
        "SELECT * FROM settings".to_owned(),
        "SELECT load_extension('x')".to_owned(),
        "SELECT 1 WHERE LOAD_EXTENSION('x', 'y')".to_owned(),
        "SELECT * FROM extension".to_owned(),
        "SELECT readfile('/etc/passwd')".to_owned(),
        format!("SELECT writefile('{new}', 'x')"),
        "SELECT fts3_tokenizer('simple')".to_owned(),
        "SELECT sqlite_log(1, 'x')".to_owned(),
        "SELECT json_patch('{}', '{}')".to_owned(),
        "SELECT * FROM dbstat".to_owned(),
        "SELECT * FROM sqlite_dbpage".to_owned(),
        "CREATE TABLE u (a)".to_owned(),
        "CREATE TEMP TABLE u (a)".to_owned(),
        "CREATE TEMP VIEW u AS SELECT 1".to_owned(),
        "CREATE TEMP TRIGGER u AFTER INSERT ON t BEGIN SELECT 1; END".to_owned(),
        "CREATE VIRTUAL TABLE u USING fts5(a)".to_owned(),
        "CREATE VIRTUAL TABLE temp.u USING rtree(a, b, c)".to_owned(),
        "CREATE INDEX u ON t (a)".to_owned(),
        "INSERT INTO t VALUES (3)".to_owned(),
        "INSERT INTO t VALUES (3) RETURNING a".to_owned(),
        "INSERT INTO notes (notes) VALUES ('rebuild')".to_owned(),
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x".to_owned(),
        "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x".to_owned(),
        "UPDATE t SET a = 9 RETURNING a".to_owned(),
        "DELETE FROM t RETURNING a".to_owned(),
        "REPLACE INTO t VALUES (1)".to_owned(),
        "UPDATE sqlite_schema SET sql = ''".to_owned(),
        "DROP TABLE t".to_owned(),
        "ALTER TABLE t RENAME TO u".to_owned(),
        "REINDEX".to_owned(),
        "ANALYZE".to_owned(),
        "BEGIN".to_owned(),
        "COMMIT".to_owned(),
        "END".to_owned(),
        "ROLLBACK".to_owned(),
        "SAVEPOINT s".to_owned(),
        "RELEASE s".to_owned(),
        "SELECT 1; DELETE FROM t".to_owned(),
        "SELECT 1; SELECT 2".to_owned(),
        "EXPLAIN SELECT a FROM t".to_owned(),
        "EXPLAIN QUERY PLAN SELECT a FROM t".to_owned(),
        "-- nothing".to_owned(),
        String::new(),
        "SELECT 1 \0 ; DELETE FROM t".to_owned(),
        "SELECT zeroblob(1000000000)".to_owned(),
        "SELECT printf('%.*c', 1000000000, 'x')".to_owned(),
        "SELECT group_concat(hex(zeroblob(1000000))) FROM json_each('[1,2,3,4,5,6,7,8,9,10]')".to_owned(),
    ];
    let mut answered = Vec::new();
    let mut words = String::new();
    for statement in &statements {
        match attempts.plan_and_run(statement).await {
            Ok(rows) => answered.push(format!("{statement}: {rows} rows")),
            Err(error) => words.push_str(&format!("{statement}\n    {}\n", error.message())),
        }
    }
    assert!(answered.is_empty(), "{}", answered.join("\n"));
    let words = words.replace(&attempts.folder.path().display().to_string(), "…").replace('\0', "␀");
    insta::assert_snapshot!(words, @r#"
    ATTACH '…/secret.db' AS s
        ATTACH is refused: only reading tables is allowed
    ATTACH '…/new.db' AS s
        ATTACH is refused: only reading tables is allowed
    ATTACH 'file:…/secret.db?mode=rw' AS s
        ATTACH is refused: only reading tables is allowed
    ATTACH ':memory:' AS s
        ATTACH is refused: only reading tables is allowed
    DETACH main
        DETACH is refused: only reading tables is allowed
    VACUUM INTO '…/new.db'
        only a statement that reads and returns rows is allowed
    VACUUM
        only a statement that reads and returns rows is allowed
    PRAGMA writable_schema = ON
        PRAGMA writable_schema is refused: only reading tables is allowed
    PRAGMA query_only = OFF
        PRAGMA query_only is refused: only reading tables is allowed
    PRAGMA journal_mode = DELETE
        PRAGMA journal_mode is refused: only reading tables is allowed
    PRAGMA table_info(t)
        PRAGMA table_info is refused: only reading tables is allowed
    PRAGMA data_version = 1
        PRAGMA data_version is refused: only reading tables is allowed
    PRAGMA hard_heap_limit = 1
        PRAGMA hard_heap_limit is refused: only reading tables is allowed
    PRAGMA temp_store_directory = '…'
        PRAGMA temp_store_directory is refused: only reading tables is allowed
    SELECT * FROM pragma_table_info('t')
        PRAGMA table_info is refused: only reading tables is allowed
    SELECT * FROM pragma_database_list
        PRAGMA database_list is refused: only reading tables is allowed
    SELECT * FROM pragma_query_only(0)
        too many arguments on pragma_query_only() - max 0
    SELECT * FROM settings
        unsafe use of virtual table "pragma_table_info"
    SELECT load_extension('x')
        the function load_extension is refused: only reading tables is allowed
    SELECT 1 WHERE LOAD_EXTENSION('x', 'y')
        the function load_extension is refused: only reading tables is allowed
    SELECT * FROM extension
        unsafe use of load_extension()
    SELECT readfile('/etc/passwd')
        there is no function "readfile"
    SELECT writefile('…/new.db', 'x')
        there is no function "writefile"
    SELECT fts3_tokenizer('simple')
        the function fts3_tokenizer is refused: only reading tables is allowed
    SELECT sqlite_log(1, 'x')
        the function sqlite_log is refused: only reading tables is allowed
    SELECT json_patch('{}', '{}')
        the function json_patch, which cannot be interrupted, is refused: only reading tables is allowed
    SELECT * FROM dbstat
        reading dbstat is refused: only reading tables is allowed
    SELECT * FROM sqlite_dbpage
        there is no table "sqlite_dbpage" in "shop"
    CREATE TABLE u (a)
        INSERT is refused: only reading tables is allowed
    CREATE TEMP TABLE u (a)
        INSERT is refused: only reading tables is allowed
    CREATE TEMP VIEW u AS SELECT 1
        INSERT is refused: only reading tables is allowed
    CREATE TEMP TRIGGER u AFTER INSERT ON t BEGIN SELECT 1; END
        CREATE is refused: only reading tables is allowed
    CREATE VIRTUAL TABLE u USING fts5(a)
        INSERT is refused: only reading tables is allowed
    CREATE VIRTUAL TABLE temp.u USING rtree(a, b, c)
        INSERT is refused: only reading tables is allowed
    CREATE INDEX u ON t (a)
        INSERT is refused: only reading tables is allowed
    INSERT INTO t VALUES (3)
        INSERT is refused: only reading tables is allowed
    INSERT INTO t VALUES (3) RETURNING a
        INSERT is refused: only reading tables is allowed
    INSERT INTO notes (notes) VALUES ('rebuild')
        INSERT is refused: only reading tables is allowed
    WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x
        INSERT is refused: only reading tables is allowed
    WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x
        near "DELETE": syntax error at line 1, column 12
    UPDATE t SET a = 9 RETURNING a
        UPDATE is refused: only reading tables is allowed
    DELETE FROM t RETURNING a
        DELETE is refused: only reading tables is allowed
    REPLACE INTO t VALUES (1)
        INSERT is refused: only reading tables is allowed
    UPDATE sqlite_schema SET sql = ''
        table sqlite_master may not be modified
    DROP TABLE t
        DELETE is refused: only reading tables is allowed
    ALTER TABLE t RENAME TO u
        ALTER TABLE is refused: only reading tables is allowed
    REINDEX
        REINDEX is refused: only reading tables is allowed
    ANALYZE
        INSERT is refused: only reading tables is allowed
    BEGIN
        controlling the transaction is refused: only reading tables is allowed
    COMMIT
        controlling the transaction is refused: only reading tables is allowed
    END
        controlling the transaction is refused: only reading tables is allowed
    ROLLBACK
        controlling the transaction is refused: only reading tables is allowed
    SAVEPOINT s
        SAVEPOINT is refused: only reading tables is allowed
    RELEASE s
        SAVEPOINT is refused: only reading tables is allowed
    SELECT 1; DELETE FROM t
        DELETE is refused: only reading tables is allowed
    SELECT 1; SELECT 2
        the text contains more than one statement
    EXPLAIN SELECT a FROM t
        only a statement that reads and returns rows is allowed
    EXPLAIN QUERY PLAN SELECT a FROM t
        only a statement that reads and returns rows is allowed
    -- nothing
        only a statement that reads and returns rows is allowed

        only a statement that reads and returns rows is allowed
    SELECT 1 ␀ ; DELETE FROM t
        a NUL character is refused: only reading tables is allowed
    SELECT zeroblob(1000000000)
        a text, a blob or a row exceeds the size limit
    SELECT printf('%.*c', 1000000000, 'x')
        a text, a blob or a row exceeds the size limit
    SELECT group_concat(hex(zeroblob(1000000))) FROM json_each('[1,2,3,4,5,6,7,8,9,10]')
        a text, a blob or a row exceeds the size limit
    "#);
    assert_eq!(attempts.plan_and_run("SELECT a FROM t").await.unwrap(), 2);
    assert_eq!(attempts.files(), before);
}

#[tokio::test]
async fn virtual_table_queries_are_allowed() {
    let attempts = EscapeFixture::new();
    for sql in [
        "SELECT rowid, body FROM notes WHERE notes MATCH 'fox' ORDER BY rank",
        "SELECT highlight(notes, 0, '<', '>'), snippet(notes, 0, '<', '>', '…', 5), bm25(notes) FROM notes('fox')",
        "SELECT snippet(old_notes), length(matchinfo(old_notes)) FROM old_notes WHERE body MATCH 'fox'",
        "SELECT id FROM places WHERE low < 5 AND high > 1",
        "SELECT key, value FROM json_each('[7]')",
        "SELECT value FROM json_tree('7')",
    ] {
        assert_eq!(attempts.plan_and_run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")), 1, "{sql}");
    }
}

#[tokio::test]
async fn text_functions_take_linear_time() {
    let attempts = EscapeFixture::new();
    // Each would take many minutes if it took the product of the lengths.
    for call in [
        "instr(a, half || 'b')",
        "replace(a, half || 'b', '')",
        "instr(CAST(a AS BLOB), CAST(half || 'b' AS BLOB))",
        "trim(a, replace(half, 'a', 'bc') || 'a')",
        "ltrim(a, replace(half, 'a', 'bc') || 'a')",
        "rtrim(a, replace(half, 'a', 'bc') || 'a')",
        "unhex(replace(a, 'a', '-'), replace(half, 'a', '.') || '-')",
    ] {
        let sql = format!(
            "SELECT {call} FROM (SELECT replace(hex(zeroblob(200000)), '0', 'a') AS a, \
             replace(hex(zeroblob(100000)), '0', 'a') AS half)"
        );
        assert_eq!(attempts.plan_and_run(&sql).await.unwrap_or_else(|error| panic!("{call}: {error}")), 1, "{call}");
    }
    let error =
        attempts.plan_and_run("SELECT replace(hex(zeroblob(4000)), '0', hex(zeroblob(4000)))").await.unwrap_err();
    assert_eq!(error.kind(), tidegate_core::ErrorKind::TooLarge);
}

#[tokio::test]
async fn authorizer_is_restored_after_internal_sql() {
    let attempts = EscapeFixture::new();
    let work = |reading: &ReadTransaction<'_>| {
        crate::catalog::read_catalog(reading)?;
        Ok(reading
            .prepare("SELECT * FROM pragma_table_list")
            .is_ok_and(|mut statement| statement.raw_query().next().is_ok()))
    };
    assert!(!attempts.pool.read(None, work).await.unwrap());
}

#[tokio::test]
async fn panic_closes_the_connection_and_frees_the_permit() {
    let attempts = EscapeFixture::with_options(SqliteOptions { connections_max: 1, ..SqliteOptions::default() });
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let panicked = attempts.pool.read(None, |_| -> Result<(), _> { panic!("a fault") }).await;
    std::panic::set_hook(hook);
    assert_eq!(panicked.unwrap_err().kind(), tidegate_core::ErrorKind::Internal);
    assert_eq!(attempts.plan_and_run("SELECT a FROM t").await.unwrap(), 2);
}

/// A caller to whom policies apply.
fn restricted_caller() -> (RowPolicies, Option<Arc<PolicyCaller>>) {
    let policy = RowPolicy {
        table: "t".to_owned(),
        rows: Some(RowCondition::parse("a = :claims.a").unwrap()),
        columns: [("a".to_owned(), Mask::Hash)].into(),
        except_roles: BTreeSet::new(),
    };
    let policies = RowPolicies::new(vec![policy], HashKey::from_secret(b"key"));
    let mut principal = Principal::new("ann", AuthMethod::Token, Arc::new(Grants::everything()));
    principal.claims.insert("a".to_owned(), 1.into());
    let policy_caller = PolicyCaller::for_principal(&policies, &principal);
    (policies, policy_caller)
}

#[tokio::test]
async fn security_barrier_names_are_rejected() {
    let (row_policies, policy_caller) = restricted_caller();
    let attempts =
        EscapeFixture::with_options(SqliteOptions { row_policies, connections_max: 1, ..SqliteOptions::default() });
    let find = |reading: &ReadTransaction<'_>| {
        reading.create_views_for(None)?;
        Ok(reading.policy_views().unwrap().token.clone())
    };
    let tried = [
        "WITH \"xTOKEN\" AS (SELECT name FROM sqlite_schema) SELECT * FROM \"xTOKEN\"",
        "WITH \"xTOKEN\" AS (SELECT a FROM main.t) SELECT * FROM \"xTOKEN\"",
        "WITH \"t#TOKEN\" AS (SELECT name FROM sqlite_schema) SELECT * FROM \"t#TOKEN\"",
        "WITH x AS (SELECT tidegate_mask_TOKEN('1', 3, 0)) SELECT * FROM x",
        "WITH \"xTOKEN\" AS (SELECT TIDEGATE_MASK_TOKEN('1', 3, 0)) SELECT * FROM \"xTOKEN\"",
    ];
    for sql in tried {
        // A connection that has refused something may be another one the next time.
        let token = attempts.pool.read(policy_caller.clone(), find).await.unwrap();
        let sql = sql.replace("TOKEN", &token);
        let requested = |sql: &str| SqliteStatement { sql: sql.to_owned(), ..SqliteStatement::default() };
        let message =
            plan_statement(attempts.pool.clone(), policy_caller.clone(), requested(&sql)).await.err().unwrap();
        assert_eq!(message.to_string(), "the SQL uses a name that is reserved for row policies");
        let messages = plan_statement(attempts.pool.clone(), policy_caller.clone(), requested(&sql.to_uppercase()))
            .await
            .err()
            .unwrap();
        assert_eq!(messages.to_string(), "the SQL uses a name that is reserved for row policies");
        // The authorizer alone rejects it.
        let prepare = move |reading: &ReadTransaction<'_>| reading.prepare(&sql).map(drop);
        assert!(attempts.pool.read(policy_caller.clone(), prepare).await.is_err());
    }
}

#[test]
fn trailing_limit_bounds_the_rows() {
    assert_eq!(trailing_limit("SELECT a FROM t LIMIT 20"), Some(20));
    assert_eq!(trailing_limit("SELECT a FROM t limit\n 20 "), Some(20));
    assert_eq!(trailing_limit("SELECT a FROM t LIMIT 20 OFFSET 5"), None);
    assert_eq!(trailing_limit("SELECT * FROM (SELECT a FROM t LIMIT 20)"), None);
    assert_eq!(trailing_limit("SELECT a FROM t -- LIMIT 20"), None);
    assert_eq!(trailing_limit("SELECT 'LIMIT 20'"), None);
    assert_eq!(trailing_limit("SELECT a FROM t LIMIT $1"), None);
}
