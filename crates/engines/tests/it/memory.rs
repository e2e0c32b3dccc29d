//! Limits of memory and disk.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeListArray, Int8Array, Int32Array, Int64Array, ListArray,
    ListViewArray, RecordBatch, RunArray, StringArray, StringViewArray, StructArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{Field, Int32Type};
use futures::StreamExt;
use futures::future::join_all;
use tidegate_core::{Error, ErrorKind};
use tidegate_engines::EngineOptions;

use crate::support::{
    Folder, TestNode, numbers, two_thread_options, wait_until, with_timeout, write_arrow, write_parquet,
};

fn large_table(options: EngineOptions) -> (Folder, TestNode) {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(300_000), 50_000);
    let node = folder.database_with(options);
    (folder, node)
}

/// Memory that is too small for a sort of all rows.
fn tight_memory() -> EngineOptions {
    EngineOptions { threads: 2, query_memory_bytes: 14 << 20, ..EngineOptions::with_memory(14 << 20) }
}

#[tokio::test]
async fn a_sort_larger_than_its_memory_spills_and_ends() {
    let (_folder, node) = large_table(tight_memory());
    let (mut job, mut rows) = node.start("SELECT name, id FROM n ORDER BY name DESC").await;
    let logged = with_timeout("the log message", job.next_log("temporary files")).await;
    assert!(logged.contains("\"bytes\":"), "{logged}");
    let mut spilled = 0;
    let mut count = 0;
    let mut first = None;
    while let Some(batch) = with_timeout("a sorted batch", rows.batches.next()).await {
        let batch = batch.unwrap();
        spilled = spilled.max(node.engine.spilled_bytes());
        first.get_or_insert_with(|| crate::support::lines(&[batch.slice(0, 1)]));
        count += batch.num_rows();
        assert!(node.engine.memory_used_bytes() <= 14 << 20);
    }
    assert_eq!((count, first.as_deref()), (300_000, Some("name 99999|99999")));
    assert!(spilled > 0, "nothing was spilled");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn query_over_its_memory_limit_fails_alone() {
    let options = EngineOptions { query_memory_bytes: 4 << 20, threads: 2, ..EngineOptions::with_memory(64 << 20) };
    let (_folder, node) = large_table(options);
    let (_job, mut other) = node.start("SELECT * FROM n").await;
    with_timeout("the other's first batch", other.batches.next()).await.unwrap().unwrap();
    let error = node.refusal("SELECT a.name, b.name FROM n a CROSS JOIN n b").await;
    insta::assert_snapshot!(error, @r"
    too_large: the query exceeds the memory limit of one query
    Request less: filter before joining, join on equal columns, aggregate, or select fewer columns.
    ");
    let mut rows = 0;
    while let Some(batch) = with_timeout("the other's next batch", other.batches.next()).await {
        rows += batch.unwrap().num_rows();
    }
    assert!(rows > 250_000, "the other query got {rows} rows more");
    assert_eq!(node.rows("SELECT count(*) FROM n").await, "300000");
}

#[tokio::test]
async fn all_queries_together_are_bounded() {
    let options = EngineOptions { query_memory_bytes: 40 << 20, threads: 2, ..EngineOptions::with_memory(45 << 20) };
    let (_folder, node) = large_table(options);
    let sql = "SELECT a.name, b.name FROM n a CROSS JOIN n b";
    let (_first_job, mut first) = node.start(sql).await;
    with_timeout("the first query's first batch", first.batches.next()).await.unwrap().unwrap();
    let held = node.engine.memory_used_bytes();
    assert!(held > 5 << 20, "{held} bytes are held by the first query");
    let mut more = Vec::new();
    let refused = loop {
        let (job, mut rows) = node.start(sql).await;
        match with_timeout("another query", rows.batches.next()).await.unwrap() {
            Ok(_) => more.push((job, rows)),
            Err(error) => break error,
        }
        assert!(node.engine.memory_used_bytes() <= 45 << 20);
        assert!(more.len() < 100, "nothing bounds the queries");
    };
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert!(refused.to_string().starts_with("not enough memory is available while other queries run"), "{refused}");
    with_timeout("the first query's next batch", first.batches.next()).await.unwrap().unwrap();
    drop((first, more));
    node.wait_until_idle().await;
}

#[tokio::test]
async fn many_scans_at_once_hold_few_row_groups() {
    let folder = Folder::new();
    // With its pages, each row group counts about 1.5 MiB.
    write_parquet(&folder.join("n.parquet"), &numbers(40_000), 20_000);
    let node = folder.database_with(EngineOptions { threads: 2, ..EngineOptions::with_memory(16 << 20) });
    // Both inputs of the union are read at the same time.
    let statements = [("SELECT * FROM n", 40_000), ("SELECT * FROM n UNION ALL SELECT * FROM n", 80_000)];
    let read = |(sql, rows): (&'static str, usize)| {
        let node = &node;
        async move {
            let (_job, mut stream) = node.start(sql).await;
            let (mut count, mut most) = (0, 0);
            while let Some(batch) = with_timeout("a batch", stream.batches.next()).await {
                count += batch.unwrap().num_rows();
                most = most.max(node.engine.decoding_bytes());
            }
            assert_eq!(count, rows, "{sql}");
            most
        }
    };
    let most = join_all(statements.into_iter().cycle().take(24).map(read)).await.into_iter().max();
    let most = most.unwrap_or_default();
    // Twice the budget, which is a quarter of the memory, and what a union needs beyond it.
    assert!(most > 0 && most <= 12 << 20, "{most} bytes of row groups");
    wait_until("the end of decoding", || node.engine.decoding_bytes() == 0).await;
}

#[tokio::test]
async fn what_is_spilled_is_bounded() {
    let options = EngineOptions { spill_bytes: 1 << 20, ..tight_memory() };
    let (_folder, node) = large_table(options);
    insta::assert_snapshot!(node.refusal("SELECT name, id FROM n ORDER BY name DESC").await, @r"
    too_large: the query exceeds the limit for spilling to disk
    Request less: filter before sorting or joining, or aggregate.
    ");
    node.wait_until_idle().await;
}

/// `mod(id + 1, 8), mod(id + 2, 8), …`
fn remainders(count: usize) -> String {
    (1..=count).map(|number| format!("mod(id + {number}, 8)")).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn grouping_sets_stay_within_the_memory_of_a_query() {
    let limit = 64 << 20;
    let options = EngineOptions { threads: 2, query_memory_bytes: limit, ..EngineOptions::with_memory(limit) };
    let (_folder, node) = large_table(options);
    // All together, they distinguish all rows.
    let digits: Vec<String> = (0..12_u32).map(|digit| format!("id / {} % 3", 3_u32.pow(digit))).collect();
    let sql = format!("SELECT count(*) AS n FROM n GROUP BY CUBE ({})", digits.join(", "));
    let before = anonymous_bytes();
    let mut highest = before;
    let mut running = Box::pin(async {
        let (_job, mut rows) = node.start(&sql).await;
        while let Some(Ok(_)) = rows.batches.next().await {}
    });
    // It is cancelled long before its end.
    for _ in 0..200 {
        if tokio::time::timeout(Duration::from_millis(10), &mut running).await.is_ok() {
            break;
        }
        highest = highest.max(anonymous_bytes());
    }
    drop(running);
    node.wait_until_idle().await;
    assert!(highest - before < 3 * limit, "{} MiB", (highest - before) >> 20);
}

#[tokio::test]
async fn grouping_sets_are_counted_before_they_are_listed() {
    let (_folder, node) = large_table(two_thread_options());
    for groups in [format!("CUBE ({})", remainders(30)), format!("CUBE ({0}), CUBE ({0})", remainders(7))] {
        let refusal = node.refusal(&format!("SELECT count(*) FROM n GROUP BY {groups}")).await;
        assert!(refusal.contains("list "), "{refusal}");
    }
    let sql = format!("SELECT count(*) AS n FROM n WHERE id < 4 GROUP BY CUBE ({})", remainders(12));
    assert_eq!(node.rows(&format!("SELECT count(*), sum(n) FROM ({sql})")).await, "16381|16384");
}

#[tokio::test]
async fn functions_that_multiply_are_bounded() {
    let (_folder, node) = large_table(two_thread_options());
    for sql in [
        "SELECT repeat('x', 2000000000)",
        "SELECT length(repeat(name, 100000)) FROM n",
        "SELECT rpad('x', 2000000000)",
        "SELECT sum(cardinality(range(1, 1000000000)))",
        "SELECT cardinality(range(0, 1000000000, 2))",
        "SELECT replace(repeat('x', 1000000), 'x', repeat('y', 1000)) FROM n",
        "SELECT concat(t, t, t, t) FROM (SELECT repeat(name, 1000) AS t FROM n)",
        "SELECT cardinality(array_repeat(name, 100000)) FROM n",
    ] {
        let refusal = with_timeout(sql, node.refusal(sql)).await;
        assert!(refusal.starts_with("too_large: ") && refusal.contains("64 MiB"), "{sql}: {refusal}");
    }
    assert_eq!(node.rows("SELECT length(repeat('ab', 1000)), cardinality(range(0, 10, 3))").await, "2000|4");
    assert_eq!(node.rows("SELECT lpad('x', 3, '-'), array_repeat(1, 3), range(3)").await, "--x|[1, 1, 1]|[0, 1, 2]");
}

#[tokio::test]
async fn a_statement_that_grows_by_its_names_is_refused() {
    let (_folder, node) = large_table(two_thread_options());
    let doubled = |levels: usize| {
        let first = "c0 AS (SELECT id AS x FROM n WHERE id < 3)".to_owned();
        let named = |n: usize| format!("c{} AS (SELECT a.x FROM c{n} a JOIN c{n} b ON a.x = b.x)", n + 1);
        let ctes: Vec<String> = std::iter::once(first).chain((0..levels).map(named)).collect();
        format!("WITH {} SELECT count(*) FROM c{levels}", ctes.join(", "))
    };
    let added = |levels: usize| {
        let inner = (0..levels)
            .fold("SELECT id AS x FROM n".to_owned(), |inner, n| format!("SELECT x + x AS x FROM ({inner}) t{n}"));
        format!("SELECT count(*) FROM ({inner}) t WHERE x > 0")
    };
    let requested = |levels: usize| format!("SELECT (SELECT count(*) FROM ({}) s) AS n", doubled(levels));
    for sql in [doubled(60), added(24), requested(60)] {
        let refusal = with_timeout(&sql, node.refusal(&sql)).await;
        assert!(refusal.starts_with("too_large: ") && refusal.contains("the limit is"), "{sql}: {refusal}");
    }
    assert_eq!(node.rows(&doubled(4)).await, "3");
    assert_eq!(node.rows(&added(8)).await, "299999");
}

#[tokio::test]
async fn long_literal_shortens_batches() {
    let (_folder, node) = large_table(two_thread_options());
    let text = "x".repeat(100_000);
    let batches = node.batches(&format!("SELECT '{text}', id FROM n LIMIT 2000"), Vec::new()).await.unwrap();
    let longest = batches.iter().map(|batch| batch.num_rows()).max().unwrap();
    assert!(longest <= (64 << 20) / 100_000, "{longest} rows of 100 kB in one batch");
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2_000);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_scan_holds_some_batches_and_not_the_file() {
    let rows = 300_000;
    let folder = Folder::new();
    let filler = "x".repeat(300);
    let mut text = String::from("id,filler\n");
    for id in 0..rows {
        text.push_str(&format!("{id},{filler}\n"));
    }
    folder.write("wide.csv", &text);
    folder.write(
        "wide.ndjson",
        (0..rows).map(|id| format!("{{\"id\":{id},\"filler\":\"{filler}\"}}\n")).collect::<String>(),
    );
    drop(text);
    let node = folder.database();
    for table in ["wide_csv", "wide_ndjson"] {
        let before = anonymous_bytes();
        let (_job, mut stream) = node.start(&format!("SELECT * FROM {table}")).await;
        let (mut count, mut most) = (0, 0);
        while let Some(batch) = with_timeout("a batch", stream.batches.next()).await {
            count += batch.unwrap().num_rows();
            most = most.max(anonymous_bytes());
        }
        assert_eq!(count, rows);
        let grown = most.saturating_sub(before);
        assert!(grown < 64 << 20, "{table}: anonymous memory grew by {grown} bytes over a file of 90 MB");
    }
}

/// Anonymous memory of this process.
#[cfg(target_os = "linux")]
pub(crate) fn anonymous_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1_024
}

#[tokio::test]
async fn nulls_among_the_values_of_a_dictionary_are_null() {
    let folder = Folder::new();
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
    let keys = Int8Array::from(vec![Some(0), Some(1), Some(2), None, Some(1)]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
    let rows = RecordBatch::try_from_iter_with_nullable([("d", dictionary, true)]).unwrap();
    write_arrow(&folder.join("t.arrow"), &rows, false);
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(d), count(*) FROM t").await, "2|5");
    assert_eq!(node.rows("SELECT d FROM t").await, "a\nnull\nc\nnull\nnull");
}

/// A dictionary with one text is small, and its rows are not.
#[tokio::test]
async fn values_of_dictionaries_in_files_are_sent_in_short_batches() {
    const ROWS: usize = 400;
    let text_bytes = 1 << 20;
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(text_bytes)]));
    let texts: ArrayRef = Arc::new(DictionaryArray::new(Int8Array::from(vec![0; ROWS]), texts));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let rows = RecordBatch::try_from_iter([("id", ids), ("d", texts)]).unwrap();
    let folder = Folder::new();
    write_arrow(&folder.join("a.arrow"), &rows, false);
    write_arrow(&folder.join("s.arrows"), &rows, true);
    write_parquet(&folder.join("p.parquet"), &rows, ROWS);
    let node = folder.database();
    for table in ["a", "s", "p"] {
        let sql = format!("SELECT id, d FROM {table} WHERE id >= 0");
        let (_job, mut answer) = node.start(&sql).await;
        let mut count = 0;
        while let Some(batch) = with_timeout("a batch", answer.batches.next()).await {
            let batch = batch.unwrap();
            assert!(batch.num_rows() <= 8, "{} rows of {table}", batch.num_rows());
            count += batch.num_rows();
        }
        assert_eq!(count, ROWS, "{table}");
        let sql = format!("SELECT min(length(d)), max(length(d)) FROM {table}");
        assert_eq!(with_timeout(&sql, node.rows(&sql)).await, format!("{text_bytes}|{text_bytes}"));
        assert_eq!(node.columns(table).await.unwrap(), "id bigint, d text");
    }
}

/// The outcome of `sql`, and the growth of anonymous memory while it ran.
async fn run_measured(node: &TestNode, sql: &str) -> (Result<String, Error>, usize) {
    let before = anonymous_bytes();
    let mut highest = before;
    let mut running = Box::pin(node.try_rows(sql));
    loop {
        match tokio::time::timeout(Duration::from_millis(5), &mut running).await {
            Ok(outcome) => return (outcome, highest - before),
            Err(_) => highest = highest.max(anonymous_bytes()),
        }
    }
}

async fn assert_bounded(node: &TestNode, sql: &str, answer: &str, bytes_max: usize) {
    let (outcome, grown) = run_measured(node, sql).await;
    assert_eq!(outcome.unwrap_or_else(|error| panic!("{sql}: {error}")), answer, "{sql}");
    assert!(grown < bytes_max, "{sql}: {} MiB", grown >> 20);
}

fn query_memory(bytes: usize) -> EngineOptions {
    EngineOptions { threads: 2, query_memory_bytes: bytes, ..EngineOptions::with_memory(2 * bytes) }
}

const TEXT_BYTES: usize = 1_000_000;

/// A dictionary with `rows` times the same long text.
fn one_text(rows: usize) -> ArrayRef {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(TEXT_BYTES)]));
    Arc::new(DictionaryArray::new(Int8Array::from(vec![0; rows]), text))
}

fn write_values(folder: &Folder, table: &str, values: ArrayRef) {
    let rows = RecordBatch::try_from_iter([("v", values)]).unwrap();
    write_arrow(&folder.join(&format!("{table}.arrows")), &rows, true);
}

/// 400 megabytes, of which each file has one.
#[tokio::test]
async fn texts_that_rows_share_are_not_copied_for_each_of_them() {
    const ROWS: usize = 400;
    let folder = Folder::new();
    let text = "x".repeat(TEXT_BYTES);
    write_values(&folder, "dictionary", one_text(ROWS));
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![ROWS as i32]), &StringArray::from(vec![&*text]));
    write_values(&folder, "runs", Arc::new(runs.unwrap()));
    let views = take(&StringViewArray::from(vec![&*text]), &UInt32Array::from(vec![0; ROWS]), None);
    write_values(&folder, "views", views.unwrap());
    let rows = RecordBatch::try_from_iter([("v", one_text(ROWS))]).unwrap();
    write_parquet(&folder.join("parquet.parquet"), &rows, ROWS);
    // So little that the rows of an operator are spilled.
    let node = folder.database_with(query_memory(32 << 20));
    for table in ["dictionary", "runs", "views", "parquet"] {
        for (sql, answer) in [
            ("SELECT length(max(v)) FROM", "1000000"),
            ("SELECT max(length(v)) FROM", "1000000"),
            ("SELECT max(length(v || '!')) FROM", "1000001"),
            ("SELECT count(*) FROM {} WHERE v LIKE '%y%'", "0"),
            ("SELECT count(v) FROM {} WHERE v LIKE 'x%'", "400"),
        ] {
            let sql = if sql.contains("{}") { sql.replace("{}", table) } else { format!("{sql} {table}") };
            assert_bounded(&node, &sql, answer, 200 << 20).await;
        }
        let sql = format!("SELECT cardinality(array_agg(v)) FROM {table}");
        let (outcome, grown) = run_measured(&node, &sql).await;
        let refusal = outcome.map_err(|error| error.kind());
        assert_eq!(refusal, Err(ErrorKind::TooLarge), "{sql}");
        assert!(grown < 200 << 20, "{sql}: {} MiB", grown >> 20);
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn nested_values_that_rows_share_are_copied_in_short_batches() {
    const ROWS: usize = 300;
    let folder = Folder::new();
    let item = |values: &ArrayRef| Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let items: ArrayRef = Arc::new(Int64Array::from(vec![0; 1 << 17]));
    let (offsets, sizes) = (vec![0_i32; ROWS], vec![1_i32 << 17; ROWS]);
    let views = ListViewArray::new(item(&items), offsets.into(), sizes.into(), items, None);
    write_values(&folder, "views", Arc::new(views));
    let texts = one_text(ROWS);
    let lists = ListArray::new(item(&texts), OffsetBuffer::from_lengths(vec![1; ROWS]), texts.clone(), None);
    write_values(&folder, "lists", Arc::new(lists));
    write_values(&folder, "pairs", Arc::new(FixedSizeListArray::new(item(&texts), 1, texts.clone(), None)));
    let member = Arc::new(Field::new("t", texts.data_type().clone(), true));
    write_values(&folder, "structs", Arc::new(StructArray::from(vec![(member, texts)])));
    let node = folder.database_with(query_memory(256 << 20));
    for table in ["views", "lists", "pairs", "structs"] {
        let sql = format!("SELECT count(*) FROM (SELECT v FROM {table} GROUP BY v)");
        assert_bounded(&node, &sql, "1", 280 << 20).await;
    }
    node.wait_until_idle().await;
}

/// Forty million items, of which the file has some bytes.
#[tokio::test]
async fn long_lists_of_parquet_files_are_read_in_short_batches() {
    const ROWS: usize = 400;
    let folder = Folder::new();
    let items: ArrayRef = Arc::new(Int8Array::from(vec![0; ROWS * 100_000]));
    let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let lists: ArrayRef = Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([100_000; ROWS]), items, None));
    write_parquet(&folder.join("t.parquet"), &RecordBatch::try_from_iter([("v", lists)]).unwrap(), ROWS);
    let node = folder.database();
    assert_bounded(&node, "SELECT sum(cardinality(v)) FROM t", "40000000", 100 << 20).await;
}

#[tokio::test]
async fn a_filter_collects_as_many_wide_rows_as_make_a_batch() {
    let folder = Folder::new();
    let text = "x".repeat(1 << 20);
    let lines = (0..150).map(|id| format!("{id},{text}\n"));
    folder.write("t.csv", std::iter::once("id,v\n".to_owned()).chain(lines).collect::<String>());
    let node = folder.database();
    let before = anonymous_bytes();
    let (_job, mut answer) = node.start("SELECT v FROM t WHERE id >= 0").await;
    let (mut count, mut most) = (0, 0);
    while let Some(batch) = with_timeout("a batch", answer.batches.next()).await {
        count += batch.unwrap().num_rows();
        most = most.max(anonymous_bytes());
    }
    let grown = most.saturating_sub(before);
    assert_eq!(count, 150);
    assert!(grown < 120 << 20, "{} MiB", grown >> 20);
}
