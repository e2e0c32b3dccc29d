//! From each earlier version to this one.

use std::path::Path;

use tidegate_postgres::handlers::{Ending, InstalledVersion, Layer};

use super::ground::Ground;

/// The whole install scripts of earlier versions, in their order.
fn released() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers_released");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap().replace("@schema@", "api")).collect()
}

#[tokio::test]
async fn an_upgrade_from_each_earlier_version_equals_a_new_installation() {
    let fresh = Ground::installed().await;
    fresh.use_handlers().await;
    let released = released();
    assert_eq!(released.len(), 2);
    for (script, version) in released.iter().zip(1..) {
        let ground = Ground::new(Ground::MAY_CREATE).await;
        let before = ground.dump(&[]);
        ground.psql(&format!("SET client_min_messages = warning; BEGIN; {script}; COMMIT;"));
        ground.use_handlers().await;
        assert_eq!(ground.installer().status().await.unwrap().version, InstalledVersion::Uncounted);

        let change = ground.installer().upgrade(Ending::Kept).await.unwrap();
        let steps: Vec<u32> = change.steps.iter().map(|step| step.number).collect();
        let added = if version == 1 { vec![4, 17] } else { vec![4] };
        assert!(steps.starts_with(&added) && steps.ends_with(&[1000 + Layer::VERSION]), "{change:?}");
        assert!(change.was_installed && change.functions_replaced > 0, "{change:?}");
        // What was registered before is called as it was, and is what this version makes of it when it is registered
        // again.
        assert_eq!(ground.call("greet").await, r#"[{"text": "hello", "type": "text"}]"#);
        ground.register().await;
        // Databases and roles of the tests are named after their number.
        let named = |of: &Ground| of.dump(&["--schema-only"]).replace(&of.scene.name, "db");
        assert_eq!(named(&ground), named(&fresh), "from version {version}");
        assert!(ground.installer().install(Ending::Kept).await.unwrap().is_empty());
        let status = ground.installer().status().await.unwrap();
        assert_eq!(status.version, InstalledVersion::Counted(Layer::VERSION));
        assert_eq!(status.handlers, Some(vec![("tool".to_owned(), 1)]));

        ground.installer().uninstall(Ending::Kept).await.unwrap();
        assert_eq!(ground.dump(&[]), before, "from version {version}");
    }
}

#[tokio::test]
async fn what_an_earlier_version_made_goes_without_an_upgrade_too() {
    for script in released() {
        let ground = Ground::new(Ground::MAY_CREATE).await;
        let before = ground.dump(&[]);
        ground.psql(&format!("SET client_min_messages = warning; BEGIN; {script}; COMMIT;"));
        ground.use_handlers().await;
        ground.installer().uninstall(Ending::Kept).await.unwrap();
        assert_eq!(ground.dump(&[]), before);
    }
}
