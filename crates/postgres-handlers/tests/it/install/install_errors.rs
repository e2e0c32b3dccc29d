//! Rejected installations: the error says what would be right, and nothing is changed.

use insta::assert_snapshot;
use tidegate_postgres_handlers::InstallMode;

use super::installed_database::InstalledDatabase;

/// The refusal of what was tried, without the names that are other ones in each run; nothing may have changed.
async fn install_error_text<T: std::fmt::Debug>(
    ground: &InstalledDatabase,
    tried: impl Future<Output = Result<T, tidegate_core::Error>>,
) -> String {
    let before = ground.dump(&[]);
    let error = tried.await.unwrap_err();
    assert_eq!(ground.dump(&[]), before);
    error.to_string().replace(&ground.scene.name, "shop")
}

#[tokio::test]
async fn role_without_create_privilege_is_rejected() {
    let ground = InstalledDatabase::new("").await;
    assert_snapshot!(install_error_text(&ground, ground.default_installer().install(InstallMode::Commit)).await, @r#"
    the role shop_login cannot create a schema in the database shop: it lacks the privilege CREATE
    The owner of the database can run GRANT CREATE ON DATABASE "shop" TO "shop_login", or CREATE SCHEMA api AUTHORIZATION "shop_login".
    "#);
    ground.scene.run("CREATE SCHEMA api; GRANT ALL ON SCHEMA api TO {login}").await;
    assert_snapshot!(install_error_text(&ground, ground.default_installer().install(InstallMode::Commit)).await, @r"
    the schema api of the database shop is owned by postgres, and the role shop_login is not a member of postgres
    Connect as postgres or as a member of that role, or choose another schema.
    ");
}

#[tokio::test]
async fn foreign_schema_is_rejected() {
    let ground = InstalledDatabase::installed().await;
    ground.scene.run("CREATE ROLE {db}_other LOGIN PASSWORD 'right'").await;
    let other = ground.installer_as_role(&format!("{}_other", ground.scene.name), "api");
    assert_snapshot!(install_error_text(&ground, other.install(InstallMode::Commit)).await, @r"
    the schema api of the database shop is owned by shop_login, and the role shop_other is not a member of shop_login
    Connect as shop_login or as a member of that role, or choose another schema.
    ");
    assert_snapshot!(install_error_text(&ground, other.uninstall(InstallMode::Commit)).await, @r"
    the schema api of the database shop is owned by shop_login, and the role shop_other is not a member of shop_login
    Connect as shop_login or as a member of that role, or choose another schema.
    ");

    ground.scene.run("CREATE SCHEMA mine AUTHORIZATION {login}; CREATE TABLE mine.installation (version int)").await;
    let mine = ground.installer_for_schema("mine");
    assert_snapshot!(install_error_text(&ground, mine.install(InstallMode::Commit)).await, @r#"
    the schema "mine" holds objects of others, "installation" among them
    Choose a schema that is empty or does not exist.
    "#);
    assert_snapshot!(install_error_text(&ground, mine.uninstall(InstallMode::Commit)).await, @r"
    the schema mine of the database shop contains no registry of handlers
    Create it with tidegate pg install.
    ");
}

#[tokio::test]
async fn missing_installation_is_reported() {
    let ground = InstalledDatabase::new(InstalledDatabase::MAY_CREATE).await;
    assert_snapshot!(install_error_text(&ground, ground.default_installer().uninstall(InstallMode::Commit)).await, @r"
    the database shop has no schema api: nothing is installed there
    Create it with tidegate pg install.
    ");
    install_error_text(&ground, ground.default_installer().status()).await;
}

#[tokio::test]
async fn dependent_objects_block_uninstall() {
    let ground = InstalledDatabase::installed().await;
    ground.scene.run("CREATE VIEW public.greeting AS SELECT api.mcp_text('hello')").await;
    assert_snapshot!(install_error_text(&ground, ground.default_installer().uninstall(InstallMode::Commit)).await, @r#"
    view public.greeting needs the schema "api"
    Drop it first, or let it do without.
    "#);
    ground.scene.run("DROP VIEW public.greeting; CREATE TABLE api.orders (id int)").await;
    assert_snapshot!(install_error_text(&ground, ground.default_installer().uninstall(InstallMode::Commit)).await, @r#"
    the schema "api" holds "orders", which is somebody else's
    Move it to another schema first (ALTER … SET SCHEMA).
    "#);
    assert!(ground.default_installer().install(InstallMode::Commit).await.unwrap().was_installed);
}

#[tokio::test]
async fn another_version_is_rejected() {
    let ground = InstalledDatabase::installed().await;
    ground.scene.run("UPDATE api.installation SET version = 7").await;
    let installer = ground.default_installer();
    let message = install_error_text(&ground, installer.install(InstallMode::Commit)).await;
    assert_snapshot!(message, @r"
    the handlers in the schema api of the database shop have version 7, and this program needs version 1
    Use the Tidegate that installed them, or remove them with its tidegate pg uninstall and install them again.
    ");
    assert_eq!(install_error_text(&ground, installer.uninstall(InstallMode::Commit)).await, message);
    assert_eq!(install_error_text(&ground, installer.status()).await, message);
    // A script for psql reports them as well, whatever their version.
    let sql = super::layer_for("api").install_sql();
    let text = ground.scene.admin.batch_execute(&format!("BEGIN; {sql}")).await.unwrap_err();
    assert_eq!(text.as_db_error().unwrap().message(), "the schema \"api\" has handlers already");
}

#[tokio::test]
async fn non_utf8_database_is_rejected() {
    let ground = InstalledDatabase::new("").await;
    let name = format!("{}_ascii", ground.scene.name);
    let create = format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
    ground.scene.run(&create).await;
    ground.scene.run(&format!("GRANT CREATE ON DATABASE {name} TO {{login}}")).await;
    let message = ground.installer_in_database(&name).install(InstallMode::Commit).await.unwrap_err();
    assert_snapshot!(message, @"the handlers need a database whose encoding is UTF8; this one has SQL_ASCII");
}

#[tokio::test]
async fn lock_wait_times_out() {
    let ground = InstalledDatabase::installed().await;
    ground.scene.run("BEGIN; LOCK TABLE api.handler").await;
    let installer = ground.default_installer();
    let waits = tokio::spawn(async move { installer.uninstall(InstallMode::Commit).await });
    tidegate_testkit::test_database::wait_until("a removal that waits", || async {
        ground.scene.value("SELECT count(*) FROM pg_locks WHERE NOT granted").await == "1"
    })
    .await;
    ground.scene.run("COMMIT").await;
    waits.await.unwrap().unwrap();
}
