//! The schema of handlers: made, renewed, taken away, and nothing else touched.

mod callers;
mod ground;
mod refusals;
mod status;
mod upgrades;

use tidegate_postgres::handlers::{Change, Ending, Layer};

use crate::scene::soon;
use ground::{Ground, layer};

/// What a database may hold beside the schema.
const OTHERS: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, total numeric NOT NULL);
    INSERT INTO orders VALUES (1, 9.5);
    CREATE FUNCTION double(int) RETURNS int LANGUAGE sql RETURN $1 * 2;
    CREATE SCHEMA app;
    CREATE TYPE app.state AS ENUM ('new', 'sent');
    GRANT SELECT ON orders TO {login};";

#[tokio::test]
async fn what_is_installed_goes_again_and_leaves_nothing_behind() {
    for is_found in [false, true] {
        let ground = Ground::new(OTHERS).await;
        // Whose schema it is needs no rights in the database.
        ground.scene.run(if is_found { "CREATE SCHEMA api AUTHORIZATION {login}" } else { Ground::MAY_CREATE }).await;
        let before = ground.dump(&[]);
        let installer = ground.installer();

        let first = installer.install(Ending::Kept).await.unwrap();
        assert!(!first.was_installed && first.steps.len() > 20 && first.functions_added > 50, "{first:?}");
        let installed = ground.dump(&[]);
        assert_ne!(installed, before);

        let again = installer.install(Ending::Kept).await.unwrap();
        assert!(again.is_empty() && again.was_installed, "{again:?}");
        assert_eq!(again.version_before, Some(Layer::VERSION));
        assert_eq!(ground.dump(&[]), installed);

        ground.use_handlers().await;
        assert_eq!(ground.call("greet").await, r#"[{"text": "hello", "type": "text"}]"#);
        let used = ground.dump(&["--schema-only"]);
        assert!(installer.install(Ending::Kept).await.unwrap().is_empty());
        assert_eq!(ground.dump(&["--schema-only"]), used);

        installer.uninstall(Ending::Kept).await.unwrap();
        assert_eq!(ground.dump(&[]), before, "schema found: {is_found}");
    }
}

#[tokio::test]
async fn a_dry_run_does_it_all_and_changes_nothing() {
    let ground = Ground::new(Ground::MAY_CREATE).await;
    let before = ground.dump(&[]);
    let installer = ground.installer();
    let dry = installer.install(Ending::RolledBack).await.unwrap();
    assert_eq!(ground.dump(&[]), before);
    assert_eq!(installer.install(Ending::Kept).await.unwrap(), dry);

    ground.use_handlers().await;
    let installed = ground.dump(&[]);
    assert!(installer.upgrade(Ending::RolledBack).await.unwrap().is_empty());
    installer.uninstall(Ending::RolledBack).await.unwrap();
    assert_eq!(ground.dump(&[]), installed);
}

#[tokio::test]
async fn two_installations_at_once_are_one() {
    let ground = Ground::new(Ground::MAY_CREATE).await;
    let installer = ground.installer();
    let both = futures::future::join_all((0..4).map(|_| installer.install(Ending::Kept)));
    let changes: Vec<Change> = soon("four installations", both).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(changes.iter().filter(|change| !change.was_installed).count(), 1);
    assert_eq!(changes.iter().filter(|change| change.is_empty()).count(), 3);
}

#[tokio::test]
async fn a_schema_of_another_name_stands_beside_it() {
    let ground = Ground::new(Ground::MAY_CREATE).await;
    ground.installer().install(Ending::Kept).await.unwrap();
    let installed = ground.dump(&["--schema-only", "--schema=api"]);
    let other = ground.installer_of("other_2");
    other.install(Ending::Kept).await.unwrap();
    assert_eq!(ground.dump(&["--schema-only", "--schema=other_2"]).replace("other_2", "api"), installed);
    other.uninstall(Ending::Kept).await.unwrap();
    assert_eq!(ground.dump(&["--schema-only", "--schema=api"]), installed);
}

#[tokio::test]
async fn the_printed_scripts_do_the_same() {
    let ground = Ground::new(Ground::MAY_CREATE).await;
    let before = ground.dump(&[]);
    let layer = layer("api");
    ground.psql(&layer.script(&layer.install_sql()));
    assert!(ground.installer().install(Ending::Kept).await.unwrap().is_empty());
    ground.psql(&layer.script(&layer.install_sql()));
    ground.psql(&layer.script(&layer.uninstall_sql()));
    assert_eq!(ground.dump(&[]), before);
}
