//! Every selection of crates builds DataFusion, Arrow and Parquet with the same features, so that none builds them again for another.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::dependencies::Metadata;
use super::workspace;

/// The libraries that take minutes to build. Their dependencies count too.
const SHARED_LIBRARIES: &[&str] = &["datafusion", "arrow", "parquet"];
const HACK: &str = "workspace-hack";
/// What runs, and that together with build scripts and procedural macros, which have features of their own: one set for
/// both would let a feature of the one stand for the other.
const EDGES: [&str; 2] = ["no-build,no-proc-macro", "normal,build,dev"];

/// One line per dependency, `name version|features`, as cargo resolves them for the selection.
fn dependencies_of(selection: &[&str], edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--prefix", "none", "--edges", edges, "--format", "{p}|{f}"])
        .args(selection)
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// `name vVERSION` of such a line; a crate of ours also has its path.
fn package(line: &str) -> String {
    line.split([' ', '|']).take(2).collect::<Vec<_>>().join(" ")
}

/// Changes with the manifests, the lock file and this test.
fn hash_of_inputs(metadata: &Metadata) -> String {
    let mut hasher = DefaultHasher::new();
    include_str!("features.rs").hash(&mut hasher);
    let of_workspace = ["Cargo.toml", "Cargo.lock"].map(|name| workspace().join(name));
    let of_members = metadata.manifests().into_iter().map(PathBuf::from);
    for file in of_workspace.into_iter().chain(of_members) {
        fs::read(&file).expect("the file is readable").hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

#[test]
fn every_selection_shares_the_features_of_the_workspace() {
    let metadata = Metadata::read();
    // Cargo takes a second for each of thirty selections, and the same manifests give the same features.
    let (passed, inputs) = (Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared-features"), hash_of_inputs(&metadata));
    if fs::read_to_string(&passed).is_ok_and(|last| last == inputs) {
        return;
    }
    let members = metadata.members_with_dependency(HACK);
    assert!(members.len() > 5, "{members:?}");
    let of_workspace = EDGES.map(|edges| dependencies_of(&["--workspace"], edges));
    // The empty selection is `cargo build`: the binary and the examples.
    let mut selections: Vec<(&str, Vec<&str>)> = vec![("tidegate", vec![])];
    selections.extend(members.iter().map(|member| (*member, vec!["--package", *member])));
    let mut wrong = Vec::new();
    for (member, selection) in &selections {
        let libraries = metadata.closure(member);
        let libraries = SHARED_LIBRARIES.iter().filter(|library| libraries.contains(*library));
        let shared: BTreeSet<String> = libraries.flat_map(|library| metadata.closure_versions(library)).collect();
        for (edges, of_workspace) in EDGES.iter().zip(&of_workspace) {
            let of_selection = dependencies_of(selection, edges);
            for line in of_selection.difference(of_workspace).filter(|line| shared.contains(&package(line))) {
                let expected: Vec<_> = of_workspace.iter().filter(|other| package(other) == package(line)).collect();
                wrong.push(format!("{selection:?} builds {line}\n    but the workspace builds {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "add the missing features to crates/{HACK}/Cargo.toml:\n{}", wrong.join("\n"));
    fs::write(passed, inputs).expect("the folder for tests is writable");
}

#[test]
fn crates_with_datafusion_or_arrow_name_the_shared_features() {
    let metadata = Metadata::read();
    let missing: Vec<_> = metadata
        .members_with_dependency_in_closure(SHARED_LIBRARIES)
        .into_iter()
        .filter(|member| *member != HACK && !metadata.closure(member).contains(HACK))
        .collect();
    assert!(missing.is_empty(), "these need `{HACK}.workspace = true`: {missing:?}");
}
