//! The configurations under `examples/`: each one can be used as it is.

use std::path::{Path, PathBuf};

use super::{CommandOutput, run, tidegate};

#[test]
fn every_example_can_be_used() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "yaml")).collect();
    files.push(folder.join("parts/tidegate.yaml"));
    assert!(files.len() > 5, "{files:?}");
    // Keys belong to the copy of the reader.
    let keys = tempfile::tempdir().unwrap();
    // A PostgreSQL server of this machine would refuse the login of an example.
    let check = |file: &Path| {
        let mut command = tidegate();
        command.env("SHOP_DSN", "postgres://ann@127.0.0.1:1/shop").args(["config", "check"]).arg(file);
        CommandOutput::from(command.output().unwrap())
    };
    for file in files {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        assert!(readme.contains(&format!("]({name})")), "examples/README.md lacks {name}");
        let text = std::fs::read_to_string(&file).unwrap();
        let checked = match text.contains("keys: tidegate-keys.json") {
            true => {
                let data = folder.join("../data/demo").canonicalize().unwrap();
                let copy = keys.path().join("tidegate.yaml");
                std::fs::write(&copy, text.replace("../data/demo", &data.display().to_string())).unwrap();
                let added = run(&["key", "add", "ann", "--role", "reader", "--config", copy.to_str().unwrap()]);
                assert_eq!(added.code, Some(0), "{added:?}");
                check(&copy)
            }
            false => check(&file),
        };
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
    }
}
