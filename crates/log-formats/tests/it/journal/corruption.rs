//! Wrong bytes anywhere are defects of their file: never a panic, an endless loop or a lost entry of another file.

use proptest::prelude::*;
use tidegate_log_formats::journal::{FieldMatch, JournalQuery};

use super::{open, read, unpack, unpack_journal};

#[test]
fn truncated_file_gives_its_beginning_and_a_defect() {
    let folder = tempfile::tempdir().unwrap();
    let whole = unpack("zstd.journal");
    // Its objects end soon after the hash tables.
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let path = folder.path().join("cut.journal");
    std::fs::write(&path, &whole[..used - 20_000]).unwrap();
    let other = unpack_journal(folder.path(), "compact");
    let (entries, defects) = read(&open(&[path, other]), JournalQuery::default());
    assert!(entries.len() > 60 && entries.len() < 180, "{}", entries.len());
    assert!(defects.iter().all(|defect| defect.contains("cut.journal, at byte ")), "{defects:?}");
    assert!(!defects.is_empty());
    assert_eq!(entries.iter().filter(|entry| entry["_HOSTNAME"] == "web2").count(), 60);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn damaged_files_are_read_to_an_end(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let whole = unpack("compact.journal");
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
        let mut bytes = whole[..used + 8].to_vec();
        for (position, value) in damage {
            let position = position.index(used);
            bytes[position] = value;
        }
        std::fs::write(folder.path().join("damaged.journal"), bytes).unwrap();
        let other = unpack_journal(folder.path(), "zstd");
        let journal = open(&[folder.path().to_owned(), other]);
        let of_other = |entries: &[serde_json::Value]| entries.iter().filter(|entry| entry["_HOSTNAME"] == "web1").count();
        let (entries, _) = read(&journal, JournalQuery::default());
        prop_assert_eq!(of_other(&entries), 120);
        for file in &journal.files {
            let _ = file.field_names();
        }
        let matches = vec![FieldMatch { field: "PRIORITY".into(), values: vec![b"6".to_vec(), b"3".to_vec()] }];
        let query = JournalQuery { matches, is_backward: true, since: Some(1_700_000_040_000_000), ..JournalQuery::default() };
        // A file that is found to be out of order ends the query, and is read in full by the next one.
        let (mut reader, mut values) = (journal.read(query), Vec::new());
        while let Ok(Some(_)) = reader.next_entry(&mut values) {}
    }
}
