//! What is said of what is installed, to whom.

use tidegate_postgres::handlers::{Ending, ExchangeLog, InstalledVersion, Layer, Lines};

use super::ground::Ground;

#[tokio::test]
async fn its_owner_reads_all_of_it() {
    let ground = Ground::installed().await;
    let status = ground.installer().status().await.unwrap();
    assert_eq!((status.database.as_str(), status.schema.as_str()), (ground.scene.name.as_str(), "api"));
    assert_eq!((status.owner, status.is_of_owner), (ground.scene.login(), true));
    assert_eq!(status.version, InstalledVersion::Counted(Layer::VERSION));
    assert_eq!(status.handlers, Some(Vec::new()));
    assert_eq!(status.exchange, Some(ExchangeLog { is_on: false, lines: Some(Lines::Counted(0)) }));
    assert_eq!(status.dispatching, [""; 0]);

    ground.use_handlers().await;
    ground.scene.run("SELECT api.set_mcp_exchange_log(true)").await;
    ground.call("greet").await;
    let status = ground.installer().status().await.unwrap();
    assert_eq!(status.handlers, Some(vec![("tool".to_owned(), 1)]));
    assert_eq!(status.exchange, Some(ExchangeLog { is_on: true, lines: Some(Lines::Counted(1)) }));
    assert_eq!(status.dispatching, [format!("{}_caller", ground.scene.name)]);
}

#[tokio::test]
async fn others_read_what_they_may() {
    let ground = Ground::installed().await;
    ground.use_handlers().await;
    ground
        .scene
        .run("ALTER ROLE {db}_caller LOGIN PASSWORD 'right'; CREATE ROLE {db}_nobody LOGIN PASSWORD 'right'")
        .await;
    let name = &ground.scene.name;
    let caller = ground.installer_as(&format!("{name}_caller"), "api").status().await.unwrap();
    assert_eq!((caller.is_of_owner, caller.version), (false, InstalledVersion::Hidden));
    assert_eq!(caller.handlers, Some(vec![("tool".to_owned(), 1)]));
    assert_eq!(caller.exchange, Some(ExchangeLog { is_on: false, lines: None }));

    let nobody = ground.installer_as(&format!("{name}_nobody"), "api").status().await.unwrap();
    assert_eq!((nobody.handlers, nobody.exchange), (None, None));
    assert_eq!(nobody.dispatching, [format!("{name}_caller")]);
}

#[tokio::test]
async fn it_changes_nothing() {
    let ground = Ground::installed().await;
    ground.scene.run("ALTER DATABASE {db} SET default_transaction_read_only = on").await;
    let before = ground.dump(&[]);
    ground.installer().status().await.unwrap();
    assert_eq!(ground.dump(&[]), before);
    // What is said to write does so whatever the default is.
    assert!(ground.installer().install(Ending::Kept).await.unwrap().is_empty());
}
