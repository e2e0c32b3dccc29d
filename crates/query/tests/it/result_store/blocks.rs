//! How rows become blocks.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeListArray, ListArray, RecordBatch,
    RecordBatchOptions, StringArray, StringViewArray, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use arrow::ipc::reader::StreamReader;
use futures::{StreamExt, TryStreamExt};
use proptest::prelude::*;
use tidegate_core::Format;
use tidegate_query::{RowEncoder, result_manifest};
use tidegate_results::{ResultEnd, StoreLimits, StoredResult};

use super::{RunningCall, TestStore, ann, numbered_rows, numbers, read, ready, small_limits, then_pending};
use crate::fake::batch;
use crate::stored::limits;

const KIB: usize = 1024;

async fn sizes(result: &StoredResult) -> Vec<u64> {
    result.progress().blocks.iter().map(|block| block.bytes / KIB as u64).collect()
}

#[tokio::test]
async fn block_size_doubles_up_to_limit() {
    let spool = TestStore::new(StoreLimits { block_bytes: 512 * KIB, ..limits() }).await;
    let rows = numbered_rows(0..20_000, 120);
    let (result, _) = spool.write(&ann(), &rows.schema(), ready([rows])).await;
    let rows: Vec<u64> = result.progress().blocks.iter().map(|block| block.rows).collect();
    // A row is some 132 bytes; text of 64 letters takes three quarters of that on the disk.
    assert!(rows.windows(2).take(3).all(|pair| pair[1] / pair[0] == 2), "{rows:?}");
    assert!(rows[4..].iter().all(|rows| *rows <= 512 * 1024 / 128), "{rows:?}");
    let sizes = sizes(&result).await;
    assert!(sizes[0] <= 64 && sizes.iter().all(|size| *size <= 512), "{sizes:?}");
    assert_eq!(read(&result, 0).await.unwrap(), (0..20_000).collect::<Vec<i64>>());
}

#[tokio::test(start_paused = true)]
async fn rows_that_come_slowly_do_not_wait_for_their_block() {
    let spool = TestStore::new(limits()).await;
    let rows = numbered_rows(0..3, 8);
    let running = RunningCall::from_caller(&ann());
    let writer = spool.begin(&running, &rows.schema()).await.unwrap();
    let result = writer.result().clone();
    // Time stands still unless everybody waits: no more than one moment passes between the row and its block.
    let began = tokio::time::Instant::now();
    let writing = writer.write_all(then_pending([rows]), 0, &running.job);
    tokio::select! {
        _ = writing => panic!("the rows never end"),
        block = result.next_block(0) => assert_eq!(block.unwrap().rows, 3),
    }
    assert!(began.elapsed() <= Duration::from_millis(101));
}

#[tokio::test]
async fn rows_that_come_without_a_pause_leave_in_time_too() {
    let spool = TestStore::new(limits()).await;
    let schema = numbered_rows(0..1, 8).schema();
    // Simulates a source that computes each row slowly, and blocks its thread meanwhile.
    let rows = futures::stream::iter((0..8).map(|number| {
        std::thread::sleep(Duration::from_millis(60));
        Ok(numbered_rows(number..number + 1, 8))
    }));
    let (result, _) = spool.write(&ann(), &schema, rows.boxed()).await;
    assert!(result.progress().blocks.len() >= 3, "{:?}", result.progress());
    assert_eq!(read(&result, 0).await.unwrap(), (0..8).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_row_larger_than_a_block_is_a_block() {
    let spool = TestStore::new(small_limits()).await;
    let rows = numbered_rows(0..4, 300 * KIB);
    let (result, _) = spool.write(&ann(), &rows.schema(), ready([rows])).await;
    let rows: Vec<u64> = result.progress().blocks.iter().map(|block| block.rows).collect();
    assert_eq!(rows, [1, 1, 1, 1]);
    assert_eq!(read(&result, 3).await.unwrap(), [3]);
}

#[tokio::test]
async fn a_result_without_rows_tells_its_columns() {
    let spool = TestStore::new(small_limits()).await;
    let schema = numbered_rows(0..1, 8).schema();
    for batches in [vec![], vec![numbered_rows(0..0, 8), numbered_rows(0..0, 8)]] {
        let (result, written) = spool.write(&ann(), &schema, ready(batches)).await;
        assert_eq!(written.unwrap(), ResultEnd::Complete);
        assert_eq!((result.progress().rows(), result.progress().blocks.len()), (0, 1));
        assert_eq!(result_manifest(&spool.store, &result, None)["columns"][1]["name"], "text");
        assert_eq!(read(&result, 0).await.unwrap(), [0_i64; 0]);
    }
}

#[tokio::test]
async fn rows_without_columns_are_counted() {
    let spool = TestStore::new(small_limits()).await;
    let schema = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(100_000));
    let rows = RecordBatch::try_new_with_options(schema.clone(), vec![], &options).unwrap();
    let (result, written) = spool.write(&ann(), &schema, ready([rows])).await;
    assert_eq!((written.unwrap(), result.progress().rows()), (ResultEnd::Complete, 100_000));
    let stored: Vec<RecordBatch> = result.rows_from(99_990).try_collect().await.unwrap();
    assert_eq!(stored.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
}

/// Columns of every nested type, with values that follow from the number of the row.
fn shapes(rows: usize) -> RecordBatch {
    let words: StringArray = (0..rows).map(|row| (row % 7 != 0).then(|| format!("word {row}"))).collect();
    let dictionary: DictionaryArray<Int32Type> =
        DictionaryArray::new(Int32Array::from_iter_values(0..rows as i32), Arc::new(words.clone()));
    let offsets = OffsetBuffer::from_lengths((0..rows).map(|row| row % 4));
    let items = Int64Array::from_iter_values(0..i64::from(*offsets.last().unwrap()));
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let lists = ListArray::new(item, offsets, Arc::new(items), None);
    let inner = Arc::new(Field::new("item", lists.data_type().clone(), true));
    let one_each = OffsetBuffer::from_lengths(std::iter::repeat_n(1, rows));
    let deep = LargeListArray::new(inner, one_each, Arc::new(lists.clone()), None);
    let members: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("a", DataType::Utf8, true)), Arc::new(words.clone())),
        (Arc::new(Field::new("b", lists.data_type().clone(), true)), Arc::new(lists.clone())),
    ];
    let views: StringViewArray = words.iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
        ("words", Arc::new(words)),
        ("views", Arc::new(views)),
        ("dictionary", Arc::new(dictionary)),
        ("lists", Arc::new(lists)),
        ("deep", Arc::new(deep)),
        ("members", Arc::new(StructArray::from(members))),
    ];
    batch(&columns)
}

/// The rows of `batches` as they are compared, whatever their batches and the values of their dictionaries.
fn plain(batches: &[RecordBatch]) -> String {
    let mut writer = RowEncoder::new(Format::Ndjson, &batches[0].schema()).unwrap();
    let mut text: Vec<u8> = batches.iter().flat_map(|batch| writer.write(batch).unwrap().to_vec()).collect();
    text.extend(writer.finish(false).unwrap());
    String::from_utf8(text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever parts of a batch come, and into whatever blocks they go.
    #[test]
    fn rows_of_every_shape_come_back(rows in 1_usize..3000, cuts in proptest::collection::vec(0_usize..3000, 0..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let spool = TestStore::new(small_limits()).await;
            let whole = shapes(rows);
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut % rows).chain([0, rows]).collect();
            ends.sort_unstable();
            let parts: Vec<_> = ends.windows(2).map(|pair| whole.slice(pair[0], pair[1] - pair[0])).collect();
            let (result, written) = spool.write(&ann(), &whole.schema(), ready(parts)).await;
            assert_eq!((written.unwrap(), result.progress().rows()), (ResultEnd::Complete, rows as u64));
            let stored: Vec<RecordBatch> = result.rows_from(0).try_collect().await.unwrap();
            assert_eq!(plain(&stored), plain(&[whole]));
        });
    }
}

#[tokio::test]
async fn block_stores_only_used_dictionary_values() {
    let spool = TestStore::new(small_limits()).await;
    let whole = shapes(100_000);
    for (index, field) in whole.schema().fields().iter().enumerate() {
        let column = whole.project(&[index]).unwrap();
        let (result, _) = spool.write(&ann(), &column.schema(), ready([column.slice(90_000, 10)])).await;
        let bytes = result.progress().bytes();
        assert!(bytes < 2500, "{}: {bytes}", field.name());
        // Nor is its size taken for that of the rest: ten rows of it are one block.
        let parts: Vec<_> = (0..10).map(|part| column.slice(90_000 + part, 1)).collect();
        let (result, _) = spool.write(&ann(), &column.schema(), ready(parts)).await;
        assert_eq!(result.progress().blocks.len(), 1, "{}", field.name());
    }
}

#[tokio::test]
async fn renames_duplicate_columns() {
    let spool = TestStore::new(small_limits()).await;
    let column = |name: &str| Field::new(name, DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![column("n"), column("n"), column("")]));
    let values = || Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    let rows = RecordBatch::try_new(schema.clone(), vec![values(), values(), values()]).unwrap();
    let (result, _) = spool.write(&ann(), &schema, ready([rows])).await;
    let names: Vec<&str> = result.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["n", "n_2", "column_3"]);
    assert_eq!(read(&result, 1).await.unwrap(), [2]);
}

#[tokio::test]
async fn a_block_is_a_stream_of_its_own() {
    let spool = TestStore::new(small_limits()).await;
    let rows = shapes(5000);
    let (result, _) = spool.write(&ann(), &rows.schema(), ready([rows.clone()])).await;
    let stage = result.progress();
    assert!(stage.blocks.len() > 3);
    let mut first_row = 0;
    let mut all = Vec::new();
    for (index, facts) in stage.blocks.iter().enumerate() {
        let block = result.block(index).await.unwrap();
        assert_eq!((facts.first_row, facts.bytes), (first_row, block.bytes().len() as u64));
        let reader = StreamReader::try_new(std::io::Cursor::new(block.bytes().to_vec()), None).unwrap();
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(facts.rows, count as u64);
        first_row += facts.rows;
        all.extend(batches);
    }
    assert_eq!(plain(&all), plain(&[rows]));
}

#[tokio::test]
async fn buffers_at_most_two_blocks() {
    let spool = TestStore::new(small_limits()).await;
    let running = RunningCall::from_caller(&ann());
    let schema = numbered_rows(0..1, 120).schema();
    let writer = spool.begin(&running, &schema).await.unwrap();
    let result = writer.result().clone();
    let seen = result.clone();
    let batches = futures::stream::iter(0..200_i64).map(move |index| {
        // 64 KiB have fewer than 500 rows: those of one block that is written, those of one that waits, and a batch.
        let held = index as u64 * 50 - seen.progress().rows();
        assert!(held <= 2 * 500 + 50, "{held} rows were taken and not written");
        Ok(numbered_rows(index * 50..(index + 1) * 50, 120))
    });
    let end = writer.write_all(batches.boxed(), 0, &running.job).await.unwrap();
    assert_eq!((result.progress().rows(), end), (10_000, ResultEnd::Complete));
    assert_eq!(
        numbers(&result.block(1).await.unwrap().batches().unwrap())[0],
        result.progress().blocks[1].first_row as i64
    );
}
