//! The schema of handlers: made, taken away, and nothing else touched.

mod caller_role;
mod install_errors;
mod installed_database;
mod status;

use tidegate_postgres_handlers::{InstallMode, Installation};

use installed_database::{InstalledDatabase, layer_for};
use tidegate_testkit::test_database::within_timeout;

/// What a database may hold beside the schema.
const UNRELATED_OBJECTS_SQL: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, total numeric NOT NULL);
    INSERT INTO orders VALUES (1, 9.5);
    CREATE FUNCTION double(int) RETURNS int LANGUAGE sql RETURN $1 * 2;
    CREATE SCHEMA app;
    CREATE TYPE app.state AS ENUM ('new', 'sent');
    GRANT SELECT ON orders TO {login};";

#[tokio::test]
async fn uninstall_restores_the_database() {
    for is_found in [false, true] {
        let ground = InstalledDatabase::new(UNRELATED_OBJECTS_SQL).await;
        // Whose schema it is needs no rights in the database.
        ground
            .scene
            .run(if is_found { "CREATE SCHEMA api AUTHORIZATION {login}" } else { InstalledDatabase::MAY_CREATE })
            .await;
        let before = ground.dump(&[]);
        let installer = ground.default_installer();

        let first = installer.install(InstallMode::Commit).await.unwrap();
        assert!(!first.was_installed, "{first:?}");
        let installed = ground.dump(&[]);
        assert_ne!(installed, before);

        assert!(installer.install(InstallMode::Commit).await.unwrap().was_installed);
        assert_eq!(ground.dump(&[]), installed);

        ground.create_and_call_handlers().await;
        assert_eq!(ground.call("greet").await, r#"[{"text": "hello", "type": "text"}]"#);
        let used = ground.dump(&["--schema-only"]);
        assert!(installer.install(InstallMode::Commit).await.unwrap().was_installed);
        assert_eq!(ground.dump(&["--schema-only"]), used);

        installer.uninstall(InstallMode::Commit).await.unwrap();
        assert_eq!(ground.dump(&[]), before, "schema found: {is_found}");
    }
}

#[tokio::test]
async fn dry_run_changes_nothing() {
    let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
    let before = ground.dump(&[]);
    let installer = ground.default_installer();
    let dry = installer.install(InstallMode::DryRun).await.unwrap();
    assert_eq!(ground.dump(&[]), before);
    assert_eq!(installer.install(InstallMode::Commit).await.unwrap(), dry);

    ground.create_and_call_handlers().await;
    let installed = ground.dump(&[]);
    installer.uninstall(InstallMode::DryRun).await.unwrap();
    assert_eq!(ground.dump(&[]), installed);
}

#[tokio::test]
async fn concurrent_installations_are_serialized() {
    let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
    let installer = ground.default_installer();
    let both = futures::future::join_all((0..4).map(|_| installer.install(InstallMode::Commit)));
    let installations: Vec<Installation> =
        within_timeout("four installations", both).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(installations.iter().filter(|installation| !installation.was_installed).count(), 1);
}

#[tokio::test]
async fn second_schema_can_be_installed() {
    let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
    ground.default_installer().install(InstallMode::Commit).await.unwrap();
    let installed = ground.dump(&["--schema-only", "--schema=api"]);
    let other = ground.installer_for_schema("other_2");
    other.install(InstallMode::Commit).await.unwrap();
    assert_eq!(ground.dump(&["--schema-only", "--schema=other_2"]).replace("other_2", "api"), installed);
    other.uninstall(InstallMode::Commit).await.unwrap();
    assert_eq!(ground.dump(&["--schema-only", "--schema=api"]), installed);
}

#[tokio::test]
async fn printed_scripts_match_the_installer() {
    let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
    let before = ground.dump(&[]);
    let layer = layer_for("api");
    ground.psql(&layer.script(&layer.install_sql()));
    assert!(ground.default_installer().install(InstallMode::Commit).await.unwrap().was_installed);
    ground.psql(&layer.script(&layer.uninstall_sql()));
    assert_eq!(ground.dump(&[]), before);
}
