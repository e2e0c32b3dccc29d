//! What is refused, in words that say what would be right, and without a trace.

use insta::assert_snapshot;
use tidegate_postgres::handlers::{Ending, Layer};

use super::ground::Ground;

/// The refusal of what was tried, without the names that are other ones in each run; nothing may have changed.
async fn refusal<T: std::fmt::Debug>(
    ground: &Ground,
    tried: impl Future<Output = Result<T, tidegate_core::Error>>,
) -> String {
    let before = ground.dump(&[]);
    let error = tried.await.unwrap_err();
    assert_eq!(ground.dump(&[]), before);
    error.to_string().replace(&ground.scene.name, "shop")
}

#[tokio::test]
async fn a_role_that_may_make_no_schema() {
    let ground = Ground::new("").await;
    assert_snapshot!(refusal(&ground, ground.installer().install(Ending::Kept)).await, @r#"
    the role shop_login may make no schema in the database shop: it lacks the privilege CREATE there
    Have the owner of the database run GRANT CREATE ON DATABASE "shop" TO "shop_login", or CREATE SCHEMA api AUTHORIZATION "shop_login".
    "#);
    ground.scene.run("CREATE SCHEMA api; GRANT ALL ON SCHEMA api TO {login}").await;
    assert_snapshot!(refusal(&ground, ground.installer().install(Ending::Kept)).await, @r"
    the schema api of the database shop is postgres's, and the role shop_login has not the rights of postgres
    Connect as postgres or as a member of it, or choose another schema.
    ");
}

#[tokio::test]
async fn what_is_somebody_elses() {
    let ground = Ground::installed().await;
    ground.scene.run("CREATE ROLE {db}_other LOGIN PASSWORD 'right'").await;
    let other = ground.installer_as(&format!("{}_other", ground.scene.name), "api");
    assert_snapshot!(refusal(&ground, other.upgrade(Ending::Kept)).await, @r"
    the schema api of the database shop is shop_login's, and the role shop_other has not the rights of shop_login
    Connect as shop_login or as a member of it, or choose another schema.
    ");
    assert_snapshot!(refusal(&ground, other.uninstall(Ending::Kept)).await, @r"
    the schema api of the database shop is shop_login's, and the role shop_other has not the rights of shop_login
    Connect as shop_login or as a member of it, or choose another schema.
    ");

    ground.scene.run("CREATE SCHEMA mine AUTHORIZATION {login}; CREATE TABLE mine.migration (version int)").await;
    let mine = ground.installer_of("mine");
    assert_snapshot!(refusal(&ground, mine.install(Ending::Kept)).await, @r#"
    the schema "mine" holds objects of others, "migration" among them
    Choose a schema that is empty or does not exist.
    "#);
    assert_snapshot!(refusal(&ground, mine.upgrade(Ending::Kept)).await, @r"
    the schema mine of the database shop holds no handlers' registry
    tidegate pg install puts one there.
    ");
    assert_snapshot!(refusal(&ground, mine.uninstall(Ending::Kept)).await, @r"
    the schema mine of the database shop holds no handlers' registry
    tidegate pg install puts one there.
    ");
}

#[tokio::test]
async fn where_nothing_is_installed() {
    let ground = Ground::new(Ground::MAY_CREATE).await;
    assert_snapshot!(refusal(&ground, ground.installer().upgrade(Ending::Kept)).await, @r"
    the database shop has no schema api: nothing is installed there
    tidegate pg install puts one there.
    ");
    refusal(&ground, ground.installer().uninstall(Ending::Kept)).await;
    refusal(&ground, ground.installer().status()).await;
}

#[tokio::test]
async fn what_needs_the_schema_keeps_it() {
    let ground = Ground::installed().await;
    ground.scene.run("CREATE VIEW public.greeting AS SELECT api.mcp_text('hello')").await;
    assert_snapshot!(refusal(&ground, ground.installer().uninstall(Ending::Kept)).await, @r#"
    view public.greeting needs the schema "api"
    Drop it first, or let it do without.
    "#);
    ground.scene.run("DROP VIEW public.greeting; CREATE TABLE api.orders (id int)").await;
    assert_snapshot!(refusal(&ground, ground.installer().uninstall(Ending::Kept)).await, @r#"
    the schema "api" holds "orders", which is somebody else's
    Move it to another schema first (ALTER … SET SCHEMA).
    "#);
    // It is in nobody's way otherwise.
    assert!(ground.installer().upgrade(Ending::Kept).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_newer_tidegate_made() {
    let ground = Ground::installed().await;
    ground.scene.run("INSERT INTO api.migration VALUES (98, 'sampling')").await;
    assert_snapshot!(refusal(&ground, ground.installer().install(Ending::Kept)).await, @r"
    the schema api of the database shop was made by a newer Tidegate: this program does not know its step 098 sampling
    Use that Tidegate or a newer one.
    ");
    let newer = Layer::VERSION + 1;
    ground.scene.run(&format!("INSERT INTO api.migration VALUES (1000 + {newer}, 'version {newer}')")).await;
    let told = refusal(&ground, ground.installer().upgrade(Ending::Kept)).await;
    let words = format!("it has version {newer}, and this program brings {}", Layer::VERSION);
    assert!(told.contains("was made by a newer Tidegate") && told.contains(&words), "{told}");
    refusal(&ground, ground.installer().uninstall(Ending::Kept)).await;
    // Whoever uses psql is told as well.
    let sql = super::layer("api").install_sql();
    let said = ground.scene.admin.batch_execute(&format!("BEGIN; {sql}")).await.unwrap_err();
    let said = said.as_db_error().unwrap().message();
    assert!(said.contains("was made by a newer Tidegate"), "{said}");
}

#[tokio::test]
async fn an_encoding_that_is_not_utf8() {
    let ground = Ground::new("").await;
    let name = format!("{}_ascii", ground.scene.name);
    let create = format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
    ground.scene.run(&create).await;
    ground.scene.run(&format!("GRANT CREATE ON DATABASE {name} TO {{login}}")).await;
    let told = ground.installer_in(&name).install(Ending::Kept).await.unwrap_err();
    assert_snapshot!(told, @"the handlers need a database whose encoding is UTF8; this one has SQL_ASCII");
}

#[tokio::test]
async fn a_lock_of_somebody_elses_is_waited_for_but_not_for_ever() {
    let ground = Ground::installed().await;
    ground.scene.run("BEGIN; LOCK TABLE api.handler").await;
    let installer = ground.installer();
    let waits = tokio::spawn(async move { installer.upgrade(Ending::Kept).await });
    crate::scene::until("an upgrade that waits", || async {
        ground.scene.value("SELECT count(*) FROM pg_locks WHERE NOT granted").await == "1"
    })
    .await;
    ground.scene.run("COMMIT").await;
    assert!(waits.await.unwrap().unwrap().is_empty());
}
