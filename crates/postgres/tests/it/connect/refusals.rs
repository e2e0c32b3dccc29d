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
    let text = network(&format!("user={role} dbname=postgres"));
    let told = refusal(&format!("{text} password=s3cret")).await;
    insta::assert_snapshot!(tidy(&told, &role), @r#"
    caller: the database shop cannot be reached: the password was not accepted
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the password was not accepted (the server says: password authentication failed for user "ROLE"); the user is ROLE, and the password is the connection string's
    "#);
    assert!(!told.contains("s3cret"));

    let in_variable = Scene::new().variable("PGPASSWORD", "s3cret");
    let told = refusal_in(&in_variable, &text).await;
    assert!(told.contains("the password is from PGPASSWORD") && !told.contains("s3cret"), "{told}");

    let in_file = Scene::new().file(".pgpass", "*:*:*:*:s3cret\n");
    let told = refusal_in(&in_file, &text).await;
    assert!(told.contains("the password is from the password file") && !told.contains("s3cret"), "{told}");

    let right_in_file = Scene::new().file(".pgpass", &format!("127.0.0.1:*:postgres:{role}:right-password\n"));
    right_in_file.target(&text).connect(&Startup::default()).await.unwrap();

    insta::assert_snapshot!(tidy(&refusal(&text).await, &role), @r#"
    caller: the database shop cannot be reached: the server wants a password and none was given
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the server wants a password and none was given; the user is ROLE; put the password into a password file, PGPASSWORD or the connection string
    "#);
}

#[tokio::test]
async fn a_role_that_does_not_exist_is_not_told_apart_from_a_wrong_password() {
    let told = refusal(&network("user=nobody_at_all password=s3cret dbname=postgres sslmode=disable")).await;
    insta::assert_snapshot!(tidy(&told, "nobody_at_all"), @r#"
    caller: the database shop cannot be reached: the password was not accepted
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the password was not accepted (the server says: password authentication failed for user "ROLE"); the user is ROLE, and the password is the connection string's
    "#);
}

#[tokio::test]
async fn a_database_that_does_not_exist() {
    let role = make_role("nodb").await;
    let told = refusal(&network(&format!("user={role} password=right-password dbname=nowhere"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @r#"
    caller: the database shop cannot be reached: the server has no such database
    owner: cannot connect to postgres at 127.0.0.1:PORT/nowhere as ROLE: the server has no such database (the server says: database "nowhere" does not exist)
    "#);
}

#[tokio::test]
async fn a_database_that_is_not_for_the_role() {
    let role = make_role("nogrant").await;
    let admin = connect(&superuser("")).await;
    admin.client().batch_execute(&format!("CREATE DATABASE {role}")).await.unwrap();
    admin.client().batch_execute(&format!("REVOKE CONNECT ON DATABASE {role} FROM PUBLIC")).await.unwrap();
    let told = refusal(&network(&format!("user={role} password=right-password dbname={role}"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @r#"
    caller: the database shop cannot be reached: the role may not connect to the database
    owner: cannot connect to postgres at 127.0.0.1:PORT/ROLE as ROLE: the role may not connect to the database (the server says: permission denied for database "ROLE")
    "#);
    admin.client().batch_execute(&format!("DROP DATABASE {role}")).await.unwrap();
}

#[tokio::test]
async fn a_role_that_may_not_log_in() {
    let role = make_role("nologin").await;
    let admin = connect(&superuser("")).await;
    admin.client().batch_execute(&format!("ALTER ROLE {role} NOLOGIN")).await.unwrap();
    let told = refusal(&network(&format!("user={role} password=right-password dbname=postgres"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @r#"
    caller: the database shop cannot be reached: the role does not exist or may not log in
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the role does not exist or may not log in (the server says: role "ROLE" is not permitted to log in); the user is ROLE
    "#);
}

#[tokio::test]
async fn too_many_connections() {
    let role = make_role("many").await;
    let admin = connect(&superuser("")).await;
    admin.client().batch_execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 1")).await.unwrap();
    let text = network(&format!("user={role} password=right-password dbname=postgres"));
    let _first = connect(&text).await;
    let told = refusal(&text).await;
    insta::assert_snapshot!(tidy(&told, &role), @r#"
    caller: the database shop cannot be reached: the server has too many connections
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the server has too many connections (the server says: too many connections for role "ROLE")
    "#);
    let error = Scene::new().target(&text).connect(&Startup::default()).await.unwrap_err();
    assert_eq!(error.problem(), &Problem::TooManyConnections);
    assert!(error.is_passing());
}

#[tokio::test]
async fn the_error_of_the_registry_keeps_the_owners_text_for_the_log() {
    let text = "host=127.0.0.1 port=1 user=reader password=s3cret dbname=shop";
    let error = Scene::new().target(text).connect(&Startup::default()).await.unwrap_err().into_error("sales");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    insta::assert_snapshot!(error.to_string(), @"the database sales cannot be reached: connection refused");
    insta::assert_snapshot!(error.detail().unwrap(), @"cannot connect to postgres at 127.0.0.1:1/shop as reader: connection refused");
}

#[tokio::test]
async fn channel_binding_is_not_to_be_had_without_tls() {
    let role = make_role("unbound").await;
    let demands = "sslmode=disable channel_binding=require";
    let told = refusal(&network(&format!("user={role} password=right-password dbname=postgres {demands}"))).await;
    assert!(told.contains("channel binding is required and the server does not offer it"), "{told}");
}

#[tokio::test]
async fn a_setting_that_the_server_does_not_know() {
    let told = refusal(&superuser("options='-c no_such_setting=1'")).await;
    assert!(told.contains("the server refused the connection (SQLSTATE 42704)"), "{told}");
    assert!(told.contains("no_such_setting"), "{told}");
}
