//! Files of each form.

use std::collections::BTreeSet;

use serde_json::Value;
use tidegate_log_formats::journal::{
    FieldMatch, FieldSelection, Journal, JournalQuery, ReadEntry, is_journal_path, position,
};

use super::{open, parse_lines, read, unpack, unpack_journal};

const FORMS: [&str; 4] = ["zstd", "compact", "lz4", "xz"];

fn time(entry: &Value) -> u64 {
    entry["__REALTIME_TIMESTAMP"].as_str().unwrap().parse().unwrap()
}

fn has(entry: &Value, field: &str, value: &str) -> bool {
    match &entry[field] {
        Value::Array(values) => values.iter().any(|other| other == value),
        other => other == value,
    }
}

fn equals(field: &str, values: &[&str]) -> FieldMatch {
    FieldMatch { field: field.to_owned(), values: values.iter().map(|value| value.as_bytes().to_vec()).collect() }
}

#[test]
fn each_form_has_the_entries_of_journalctl_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    for form in FORMS {
        let journal = open(&[unpack_journal(folder.path(), form)]);
        let mut expected = parse_lines(&unpack(&format!("{form}.json")));
        let (entries, defects) = read(&journal, JournalQuery::default());
        assert!(defects.is_empty(), "{form}: {defects:?}");
        assert_eq!(entries.len(), expected.len(), "{form}");
        for (entry, expected) in entries.iter().zip(&expected) {
            assert_eq!(entry, expected, "{form}");
        }
        expected.reverse();
        let (entries, _) = read(&journal, JournalQuery { is_backward: true, ..JournalQuery::default() });
        assert!(entries == expected, "{form}");
    }
}

#[test]
fn several_machines_are_merged_as_journalctl_merges_them() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("0123456789abcdef0123456789abcdef");
    std::fs::create_dir(&machine).unwrap();
    unpack_journal(folder.path(), "zstd");
    unpack_journal(&machine, "compact");
    std::fs::write(folder.path().join("notes.txt"), "no journal").unwrap();
    assert!(is_journal_path(folder.path()) && is_journal_path(&machine));
    let journal = open(&[folder.path().to_owned()]);
    let mut expected = parse_lines(&unpack("merged.json"));
    assert!(read(&journal, JournalQuery::default()).0 == expected);
    expected.reverse();
    assert!(read(&journal, JournalQuery { is_backward: true, ..JournalQuery::default() }).0 == expected);
    // The same file twice, and a copy of it, give each entry once.
    std::fs::copy(folder.path().join("zstd.journal"), machine.join("copy.journal")).unwrap();
    let again = open(&[folder.path().to_owned(), folder.path().join("zstd.journal")]);
    assert_eq!(read(&again, JournalQuery::default()).0.len(), expected.len());
}

#[test]
fn matches_and_times_find_what_a_scan_finds() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["zstd", "compact"].map(|form| unpack_journal(folder.path(), form));
    let journal = open(&paths);
    let all = parse_lines(&unpack("merged.json"));
    let middle = time(&all[all.len() / 2]);
    let ranges = [
        (None, None),
        (Some(middle), None),
        (None, Some(middle)),
        (Some(middle - 20_000_000), Some(middle + 9_000_000)),
    ];
    let filters: [&[(&str, &[&str])]; 6] = [
        &[],
        &[("PRIORITY", &["3"])],
        &[("PRIORITY", &["3", "4"]), ("_SYSTEMD_UNIT", &["cron.service", "nginx.service"])],
        &[("TAG", &["b1"])],
        &[("PRIORITY", &["3"]), ("NO_SUCH_FIELD", &["x"])],
        &[("EMPTY", &[""])],
    ];
    for (since, until) in ranges {
        for filter in filters {
            for is_backward in [false, true] {
                let matches = filter.iter().map(|(field, values)| equals(field, values)).collect();
                let query = JournalQuery { matches, since, until, is_backward, ..JournalQuery::default() };
                let mut expected: Vec<&Value> = all
                    .iter()
                    .filter(|entry| {
                        let is_inside = since.is_none_or(|since| time(entry) >= since)
                            && until.is_none_or(|until| time(entry) < until);
                        is_inside
                            && filter.iter().all(|(field, values)| values.iter().any(|value| has(entry, field, value)))
                    })
                    .collect();
                if is_backward {
                    expected.reverse();
                }
                let (entries, defects) = read(&journal, query);
                assert!(defects.is_empty());
                assert!(
                    entries.iter().collect::<Vec<_>>() == expected,
                    "{since:?} {until:?} {filter:?} {is_backward}: {} instead of {}",
                    entries.len(),
                    expected.len()
                );
            }
        }
    }
}

#[test]
fn times_and_positions_distinguish_entries() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&["zstd", "compact"].map(|form| unpack_journal(folder.path(), form)));
    let query = JournalQuery { fields: FieldSelection::Names(Vec::new()), ..JournalQuery::default() };
    let (mut reader, mut values, mut keys) = (journal.read(query), Vec::new(), BTreeSet::new());
    while let Some(ReadEntry::Entry { head, seqnum_id, .. }) = reader.next_entry(&mut values).unwrap() {
        assert!(values.is_empty());
        keys.insert((head.realtime, position(seqnum_id, &head)));
    }
    assert_eq!(keys.len(), 180);
}

#[test]
fn fields_need_no_scan() {
    let folder = tempfile::tempdir().unwrap();
    for form in FORMS {
        let journal = open(&[unpack_journal(folder.path(), form)]);
        let names = journal.field_names();
        assert!(["MESSAGE", "BIN", "EMPTY", "_SYSTEMD_UNIT"].iter().all(|name| names.contains(*name)), "{names:?}");
    }
}

#[test]
fn missing_folders_and_other_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Journal::open(&[folder.path().join("missing")], &Default::default());
    assert!(missing.unwrap_err().to_string().contains("missing: cannot be read"));
    std::fs::write(folder.path().join("a.journal"), "no journal, but text of some length").unwrap();
    std::fs::write(folder.path().join("b.journal"), "").unwrap();
    let journal = open(&[folder.path().to_owned()]);
    assert!(journal.files.is_empty() && journal.defects.len() == 2);
    assert!(journal.defects[0].to_string().ends_with("is not a journal file: it does not begin with LPKSHHRH"));
}
