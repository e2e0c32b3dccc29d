//! Statements of the owner that run without a transaction around them, because they can leave nothing behind.

use tidegate_postgres::PostgresOptions;
use tidegate_sql::Statement;

use crate::test_database::{OpenDatabase as _, OpenedDatabase, TestDatabase, owner_statement, writing_statement};

const OBJECTS: &str = "
    ALTER ROLE {login} SET default_transaction_isolation = 'serializable';
    ALTER ROLE {login} SET default_transaction_read_only = off;
    CREATE TABLE accounts (id int PRIMARY KEY);
    INSERT INTO accounts VALUES (1);
    CREATE SEQUENCE numbers;
    CREATE FUNCTION mark() RETURNS text LANGUAGE sql AS $$ SELECT set_config('app.mark', 'marked', false) $$;
    GRANT SELECT, UPDATE ON accounts TO {login};
    GRANT USAGE ON numbers TO {login};";

/// All statements run on one connection.
async fn open() -> (TestDatabase, OpenedDatabase) {
    let scene = TestDatabase::new(OBJECTS).await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    (scene, node)
}

fn read() -> Statement {
    owner_statement("SELECT id FROM accounts", Vec::new())
}

/// The last command of the connection: the statement itself if it ran alone, else the end of its transaction.
async fn last_command(scene: &TestDatabase) -> String {
    let login = scene.login();
    scene.value(&format!("SELECT query FROM pg_stat_activity WHERE usename = '{login}'")).await
}

/// What holds for a statement without a transaction around it.
fn defaults() -> Statement {
    let settings =
        ["isolation", "read_only", "deferrable"].map(|name| format!("current_setting('default_transaction_{name}')"));
    owner_statement(&format!("SELECT {}", settings.join(", ")), Vec::new())
}

#[tokio::test]
async fn reading_statement_runs_alone_once_it_is_prepared() {
    let (scene, node) = open().await;
    assert_eq!(node.lines(&read()).await.unwrap(), "1");
    for _ in 0..3 {
        assert_eq!(node.lines(&read()).await.unwrap(), "1");
        if !scene.pooler {
            assert_eq!(last_command(&scene).await, "SELECT id FROM accounts");
        }
    }
    if !scene.pooler {
        assert_eq!(node.lines(&defaults()).await.unwrap(), "read committed|on|off");
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn side_effects_are_rolled_back() {
    let (_scene, node) = open().await;
    for sql in ["SELECT set_config('app.mark', 'marked', false)", "SELECT mark()"] {
        for _ in 0..3 {
            assert_eq!(node.lines(&owner_statement(sql, Vec::new())).await.unwrap(), "marked");
        }
    }
    let mark = owner_statement("SELECT coalesce(current_setting('app.mark', true), '') = ''", Vec::new());
    assert_eq!(node.lines(&mark).await.unwrap(), "true");
    let next = owner_statement("SELECT nextval('numbers')", Vec::new());
    for _ in 0..2 {
        assert!(node.lines(&next).await.unwrap_err().to_string().contains("read-only"));
    }
}

#[tokio::test]
async fn statement_with_an_error_leaves_the_connection_usable() {
    let (_scene, node) = open().await;
    let divide = |by: i64| owner_statement("SELECT 1 / $1::int8", vec![tidegate_sql::Parameter::Integer(by)]);
    assert_eq!(node.lines(&divide(1)).await.unwrap(), "1");
    for _ in 0..3 {
        assert!(node.lines(&divide(0)).await.unwrap_err().to_string().contains("division by zero"));
        assert_eq!(node.lines(&divide(1)).await.unwrap(), "1");
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn committed_changes_of_the_session_end_lone_statements() {
    let (scene, node) = open().await;
    node.lines(&read()).await.unwrap();
    let write = "UPDATE accounts SET id = 1 RETURNING set_config('default_transaction_read_only', 'off', false)";
    node.lines(&writing_statement(write, Vec::new())).await.unwrap();
    for _ in 0..3 {
        assert_eq!(node.lines(&read()).await.unwrap(), "1");
        assert_eq!(last_command(&scene).await, "ROLLBACK");
    }
}
