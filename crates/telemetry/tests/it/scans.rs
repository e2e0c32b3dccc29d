//! Scans: facets, histograms, pages, patterns and context beside naive counts over random batches.

use std::collections::BTreeMap;

use arrow::array::{BooleanArray, RecordBatch, UInt64Array};
use proptest::prelude::*;
use tidegate_telemetry::logs::{
    BARS_MAX, BarWidth, ContextRequest, CountedBar, CountedRows, CountedValues, EntryPositions, FacetAnswer,
    FacetRequest, FieldSelections, HistogramRequest, LogBatch, LogDirection, LogHistogram, LogScan, LogScanAnswer,
    LogScanRequest, MISSING, NANOS_PER_SECOND, PageRequest, SearchColumns, SeriesName, SourceId, TextQuery, TimeRange,
    display_value,
};

use super::fixture::{ColumnTypes, FIELDS, LogRow, batch, column_types, divide, rows};

#[derive(Debug, Clone)]
struct Case {
    rows: Vec<LogRow>,
    types: ColumnTypes,
    cuts: Vec<prop::sample::Index>,
    is_reversed: bool,
    range: (Option<i64>, Option<i64>),
    selections: Vec<(usize, Vec<String>)>,
    query: Option<&'static str>,
    bars: usize,
    series: Option<usize>,
    values_max: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let value = prop::sample::select(vec!["-", "info", "warn", "1", "-2", "1.0", "true", "0.5", "0.01", "NaN", ""]);
    let values = prop::collection::vec(value.prop_map(str::to_owned), 1..4);
    let selections = prop::collection::vec((0usize..FIELDS.len(), values), 0..3);
    let rows = (rows(60), column_types(), prop::collection::vec(any::<prop::sample::Index>(), 0..5), any::<bool>());
    let range = (prop::option::of(0i64..20), prop::option::of(20i64..40));
    let query = prop::option::of(prop::sample::select(vec!["a", "!k", "level:info | s"]));
    let shape = (0usize..60, prop::option::of(0usize..FIELDS.len()), 1usize..8);
    (rows, range, selections, query, shape).prop_map(
        |((rows, types, cuts, is_reversed), range, selections, query, (bars, series, values_max))| Case {
            rows,
            types,
            cuts,
            is_reversed,
            range,
            selections,
            query,
            bars,
            series,
            values_max,
        },
    )
}

impl Case {
    fn request(&self) -> LogScanRequest {
        let facet =
            |field: &&str| FacetRequest { field: (*field).to_owned(), values_max: self.values_max, ranges: None };
        let nanos = |seconds: Option<i64>| seconds.map(|seconds| seconds * NANOS_PER_SECOND);
        let columns = SearchColumns { message: vec!["message".to_owned()], ..SearchColumns::default() };
        LogScanRequest {
            time_column: "time".to_owned(),
            message_column: Some("message".to_owned()),
            range: TimeRange { start: nanos(self.range.0), end: nanos(self.range.1) },
            condition: self.query.map(|query| TextQuery::parse(query).unwrap().to_condition(&columns)),
            selections: self.field_selections(),
            facets: FIELDS.iter().map(facet).collect(),
            histogram: Some(HistogramRequest {
                field: self.series.map(|series| FIELDS[series].to_owned()),
                bars: self.bars,
                series_max: 3,
            }),
            page: Some(PageRequest { direction: LogDirection::Forward, limit: 10, ..PageRequest::default() }),
            patterns: Some(100),
            context: None,
            columns: None,
        }
    }

    fn field_selections(&self) -> FieldSelections {
        let optional = |value: &String| Some(value.clone()).filter(|value| value != MISSING);
        let fields = self.selections.iter();
        let fields = fields.map(|(field, values)| (FIELDS[*field].to_owned(), values.iter().map(optional).collect()));
        FieldSelections::new(fields).unwrap()
    }

    fn scan(&self, whole: &RecordBatch) -> LogScanAnswer {
        let mut scan = LogScan::new(self.request()).unwrap();
        for (start, part) in divide(whole, &self.cuts, self.is_reversed) {
            let positions = positions_from(start, part.num_rows());
            let positions = EntryPositions::Column(&positions);
            scan.push(&LogBatch { batch: &part, source: SourceId(1), positions }).unwrap();
        }
        scan.finish()
    }

    /// What a database would count of the first `end` rows.
    fn counted(&self, whole: &RecordBatch, end: usize) -> CountedRows {
        let matching = |except: Option<&'static str>| (0..end).filter(move |row| self.matches(whole, *row, except));
        let time = |row: usize| self.rows[row].time.map(|time| time * NANOS_PER_SECOND);
        let times: Vec<i64> = matching(None).filter_map(time).collect();
        let matched_times = times.iter().min().copied().zip(times.iter().max().copied());
        let facet = |field: &&'static str| CountedValues {
            values: matching(Some(*field)).map(|row| (value(whole, field, row), 1)).collect(),
            ..CountedValues::default()
        };
        let range = self.request().range;
        let first = range.start.or(matched_times.map(|(first, _)| first));
        let last = range.end.map(|end| end - 1).or(matched_times.map(|(_, last)| last));
        let unit = first.zip(last).map_or(1, |(first, last)| BarWidth::choose(first, last, self.bars).counting_unit());
        let field = self.series.map(|series| FIELDS[series]);
        let mut bars: BTreeMap<(Option<i64>, String), (Option<i64>, u64)> = BTreeMap::new();
        for row in matching(None) {
            let series = field.map_or_else(String::new, |field| value(whole, field, row));
            let key = (time(row).map(|time| time.div_euclid(unit)), series);
            bars.entry(key).or_insert((time(row), 0)).1 += 1;
        }
        let bar = |((_, value), (time, rows))| CountedBar { time, value, rows };
        let matched = matching(None).count() as u64;
        CountedRows {
            evaluated: matched,
            matched,
            seen_times: matched_times,
            matched_times,
            facets: FIELDS.iter().map(facet).collect(),
            bars: bars.into_iter().map(bar).collect(),
        }
    }

    /// Whether a row matches all filters but the selection of `except`.
    fn matches(&self, whole: &RecordBatch, row: usize, except: Option<&str>) -> bool {
        let time = self.rows[row].time;
        let is_in_range = match self.range {
            (None, None) => true,
            (start, end) => time.is_some_and(|time| start.is_none_or(|s| time >= s) && end.is_none_or(|e| time < e)),
        };
        let text = |field: &str| value(whole, field, row);
        let message = text("message");
        let contains = |letter: &str| message != MISSING && fold(&message).contains(letter);
        let is_found = match self.query {
            None => true,
            Some("a") => contains("a"),
            Some("!k") => !contains("k"),
            Some(_) => text("level") == "info" || contains("s"),
        };
        let selections = self.field_selections();
        let mut others = selections.iter().filter(|(field, _)| Some(*field) != except);
        is_in_range && is_found && others.all(|(field, values)| values.contains(&text(field)))
    }
}

/// The positions of `rows` rows, the first of which has the position `start`.
fn positions_from(start: usize, rows: usize) -> UInt64Array {
    UInt64Array::from_iter_values(start as u64..(start + rows) as u64)
}

fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

fn value(batch: &RecordBatch, field: &str, row: usize) -> String {
    batch.column_by_name(field).map_or_else(|| MISSING.to_owned(), |array| display_value(array.as_ref(), row))
}

fn check_histogram(case: &Case, whole: &RecordBatch, matched: &[usize], histogram: &LogHistogram) {
    let field = case.series.map(|series| FIELDS[series]);
    let times: Vec<(i64, usize)> =
        matched.iter().filter_map(|row| Some((case.rows[*row].time? * NANOS_PER_SECOND, *row))).collect();
    assert_eq!(histogram.rows_without_time, (matched.len() - times.len()) as u64);
    assert!(histogram.bars.len() <= BARS_MAX);
    let named: Vec<&str> = histogram
        .series
        .iter()
        .filter_map(|series| match &series.name {
            SeriesName::Value(value) => Some(value.as_str()),
            _ => None,
        })
        .collect();
    for (index, series) in histogram.series.iter().enumerate() {
        let belongs = |row: usize| match (&series.name, field) {
            (SeriesName::All, _) => true,
            (SeriesName::Value(name), Some(field)) => value(whole, field, row) == *name,
            (SeriesName::Other, Some(field)) => !named.contains(&value(whole, field, row).as_str()),
            _ => false,
        };
        assert_eq!(series.rows, times.iter().filter(|(_, row)| belongs(*row)).count() as u64, "{series:?}");
        for bar in &histogram.bars {
            let is_inside = |time: i64| (bar.start..bar.start + histogram.width).contains(&time);
            let expected = times.iter().filter(|(time, row)| is_inside(*time) && belongs(*row)).count() as u64;
            assert_eq!(bar.rows[index], expected, "{series:?} {bar:?}");
        }
    }
    let total: u64 = histogram.series.iter().map(|series| series.rows).sum();
    assert_eq!(total, times.len() as u64);
    assert!(histogram.bars.windows(2).all(|pair| pair[1].start - pair[0].start == histogram.width));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn counted_rows_are_as_scanned_ones(case in cases(), cut in any::<prop::sample::Index>()) {
        let whole = batch(&case.rows, &case.types);
        let cut = cut.index(case.rows.len() + 1);
        let request = || LogScanRequest { page: None, patterns: None, ..case.request() };
        let push = |scan: &mut LogScan, start: usize| {
            let rest = whole.slice(start, case.rows.len() - start);
            let positions = EntryPositions::RowHash;
            scan.push(&LogBatch { batch: &rest, source: SourceId(1), positions }).unwrap();
        };
        let mut counted = LogScan::new(request()).unwrap();
        counted.add_counts(&case.counted(&whole, cut));
        push(&mut counted, cut);
        let mut scanned = LogScan::new(request()).unwrap();
        push(&mut scanned, 0);
        let (counted, scanned) = (counted.finish(), scanned.finish());
        prop_assert_eq!(counted.matched, scanned.matched);
        prop_assert_eq!(counted.facets, scanned.facets);
        let (counted, scanned) = (counted.histogram.unwrap(), scanned.histogram.unwrap());
        if !counted.is_ranking_inexact && !scanned.is_ranking_inexact {
            prop_assert_eq!(counted, scanned);
        }
    }

    #[test]
    fn a_scan_counts_what_a_naive_loop_counts(case in cases()) {
        let whole = batch(&case.rows, &case.types);
        let answer = case.scan(&whole);
        let matched: Vec<usize> = (0..case.rows.len()).filter(|row| case.matches(&whole, *row, None)).collect();
        prop_assert_eq!(answer.evaluated, case.rows.len() as u64);
        prop_assert_eq!(answer.matched, matched.len() as u64);
        prop_assert_eq!(answer.returned, matched.len().min(10) as u64);

        for (field, facet) in FIELDS.iter().zip(&answer.facets) {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for row in (0..case.rows.len()).filter(|row| case.matches(&whole, *row, Some(field))) {
                *counts.entry(value(&whole, field, row)).or_default() += 1;
            }
            let mut expected: Vec<(String, u64)> = counts.into_iter().collect();
            expected.sort_by(|(value, rows), (other, other_rows)| other_rows.cmp(rows).then(value.cmp(other)));
            let FacetAnswer::Values(facet) = facet else { panic!("values were requested") };
            let left_out = expected.split_off(case.values_max.min(expected.len()));
            let found: Vec<_> = facet.values.iter().map(|value| (value.value.clone(), value.rows)).collect();
            prop_assert_eq!(&found, &expected, "{}", field);
            prop_assert_eq!(facet.left_out_values, left_out.len() as u64);
            prop_assert_eq!(facet.left_out_rows, left_out.iter().map(|(_, rows)| rows).sum::<u64>());
            prop_assert_eq!(facet.uncounted_rows, 0);
        }
        check_histogram(&case, &whole, &matched, answer.histogram.as_ref().unwrap());

        let mut sorted: Vec<(Option<i64>, usize)> = matched.iter().map(|row| (case.rows[*row].time, *row)).collect();
        sorted.sort();
        sorted.truncate(10);
        let page = answer.page.unwrap();
        let texts: Vec<String> = page.entries.iter().map(|entry| value(&entry.batch, "message", entry.row)).collect();
        let expected: Vec<String> = sorted.iter().map(|(_, row)| value(&whole, "message", *row)).collect();
        prop_assert_eq!(&texts, &expected);
        let joined = page.to_batch().unwrap();
        for (index, (_, row)) in sorted.iter().enumerate() {
            for field in FIELDS {
                prop_assert_eq!(value(&joined, field, index), value(&whole, field, *row), "{}", field);
            }
        }

        let patterns = answer.patterns.unwrap();
        let pattern_rows: u64 = patterns.patterns.iter().map(|pattern| pattern.rows).sum();
        prop_assert_eq!(pattern_rows + patterns.left_out_rows + patterns.uncounted_rows, matched.len() as u64);
    }

    #[test]
    fn ranges_of_numbers_contain_each_number_once(rows in rows(60), types in column_types(), ranges in 1usize..10) {
        let whole = batch(&rows, &types);
        let facets = ["code", "ratio", "price", "level"].map(|field| FacetRequest {
            field: field.to_owned(),
            values_max: 10,
            ranges: Some(ranges),
        });
        let request =
            LogScanRequest { time_column: "time".to_owned(), facets: facets.to_vec(), ..LogScanRequest::default() };
        let mut scan = LogScan::new(request).unwrap();
        let positions = EntryPositions::RowHash;
        scan.push(&LogBatch { batch: &whole, source: SourceId(0), positions }).unwrap();
        for facet in scan.finish().facets {
            let FacetAnswer::Ranges(facet) = facet else { panic!("ranges were requested") };
            let texts: Vec<String> = (0..rows.len()).map(|row| value(&whole, &facet.field, row)).collect();
            let numbers: Vec<f64> =
                texts.iter().filter_map(|text| text.parse().ok()).filter(|number: &f64| number.is_finite()).collect();
            let missing = texts.iter().filter(|text| *text == MISSING).count();
            prop_assert!(facet.ranges.len() <= ranges.max(2));
            prop_assert_eq!(facet.missing_rows, missing as u64);
            prop_assert_eq!(facet.not_numeric_rows, (texts.len() - missing - numbers.len()) as u64);
            for range in &facet.ranges {
                let inside = numbers.iter().filter(|number| range.from <= **number && **number < range.to).count();
                prop_assert_eq!(range.rows, inside as u64, "{:?}", range);
            }
            prop_assert_eq!(facet.ranges.iter().map(|range| range.rows).sum::<u64>(), numbers.len() as u64);
        }
    }

    #[test]
    fn context_is_what_surrounds_an_entry(
        rows in rows(40),
        types in column_types(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        target in any::<prop::sample::Index>(),
        (before, after) in (0usize..5, 0usize..5),
        has_positions in any::<bool>(),
    ) {
        prop_assume!(!rows.is_empty());
        let whole = batch(&rows, &types);
        let scan = |request: LogScanRequest| {
            let mut scan = LogScan::new(request).unwrap();
            for (start, part) in divide(&whole, &cuts, true) {
                let positions = positions_from(start, part.num_rows());
                let positions =
                    if has_positions { EntryPositions::Column(&positions) } else { EntryPositions::RowHash };
                scan.push(&LogBatch { batch: &part, source: SourceId(3), positions }).unwrap();
            }
            scan.finish()
        };
        let request = LogScanRequest { time_column: "time".to_owned(), ..LogScanRequest::default() };
        let page = PageRequest { direction: LogDirection::Forward, limit: 100, ..PageRequest::default() };
        let all = scan(LogScanRequest { page: Some(page), ..request.clone() }).page.unwrap().entries;
        prop_assert_eq!(all.len(), rows.len());
        let target = target.index(all.len());
        let entry = &all[target];
        let context = ContextRequest { key: entry.key, ordinal: entry.ordinal, before, after };
        let request = LogScanRequest { context: Some(context), columns: Some(vec!["level".to_owned()]), ..request };
        let (found_before, found_after) = scan(request).context.unwrap();
        let key = |entry: &tidegate_telemetry::logs::LogEntry| (entry.key, entry.ordinal);
        let expected: Vec<_> = all[..target].iter().rev().take(before).map(key).collect();
        prop_assert_eq!(found_before.entries.iter().map(key).collect::<Vec<_>>(), expected);
        let expected: Vec<_> = all[target + 1..].iter().take(after).map(key).collect();
        prop_assert_eq!(found_after.entries.iter().map(key).collect::<Vec<_>>(), expected);
        prop_assert!(found_after.entries.iter().all(|entry| entry.batch.num_columns() == 1));
    }
}

#[test]
fn a_batch_without_times_is_an_error_that_names_its_columns() {
    let request = LogScanRequest { time_column: "at".to_owned(), ..LogScanRequest::default() };
    let mut scan = LogScan::new(request).unwrap();
    let batch = RecordBatch::try_from_iter([("ts", std::sync::Arc::new(BooleanArray::from(vec![true])) as _)]).unwrap();
    let input = LogBatch { batch: &batch, source: SourceId(0), positions: EntryPositions::RowHash };
    let error = scan.push(&input).unwrap_err().to_string();
    assert_eq!(error, "the column \"at\" does not exist; the columns are ts");
}

#[test]
fn bounds_of_a_request_are_errors() {
    let page = PageRequest { limit: 20_000, ..PageRequest::default() };
    let error = LogScan::new(LogScanRequest { page: Some(page), ..LogScanRequest::default() }).unwrap_err();
    assert_eq!(error.to_string(), "limit is 20000; the maximum is 10000");
    let error = LogScan::new(LogScanRequest { patterns: Some(1), ..LogScanRequest::default() }).unwrap_err();
    assert!(error.to_string().contains("patterns need a column"));
}
