//! Declared resources: the values of their URI variables, and the files that they can reach.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{Access, CallLimits, CallTarget, Format};
use tidegate_runtime::{Registry, SnapshotBuilder, event::EventDispatcher};
use tidegate_tools::declared::{
    DeclaredInput, DeclaredResource, InputKind, PreparedResource, ResourceContent, ScalarType, TextTemplate,
};

use crate::fake::{call, collect_answer, owner, services, shop};

fn input(name: &str, kind: InputKind, constraints: Value) -> DeclaredInput {
    let constraints: Map<String, Value> = constraints.as_object().unwrap().clone();
    DeclaredInput { constraints, ..DeclaredInput::new(name, kind) }
}

async fn registry(uri: &str, source: ResourceContent) -> Arc<Registry> {
    let services = services([shop()]);
    let resource = DeclaredResource {
        uri: uri.to_owned(),
        name: "declared".to_owned(),
        title: None,
        description: None,
        mime_type: None,
        source,
        access: Access::default(),
        limits: CallLimits::default(),
        cache: None,
    };
    let Ok((PreparedResource::Template(template), None)) = resource.prepare(&services).await else {
        panic!("a template")
    };
    let registry = Registry::new(SnapshotBuilder::new().template(*template).build(), EventDispatcher::default());
    services.attach(&registry);
    registry
}

async fn read(registry: &Arc<Registry>, uri: &str) -> String {
    let reply = registry.call(call(CallTarget::Resource(uri.to_owned()), Value::Null));
    let text = match reply {
        Ok(reply) => collect_answer(reply).await.map(|answer| answer.texts.concat()),
        Err(error) => Err(error),
    };
    text.unwrap_or_else(|error| format!("{}: {error}", error.kind().name()))
}

#[tokio::test]
async fn uri_variables_are_validated() {
    let source = ResourceContent::Sql {
        database: None,
        sql: "SELECT * FROM orders WHERE customer = :who AND id IN (:ids) AND note = :day".to_owned(),
        inputs: vec![
            input("who", InputKind::Scalar(ScalarType::String), json!({"enum": ["Ann", "Bob"]})),
            input("ids", InputKind::List(ScalarType::Integer), json!({})),
            input("day", InputKind::Scalar(ScalarType::Date), json!({})),
        ],
        format: Format::Json,
    };
    let registry = registry("orders://{who}/{ids}/{day}", source).await;
    let sound = read(&registry, "orders://Ann/1,2/2013-01-31").await;
    assert!(sound.contains("Ann"), "{sound}");
    insta::assert_snapshot!(read(&registry, "orders://Eve/1/yesterday").await, @r#"
    invalid_arguments: the variables of the URI are invalid:
    - who: "Eve" is not one of "Ann" or "Bob"
    - day: "yesterday" does not match "^\d{4}-\d{2}-\d{2}$"
    "#);
    insta::assert_snapshot!(read(&registry, "orders://Ann/1,two/2013-01-31").await, @r#"invalid_arguments: ids is "two" in the URI; expected a whole number"#);
}

/// The resource `pages://{page}` of a folder, for pages of lower case letters.
async fn pages(folder: &Path) -> Arc<Registry> {
    let source = ResourceContent::File {
        folder: folder.to_owned(),
        path: TextTemplate::parse("{{page}}").unwrap(),
        inputs: vec![input("page", InputKind::Scalar(ScalarType::String), json!({"pattern": "^[a-z]+$"}))],
    };
    registry("pages://{page}", source).await
}

#[tokio::test]
async fn file_resources_take_variables() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one"), "page one").unwrap();
    std::fs::write(folder.path().join("two2"), "page two").unwrap();
    let registry = pages(folder.path()).await;
    assert_eq!(read(&registry, "pages://one").await, "page one");
    let refused = read(&registry, "pages://two2").await;
    assert!(refused.starts_with("invalid_arguments: the variables of the URI are invalid:"), "{refused}");
}

#[tokio::test]
async fn file_version_tag_follows_writes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one"), "page one").unwrap();
    std::fs::write(folder.path().join("two2"), "page two").unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let registry = pages(folder.path()).await;
    let version_tag = async |uri: &str| {
        let (watcher, variables) = registry.snapshot().watcher(uri, &owner()).unwrap();
        watcher.version_tag(&variables, &owner()).await.unwrap()
    };
    let before = version_tag("pages://one").await;
    assert!(before.is_some() && version_tag("pages://one").await == before);
    std::fs::write(folder.path().join("one"), "page one, longer").unwrap();
    let after = version_tag("pages://one").await;
    assert!(after.is_some() && after != before);
    std::fs::remove_file(folder.path().join("one")).unwrap();
    for absent in ["pages://one", "pages://two2", "pages://folder", "pages://%2e%2e", "pages://nothing"] {
        assert_eq!(version_tag(absent).await, None, "{absent}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn non_files_are_not_found_without_blocking() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let registry = pages(folder.path()).await;
    let long = "x".repeat(5_000);
    for page in ["folder", "pipe", "nothing", &long] {
        let uri = format!("pages://{page}");
        assert_eq!(read(&registry, &uri).await, format!("not_found: there is no resource {uri:?}"));
    }
}
