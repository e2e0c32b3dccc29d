//! The store of a node's own samples, its bounds and its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;
use tidegate_telemetry::metrics::exposition::Exposition;
use tidegate_telemetry::metrics::recorder::{
    AppendOutcome, ChunkFolderError, FolderOptions, Recorder, RecorderOptions, SampleStore,
};
use tidegate_telemetry::metrics::{LabelSelection, MetricKind, Sample, TimeWindow};

use super::fixture::{NOW_NS, S, aggregated, conditions, labels, request};

const ALL_TIMES: TimeWindow = TimeWindow { after_ns: i64::MIN, before_ns: i64::MAX };
const DAY_S: i64 = 86_400;

fn open(path: &Path) -> Recorder {
    Recorder::open(RecorderOptions::default(), path, FolderOptions::default()).unwrap().0
}

fn append(recorder: &mut Recorder, series: &str, time_s: i64, value: f64) -> AppendOutcome {
    recorder.append("m", &labels("a", series), Sample { time_ns: time_s * S, value }).unwrap()
}

/// One sample in each second of a series.
fn append_seconds(recorder: &mut Recorder, times_s: std::ops::Range<i64>, value: impl Fn(i64) -> f64) {
    for time_s in times_s {
        append(recorder, "1", time_s, value(time_s));
    }
}

/// All samples of the metric `m` in a window, by instance: times in seconds and values.
fn read(recorder: &Recorder, window: TimeWindow) -> BTreeMap<String, Vec<(i64, f64)>> {
    let mut all: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
    let result: Result<(), ChunkFolderError> =
        recorder.read("m", &LabelSelection::default(), window, |labels, samples| {
            let instance = labels.get("instance").unwrap().to_owned();
            all.entry(instance).or_default().extend(samples.map(|sample| (sample.time_ns / S, sample.value)));
            Ok(())
        });
    result.unwrap();
    all
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_day_of_samples_takes_few_bytes() {
    let mut store = SampleStore::new(RecorderOptions::default());
    for step in 0..DAY_S / 10 {
        for series in 0..20 {
            let value = if series % 2 == 0 { (step * (series + 1)) as f64 } else { 7.0 };
            store.append("m", &labels("a", &series.to_string()), Sample { time_ns: step * 10 * S, value });
        }
    }
    let samples = 20 * DAY_S / 10;
    assert!(store.bytes() < usize::try_from(3 * samples).unwrap(), "{} bytes for {samples} samples", store.bytes());
    let counted: usize =
        store.select(None, &LabelSelection::default()).map(|series| series.samples(ALL_TIMES).count()).sum();
    assert_eq!(counted as i64, samples);
}

#[test]
fn windows_selections_and_catalog() {
    let mut recorder = Recorder::in_memory(RecorderOptions::default());
    for time_s in 0..500 {
        append(&mut recorder, "1", time_s, time_s as f64);
        append(&mut recorder, "2", time_s, 1.0);
    }
    assert_eq!(append(&mut recorder, "1", 499, 1.0), AppendOutcome::OutOfOrder);
    let part = read(&recorder, TimeWindow::new(130 * S, 260 * S));
    let expected: Vec<_> = (130..260).map(|time_s| (time_s, time_s as f64)).collect();
    assert_eq!((part.len(), &part["1"]), (2, &expected));
    let selection = LabelSelection::parse(&conditions(&json!({"instance": "2"})), None).unwrap();
    assert_eq!(recorder.store().select(Some("m"), &selection).count(), 1);
    assert_eq!(recorder.store().select(Some("n"), &LabelSelection::default()).count(), 0);
    let catalog = recorder.store().catalog(LabelSelection::default());
    assert_eq!((catalog[0].name.as_str(), catalog[0].series), ("m", Some(2)));
    assert_eq!(catalog[0].covers, Some(TimeWindow::new(0, 499 * S + 1_000_000)));
}

#[test]
fn age_bytes_and_series_are_bounded() {
    let options = RecorderOptions { age_ns_max: 1_000_000_000_000, bytes_max: 60_000, series_max: 30 };
    let mut recorder = Recorder::in_memory(options);
    let mut value = 1_u64;
    for time_s in 0..5_000 {
        for series in 0..31 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let outcome = append(&mut recorder, &series.to_string(), time_s, f64::from_bits(value >> 2));
            assert_eq!(outcome == AppendOutcome::TooManySeries, series == 30);
            assert!(recorder.store().bytes() <= options.bytes_max, "{}", recorder.store().bytes());
        }
    }
    // The newest samples are still there.
    let kept = read(&recorder, ALL_TIMES);
    assert_eq!((kept.len(), kept["7"].last().unwrap().0), (30, 4_999));
    recorder.evict(10_000 * S).unwrap();
    assert_eq!((read(&recorder, ALL_TIMES).len(), recorder.store().bytes()), (0, 0));
}

#[test]
fn a_scrape_is_recorded_with_kinds_and_units() {
    let text = "# TYPE requests_total counter\n# HELP requests_total All.\nrequests_total{a=\"b\"} 3 99\n\
                # TYPE wait_seconds histogram\nwait_seconds_bucket{le=\"1\"} 2\nwait_seconds_sum 1.5\n";
    let mut recorder = Recorder::in_memory(RecorderOptions::default());
    let exposition = Exposition::parse(text).unwrap();
    let counts = recorder.record(&exposition, 70 * S).unwrap();
    assert_eq!((counts.stored, recorder.record(&exposition, 70 * S).unwrap().out_of_order), (3, 3));
    let catalog = recorder.store().catalog(LabelSelection::default());
    let lines: Vec<_> =
        catalog.iter().map(|metric| (metric.name.as_str(), metric.kind, metric.unit.as_deref())).collect();
    assert_eq!(
        lines,
        [
            ("requests_total", MetricKind::Counter, None),
            ("wait_seconds_bucket", MetricKind::Counter, Some("seconds")),
            ("wait_seconds_sum", MetricKind::Counter, Some("seconds")),
        ]
    );
    let series = recorder
        .store()
        .select(Some("requests_total"), &LabelSelection::default())
        .flat_map(|series| series.samples(ALL_TIMES))
        .collect::<Vec<_>>();
    assert_eq!(series, [Sample { time_ns: 70 * S, value: 3.0 }]);
}

#[test]
fn files_are_reloaded_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = open(folder.path());
    append_seconds(&mut recorder, 0..1_000, |time_s| time_s as f64);
    recorder.flush().unwrap();
    // Without a flush, the samples of the last chunk are lost.
    append_seconds(&mut recorder, 1_000..1_150, |time_s| time_s as f64);
    drop(recorder);
    let mut recorder = open(folder.path());
    let expected = |until_s: i64| (0..until_s).map(|time_s| (time_s, time_s as f64)).collect::<Vec<_>>();
    assert_eq!(read(&recorder, ALL_TIMES)["1"], expected(1_120));
    append_seconds(&mut recorder, 1_120..1_300, |time_s| time_s as f64);
    recorder.flush().unwrap();
    recorder.flush().unwrap();
    drop(recorder);
    let options = (RecorderOptions::default(), FolderOptions::default());
    let (recorder, report) = Recorder::open(options.0, folder.path(), options.1).unwrap();
    assert_eq!(read(&recorder, ALL_TIMES)["1"], expected(1_300));
    assert_eq!((report.files, report.samples, report.damaged.len()), (2, 1_300, 0));
}

#[test]
fn what_memory_does_not_hold_is_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = RecorderOptions { bytes_max: 12_000, ..RecorderOptions::default() };
    let open = || Recorder::open(options, folder.path(), FolderOptions::default()).unwrap().0;
    let mut recorder = open();
    let value = |time_s: i64| (time_s as f64).sin();
    append_seconds(&mut recorder, 0..5_000, value);
    let expected =
        |after_s: i64, before_s: i64| (after_s..before_s).map(|time_s| (time_s, value(time_s))).collect::<Vec<_>>();
    assert_eq!(read(&recorder, ALL_TIMES)["1"], expected(0, 5_000));
    assert_eq!(read(&recorder, TimeWindow::new(100 * S, 4_990 * S))["1"], expected(100, 4_990));
    recorder.flush().unwrap();
    drop(recorder);
    assert_eq!(read(&open(), ALL_TIMES)["1"], expected(0, 5_000));
}

#[test]
fn queries_are_answered_from_memory_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = RecorderOptions { bytes_max: 12_000, ..RecorderOptions::default() };
    let (mut recorder, _) = Recorder::open(options, folder.path(), FolderOptions::default()).unwrap();
    let text = |total: i64| format!("# TYPE requests_total counter\nrequests_total{{job=\"a\"}} {total}\n");
    let other = |value: i64| format!("noise {}\n", (value as f64).sin());
    for time_s in 0..3_600 {
        let exposition = Exposition::parse(&(text(time_s * 7) + &other(time_s))).unwrap();
        recorder.record(&exposition, time_s * S).unwrap();
    }
    let catalog = recorder.store().catalog(LabelSelection::default());
    let request = aggregated(request("requests_total", 600, 3_600, 50), "increase");
    let answer = recorder.evaluate(request.resolve(&catalog, NOW_NS).unwrap()).unwrap();
    assert_eq!(answer.series[0].values, vec![Some(420.0); 50]);
    assert_eq!(answer.counts.samples, 3_000);
}

#[test]
fn files_are_bounded_by_age_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let options = FolderOptions { age_ns_max: 3_000_000_000_000, bytes_max: 20_000, file_bytes_max: 3_000 };
    let (mut recorder, _) = Recorder::open(RecorderOptions::default(), folder.path(), options).unwrap();
    for time_s in 0..10_000 {
        append(&mut recorder, "1", time_s, (time_s as f64).sin());
    }
    let bytes: u64 = files(folder.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes <= 20_000 && bytes > 10_000, "{bytes}");
    recorder.evict(100_000 * S).unwrap();
    assert!(files(folder.path()).is_empty());
    append_seconds(&mut recorder, 20_000..20_120, |_| 1.0);
    assert_eq!(files(folder.path()).len(), 1);
}

/// A file that is cut at any byte of its last record loses that record only, and a changed byte is noticed.
#[test]
fn a_cut_tail_loses_only_the_last_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = open(folder.path());
    append_seconds(&mut recorder, 0..240, |time_s| time_s as f64);
    let path = files(folder.path()).remove(0);
    let before = fs::metadata(&path).unwrap().len();
    append_seconds(&mut recorder, 240..360, |time_s| time_s as f64);
    let whole = fs::read(&path).unwrap();
    drop(recorder);
    let reload = || {
        let (recorder, report) =
            Recorder::open(RecorderOptions::default(), folder.path(), FolderOptions::default()).unwrap();
        (read(&recorder, ALL_TIMES)["1"].len(), report)
    };
    for length in before..whole.len() as u64 {
        fs::write(&path, &whole[..usize::try_from(length).unwrap()]).unwrap();
        let (samples, report) = reload();
        assert_eq!(samples, 240, "cut at {length}");
        let lost: Vec<_> = report.damaged.iter().map(|file| (file.position, file.lost_bytes)).collect();
        let expected = if length == before { Vec::new() } else { vec![(before, length - before)] };
        assert_eq!(lost, expected);
    }
    for position in before..whole.len() as u64 {
        let mut changed = whole.clone();
        changed[usize::try_from(position).unwrap()] ^= 0x10;
        fs::write(&path, &changed).unwrap();
        let (samples, report) = reload();
        assert_eq!((samples, report.damaged.len()), (240, 1), "changed at {position}");
    }
    // The next process continues in a file of its own.
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let mut recorder = open(folder.path());
    append_seconds(&mut recorder, 240..360, |time_s| time_s as f64);
    drop(recorder);
    assert_eq!((reload().0, files(folder.path()).len()), (360, 2));
}

#[test]
fn two_processes_write_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (open(folder.path()), open(folder.path()));
    append_seconds(&mut first, 0..120, |_| 1.0);
    append_seconds(&mut second, 120..240, |_| 2.0);
    append_seconds(&mut first, 240..360, |_| 3.0);
    let samples = read(&open(folder.path()), ALL_TIMES);
    // The chunk that the first one wrote last is in its first file, so the one of the second process is out of order.
    assert_eq!((files(folder.path()).len(), samples["1"].len()), (2, 240));
}

#[test]
fn other_files_and_missing_folders() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("000000000001.chunks"), "something else").unwrap();
    fs::write(folder.path().join("notes.txt"), "x").unwrap();
    let (_, report) = Recorder::open(RecorderOptions::default(), folder.path(), FolderOptions::default()).unwrap();
    assert_eq!((report.files, report.damaged[0].reason), (1, "it does not begin like a file of recorded metrics"));
    let file = folder.path().join("notes.txt");
    let error = Recorder::open(RecorderOptions::default(), &file, FolderOptions::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("the folder of recorded metrics: ")
            && error.to_string().contains("cannot be created")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The store returns what was appended in order, also after flushes and restarts at any time.
    #[test]
    fn stored_samples_are_those_that_were_appended(
        steps in prop::collection::vec((0_usize..3, -5_i64..50, prop::num::f64::ANY, 0_u8..60), 0..600), after_s in 0_i64..3_000, length_s in 0_i64..3_000
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = open(folder.path());
        let mut expected: BTreeMap<String, Vec<(i64, u64)>> = BTreeMap::new();
        let mut time_s = 0;
        for (series, wait_s, value, action) in steps {
            time_s += wait_s;
            let known = expected.entry(series.to_string()).or_default();
            let is_later = known.last().is_none_or(|(last_s, _)| time_s > *last_s);
            let outcome = append(&mut recorder, &series.to_string(), time_s, value);
            prop_assert_eq!(outcome == AppendOutcome::Stored, is_later);
            if is_later {
                known.push((time_s, value.to_bits()));
            }
            if action < 3 {
                recorder.flush().unwrap();
            }
            if action == 0 {
                recorder = open(folder.path());
            }
        }
        let window = TimeWindow::new(after_s * S, (after_s + length_s) * S);
        let read = read(&recorder, window);
        for (series, samples) in expected {
            let expected: Vec<_> = samples.into_iter().filter(|(time_s, _)| window.contains(time_s * S)).collect();
            let actual: Vec<_> = read.get(&series).into_iter().flatten().map(|(time_s, value)| (*time_s, value.to_bits())).collect();
            prop_assert_eq!(actual, expected);
        }
    }

    /// A file with any change never fails and never invents samples.
    #[test]
    fn damaged_files_never_panic(position in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = open(folder.path());
        append_seconds(&mut recorder, 0..360, |time_s| time_s as f64);
        drop(recorder);
        let path = files(folder.path()).remove(0);
        let mut bytes = fs::read(&path).unwrap();
        let index = position.index(bytes.len());
        bytes[index] = value;
        bytes.truncate(cut.index(bytes.len() + 1));
        fs::write(&path, bytes).unwrap();
        let read = read(&open(folder.path()), ALL_TIMES);
        let samples = read.get("1").cloned().unwrap_or_default();
        prop_assert!(samples.len() <= 360);
        prop_assert!((0..).zip(&samples).all(|(index, sample)| *sample == (index, index as f64)));
    }
}
