//! Dependencies point down only, and fenced libraries stay in their crates.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::workspace;

/// Which of our crates a crate may know. `tidegate` and the benchmarks may know all.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("tidegate-core", &[]),
    ("tidegate-runtime", &["tidegate-core"]),
    ("tidegate-auth", &["tidegate-core", "tidegate-http-client", "tidegate-runtime"]),
    ("tidegate-mcp", &["tidegate-core", "tidegate-runtime"]),
    ("tidegate-sql", &["tidegate-core"]),
    ("tidegate-results", &["tidegate-core", "tidegate-runtime"]),
    ("tidegate-query", &["tidegate-core", "tidegate-runtime", "tidegate-sql", "tidegate-results"]),
    ("tidegate-transport", &["tidegate-core", "tidegate-runtime", "tidegate-mcp"]),
    (
        "tidegate-network",
        &["tidegate-core", "tidegate-runtime", "tidegate-query", "tidegate-sql", "tidegate-transport"],
    ),
    ("tidegate-http-client", &[]),
    ("tidegate-process-memory", &[]),
    ("tidegate-ingest-formats", &["tidegate-core"]),
    ("tidegate-delta", &["tidegate-core", "tidegate-query"]),
    ("tidegate-ingest", &["tidegate-core", "tidegate-delta", "tidegate-ingest-formats", "tidegate-query"]),
    ("tidegate-log-formats", &["tidegate-core"]),
    ("tidegate-pgsql", &[]),
    ("tidegate-system", &["tidegate-core"]),
    ("tidegate-telemetry", &["tidegate-core", "tidegate-log-formats"]),
    (
        "tidegate-engines",
        &[
            "tidegate-core",
            "tidegate-delta",
            "tidegate-ingest-formats",
            "tidegate-log-formats",
            "tidegate-runtime",
            "tidegate-pgsql",
            "tidegate-query",
            "tidegate-sql",
            "tidegate-system",
        ],
    ),
    ("tidegate-postgres", &["tidegate-core", "tidegate-runtime", "tidegate-query", "tidegate-sql"]),
    ("tidegate-postgres-handlers", &["tidegate-core", "tidegate-runtime", "tidegate-postgres", "tidegate-sql"]),
    ("tidegate-sqlite", &["tidegate-core", "tidegate-runtime", "tidegate-query", "tidegate-sql"]),
    ("tidegate-mysql", &["tidegate-core", "tidegate-runtime", "tidegate-query", "tidegate-sql"]),
    (
        "tidegate-tools",
        &[
            "tidegate-core",
            "tidegate-http-client",
            "tidegate-runtime",
            "tidegate-query",
            "tidegate-sql",
            "tidegate-process-memory",
            "tidegate-results",
            "tidegate-ingest-formats",
            "tidegate-log-formats",
            "tidegate-system",
            "tidegate-telemetry",
        ],
    ),
    (
        "tidegate-client",
        &["tidegate-core", "tidegate-http-client", "tidegate-runtime", "tidegate-mcp", "tidegate-query"],
    ),
    ("tidegate-testkit", &["tidegate-auth", "tidegate-core", "tidegate-mcp", "tidegate-runtime"]),
];

/// What the tests of a crate may know beside that, but not the crate itself.
const ALLOWED_DEV_DEPENDENCIES: &[(&str, &str)] = &[
    ("tidegate-transport", "tidegate-auth"),
    ("tidegate-transport", "tidegate-client"),
    ("tidegate-client", "tidegate-runtime"),
    ("tidegate-client", "tidegate-transport"),
    ("tidegate-engines", "tidegate-postgres"),
    ("tidegate-tools", "tidegate-postgres"),
    ("tidegate-tools", "tidegate-sqlite"),
    ("tidegate-telemetry", "tidegate-ingest-formats"),
    ("tidegate-network", "tidegate-auth"),
    ("tidegate-network", "tidegate-tools"),
];

/// What the tests of every crate may know.
const TESTKIT: &str = "tidegate-testkit";

/// Crates without a row in [`ALLOWED_DEPENDENCIES`].
const UNRESTRICTED_CRATES: &[&str] = &["tidegate", "tidegate-bench"];

/// Has no code: it only gives the crates of the data side one set of features, so it names libraries of all kinds.
const FEATURES_ONLY: &str = "workspace-hack";

/// Third-party libraries and the crates that may name them. `x-*` means every crate of that family.
const LIBRARY_RESTRICTIONS: &[(&[&str], &[&str])] = &[
    (&["axum", "axum-*", "headers", "hyper", "hyper-*", "tower", "tower-*"], &["tidegate-transport"]),
    (&["tokio-tungstenite"], &["tidegate-transport", "tidegate-client"]),
    (&["clap", "clap_*"], &["tidegate"]),
    (&["indicatif"], &["tidegate-client"]),
    (&["reqwest"], &["tidegate-http-client", "tidegate-auth", "tidegate-tools", "tidegate-client", "tidegate"]),
    (&["jsonwebtoken"], &["tidegate-auth"]),
    (&["governor"], &["tidegate-runtime"]),
    (&["datafusion", "datafusion-*"], &["tidegate-engines", "tidegate-pgsql", "tidegate-bench"]),
    (&["object_store"], &["tidegate-engines", "tidegate-bench"]),
    (
        &["parquet"],
        &["tidegate-query", "tidegate-engines", "tidegate-delta", "tidegate-ingest-formats", "tidegate-bench"],
    ),
    (&["sqlparser"], &["tidegate-sql", "tidegate-query", "tidegate-engines", "tidegate-bench"]),
    // Before the other crates of Arrow, because the first match counts.
    (&["arrow-flight", "tonic", "tonic-*"], &["tidegate-network"]),
    (&["prost", "prost-*"], &["tidegate-network", "tidegate-telemetry"]),
    (
        &["arrow", "arrow-*"],
        &[
            "tidegate-network",
            "tidegate-results",
            "tidegate-query",
            "tidegate-engines",
            "tidegate-delta",
            "tidegate-ingest",
            "tidegate-ingest-formats",
            "tidegate-mysql",
            "tidegate-pgsql",
            "tidegate-postgres",
            "tidegate-sqlite",
            "tidegate-telemetry",
            "tidegate",
            "tidegate-tools",
            "tidegate-client",
            "tidegate-bench",
        ],
    ),
    (&["tokio-postgres"], &["tidegate-postgres", "tidegate-postgres-handlers"]),
    (&["tokio-postgres-*"], &["tidegate-postgres"]),
    (&["deadpool"], &["tidegate-runtime"]),
    (&["mysql_async"], &["tidegate-mysql"]),
    (
        &["rustls", "rustls-*"],
        &["tidegate-client", "tidegate-ingest", "tidegate-mysql", "tidegate-postgres", "tidegate-transport"],
    ),
    (&["tokio-rustls"], &["tidegate-ingest", "tidegate-transport"]),
    (&["x509-parser"], &["tidegate-transport"]),
    (&["rusqlite"], &["tidegate-sqlite"]),
    (&["procfs", "nix"], &["tidegate-system"]),
];

/// What examples and tests name: hosts of their own mount our router in theirs, a file has to be there to be asked, and
/// the embedded engine is compared with PostgreSQL.
const LIBRARIES_ALLOWED_IN_TESTS: &[(&str, &str)] = &[
    ("tidegate", "axum"),
    ("tidegate-client", "axum"),
    ("tidegate", "rusqlite"),
    ("tidegate-tools", "rusqlite"),
    ("tidegate-engines", "tokio-postgres"),
    ("tidegate-testkit", "tokio-postgres"),
];

/// Crates that build without the data side, so that work on them compiles in seconds.
const WITHOUT_DATA: &[&str] = &[
    "tidegate-core",
    "tidegate-runtime",
    "tidegate-auth",
    "tidegate-mcp",
    "tidegate-transport",
    "tidegate-log-formats",
    "tidegate-system",
];
const DATA_SIDE: &[&str] = &["arrow", "arrow-*", "datafusion", "datafusion-*", "parquet", "sqlparser"];

/// Crates that may stand in the lock file once only.
const SINGLE_VERSION_CRATES: &[&str] = &["arrow", "sqlparser"];

/// Where metadata writes `null`, a dependency is a normal one.
const NORMAL_DEPENDENCY: Value = Value::Null;

pub(super) struct Metadata(Value);

impl Metadata {
    pub(super) fn read() -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host_triple()])
            .current_dir(workspace())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(serde_json::from_slice(&output.stdout).expect("metadata is JSON"))
    }

    fn members(&self) -> Vec<&Value> {
        let ids: Vec<&Value> = list(&self.0["workspace_members"]).iter().collect();
        list(&self.0["packages"]).iter().filter(|package| ids.contains(&&package["id"])).collect()
    }

    /// The names that `package` depends on in its manifest, of whatever kind.
    fn named(package: &Value) -> impl Iterator<Item = &str> {
        list(&package["dependencies"]).iter().map(|dependency| text(&dependency["name"]))
    }

    /// The manifests of the members.
    pub(super) fn manifests(&self) -> Vec<&str> {
        self.members().into_iter().map(|package| text(&package["manifest_path"])).collect()
    }

    /// The members that name `library` in their manifest.
    pub(super) fn members_with_dependency(&self, library: &str) -> Vec<&str> {
        let members = self.members().into_iter();
        members
            .filter(|package| Self::named(package).any(|name| name == library))
            .map(|package| text(&package["name"]))
            .collect()
    }

    /// The members whose build contains one of the libraries.
    pub(super) fn members_with_dependency_in_closure(&self, libraries: &[&str]) -> Vec<&str> {
        let names = self.members().into_iter().map(|package| text(&package["name"]));
        names.filter(|name| self.closure(name).iter().any(|other| libraries.contains(other))).collect()
    }

    /// The names of everything that a build of `root` without its tests contains.
    pub(super) fn closure(&self, root: &str) -> BTreeSet<&str> {
        self.closure_packages(root).into_iter().map(|package| text(&package["name"])).collect()
    }

    /// The same as `name vVERSION`, as `cargo tree` writes it.
    pub(super) fn closure_versions(&self, root: &str) -> BTreeSet<String> {
        let packages = self.closure_packages(root).into_iter();
        packages.map(|package| format!("{} v{}", text(&package["name"]), text(&package["version"]))).collect()
    }

    fn closure_packages(&self, root: &str) -> Vec<&Value> {
        let packages: BTreeMap<&str, &Value> =
            list(&self.0["packages"]).iter().map(|package| (text(&package["id"]), package)).collect();
        let nodes: BTreeMap<&str, &Value> =
            list(&self.0["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node)).collect();
        let mut open: Vec<&str> =
            packages.iter().filter(|(_, package)| text(&package["name"]) == root).map(|(id, _)| *id).collect();
        let mut seen: BTreeSet<&str> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            let dependencies = list(&nodes[id]["deps"]).iter();
            let normal =
                dependencies.filter(|dep| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"] == NORMAL_DEPENDENCY));
            open.extend(normal.map(|dep| text(&dep["pkg"])).filter(|id| seen.insert(id)));
        }
        seen.into_iter().map(|id| packages[id]).collect()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// The platform that this compiler builds for; metadata of others would need their packages.
fn host_triple() -> String {
    let output =
        Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into())).arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(output.stdout).expect("UTF-8");
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

/// Whether `name` is `pattern` or, where the pattern ends in `*`, begins like it.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[test]
fn crates_depend_downward_only() {
    let metadata = Metadata::read();
    let members = metadata.members();
    let names = members.iter().map(|package| text(&package["name"]));
    let ours: BTreeSet<&str> = names.filter(|name| *name != FEATURES_ONLY).collect();
    let mut wrong = Vec::new();
    for package in &members {
        let name = text(&package["name"]);
        if UNRESTRICTED_CRATES.contains(&name) || name == FEATURES_ONLY {
            continue;
        }
        let Some((_, allowed)) = ALLOWED_DEPENDENCIES.iter().find(|(crate_name, _)| *crate_name == name) else {
            wrong.push(format!("{name} has no row in ALLOWED_DEPENDENCIES"));
            continue;
        };
        let known = Metadata::named(package).filter(|other| ours.contains(other) && !allowed.contains(other));
        let is_of_tests = |other: &str| {
            (other == TESTKIT || ALLOWED_DEV_DEPENDENCIES.contains(&(name, other)))
                && !metadata.closure(name).contains(other)
        };
        let known = known.filter(|other| !is_of_tests(other));
        wrong.extend(known.map(|other| format!("{name} must not know {other}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn restricted_libraries_stay_in_their_crates() {
    let metadata = Metadata::read();
    let mut wrong = Vec::new();
    for package in metadata.members() {
        let name = text(&package["name"]);
        if name == FEATURES_ONLY {
            continue;
        }
        for library in Metadata::named(package) {
            let fence = LIBRARY_RESTRICTIONS
                .iter()
                .find(|(patterns, _)| patterns.iter().any(|pattern| matches_pattern(pattern, library)));
            let is_outside = LIBRARIES_ALLOWED_IN_TESTS.contains(&(name, library));
            if fence.is_some_and(|(_, allowed)| !allowed.contains(&name)) && !is_outside {
                wrong.push(format!("{name} must not name {library}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_lower_crates_build_without_the_data_side() {
    let metadata = Metadata::read();
    for root in WITHOUT_DATA {
        let closure = metadata.closure(root);
        let data: Vec<_> =
            closure.iter().filter(|name| DATA_SIDE.iter().any(|pattern| matches_pattern(pattern, name))).collect();
        assert!(closure.contains(root) && data.is_empty(), "{root} pulls in {data:?}");
    }
    // The same walk from the top finds them, so it does walk.
    assert!(metadata.closure("tidegate").contains("datafusion"));
}

#[test]
fn lock_file_has_one_version_of_arrow_and_sqlparser() {
    let lock = std::fs::read_to_string(workspace().join("Cargo.lock")).expect("Cargo.lock is readable");
    for name in SINGLE_VERSION_CRATES {
        let line = format!("name = \"{name}\"");
        assert_eq!(lock.lines().filter(|other| **other == line).count(), 1, "{name}");
    }
}
