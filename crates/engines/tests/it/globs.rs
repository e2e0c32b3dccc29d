//! Globs: only the matching files of a folder become tables.

use insta::assert_snapshot;
use tidegate_engines::{EmbeddedDatabase, Engine};

use crate::support::{Folder, TestNode, numbers, two_thread_options, write_parquet};

const A: &str = "id,name\n1,a\n2,b\n";
const B: &str = "id,name\n3,c\n";

fn open(folder: &Folder, globs: &[&str]) -> TestNode {
    TestNode::open(globs.iter().map(|glob| folder.join(glob)).collect(), two_thread_options())
}

#[tokio::test]
async fn only_matching_files_are_tables() {
    let folder = Folder::with(&[
        ("data/2023-01.csv", A),
        ("data/2024-01.csv", A),
        ("data/2024-02.csv", B),
        ("data/2024-02.json", "[]"),
        ("data/2024-notes.txt", "no table"),
        ("data/sub/2024-03.csv", B),
        ("data/.2024-04.csv", B),
    ]);
    assert_snapshot!(open(&folder, &["data/2024-*.csv"]).tables().await, @r"
    2024-01: 2 rows
    2024-02: 1 rows
    ");
    assert_eq!(open(&folder, &["data/202[34]-0?.csv"]).rows("SELECT count(*) FROM \"2023-01\"").await, "2");
    assert_snapshot!(open(&folder, &["data/**/2024-0[13].csv"]).tables().await, @r"
    2024-01: 2 rows
    sub.2024-03: 1 rows
    ");
}

#[tokio::test]
async fn matching_folders_are_laid_out_as_usual() {
    let folder = Folder::with(&[
        ("data/sales/2023.csv", A),
        ("data/sales/2024.csv", B),
        ("data/sales/notes.json", r#"[{"note": "x"}]"#),
        ("data/misc/one.csv", A),
        ("data/misc/two.csv", "x,y\n1,2\n"),
        ("data/by/year=2023/a.csv", A),
        ("data/by/year=2024/b.csv", B),
    ]);
    write_parquet(&folder.join("data/deep/er/n.parquet"), &numbers(3), 10);
    let all = open(&folder, &["data/**/*.csv"]);
    assert_snapshot!(all.tables().await, @r"
    by: 3 rows
    misc.one: 2 rows
    misc.two: 1 rows
    sales: 3 rows
    ");
    assert_eq!(all.rows("SELECT year, count(*) FROM by GROUP BY year ORDER BY year").await, "2023|2\n2024|1");
    assert_snapshot!(open(&folder, &["data/**/*.parquet"]).tables().await, @"deep.er.n: 3 rows");
    assert_snapshot!(open(&folder, &["data/s*"]).tables().await, @r"
    sales.2023: 2 rows
    sales.2024: 1 rows
    sales.notes: 1 rows
    ");
}

#[tokio::test]
async fn folders_files_and_globs_stand_side_by_side() {
    let folder = Folder::with(&[
        ("one/a.csv", A),
        ("two/b.csv", B),
        ("three/c1.csv", A),
        ("three/c2.csv", B),
        ("three/d.csv", B),
    ]);
    let node = open(&folder, &["one", "two/b.csv", "three/c*.csv", "three/none-*.csv"]);
    assert_snapshot!(node.tables().await, @r"
    a: 2 rows
    b: 1 rows
    c1: 2 rows
    c2: 1 rows
    ");
}

#[tokio::test]
async fn sees_added_and_removed_files() {
    let folder = Folder::with(&[("data/other.csv", A)]);
    let node = open(&folder, &["data/2024-*.csv"]);
    assert_eq!(node.tables().await, "", "nothing fits yet");
    folder.write("data/2024-01.csv", A);
    assert_eq!(node.tables().await, "2024-01: 2 rows");
    folder.write("data/2024-02.csv", B);
    folder.write("data/2025-01.csv", B);
    assert_eq!(node.rows("SELECT id FROM \"2024-02\"").await, "3");
    folder.remove("data/2024-01.csv");
    assert_eq!(node.tables().await, "2024-02: 1 rows");
}

#[tokio::test]
async fn a_file_called_like_a_glob_is_that_file() {
    let folder = Folder::with(&[("a[1].csv", A), ("a1.csv", B)]);
    assert_eq!(open(&folder, &["a[1].csv"]).tables().await, "a[1]: 2 rows");
    folder.remove("a[1].csv");
    assert_eq!(open(&folder, &["a[1].csv"]).tables().await, "a1: 1 rows");
}

#[tokio::test]
async fn rejects_invalid_globs_and_lists_unmatched_ones() {
    let folder = Folder::with(&[("data/a.csv", A)]);
    let engine = Engine::start(two_thread_options()).unwrap();
    let opened = |glob: &str| EmbeddedDatabase::open("db", vec![folder.join(glob)], &engine);
    let refused = |glob: &str| {
        let error = opened(glob).err().unwrap().to_string();
        error.replace(&folder.path().display().to_string(), "")
    };
    assert_eq!(refused("nowhere/*.csv"), "/nowhere: no such file or folder");
    assert_eq!(refused("data/a.csv/*.csv"), "/data/a.csv: not a folder, so no file in it can match the glob");
    assert_eq!(refused("data/*/../x.csv"), "/data/*/../x.csv: invalid glob: .. is not allowed after a wildcard");
    assert!(refused("data/a**.csv").starts_with("/data/a**.csv: invalid glob: "));
    assert_eq!(opened("data/b*.csv").unwrap().unmatched_globs(), ["b*.csv"]);
    assert_eq!(opened("data/a*.csv").unwrap().unmatched_globs(), Vec::<String>::new());
    engine.shutdown(crate::support::TEST_TIMEOUT).await;
}

#[cfg(unix)]
#[tokio::test]
async fn reads_nothing_outside_the_glob_folder() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with(&[("in/a.csv", A), ("in/sub/b.csv", B), ("secret.csv", A), ("out/c.csv", A)]);
    symlink(folder.join("secret.csv"), folder.join("in/link.csv")).unwrap();
    symlink(folder.join("in/sub/b.csv"), folder.join("in/alias.csv")).unwrap();
    symlink(folder.join("out"), folder.join("in/away")).unwrap();
    assert_snapshot!(open(&folder, &["in/*.csv", "in/*/c.csv"]).tables().await, @r"
    a: 2 rows
    alias: 1 rows
    link: unreadable, it is a symbolic link that points outside the database folder
    ");
    let inner = open(&folder, &["in/sub/*.csv"]);
    symlink(folder.join("in/a.csv"), folder.join("in/sub/up.csv")).unwrap();
    assert_snapshot!(inner.tables().await, @r"
    b: 1 rows
    up: unreadable, it is a symbolic link that points outside the database folder
    ");
}
