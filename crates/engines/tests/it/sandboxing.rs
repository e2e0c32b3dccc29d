//! Nothing outside the paths is read, and only reading is possible.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Folder, TestNode, numbers_csv, two_thread_options};

const SECRET: &str = "secret\ntreasure\n";

#[cfg(unix)]
#[tokio::test]
async fn links_that_leave_the_folder_are_refused() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with(&[
        ("in/a.csv", "id\n1\n"),
        ("in/sub/b.csv", "id\n2\n"),
        ("out/secret.csv", SECRET),
        ("out/folder/secret.csv", SECRET),
    ]);
    symlink(folder.join("out/secret.csv"), folder.join("in/link.csv")).unwrap();
    symlink("../out/secret.csv", folder.join("in/relative.csv")).unwrap();
    symlink(folder.join("out/folder"), folder.join("in/folder")).unwrap();
    symlink(folder.join("in/a.csv"), folder.join("in/alias.csv")).unwrap();
    symlink(folder.join("in/sub"), folder.join("in/other_sub")).unwrap();
    symlink("loop.csv", folder.join("in/loop.csv")).unwrap();
    symlink("..", folder.join("in/sub/up")).unwrap();
    symlink("/dev/zero", folder.join("in/zero.csv")).unwrap();
    let node = TestNode::open(vec![folder.join("in")], two_thread_options());
    insta::assert_snapshot!(node.tables().await, @r"
    a: 1 rows
    alias: 1 rows
    link: unreadable, it is a symbolic link that points outside the database folder
    loop: unreadable, Too many levels of symbolic links
    other_sub.b: 1 rows
    relative: unreadable, it is a symbolic link that points outside the database folder
    sub.b: 1 rows
    zero: unreadable, it is a symbolic link that points outside the database folder
    ");
    assert_eq!(node.rows("SELECT a.id + alias.id FROM a, alias").await, "2");
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_becomes_a_link_after_the_look_is_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with(&[("in/a.csv", "secret\nnothing\n"), ("out/secret.csv", SECRET)]);
    let node = TestNode::open(vec![folder.join("in")], two_thread_options());
    let plan = node.plan("SELECT * FROM a").await.unwrap();
    folder.remove("in/a.csv");
    symlink(folder.join("out/secret.csv"), folder.join("in/a.csv")).unwrap();
    let job = crate::support::TestJob::start().await;
    let mut rows = plan.run(&job.job).await.unwrap();
    let error = futures::StreamExt::next(&mut rows.batches).await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file a.csv cannot be read: it is a symbolic link that points outside the database folder"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_and_sockets_are_not_opened() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.csv")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let node = folder.database();
    let tables = crate::support::with_timeout("the list", node.tables()).await;
    assert_eq!(tables, "a: 1 rows\npipe: unreadable, it is not a regular file");
}

#[tokio::test]
async fn statements_that_do_more_than_read_are_refused() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    let out = folder.join("out.csv");
    let node = folder.database();
    for sql in [
        format!("COPY a TO '{}'", out.display()),
        "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '/etc/passwd'".to_owned(),
        "CREATE TABLE t AS SELECT 1".to_owned(),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        "INSERT INTO a VALUES (2)".to_owned(),
        "DELETE FROM a".to_owned(),
        "UPDATE a SET id = 2".to_owned(),
        "DROP TABLE a".to_owned(),
        "SET datafusion.execution.batch_size = 1".to_owned(),
        "SHOW ALL".to_owned(),
        "SELECT * FROM '/etc/passwd'".to_owned(),
        "SELECT * FROM \"/etc/passwd\"".to_owned(),
        "SELECT * FROM '../out.csv'".to_owned(),
        "SELECT * FROM read_csv('/etc/passwd')".to_owned(),
        "SELECT * INTO t FROM a".to_owned(),
        "SELECT * FROM information_schema.df_settings".to_owned(),
        "SELECT * FROM a; SELECT 1".to_owned(),
        "EXPLAIN ANALYZE SELECT * FROM a".to_owned(),
        "PREPARE p AS SELECT 1".to_owned(),
        "SELECT @@version".to_owned(),
    ] {
        let refusal = node.refusal(&sql).await;
        assert!(refusal.starts_with("invalid_arguments: ") || refusal.starts_with("not_found: "), "{sql}: {refusal}");
    }
    assert!(!out.exists());
    assert_eq!(fs::read_to_string(folder.join("a.csv")).unwrap(), "id\n1\n");
    assert_eq!(node.tables().await, "a: 1 rows");
}

#[tokio::test]
async fn databases_of_one_engine_do_not_see_each_others_files() {
    use tidegate_engines::{EmbeddedDatabase, Engine};
    use tidegate_query::Database;
    let first = Folder::with(&[("same.csv", "id\n1\n"), ("only.csv", "id\n1\n")]);
    let second = Folder::with(&[("same.csv", "id\n2\n")]);
    crate::support::write_parquet(&first.join("p.parquet"), &crate::support::numbers(3), 10);
    crate::support::write_parquet(&second.join("p.parquet"), &crate::support::numbers(5), 10);
    let engine = Engine::start(two_thread_options()).unwrap();
    let open = |name: &str, folder: &Folder| {
        let limits = crate::support::no_delay_limits();
        let database =
            EmbeddedDatabase::open_with(name, vec![folder.path()], &engine, limits, BTreeMap::new()).unwrap();
        TestNode { engine: engine.clone(), database: std::sync::Arc::new(database) }
    };
    let (a, b) = (open("a", &first), open("b", &second));
    assert_eq!(a.database.name(), "a");
    assert_eq!(a.rows("SELECT id FROM same").await, "1");
    assert_eq!(b.rows("SELECT id FROM same").await, "2");
    assert_eq!(a.rows("SELECT count(*) FROM p WHERE id >= 0").await, "3");
    assert_eq!(b.rows("SELECT count(*) FROM p WHERE id >= 0").await, "5");
    assert!(b.refusal("SELECT * FROM only").await.contains("there is no table \"only\""));
    assert!(b.refusal("SELECT * FROM a.same").await.contains("there is no table \"a.same\""));
}

#[tokio::test]
async fn functions_tell_nothing_of_this_machine() {
    let folder = Folder::with(&[("sub/a.csv", "id\n1\n"), ("sub/b.csv", "id\n2\n"), ("big.csv", &numbers_csv(3))]);
    let node = folder.database();
    let answer = node.batches("SELECT input_file_name() FROM sub", Vec::new()).await;
    let text = match answer {
        Ok(batches) => crate::support::lines(&batches),
        Err(error) => error.to_string(),
    };
    assert!(!text.contains(&folder.path().display().to_string()), "{text}");
}

#[test]
fn a_database_needs_paths_that_exist() {
    use tidegate_engines::{EmbeddedDatabase, Engine};
    let engine = Engine::start(two_thread_options()).unwrap();
    let folder = Folder::new();
    let refusal = |paths| EmbeddedDatabase::open("x", paths, &engine).err().unwrap().to_string();
    assert!(refusal(vec![folder.join("none")]).ends_with("none: no such file or folder"));
    assert_eq!(refusal(Vec::new()), "the database \"x\" has no path");
}
