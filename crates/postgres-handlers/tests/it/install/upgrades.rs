//! From each earlier version to this one.

use std::path::Path;

use tidegate_postgres_handlers::{HandlerSchemaScripts, InstallMode, InstalledVersion};

use super::installed_database::InstalledDatabase;

/// The whole install scripts of earlier versions, in their order.
fn released_versions() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers_released");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap().replace("@schema@", "api")).collect()
}

#[tokio::test]
async fn upgrade_equals_new_installation() {
    let fresh = InstalledDatabase::installed().await;
    fresh.create_and_call_handlers().await;
    let released = released_versions();
    assert_eq!(released.len(), 2);
    for (script, version) in released.iter().zip(1..) {
        let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
        let before = ground.dump(&[]);
        ground.psql(&format!("SET client_min_messages = warning; BEGIN; {script}; COMMIT;"));
        ground.create_and_call_handlers().await;
        assert_eq!(ground.default_installer().status().await.unwrap().version, InstalledVersion::Unversioned);

        let change = ground.default_installer().upgrade(InstallMode::Commit).await.unwrap();
        let steps: Vec<u32> = change.steps.iter().map(|step| step.number).collect();
        let added = if version == 1 { vec![4, 17] } else { vec![4] };
        assert!(steps.starts_with(&added) && steps.ends_with(&[1000 + HandlerSchemaScripts::VERSION]), "{change:?}");
        assert!(change.was_installed && change.functions_replaced > 0, "{change:?}");
        // What was registered before is called as it was, and is what this version makes of it when it is registered
        // again.
        assert_eq!(ground.call("greet").await, r#"[{"text": "hello", "type": "text"}]"#);
        ground.register_handler().await;
        // Databases and roles of the tests are named after their number.
        let named = |of: &InstalledDatabase| of.dump(&["--schema-only"]).replace(&of.scene.name, "db");
        assert_eq!(named(&ground), named(&fresh), "from version {version}");
        assert!(ground.default_installer().install(InstallMode::Commit).await.unwrap().is_empty());
        let status = ground.default_installer().status().await.unwrap();
        assert_eq!(status.version, InstalledVersion::Version(HandlerSchemaScripts::VERSION));
        assert_eq!(status.handlers, Some(vec![("tool".to_owned(), 1)]));

        ground.default_installer().uninstall(InstallMode::Commit).await.unwrap();
        assert_eq!(ground.dump(&[]), before, "from version {version}");
    }
}

#[tokio::test]
async fn earlier_version_can_be_uninstalled() {
    for script in released_versions() {
        let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
        let before = ground.dump(&[]);
        ground.psql(&format!("SET client_min_messages = warning; BEGIN; {script}; COMMIT;"));
        ground.create_and_call_handlers().await;
        ground.default_installer().uninstall(InstallMode::Commit).await.unwrap();
        assert_eq!(ground.dump(&[]), before);
    }
}
