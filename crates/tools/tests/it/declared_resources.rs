//! Declared resources: what the variables of their URIs may be, and which files they reach.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::event::Events;
use tidegate_core::{Access, CallLimits, Registry, SnapshotBuilder, Target};
use tidegate_query::Format;
use tidegate_tools::declared::{DeclaredResource, Input, InputKind, Prepared, ResourceSource, Scalar, TextTemplate};

use crate::fake::{call, gather, owner, shop, view};

fn input(name: &str, kind: InputKind, constraints: Value) -> Input {
    let constraints: Map<String, Value> = constraints.as_object().unwrap().clone();
    Input { constraints, ..Input::new(name, kind) }
}

async fn registry(uri: &str, source: ResourceSource) -> Arc<Registry> {
    let view = view([shop()]);
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
    let Ok((Prepared::Template(template), None)) = resource.prepare(&view).await else { panic!("a template") };
    let registry = Registry::new(SnapshotBuilder::new().template(*template).build(), Events::default());
    view.attach(&registry);
    registry
}

async fn read(registry: &Arc<Registry>, uri: &str) -> String {
    let reply = registry.call(call(Target::Resource(uri.to_owned()), Value::Null));
    let said = match reply {
        Ok(reply) => gather(reply).await.map(|answer| answer.texts.concat()),
        Err(error) => Err(error),
    };
    said.unwrap_or_else(|error| format!("{}: {error}", error.kind().name()))
}

#[tokio::test]
async fn variables_are_held_to_what_is_declared_of_them() {
    let source = ResourceSource::Sql {
        database: None,
        sql: "SELECT * FROM orders WHERE customer = :who AND id IN (:ids) AND note = :day".to_owned(),
        inputs: vec![
            input("who", InputKind::Scalar(Scalar::String), json!({"enum": ["Ann", "Bob"]})),
            input("ids", InputKind::List(Scalar::Integer), json!({})),
            input("day", InputKind::Scalar(Scalar::Date), json!({})),
        ],
        format: Format::Json,
    };
    let registry = registry("orders://{who}/{ids}/{day}", source).await;
    let sound = read(&registry, "orders://Ann/1,2/2013-01-31").await;
    assert!(sound.contains("Ann"), "{sound}");
    insta::assert_snapshot!(read(&registry, "orders://Eve/1/yesterday").await, @r#"
    invalid_arguments: the variables of the URI do not fit:
    - who: "Eve" is not one of "Ann" or "Bob"
    - day: "yesterday" does not match "^\d{4}-\d{2}-\d{2}$"
    "#);
    insta::assert_snapshot!(read(&registry, "orders://Ann/1,two/2013-01-31").await, @r#"invalid_arguments: ids is "two" in the URI; wanted a whole number"#);
}

/// The resource `pages://{page}` of a folder, for pages of lower case letters.
async fn pages(folder: &Path) -> Arc<Registry> {
    let source = ResourceSource::File {
        folder: folder.to_owned(),
        path: TextTemplate::parse("{{page}}").unwrap(),
        inputs: vec![input("page", InputKind::Scalar(Scalar::String), json!({"pattern": "^[a-z]+$"}))],
    };
    registry("pages://{page}", source).await
}

#[tokio::test]
async fn files_have_variables_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one"), "page one").unwrap();
    std::fs::write(folder.path().join("two2"), "page two").unwrap();
    let registry = pages(folder.path()).await;
    assert_eq!(read(&registry, "pages://one").await, "page one");
    let refused = read(&registry, "pages://two2").await;
    assert!(refused.starts_with("invalid_arguments: the variables of the URI do not fit:"), "{refused}");
}

#[tokio::test]
async fn a_file_that_is_written_has_another_stamp_and_none_if_it_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one"), "page one").unwrap();
    std::fs::write(folder.path().join("two2"), "page two").unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let registry = pages(folder.path()).await;
    let stamp = async |uri: &str| {
        let (watcher, variables) = registry.snapshot().watcher(uri, &owner()).unwrap();
        watcher.stamp(&variables, &owner()).await.unwrap()
    };
    let before = stamp("pages://one").await;
    assert!(before.is_some() && stamp("pages://one").await == before);
    std::fs::write(folder.path().join("one"), "page one, longer").unwrap();
    let after = stamp("pages://one").await;
    assert!(after.is_some() && after != before);
    std::fs::remove_file(folder.path().join("one")).unwrap();
    for absent in ["pages://one", "pages://two2", "pages://folder", "pages://%2e%2e", "pages://nothing"] {
        assert_eq!(stamp(absent).await, None, "{absent}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_is_not_there_and_never_waited_for() {
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
