//! Every selection of crates builds DataFusion, Arrow and Parquet with the same features, so that none builds them again for another.

use std::collections::BTreeSet;
use std::process::Command;

use super::dependencies::Metadata;
use super::workspace;

/// The libraries that take minutes to build. Their dependencies count too.
const SHARED_LIBRARIES: &[&str] = &["datafusion", "arrow", "parquet"];
const HACK: &str = "workspace-hack";

/// One line per dependency, `name version|features`, as cargo resolves them for the selection.
fn dependencies_of(selection: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--prefix", "none", "--edges", "normal,build,dev", "--format", "{p}|{f}"])
        .args(selection)
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Whether two such lines are about the same dependency.
fn name(line: &str) -> &str {
    line.split([' ', '|']).next().unwrap_or_default()
}

#[test]
fn every_selection_shares_the_features_of_the_workspace() {
    let metadata = Metadata::read();
    let shared: BTreeSet<&str> = SHARED_LIBRARIES.iter().flat_map(|library| metadata.closure(library)).collect();
    let of_workspace = dependencies_of(&["--workspace"]);
    let members = metadata.members_with_dependency(HACK);
    assert!(members.len() > 5, "{members:?}");
    // The empty selection is `cargo build`: the binary and the examples.
    let mut selections: Vec<Vec<&str>> = vec![vec![]];
    selections.extend(members.iter().map(|member| vec!["--package", *member]));
    let mut wrong = Vec::new();
    for selection in &selections {
        for line in dependencies_of(selection).difference(&of_workspace).filter(|line| shared.contains(name(line))) {
            let expected: Vec<_> = of_workspace.iter().filter(|other| name(other) == name(line)).collect();
            wrong.push(format!("{selection:?} builds {line}\n    but the workspace builds {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "add the missing features to crates/{HACK}/Cargo.toml:\n{}", wrong.join("\n"));
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
