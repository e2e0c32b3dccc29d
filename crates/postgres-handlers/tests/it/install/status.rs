//! The status of an installation, as far as each role may read it.

use tidegate_postgres_handlers::{CallLogStatus, HandlerSchemaScripts, InstallMode, LineCount};

use super::installed_database::InstalledDatabase;

#[tokio::test]
async fn owner_sees_full_status() {
    let ground = InstalledDatabase::installed().await;
    let status = ground.default_installer().status().await.unwrap();
    assert_eq!((status.database.as_str(), status.schema.as_str()), (ground.scene.name.as_str(), "api"));
    assert_eq!((status.owner, status.has_owner_rights), (ground.scene.login(), true));
    assert_eq!(status.version, Some(HandlerSchemaScripts::VERSION));
    assert_eq!(status.handlers, Some(Vec::new()));
    assert_eq!(status.call_log, Some(CallLogStatus { is_on: false, lines: Some(LineCount::Exactly(0)) }));
    assert_eq!(status.dispatch_roles, [""; 0]);

    ground.create_and_call_handlers().await;
    ground.scene.run("SELECT api.set_mcp_exchange_log(true)").await;
    ground.call("greet").await;
    let status = ground.default_installer().status().await.unwrap();
    assert_eq!(status.handlers, Some(vec![("tool".to_owned(), 1)]));
    assert_eq!(status.call_log, Some(CallLogStatus { is_on: true, lines: Some(LineCount::Exactly(1)) }));
    assert_eq!(status.dispatch_roles, [format!("{}_caller", ground.scene.name)]);
}

#[tokio::test]
async fn other_roles_see_permitted_status() {
    let ground = InstalledDatabase::installed().await;
    ground.create_and_call_handlers().await;
    ground
        .scene
        .run("ALTER ROLE {db}_caller LOGIN PASSWORD 'right'; CREATE ROLE {db}_nobody LOGIN PASSWORD 'right'")
        .await;
    let name = &ground.scene.name;
    let caller = ground.installer_as_role(&format!("{name}_caller"), "api").status().await.unwrap();
    assert_eq!((caller.has_owner_rights, caller.version), (false, None));
    assert_eq!(caller.handlers, Some(vec![("tool".to_owned(), 1)]));
    assert_eq!(caller.call_log, Some(CallLogStatus { is_on: false, lines: None }));

    let nobody = ground.installer_as_role(&format!("{name}_nobody"), "api").status().await.unwrap();
    assert_eq!((nobody.handlers, nobody.call_log), (None, None));
    assert_eq!(nobody.dispatch_roles, [format!("{name}_caller")]);
}

#[tokio::test]
async fn status_changes_nothing() {
    let ground = InstalledDatabase::installed().await;
    ground.scene.run("ALTER DATABASE {db} SET default_transaction_read_only = on").await;
    let before = ground.dump(&[]);
    ground.default_installer().status().await.unwrap();
    assert_eq!(ground.dump(&[]), before);
    // A transaction that is declared to write does so whatever the default is.
    ground.default_installer().uninstall(InstallMode::Commit).await.unwrap();
}
