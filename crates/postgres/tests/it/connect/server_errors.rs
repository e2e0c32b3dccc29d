//! Servers that reject a connection, and the messages for the caller and the owner.

use tidegate_core::ErrorKind;
use tidegate_postgres::connect::ConnectErrorKind;

use super::environment_fixture::{
    EnvironmentFixture, connect, connect_error_text, connect_error_text_in, make_role, network_string, superuser_string,
};

/// `messages` without the parts that differ from run to run.
fn redact_role(message: &str, role: &str) -> String {
    let port = super::environment_fixture::network_port().to_string();
    message.replace(role, "ROLE").replace(&port, "PORT")
}

#[tokio::test]
async fn wrong_password_names_user_and_password_source() {
    let role = make_role("wrong").await;
    let text = network_string(&format!("user={role} dbname=postgres"));
    let message = connect_error_text(&format!("{text} password=s3cret")).await;
    insta::assert_snapshot!(redact_role(&message, &role), @r#"
    caller: the database shop cannot be reached: the password was not accepted
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the password was not accepted (message of the server: password authentication failed for user "ROLE"); the user is ROLE, and the password is from the connection string
    "#);
    assert!(!message.contains("s3cret"));

    let in_variable = EnvironmentFixture::new().with_variable("PGPASSWORD", "s3cret");
    let message = connect_error_text_in(&in_variable, &text).await;
    assert!(message.contains("the password is from PGPASSWORD") && !message.contains("s3cret"), "{message}");

    let in_file = EnvironmentFixture::new().with_file(".pgpass", "*:*:*:*:s3cret\n");
    let message = connect_error_text_in(&in_file, &text).await;
    assert!(message.contains("the password is from the password file") && !message.contains("s3cret"), "{message}");

    let right_in_file =
        EnvironmentFixture::new().with_file(".pgpass", &format!("127.0.0.1:*:postgres:{role}:right-password\n"));
    right_in_file.parse_target(&text).connect("").await.unwrap();

    insta::assert_snapshot!(redact_role(&connect_error_text(&text).await, &role), @r#"
    caller: the database shop cannot be reached: the server requires a password, and none was given
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the server requires a password, and none was given; the user is ROLE; put the password into a password file, PGPASSWORD or the connection string
    "#);
}

#[tokio::test]
async fn unknown_role_reads_like_a_wrong_password() {
    let message =
        connect_error_text(&network_string("user=nobody_at_all password=s3cret dbname=postgres sslmode=disable")).await;
    insta::assert_snapshot!(redact_role(&message, "nobody_at_all"), @r#"
    caller: the database shop cannot be reached: the password was not accepted
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the password was not accepted (message of the server: password authentication failed for user "ROLE"); the user is ROLE, and the password is from the connection string
    "#);
}

#[tokio::test]
async fn unknown_database_is_reported() {
    let role = make_role("nodb").await;
    let message =
        connect_error_text(&network_string(&format!("user={role} password=right-password dbname=nowhere"))).await;
    insta::assert_snapshot!(redact_role(&message, &role), @r#"
    caller: the database shop cannot be reached: the server has no such database
    owner: cannot connect to postgres at 127.0.0.1:PORT/nowhere as ROLE: the server has no such database (message of the server: database "nowhere" does not exist)
    "#);
}

#[tokio::test]
async fn forbidden_database_is_reported() {
    let role = make_role("nogrant").await;
    let admin = connect(&superuser_string("")).await;
    admin.client().batch_execute(&format!("CREATE DATABASE {role}")).await.unwrap();
    admin.client().batch_execute(&format!("REVOKE CONNECT ON DATABASE {role} FROM PUBLIC")).await.unwrap();
    let message =
        connect_error_text(&network_string(&format!("user={role} password=right-password dbname={role}"))).await;
    insta::assert_snapshot!(redact_role(&message, &role), @r#"
    caller: the database shop cannot be reached: the role may not connect to the database
    owner: cannot connect to postgres at 127.0.0.1:PORT/ROLE as ROLE: the role may not connect to the database (message of the server: permission denied for database "ROLE")
    "#);
    admin.client().batch_execute(&format!("DROP DATABASE {role}")).await.unwrap();
}

#[tokio::test]
async fn role_without_login_is_reported() {
    let role = make_role("nologin").await;
    let admin = connect(&superuser_string("")).await;
    admin.client().batch_execute(&format!("ALTER ROLE {role} NOLOGIN")).await.unwrap();
    let message =
        connect_error_text(&network_string(&format!("user={role} password=right-password dbname=postgres"))).await;
    insta::assert_snapshot!(redact_role(&message, &role), @r#"
    caller: the database shop cannot be reached: the role does not exist or may not log in
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the role does not exist or may not log in (message of the server: role "ROLE" is not permitted to log in); the user is ROLE
    "#);
}

#[tokio::test]
async fn connection_limit_is_reported() {
    let role = make_role("many").await;
    let admin = connect(&superuser_string("")).await;
    admin.client().batch_execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 1")).await.unwrap();
    let text = network_string(&format!("user={role} password=right-password dbname=postgres"));
    let _first = connect(&text).await;
    let message = connect_error_text(&text).await;
    insta::assert_snapshot!(redact_role(&message, &role), @r#"
    caller: the database shop cannot be reached: the server has too many connections
    owner: cannot connect to postgres at 127.0.0.1:PORT/postgres as ROLE: the server has too many connections (message of the server: too many connections for role "ROLE")
    "#);
    let error = EnvironmentFixture::new().parse_target(&text).connect("").await.unwrap_err();
    assert_eq!(error.kind(), &ConnectErrorKind::TooManyConnections);
}

#[tokio::test]
async fn log_message_becomes_the_error_detail() {
    let text = "host=127.0.0.1 port=1 user=reader password=s3cret dbname=shop";
    let error = EnvironmentFixture::new().parse_target(text).connect("").await.unwrap_err().into_error("sales");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    insta::assert_snapshot!(error.to_string(), @"the database sales cannot be reached: connection refused");
    insta::assert_snapshot!(error.detail().unwrap(), @"cannot connect to postgres at 127.0.0.1:1/shop as reader: connection refused");
}

#[tokio::test]
async fn channel_binding_requires_tls() {
    let role = make_role("unbound").await;
    let demands = "sslmode=disable channel_binding=require";
    let messages =
        connect_error_text(&network_string(&format!("user={role} password=right-password dbname=postgres {demands}")))
            .await;
    assert!(messages.contains("channel binding is required and the server does not offer it"), "{messages}");
}

#[tokio::test]
async fn unknown_setting_is_reported() {
    let message = connect_error_text(&superuser_string("options='-c no_such_setting=1'")).await;
    assert!(message.contains("the server refused the connection (SQLSTATE 42704)"), "{message}");
    assert!(message.contains("no_such_setting"), "{message}");
}
