//! Servers that refuse, and what is said of each to the caller and to the owner.

use tidegate_core::ErrorKind;
use tidegate_postgres::connect::{Problem, Startup};

use super::scene::{Scene, connect, make_role, network, refusal, refusal_in, superuser};

/// What `told` says, without what differs from run to run.
fn tidy(told: &str, role: &str) -> String {
    let port = super::scene::network_port().to_string();
    told.replace(role, "ROLE").replace(&port, "PORT")
}

#[tokio::test]
async fn a_wrong_password_names_the_user_and_where_the_password_came_from() {
    let role = make_role("wrong").await;
    let text = network(&format!("user={role} dbname=postgres sslmode=require"));
    let told = refusal(&format!("{text} password=s3cret")).await;
    insta::assert_snapshot!(tidy(&told, &role), @"");
    assert!(!told.contains("s3cret"));

    let in_variable = Scene::new().variable("PGPASSWORD", "s3cret");
    let told = refusal_in(&in_variable, &text).await;
    assert!(told.contains("the password is from PGPASSWORD") && !told.contains("s3cret"), "{told}");

    let in_file = Scene::new().file(".pgpass", "*:*:*:*:s3cret\n");
    let told = refusal_in(&in_file, &text).await;
    assert!(told.contains("the password is from the password file") && !told.contains("s3cret"), "{told}");

    let right_in_file = Scene::new().file(".pgpass", &format!("127.0.0.1:*:postgres:{role}:right-password\n"));
    right_in_file.target(&text).connect(&Startup::default()).await.unwrap();

    insta::assert_snapshot!(tidy(&refusal(&text).await, &role), @"");
}

#[tokio::test]
async fn a_role_that_does_not_exist_is_not_told_apart_from_a_wrong_password() {
    let told = refusal(&network("user=nobody_at_all password=s3cret dbname=postgres sslmode=disable")).await;
    insta::assert_snapshot!(tidy(&told, "nobody_at_all"), @"");
}

#[tokio::test]
async fn a_database_that_does_not_exist() {
    let role = make_role("nodb").await;
    let told = refusal(&network(&format!("user={role} password=right-password dbname=nowhere sslmode=require"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @"");
}

#[tokio::test]
async fn a_database_that_is_not_for_the_role() {
    let role = make_role("nogrant").await;
    let admin = connect(&superuser("")).await;
    admin.client().batch_execute(&format!("CREATE DATABASE {role}")).await.unwrap();
    admin.client().batch_execute(&format!("REVOKE CONNECT ON DATABASE {role} FROM PUBLIC")).await.unwrap();
    let told = refusal(&network(&format!("user={role} password=right-password dbname={role} sslmode=require"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @"");
    admin.client().batch_execute(&format!("DROP DATABASE {role}")).await.unwrap();
}

#[tokio::test]
async fn a_role_that_may_not_log_in() {
    let role = make_role("nologin").await;
    let admin = connect(&superuser("")).await;
    admin.client().batch_execute(&format!("ALTER ROLE {role} NOLOGIN")).await.unwrap();
    let told = refusal(&network(&format!("user={role} password=right-password dbname=postgres sslmode=require"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @"");
}

#[tokio::test]
async fn too_many_connections() {
    let role = make_role("many").await;
    let admin = connect(&superuser("")).await;
    admin.client().batch_execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 1")).await.unwrap();
    let text = network(&format!("user={role} password=right-password dbname=postgres sslmode=require"));
    let _first = connect(&text).await;
    let told = refusal(&text).await;
    insta::assert_snapshot!(tidy(&told, &role), @"");
    let error = Scene::new().target(&text).connect(&Startup::default()).await.unwrap_err();
    assert_eq!(error.problem(), &Problem::TooManyConnections);
    assert!(error.is_passing());
}

#[tokio::test]
async fn the_error_of_the_registry_keeps_the_owners_text_for_the_log() {
    let text = "host=127.0.0.1 port=1 user=reader password=s3cret dbname=shop";
    let error = Scene::new().target(text).connect(&Startup::default()).await.unwrap_err().into_error("sales");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    insta::assert_snapshot!(error.to_string(), @"");
    insta::assert_snapshot!(error.detail().unwrap(), @"");
}

#[tokio::test]
async fn a_setting_that_the_server_does_not_know() {
    let told = refusal(&superuser("options='-c no_such_setting=1'")).await;
    assert!(told.contains("the server refused the connection (SQLSTATE 42704)"), "{told}");
    assert!(told.contains("no_such_setting"), "{told}");
}
