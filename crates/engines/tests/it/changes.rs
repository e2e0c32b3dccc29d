//! Queries use new, changed and removed files without a restart.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use tidegate_core::Principal;
use tidegate_engines::{FederatedDatabase, FileLimits};
use tidegate_query::{Database, Freshness};
use tidegate_testkit::wait::wait_until;

use crate::support::{
    Folder, TestNode, make_old, no_rescan_limits, numbers, settle, two_thread_options, wait_until_all_settled,
    wait_until_settled, write_arrow, write_parquet,
};

#[tokio::test]
async fn sees_added_changed_and_removed_files() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    let node = folder.database();
    assert_eq!(node.tables().await, "a: 1 rows");

    folder.write("b.csv", "x,y\n1,2\n");
    assert_eq!(node.rows("SELECT x, y FROM b").await, "1|2");

    folder.write("a.csv", "id,name\n1,one\n2,two\n");
    assert_eq!(node.rows("SELECT name FROM a").await, "one\ntwo");

    folder.remove("b.csv");
    assert_eq!(node.tables().await, "a: 2 rows");
    assert!(node.refusal("SELECT * FROM b").await.contains("there is no table \"b\""));

    folder.write("parts/1.csv", "id\n1\n");
    folder.write("parts/2.csv", "id\n2\n");
    assert_eq!(node.rows("SELECT sum(id) FROM parts").await, "3");
    folder.write("parts/3.csv", "id\n4\n");
    assert_eq!(node.rows("SELECT sum(id) FROM parts").await, "7");
    folder.remove("parts");
    assert_eq!(node.tables().await, "a: 2 rows");
}

#[tokio::test]
async fn a_parquet_file_that_is_replaced_is_read_anew() {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(10), 10);
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*), max(id) FROM n").await, "10|9");
    write_parquet(&folder.join("n.parquet"), &numbers(20), 10);
    assert_eq!(node.rows("SELECT count(*), max(id) FROM n").await, "20|19");
    assert_eq!(node.rows("SELECT name FROM n WHERE id = 19").await, "name 19");
}

#[tokio::test]
async fn a_plan_is_made_again_when_a_parquet_file_was_replaced_since() {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(10), 10);
    let node = folder.database();
    let plan = node.plan("SELECT * FROM n").await.unwrap();
    write_parquet(&folder.join("n.parquet"), &numbers(20), 10);
    let job = crate::support::TestJob::start().await;
    let mut rows = plan.run(&job.job).await.unwrap();
    let mut count = 0;
    while let Some(batch) = futures::StreamExt::next(&mut rows.batches).await {
        count += batch.unwrap().num_rows();
    }
    assert_eq!(count, 20);
}

/// A second file of that name renames the table, once the folder is scanned again.
#[tokio::test]
async fn statements_over_unchanged_files_do_not_scan_the_folder() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    settle(&folder.join("a.csv"), 1).await;
    let node = without_rescans(&folder);
    assert_eq!(node.rows("SELECT count(*) FROM a").await, "1");
    folder.write("a.json", "[{\"id\": 2}]");
    assert_eq!(node.rows("SELECT count(*) FROM a").await, "1");
    assert_eq!(node.tables().await, "a_csv: 1 rows\na_json: 1 rows");
    assert!(node.refusal("SELECT count(*) FROM a").await.contains("there is no table \"a\""));
}

/// The tables and notes of a folder that does not change any more. No listing scans it.
async fn unchanged_listing(folder: &Folder, node: &TestNode) -> String {
    let listing = async || format!("{}\n{}", node.tables().await, node.catalog().await.notes.join("\n"));
    wait_until_all_settled(&folder.path()).await;
    let (first, scans) = (listing().await, node.database.folder_scans());
    for _ in 0..3 {
        assert_eq!(listing().await, first);
    }
    let together = futures::future::join_all((0..50).map(|_| node.catalog())).await;
    assert!(together.iter().all(|catalog| Arc::ptr_eq(catalog, &together[0])));
    assert_eq!(node.database.folder_scans(), scans, "{first}");
    first
}

/// Each change is made when the database knows the folder as it was.
#[cfg(unix)]
#[tokio::test]
async fn listings_of_a_folder_scan_it_after_a_change_only() {
    use std::os::unix::fs::symlink;
    let one = "id\n1\n";
    let folder = Folder::with(&[("a.csv", one), ("sub/b.csv", one), ("v1/t.csv", one), ("v2/t.csv", "id\n1\n2\n")]);
    folder.write("c.unknown", "text, not a table");
    let link_to = |release: &str| {
        symlink(folder.join(release), folder.join("next")).unwrap();
        fs::rename(folder.join("next"), folder.join("live")).unwrap();
    };
    link_to("v1");
    let node = folder.database();
    let before = unchanged_listing(&folder, &node).await;
    for line in ["a: 1 rows", "sub.b: 1 rows", "live.t: 1 rows", "skipped c.unknown: unsupported format"] {
        assert!(before.contains(line), "{line}: {before}");
    }
    let rename = || fs::rename(folder.join("new.csv"), folder.join("sub/renamed.csv")).unwrap();
    let changes: [(&str, &dyn Fn()); 8] = [
        ("new: 1 rows", &|| drop(folder.write("new.csv", one))),
        ("sub: 2 rows", &rename),
        ("sub.deep.d: 1 rows", &|| drop(folder.write("sub/deep/d.csv", one))),
        ("a: 3 rows", &|| drop(folder.write("a.csv", "id\n1\n2\n3\n"))),
        ("live.t: 2 rows", &|| link_to("v2")),
        ("skipped c.unknown: SQLite database", &|| drop(folder.write("c.unknown", b"SQLite format 3\0"))),
        ("a: unreadable", &|| drop(folder.write("a.csv", ""))),
        ("sub.b: 1 rows", &|| folder.remove("sub/renamed.csv")),
    ];
    for (line, change) in changes {
        change();
        let next = format!("{}\n{}", node.tables().await, node.catalog().await.notes.join("\n"));
        assert!(next.contains(line), "{line}: {next}");
        assert_eq!(unchanged_listing(&folder, &node).await, next);
    }
}

/// The metadata of their folder does not show the change.
#[cfg(unix)]
#[tokio::test]
async fn a_listing_has_what_a_broken_link_leads_to_later() {
    let folder = Folder::with(&[("a.csv", "id\n1\n"), (".hidden/other.csv", "id\n1\n")]);
    std::os::unix::fs::symlink(folder.join(".hidden/b.csv"), folder.join("b.csv")).unwrap();
    let node = folder.database();
    wait_until_all_settled(&folder.path()).await;
    for _ in 0..2 {
        assert!(node.tables().await.contains("b: unreadable"));
    }
    folder.write(".hidden/b.csv", "id\n1\n2\n");
    assert_eq!(node.tables().await, "a: 1 rows\nb: 2 rows");
}

/// The glob is for other files than those that say what the folder is.
#[tokio::test]
async fn a_listing_refuses_a_folder_that_becomes_a_table_of_another_format() {
    let folder = Folder::with(&[("data/a.csv", "id\n1\n"), ("data/metadata/notes.txt", "")]);
    let node = TestNode::open(vec![folder.join("data/*.csv")], two_thread_options());
    assert_eq!(unchanged_listing(&folder, &node).await, "a: 1 rows\n");
    folder.write("data/metadata/v1.metadata.json", "{}");
    assert!(node.tables().await.contains("Iceberg tables are not read"));
}

/// Without a pause: some have the same time.
#[tokio::test]
async fn each_listing_has_all_files_that_were_written_before_it() {
    let folder = Folder::new();
    let node = folder.database();
    for number in 1..=12 {
        folder.write(&format!("t{number}.csv"), "id\n1\n");
        assert_eq!(node.catalog().await.tables.len(), number);
    }
}

/// So many files are not compared on the thread of a call.
#[tokio::test]
async fn each_listing_scans_a_folder_with_many_files() {
    let folder = Folder::new();
    for number in 1..=20 {
        folder.write(&format!("t{number}.csv"), "id\n1\n");
    }
    let node = folder.database();
    wait_until_all_settled(&folder.path()).await;
    for scans in 1..=3 {
        assert_eq!((node.catalog().await.tables.len(), node.database.folder_scans()), (20, scans));
    }
    folder.write("t21.csv", "id\n1\n");
    assert_eq!(node.catalog().await.tables.len(), 21);
}

/// A database whose folders are scanned again only if a statement needs it.
fn without_rescans(folder: &Folder) -> TestNode {
    TestNode::open_with(vec![folder.path()], two_thread_options(), no_rescan_limits())
}

/// Writes a table whose column `x` has the value `x` in each row: as many bytes for each digit.
fn write_rows(path: &Path, x: i64) {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![x; 3]));
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => fs::write(path, format!("x\n{x}\n{x}\n{x}\n")).unwrap(),
        Some("json") => fs::write(path, format!("[{{\"x\": {x}}}, {{\"x\": {x}}}, {{\"x\": {x}}}]")).unwrap(),
        Some("ndjson") => fs::write(path, format!("{{\"x\": {x}}}\n").repeat(3)).unwrap(),
        Some("arrow") => write_arrow(path, &batch, false),
        Some("arrows") => write_arrow(path, &batch, true),
        _ => write_parquet(path, &batch, 10),
    }
}

/// How a program writes a file anew.
#[derive(Debug, Clone, Copy)]
enum Replacement {
    Rename,
    UnlinkAndCreate,
    TruncateAndWrite,
}

impl Replacement {
    const ALL: [Self; 3] = [Self::Rename, Self::UnlinkAndCreate, Self::TruncateAndWrite];

    fn replace(self, path: &Path, x: i64) {
        match self {
            Self::Rename => {
                let extension = path.extension().unwrap().to_str().unwrap();
                let next = path.with_file_name(format!(".next.{extension}"));
                write_rows(&next, x);
                fs::rename(next, path).unwrap();
            }
            Self::UnlinkAndCreate => {
                fs::remove_file(path).unwrap();
                write_rows(path, x);
            }
            Self::TruncateAndWrite => write_rows(path, x),
        }
    }
}

/// By statements that are answered from rows in memory, from statistics, from pruned row groups, and from rows.
async fn assert_all_rows_are(node: &TestNode, x: i64, case: &str) {
    let other = (x + 1) % 10;
    let filtered = |value: i64| format!("SELECT count(*) FROM t WHERE x = {value}");
    for (sql, expected) in [
        ("SELECT x FROM t".to_owned(), format!("{x}\n{x}\n{x}")),
        (format!("SELECT x FROM t WHERE x = {x} LIMIT 1"), x.to_string()),
        ("SELECT count(*), min(x), max(x) FROM t".to_owned(), format!("3|{x}|{x}")),
        (filtered(x), "3".to_owned()),
        (filtered(other), "0".to_owned()),
        ("SELECT x + 0 AS y FROM t ORDER BY y LIMIT 1".to_owned(), x.to_string()),
    ] {
        for _ in 0..3 {
            assert_eq!(node.rows(&sql).await, expected, "{case}: {sql}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_is_read_anew_by_the_next_statement() {
    for extension in ["csv", "json", "ndjson", "parquet", "arrow", "arrows"] {
        for replacement in Replacement::ALL {
            let (folder, case) = (Folder::new(), format!("{extension}, {replacement:?}"));
            let path = folder.join(&format!("t.{extension}"));
            write_rows(&path, 1);
            let node = without_rescans(&folder);
            let (freshness, principal) = (|| node.freshness("SELECT max(x) FROM t"), Principal::anonymous());
            let version = || node.database.version_tag(Some("t"), &principal);
            assert_all_rows_are(&node, 1, &case).await;
            replacement.replace(&path, 2);
            assert_all_rows_are(&node, 2, &case).await;

            settle(&path, 1).await;
            assert_all_rows_are(&node, 2, &case).await;
            let before = (freshness().await, version().await.unwrap());
            assert!(matches!(before.0, Freshness::UntilChanged(_)), "{case}");
            // Programs that copy files keep their time.
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            replacement.replace(&path, 3);
            fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
            assert_ne!(freshness().await, before.0, "{case}");
            assert_ne!(version().await.unwrap(), before.1, "{case}");
            assert_all_rows_are(&node, 3, &case).await;
            replacement.replace(&path, 4);
            assert_all_rows_are(&node, 4, &case).await;
        }
    }
}

#[tokio::test]
async fn a_new_file_is_a_table_for_the_next_statement() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    let node = without_rescans(&folder);
    assert_eq!(node.rows("SELECT id FROM a").await, "1");
    assert!(node.refusal("SELECT id FROM b").await.contains("there is no table \"b\""));
    folder.write("b.csv", "id\n2\n");
    assert_eq!(node.rows("SELECT id FROM b").await, "2");
    folder.write("parts/1.csv", "id\n3\n");
    folder.write("parts/2.csv", "id\n4\n");
    assert_eq!(node.rows("SELECT sum(a.id + parts.id) FROM a, parts").await, "9");
    folder.write("d.json", "[{\"x\": 4}]");
    assert_eq!(node.columns("d").await.unwrap(), "x bigint");
    folder.write("e.csv", "id\n5\n");
    assert!(node.freshness("SELECT id FROM e").await == Freshness::Never, "it has just been written");
    folder.write("f.csv", "id\n6\n");
    assert_eq!(node.tables().await, "a: 1 rows\nb: 1 rows\nd: 1 rows\ne: 1 rows\nf: 1 rows\nparts: 2 rows");
    folder.remove("f.csv");
    assert!(node.refusal("SELECT id FROM f").await.contains("there is no table \"f\""));
}

#[tokio::test]
async fn a_broken_file_that_is_mended_is_read_by_the_next_statement() {
    let folder = Folder::new();
    let path = folder.write("t.parquet", "half a file");
    let node = without_rescans(&folder);
    for _ in 0..2 {
        assert!(node.refusal("SELECT x FROM t").await.contains("the table \"t\" cannot be read"));
        wait_until_settled(&path).await;
    }
    write_rows(&path, 1);
    assert_all_rows_are(&node, 1, "mended").await;
}

/// The files of a folder: each change is made when the database knows the folder as it was.
#[tokio::test]
async fn the_files_of_a_folder_are_those_of_the_moment() {
    let folder = Folder::with(&[("parts/0.csv", "x\n0\n"), ("parts/1.csv", "x\n1\n"), ("days/day=1/a.csv", "x\n1\n")]);
    let node = without_rescans(&folder);
    let sums = async |parts: &str, days: &str, change: &str| {
        assert_eq!(node.rows("SELECT sum(x) FROM parts").await, parts, "{change}");
        assert_eq!(node.rows("SELECT sum(x) FROM days").await, days, "{change}");
        for name in ["parts", "days", "days/day=1"] {
            wait_until_settled(&folder.join(name)).await;
        }
        assert_eq!(node.rows("SELECT sum(x) FROM parts").await, parts, "{change}");
        assert_eq!(node.rows("SELECT sum(x) FROM days").await, days, "{change}");
    };
    sums("1", "1", "nothing").await;
    folder.write("parts/2.csv", "x\n2\n");
    folder.write("days/day=1/b.csv", "x\n2\n");
    sums("3", "3", "a second file").await;
    let empty = folder.write("parts/3.csv", "");
    fs::create_dir(folder.join("days/day=2")).unwrap();
    wait_until_settled(&empty).await;
    wait_until_settled(&folder.join("days/day=2")).await;
    sums("3", "3", "an empty file, an empty folder").await;
    fs::write(&empty, "x\n4\n").unwrap();
    folder.write("days/day=2/a.csv", "x\n4\n");
    sums("7", "7", "their rows").await;
    folder.remove("parts/1.csv");
    folder.remove("days/day=1/b.csv");
    sums("6", "5", "a file less").await;
    folder.write("days/day=3/a.csv", "x\n8\n");
    folder.write("parts/2.csv", "x\n9\n");
    sums("13", "13", "a new folder, a file written anew").await;
}

/// As a release is switched to the next one, whose files have the same names and sizes.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_another_folder_is_followed_by_the_next_statement() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let link_to = |release: &str, link: &str| {
        let next = folder.join("next");
        symlink(folder.join(release), &next).unwrap();
        fs::rename(next, folder.join(link)).unwrap();
    };
    for (release, x) in [("v1", 1), ("v2", 2)] {
        fs::create_dir(folder.join(release)).unwrap();
        for name in ["t.parquet", "u.parquet"] {
            let path = folder.join(release).join(name);
            write_rows(&path, x);
            make_old(&path, 1);
        }
    }
    wait_until_settled(&folder.join("v2/u.parquet")).await;
    link_to("v1", "current");
    fs::create_dir(folder.join("apps")).unwrap();
    link_to("v1", "apps/live");
    let root = TestNode::open_with(vec![folder.join("current")], two_thread_options(), no_rescan_limits());
    // Both releases are within the database, so that the link is followed.
    let inner = without_rescans(&folder);
    assert_all_rows_are(&root, 1, "root").await;
    assert_eq!(inner.rows("SELECT max(x) FROM apps.live").await, "1");
    link_to("v2", "current");
    link_to("v2", "apps/live");
    assert_all_rows_are(&root, 2, "root").await;
    assert_eq!(inner.rows("SELECT max(x) FROM apps.live").await, "2");
}

#[tokio::test]
async fn vanished_path_is_reported_and_recovers() {
    let folder = Folder::with(&[("data/a.csv", "id\n1\n")]);
    let node = TestNode::open(vec![folder.join("data")], two_thread_options());
    assert_eq!(node.tables().await, "a: 1 rows");
    folder.remove("data");
    let error = node.refusal("SELECT * FROM a").await;
    assert_eq!(error, "unavailable: the files of the database cannot be found");
    folder.write("data/a.csv", "id\n2\n");
    assert_eq!(node.rows("SELECT id FROM a").await, "2");
}

#[tokio::test]
async fn freshness_ends_with_file_change_and_volatile_functions() {
    let folder = Folder::with(&[("a.csv", "id\n1\n"), ("b.csv", "id\n2\n")]);
    let node = folder.database();
    // The file is new for two seconds. A query that begins later is too late.
    wait_until("an answer while the file may change within the same tick", async || {
        folder.write("a.csv", "id\n1\n");
        node.freshness("SELECT * FROM a").await == Freshness::Never
    })
    .await;
    let (a, b) = (folder.join("a.csv"), folder.join("b.csv"));
    settle(&a, 2).await;
    settle(&b, 2).await;
    let before = node.freshness("SELECT max(id) FROM a").await;
    assert!(matches!(before, Freshness::UntilChanged(_)), "{before:?}");
    assert_eq!(node.freshness("SELECT max(id) FROM a").await, before);
    settle(&b, 1).await;
    assert_eq!(node.freshness("SELECT max(id) FROM a").await, before, "another table changed");
    folder.write("a.csv", "id\n3\n");
    settle(&a, 1).await;
    assert_ne!(node.freshness("SELECT max(id) FROM a").await, before);
    for sql in [
        "SELECT now() FROM a",
        "SELECT random() FROM a",
        "SELECT id FROM a WHERE current_date > '2026-01-01'",
        "SELECT id FROM a WHERE 'today'::date > '2026-01-01'",
        "SELECT age(timestamp '2020-01-01') FROM a",
        "SELECT uuid()",
    ] {
        assert_eq!(node.freshness(sql).await, Freshness::Never, "{sql}");
    }
    for sql in ["SELECT upper('a'), abs(id), count(*) OVER () FROM a", "SELECT * FROM generate_series(1, 3)"] {
        assert!(matches!(node.freshness(sql).await, Freshness::UntilChanged(_)), "{sql}");
    }
}

/// A scan that takes longer than its callers wait serves the next one.
#[tokio::test]
async fn a_scan_goes_on_when_its_callers_leave() {
    let folder = Folder::new();
    for number in 0..300 {
        folder.write(&format!("t{number}.csv"), "id,name\n1,one\n");
    }
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), FileLimits::default());
    wait_until("an answer for a caller in a hurry", async || {
        tokio::time::timeout(Duration::from_millis(20), node.columns("t1")).await.is_ok()
    })
    .await;
}

/// A late value corrects the type of a column for everybody who uses the table: a stored answer, a subscriber, a join.
#[tokio::test]
async fn a_corrected_type_is_that_of_every_reader() {
    let rows = "1,b\n".repeat(3_000);
    let folder = Folder::with(&[("t.csv", &format!("price,x\n9999,a\n19999,a\n{rows}unknown,c\n"))]);
    settle(&folder.join("t.csv"), 1).await;
    let (node, principal) = (folder.database(), Principal::anonymous());
    let all = FederatedDatabase::new("all", [node.database.clone() as Arc<dyn Database>], &node.engine).unwrap();
    let of_join = async || all.columns("db.t", &principal).await.unwrap()[0].type_name.clone();
    let sql = "SELECT max(price) FROM t WHERE x = 'a'";
    let state = async || {
        let version = |table| node.database.version_tag(table, &principal);
        (node.freshness(sql).await, version(Some("t")).await.unwrap(), version(None).await.unwrap())
    };
    let before = state().await;
    assert!(matches!(before.0, Freshness::UntilChanged(_)));
    assert_eq!(
        (node.columns("t").await.unwrap(), of_join().await),
        ("price bigint, x text".to_owned(), "bigint".to_owned())
    );

    assert_eq!(node.rows("SELECT price FROM t WHERE x = 'c'").await, "unknown");
    let after = state().await;
    assert!(matches!(after.0, Freshness::UntilChanged(_)) && after.0 != before.0, "stored answers are of the old type");
    assert!(after.1 != before.1 && after.2 != before.2, "subscribers are notified");
    assert_eq!(
        (node.columns("t").await.unwrap(), of_join().await),
        ("price text, x text".to_owned(), "text".to_owned())
    );
    assert_eq!(node.rows(sql).await, "9999", "all rows are compared as text");
    assert!(node.freshness(sql).await == after.0, "the answer may be reused");

    // The correction is that of the file, not of its name.
    folder.write("t.csv", "price,x\n9999,a\n19999,a\n");
    assert_eq!(node.rows(sql).await, "19999");
    assert_eq!(node.columns("t").await.unwrap(), "price bigint, x text");
}
