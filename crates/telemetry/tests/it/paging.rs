//! Cursors: pages of any size, forward and backward, while rows are added, neither repeat nor lose an entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::Int8Type;
use proptest::prelude::*;
use tidegate_telemetry::logs::{
    EntryPositions, LogBatch, LogCursor, LogDirection, LogPage, LogScan, LogScanRequest, PageRequest, SourceId,
};

/// A row of a source: rows with the same time and text are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    source: u64,
    time: i64,
    text: u8,
}

type Counts = BTreeMap<Row, usize>;

fn counts<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Counts {
    let mut counts = Counts::new();
    rows.into_iter().for_each(|row| *counts.entry(row.clone()).or_default() += 1);
    counts
}

/// What distinguishes rows of a source with the same time.
#[derive(Debug, Clone, Copy)]
enum Positions {
    /// New rows of a source have larger positions.
    OfSource,
    /// The source has files with this number of rows. A new file may come before the others in the order.
    InFiles(u64),
    None,
}

/// Rows of three sources, whose batches come in any order.
#[derive(Debug, Clone)]
struct Log {
    rows: Vec<Row>,
    positions: Positions,
    batch_rows: usize,
}

/// The identity of a file: any number that does not grow with the number of files.
fn file_id(file: u64) -> u64 {
    file.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Log {
    fn page(&self, direction: LogDirection, limit: usize, cursor: Option<LogCursor>) -> LogPage {
        let page = PageRequest { direction, limit, cursor };
        let request = LogScanRequest { time_column: "time".to_owned(), page: Some(page), ..LogScanRequest::default() };
        let mut scan = LogScan::new(request).unwrap();
        for source in 0..3 {
            let rows: Vec<(u64, &Row)> = (0..).zip(self.rows.iter().filter(|row| row.source == source)).collect();
            let mut batches: Vec<&[(u64, &Row)]> = rows.chunks(self.batch_rows).collect();
            // The order of batches must not matter.
            if source == 1 {
                batches.reverse();
            }
            for rows in batches {
                let numbers = |number: &dyn Fn(u64) -> u64| -> UInt64Array {
                    rows.iter().map(|(position, _)| Some(number(*position))).collect()
                };
                let file_rows = if let Positions::InFiles(rows) = self.positions { rows } else { 1 };
                let (positions, files) = (numbers(&|row| row), numbers(&|row| file_id(row / file_rows)));
                let offsets = numbers(&|row| row % file_rows);
                let positions = match self.positions {
                    Positions::OfSource => EntryPositions::Column(&positions),
                    Positions::InFiles(_) => EntryPositions::InFiles { files: &files, offsets: &offsets },
                    Positions::None => EntryPositions::RowHash,
                };
                let batch = batch(rows.iter().map(|(_, row)| *row));
                let input = LogBatch { batch: &batch, source: SourceId(source), positions };
                scan.push(&input).unwrap();
            }
        }
        let answer = scan.finish();
        assert_eq!(answer.matched, self.rows.len() as u64);
        answer.page.unwrap()
    }
}

/// The same time for a number of rows.
fn times(rows: usize) -> ArrayRef {
    let times = Int64Array::from(vec![1_000_000_000; rows]);
    arrow::compute::cast(&times, &arrow::datatypes::DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None))
        .unwrap()
}

fn batch<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> RecordBatch {
    let times: Int64Array = rows.clone().map(|row| Some(row.time * 1_000_000_000)).collect();
    let times = arrow::compute::cast(
        &times,
        &arrow::datatypes::DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None),
    );
    let texts: StringArray = rows.map(|row| Some(row.text.to_string())).collect();
    RecordBatch::try_from_iter([("time", times.unwrap()), ("text", Arc::new(texts) as ArrayRef)]).unwrap()
}

/// The rows of a page; its cursor is written and read, as between two calls.
fn read(page: &LogPage) -> (Vec<Row>, Option<LogCursor>) {
    let rows = page.entries.iter().map(|entry| {
        let text = entry.batch.column_by_name("text").unwrap().as_string::<i32>().value(entry.row).to_owned();
        Row { source: entry.key.source.0, time: entry.key.time / 1_000_000_000, text: text.parse().unwrap() }
    });
    let cursor = page.next.as_ref().map(|cursor| LogCursor::decode(&cursor.encode(7), 7).unwrap());
    assert_eq!(page.to_batch().unwrap().num_rows(), page.entries.len());
    (rows.collect(), cursor)
}

fn row(times: std::ops::Range<i64>) -> impl Strategy<Value = Row> {
    (0u64..3, times, 0u8..4).prop_map(|(source, time, text)| Row { source, time, text })
}

fn logs() -> impl Strategy<Value = Log> {
    let positions =
        prop_oneof![Just(Positions::OfSource), (4u64..20).prop_map(Positions::InFiles), Just(Positions::None)];
    (prop::collection::vec(row(0..6), 0..60), positions, 1usize..20).prop_map(|(rows, positions, batch_rows)| Log {
        rows,
        positions,
        batch_rows,
    })
}

/// What is added between two pages: rows with the time of the cursor or the seconds after it.
fn additions() -> impl Strategy<Value = Vec<Vec<Row>>> {
    prop::collection::vec(prop::collection::vec(row(0..3), 0..6), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_are_the_sorted_rows(log in logs(), size in 1usize..70, is_forward in any::<bool>()) {
        let direction = if is_forward { LogDirection::Forward } else { LogDirection::Backward };
        let all = log.page(direction, 1_000, None).entries;
        let is_sorted = all.windows(2).all(|pair| {
            let (one, other) = ((pair[0].key, pair[0].ordinal), (pair[1].key, pair[1].ordinal));
            if is_forward { one < other } else { one > other }
        });
        prop_assert!(is_sorted);
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let page = log.page(direction, size, cursor);
            let (_, next) = read(&page);
            prop_assert_eq!(page.has_more, pages.len() + page.entries.len() < all.len());
            pages.extend(page.entries);
            cursor = next;
            if !page.has_more {
                break;
            }
        }
        let places = |entries: &[tidegate_telemetry::logs::LogEntry]| -> Vec<_> {
            entries.iter().map(|entry| (entry.key, entry.ordinal)).collect()
        };
        prop_assert_eq!(places(&pages), places(&all));
        prop_assert_eq!(pages.len(), log.rows.len());
    }

    #[test]
    fn forward_pages_return_each_row_once_while_rows_are_added(
        mut log in logs(),
        additions in additions(),
        sizes in prop::collection::vec(1usize..20, 1..5),
    ) {
        let (mut returned, mut cursor) = (Vec::new(), None);
        let (mut additions, mut sizes) = (additions.into_iter(), sizes.into_iter().cycle());
        loop {
            let page = log.page(LogDirection::Forward, sizes.next().unwrap(), cursor);
            let (rows, next) = read(&page);
            let last = rows.last().map(|row: &Row| row.time).or(next.as_ref().map(|next| next.time() / 1_000_000_000));
            returned.extend(rows);
            cursor = next;
            match additions.next() {
                Some(added) => log.rows.extend(added.into_iter().map(|row| Row { time: row.time + last.unwrap_or(0), ..row })),
                None if !page.has_more => break,
                None => {}
            }
        }
        prop_assert_eq!(counts(&returned), counts(&log.rows));
    }

    #[test]
    fn backward_pages_return_each_first_row_once_while_rows_are_added(
        mut log in logs(),
        additions in additions(),
        size in 1usize..20,
    ) {
        let first = counts(&log.rows);
        let (mut returned, mut cursor) = (Vec::new(), None);
        let mut additions = additions.into_iter();
        loop {
            let page = log.page(LogDirection::Backward, size, cursor);
            let (rows, next) = read(&page);
            let last = rows.last().map_or(0, |row| row.time);
            returned.extend(rows);
            cursor = next;
            if !page.has_more {
                break;
            }
            let added = additions.next().unwrap_or_default();
            log.rows.extend(added.into_iter().map(|row| Row { time: row.time + last, ..row }));
        }
        let (returned, all) = (counts(&returned), counts(&log.rows));
        for (row, count) in &returned {
            prop_assert!(*count <= all[row], "{:?} was repeated", row);
        }
        for (row, count) in &first {
            prop_assert!(returned.get(row) >= Some(count), "{:?} was lost", row);
        }
    }

    #[test]
    fn the_tail_is_what_was_added(mut log in logs(), added in prop::collection::vec(row(0..3), 0..20), size in 1usize..30) {
        let page = log.page(LogDirection::Backward, size, None);
        let newest = page.entries.first().map_or(0, |entry| entry.key.time / 1_000_000_000);
        let added: Vec<Row> = added.into_iter().map(|row| Row { time: row.time + newest, ..row }).collect();
        log.rows.extend(added.iter().cloned());
        let mut cursor = page.tail.clone();
        let mut returned = Vec::new();
        loop {
            let page = log.page(LogDirection::Forward, size, cursor);
            let (rows, next) = read(&page);
            returned.extend(rows);
            cursor = next;
            if !page.has_more {
                break;
            }
        }
        prop_assert_eq!(counts(&returned), counts(&added));
    }

    #[test]
    fn pages_that_are_cut_continue_after_their_last_entry(
        mut log in logs(),
        additions in additions(),
        size in 2usize..20,
        kept in 1usize..20,
    ) {
        let (mut returned, mut cursor) = (Vec::new(), None);
        let mut additions = additions.into_iter();
        loop {
            let page = log.page(LogDirection::Forward, size, cursor);
            let (rows, _) = read(&page);
            let count = kept.min(rows.len());
            let is_last = !page.has_more && count == rows.len();
            returned.extend(rows.into_iter().take(count));
            cursor = page.cursor_after(count);
            let last = cursor.as_ref().map_or(0, |cursor| cursor.time() / 1_000_000_000);
            match additions.next() {
                Some(added) => log.rows.extend(added.into_iter().map(|row| Row { time: row.time + last, ..row })),
                None if is_last => break,
                None => {}
            }
        }
        prop_assert_eq!(counts(&returned), counts(&log.rows));
    }
}

#[test]
fn many_different_rows_with_one_time_are_neither_repeated_nor_lost() {
    // Each row may be in a file of its own.
    for positions in [Positions::None, Positions::InFiles(1)] {
        for direction in [LogDirection::Forward, LogDirection::Backward] {
            let rows: Vec<Row> = (0..200).map(|text| Row { source: 0, time: 1, text }).collect();
            let log = Log { rows, positions, batch_rows: 30 };
            let (mut returned, mut cursor) = (Vec::new(), None);
            loop {
                let page = log.page(direction, 7, cursor);
                let (rows, next) = read(&page);
                returned.extend(rows);
                assert!(next.as_ref().unwrap().encode(0).len() < 1_000);
                cursor = next;
                if !page.has_more {
                    break;
                }
            }
            assert_eq!(counts(&returned), counts(&log.rows));
        }
    }
}

/// A missing value is displayed as `-`, and is another one than this text.
#[test]
fn rows_that_are_displayed_alike_are_not_taken_for_one() {
    let texts: [Option<&str>; 3] = [None, Some("-"), Some("")];
    let column = |values: ArrayRef| RecordBatch::try_from_iter([("time", times(3)), ("text", values)]).unwrap();
    let plain: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let keys: DictionaryArray<Int8Type> = texts.into_iter().collect();
    for batch in [column(plain), column(Arc::new(keys))] {
        let page = PageRequest { direction: LogDirection::Forward, limit: 10, cursor: None };
        let request = LogScanRequest { time_column: "time".to_owned(), page: Some(page), ..LogScanRequest::default() };
        let mut scan = LogScan::new(request).unwrap();
        let positions = EntryPositions::RowHash;
        scan.push(&LogBatch { batch: &batch, source: SourceId(0), positions }).unwrap();
        let page = scan.finish().page.unwrap().to_batch().unwrap();
        let found = page.column_by_name("text").unwrap().as_string::<i32>().clone();
        let mut found: Vec<Option<&str>> = found.iter().collect();
        found.sort_unstable();
        assert_eq!(found, [None, Some(""), Some("-")]);
    }
}

/// The first rows of a new file after a rotation have small offsets, and the time of the last row before it.
#[test]
fn the_tail_has_rows_of_a_new_file_with_the_time_of_the_last_entry() {
    let row = |text| Row { source: 0, time: 1, text };
    let mut log = Log { rows: vec![row(1), row(2), row(2)], positions: Positions::InFiles(3), batch_rows: 10 };
    let tail = log.page(LogDirection::Backward, 10, None).tail;
    log.rows.extend([row(2), row(3)]);
    assert_eq!(read(&log.page(LogDirection::Forward, 10, tail)).0, [row(2), row(3)]);
}

#[test]
fn a_cursor_of_the_other_direction_is_refused() {
    let page = PageRequest {
        direction: LogDirection::Backward,
        limit: 1,
        cursor: Some(LogCursor::at_time(LogDirection::Forward, 0)),
    };
    let error = LogScan::new(LogScanRequest { page: Some(page), ..LogScanRequest::default() }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cursor goes forward, and direction is backward; leave direction out, or the cursor"
    );
}
