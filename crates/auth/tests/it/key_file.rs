//! The key file: its format, its mode, several writers at once.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tidegate_auth::{KeyFile, KeyState};

use tidegate_testkit::token_authenticator::{MovedClock, NOW, time};

/// The result of `list` for a file with this content.
fn error_of(content: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    fs::write(&path, content).unwrap();
    let file = KeyFile::new(&path);
    let error = file.list().err().unwrap().to_string();
    assert!(file.add("ada", &[], None).is_err(), "what cannot be read is not replaced");
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    error.replace(path.to_str().unwrap(), "FILE")
}

#[test]
fn file_holds_digests_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new folder/keys.json");
    let file = KeyFile::new(&path).with_clock(MovedClock::default().clock());
    assert_eq!(file.list().unwrap(), []);
    assert!(!path.exists());
    let new = file.add("ada", &["reader".to_owned()], Some(time(NOW + 60))).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let secret = new.key.expose().rsplit_once(&format!("{}_", new.status.id)).unwrap().1;
    assert_eq!(secret.len(), 43);
    assert!(!text.contains(secret));
    let content: Value = serde_json::from_str(&text).unwrap();
    let sha256 = content["keys"][0]["sha256"].as_str().unwrap();
    assert_eq!(sha256.len(), 43);
    assert_eq!(
        content,
        json!({ "version": 1, "keys": [{
            "name": "ada", "id": new.status.id, "sha256": sha256, "roles": ["reader"],
            "created": "2033-05-18T03:33:20Z", "expires": "2033-05-18T03:34:20Z",
        }] })
    );
}

#[test]
fn rejects_foreign_file_unchanged() {
    assert_eq!(
        error_of(r#"{ "version": 2, "accounts": {} }"#),
        "the key file FILE has the version 2; this program reads only version 1"
    );
    assert!(error_of("").starts_with("FILE is not a valid key file: unexpected content at line 1"));
    assert!(error_of("{}").starts_with("FILE is not a valid key file"));
    let quoted = error_of("{ \"version\": 1,\n  \"keys\": [\"hunter2\"] }");
    assert!(quoted.contains("line 2") && !quoted.contains("hunter2"), "{quoted}");
    let entry = json!({ "name": "a", "id": "abcdefgh", "sha256": "A".repeat(43), "roles": [],
        "created": "2033-05-18T03:33:20Z" });
    let twice = json!({ "version": 1, "keys": [entry, entry] }).to_string();
    assert_eq!(error_of(&twice), "the key file FILE holds two keys with the id \"abcdefgh\"");
    for (field, value) in [("sha256", json!("AAAA")), ("sha256", json!("?")), ("created", json!(1)), ("x", json!(1))] {
        let mut entry = entry.clone();
        entry[field] = value;
        let content = json!({ "version": 1, "keys": [entry] }).to_string();
        assert!(error_of(&content).starts_with("FILE is not a valid key file"), "{content}");
    }
}

#[test]
fn concurrent_adds_keep_every_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let (threads, each) = (8, 5);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let path = &path;
            scope.spawn(move || {
                for number in 0..each {
                    KeyFile::new(path).add(&format!("{thread}-{number}"), &[], None).unwrap();
                }
                KeyFile::new(path).revoke(&format!("{thread}-0")).unwrap();
            });
        }
    });
    let keys = KeyFile::new(&path).list().unwrap();
    let names: BTreeSet<_> = keys.iter().map(|key| &key.name).collect();
    let ids: BTreeSet<_> = keys.iter().map(|key| &key.id).collect();
    assert_eq!((names.len(), ids.len()), (threads * each, threads * each));
    assert_eq!(keys.iter().filter(|key| key.state == KeyState::Revoked).count(), threads);
    let left: BTreeSet<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["keys.json".into(), "keys.json.lock".into()].into(), "nothing else is left behind");
}

#[test]
fn concurrent_adds_of_one_name_admit_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::new(folder.path().join("keys.json"));
    let added = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| file.add("ada", &[], None))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(Result::is_ok).count()
    });
    assert_eq!((added, file.list().unwrap().len()), (1, 1));
}

#[cfg(unix)]
#[test]
fn a_new_file_is_its_owners_alone_and_links_stay_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("keys.json"), folder.path().join("link.json"));
    KeyFile::new(&path).add("ada", &[], None).unwrap();
    symlink(&path, &link).unwrap();
    KeyFile::new(&link).add("bob", &[], None).unwrap();
    assert!(link.is_symlink());
    assert_eq!(KeyFile::new(&path).list().unwrap().len(), 2);
    for name in ["keys.json", "keys.json.lock"] {
        let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!folder.path().join("link.json.lock").exists(), "both ways to the file take the same lock");
}

#[cfg(unix)]
#[test]
fn replacement_keeps_ownership_and_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    fs::write(&path, r#"{ "version": 1, "keys": [] }"#).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    // Only an administrator can change the owner of a file; other users skip this part.
    let is_given = chown(&path, Some(4711), Some(4712)).is_ok();
    let of = |name: &str| fs::metadata(folder.path().join(name)).unwrap();
    let before = of("keys.json");
    let file = KeyFile::new(&path);
    file.add("ada", &[], None).unwrap();
    file.revoke("ada").unwrap();
    let after = of("keys.json");
    let message = |file: &fs::Metadata| (file.uid(), file.gid(), file.mode() & 0o7777);
    assert_eq!(message(&after), message(&before));
    if is_given {
        assert_eq!((after.uid(), after.gid()), (4711, 4712));
        assert_eq!(of("keys.json.lock").uid(), 4711, "its owner can lock it later");
    }
}

#[cfg(unix)]
#[test]
fn symlinked_lock_is_not_chowned() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("keys.json"), folder.path().join("other"));
    fs::write(&path, r#"{ "version": 1, "keys": [] }"#).unwrap();
    fs::write(&other, "mine").unwrap();
    symlink(&other, folder.path().join("keys.json.lock")).unwrap();
    let _ = chown(&path, Some(4711), Some(4712));
    let before = fs::metadata(&other).unwrap();
    KeyFile::new(&path).add("ada", &[], None).unwrap();
    let after = fs::metadata(&other).unwrap();
    assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
}

#[test]
fn rejects_directory_as_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let error = KeyFile::new(folder.path()).list().err().unwrap();
    assert!(error.to_string().starts_with("cannot read the key file"), "{error}");
}
