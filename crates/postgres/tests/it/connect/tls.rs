//! TLS in all its modes. Where the server was built without, what is left to see is that it is not mistaken.

use tidegate_postgres::connect::{ConnectProblem, OpenConnection};
use tokio_postgres::SimpleQueryMessage;

use super::environment_fixture::{
    EnvironmentFixture, authority_file, connect, connect_error_text, make_role, network_port, network_string,
    superuser_string,
};

/// Whether the server itself says that the session is encrypted.
async fn server_sees_tls(connected: &OpenConnection) -> bool {
    let query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let messages = connected.client().simple_query(query).await.unwrap();
    messages.iter().any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")))
}

/// A connection string to `host`, whose address is the test server's, whatever its name.
fn host_connection_string(host: &str, role: &str, more: &str) -> String {
    let port = network_port();
    format!("host={host} hostaddr=127.0.0.1 port={port} user={role} password=right-password dbname=postgres {more}")
}

#[tokio::test]
async fn each_sslmode_encrypts_as_documented() {
    let Some(authority) = authority_file().await else { return };
    let role = make_role("modes").await;
    let roots = format!("sslrootcert={authority}");
    for (mode, encrypted) in [
        ("sslmode=disable".to_owned(), false),
        ("sslmode=allow".to_owned(), false),
        ("sslmode=prefer".to_owned(), true),
        (String::new(), true),
        ("sslmode=require".to_owned(), true),
        (format!("sslmode=require {roots}"), true),
        (format!("sslmode=verify-ca {roots}"), true),
        (format!("sslmode=verify-full {roots}"), true),
        ("sslmode=require ssl_max_protocol_version=TLSv1.2".to_owned(), true),
        ("sslmode=require ssl_min_protocol_version=TLSv1.3 sslsni=0".to_owned(), true),
        ("sslmode=require channel_binding=require".to_owned(), true),
        ("sslmode=disable channel_binding=disable".to_owned(), false),
    ] {
        let connected = connect(&host_connection_string("localhost", &role, &mode)).await;
        assert_eq!(connected.is_encrypted(), encrypted, "{mode}");
        assert_eq!(server_sees_tls(&connected).await, encrypted, "{mode}");
    }
}

#[tokio::test]
async fn server_without_tls_is_rejected_when_required() {
    if authority_file().await.is_some() {
        return;
    }
    let role = make_role("bare").await;
    for mode in ["disable", "allow", "prefer"] {
        assert!(!connect(&host_connection_string("localhost", &role, &format!("sslmode={mode}"))).await.is_encrypted());
    }
    let message = connect_error_text(&host_connection_string("localhost", &role, "sslmode=require")).await;
    assert!(message.contains("TLS is required and the server does not offer it"), "{message}");
}

#[tokio::test]
async fn only_verify_full_checks_the_name() {
    let Some(authority) = authority_file().await else { return };
    let role = make_role("names").await;
    let roots = format!("sslrootcert={authority}");
    connect(&network_string(&format!(
        "user={role} password=right-password dbname=postgres sslmode=verify-full {roots}"
    )))
    .await;
    connect(&host_connection_string("db.example.com", &role, &format!("sslmode=verify-ca {roots}"))).await;
    connect(&host_connection_string("no_host's_name", &role, &format!("sslmode=verify-ca {roots}").replace('\'', "")))
        .await;
    let message =
        connect_error_text(&host_connection_string("db.example.com", &role, &format!("sslmode=verify-full {roots}")))
            .await;
    insta::assert_snapshot!(redact_role(&message, &role), @r#"
    caller: the database shop cannot be reached: the server's certificate is not trusted: it is for another name
    owner: cannot connect to postgres at db.example.com:PORT/postgres as ROLE: the server's certificate is not trusted: it is for another name; connect by a name that the certificate lists as a subject alternative name, or set sslmode=verify-ca
    "#);
}

#[tokio::test]
async fn unknown_issuer_is_rejected() {
    if authority_file().await.is_none() {
        return;
    }
    let role = make_role("stranger").await;
    let scene = EnvironmentFixture::new()
        .with_file("other.crt", UNRELATED_AUTHORITY)
        .with_file(".postgresql/root.crt", UNRELATED_AUTHORITY);
    let other = scene.home().join("other.crt").display().to_string();
    for mode in ["require", "verify-ca", "verify-full"] {
        let message = connect_error_text(&host_connection_string(
            "localhost",
            &role,
            &format!("sslmode={mode} sslrootcert={other}"),
        ))
        .await;
        assert!(
            message.contains("the server's certificate is not trusted: no trusted authority signed it"),
            "{message}"
        );
    }
    // As in libpq, roots that lie at their usual place make `require` a check, and `prefer` goes on without TLS.
    let target = scene.parse_target(&host_connection_string("localhost", &role, "sslmode=require"));
    let error = target.connect("").await.unwrap_err();
    assert!(matches!(error.problem(), ConnectProblem::Certificate(_)), "{error}");
    let target = scene.parse_target(&host_connection_string("localhost", &role, "sslmode=prefer"));
    assert!(!target.connect("").await.unwrap().is_encrypted());
    // The system's roots did not sign it either.
    let message = connect_error_text(&host_connection_string("localhost", &role, "sslrootcert=system")).await;
    assert!(
        message.contains("certificate is not trusted") || message.contains("root certificates of the system"),
        "{message}"
    );
}

/// The system trusts the authorities in `SSL_CERT_FILE`, which only another process can receive.
#[tokio::test]
async fn system_roots_are_trusted() {
    const ROLE: &str = "TIDEGATE_TEST_ROLE_TRUSTED_BY_SYSTEM";
    if let Ok(role) = std::env::var(ROLE) {
        assert!(connect(&host_connection_string("localhost", &role, "sslrootcert=system")).await.is_encrypted());
        return;
    }
    let Some(authority) = authority_file().await else { return };
    let role = make_role("system").await;
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["connect::tls::system_roots_are_trusted", "--exact"]);
    let output = command.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR").env(ROLE, role).output().unwrap();
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && message.contains("1 passed"), "{message}");
}

#[tokio::test]
async fn unusable_tls_files_are_named_in_errors() {
    let scene = EnvironmentFixture::new()
        .with_file("empty.pem", "")
        .with_file("my.pem", UNRELATED_AUTHORITY)
        .with_file("key.pem", "no key")
        .with_file("open.key", "no key")
        .with_file_mode("open.key", 0o644);
    let path = |name: &str| scene.home().join(name).display().to_string();
    let tell = async |more: String| {
        let target = scene.parse_target(&format!("host=127.0.0.1 port=1 user=x {more}"));
        let error = target.connect("").await.unwrap_err();
        error.to_string().replace(&scene.home().display().to_string(), "~")
    };
    insta::assert_snapshot!(tell("sslmode=verify-full".to_owned()).await, @"cannot connect to postgres at 127.0.0.1:1/x as x: the TLS settings cannot be used: cannot use the root certificates ~/.postgresql/root.crt: the file does not exist; set sslrootcert to another file, or to system");
    insta::assert_snapshot!(tell(format!("sslrootcert={}", path("missing.pem"))).await, @"cannot connect to postgres at 127.0.0.1:1/x as x: the TLS settings cannot be used: cannot use the root certificates ~/missing.pem: the file does not exist");
    insta::assert_snapshot!(tell(format!("sslrootcert={}", path("empty.pem"))).await, @"cannot connect to postgres at 127.0.0.1:1/x as x: the TLS settings cannot be used: cannot use the root certificates ~/empty.pem: it contains no certificate in PEM format");
    insta::assert_snapshot!(tell(format!("sslcert={}", path("empty.pem"))).await, @"cannot connect to postgres at 127.0.0.1:1/x as x: the TLS settings cannot be used: cannot use the client certificate ~/empty.pem: it contains no certificate in PEM format");
    insta::assert_snapshot!(tell(format!("sslcert={} sslkey={}", path("my.pem"), path("open.key"))).await, @"cannot connect to postgres at 127.0.0.1:1/x as x: the TLS settings cannot be used: cannot use the private key ~/open.key: users other than its owner may read it; its permissions must be 0600 or less, or 0640 or less if root owns it");
    insta::assert_snapshot!(tell(format!("sslcert={} sslkey={}", path("my.pem"), path("key.pem"))).await, @"cannot connect to postgres at 127.0.0.1:1/x as x: the TLS settings cannot be used: cannot use the private key ~/key.pem: it contains no unencrypted key in PEM format");
}

#[tokio::test]
async fn server_without_direct_tls_is_reported() {
    if authority_file().await.is_none() {
        return;
    }
    let role = make_role("direct").await;
    let text = host_connection_string("localhost", &role, "sslmode=require sslnegotiation=direct");
    let version = connect(&superuser_string("")).await.server_version();
    let target = EnvironmentFixture::new().parse_target(&text);
    let outcome = target.connect("").await;
    // Servers speak it from version 17 on.
    assert_eq!(outcome.is_ok(), version >= 170_000, "{outcome:?}");
}

#[tokio::test]
async fn pg_hba_rejection_retries_with_other_tls_mode() {
    if authority_file().await.is_none() {
        return;
    }
    let [plain, encrypted] = [make_role("plain").await, make_role("crypt").await];
    let [nobody, peer] = [make_role("unwelcome").await, make_role("peer").await];
    let admin = connect(&superuser_string("")).await;
    let rules = format!(
        "hostssl all {plain} all reject\nhostnossl all {encrypted} all reject\nhost all {nobody} all reject\n\
         local all {peer} peer\n"
    );
    let statement = format!(
        "DO $do$ BEGIN EXECUTE format('COPY (SELECT unnest(string_to_array(%L, E''\\n''))) TO %L', \
         '{rules}' || pg_read_file(current_setting('hba_file')), current_setting('hba_file')); END $do$"
    );
    admin.client().batch_execute(&statement).await.unwrap();
    admin.client().batch_execute("SELECT pg_reload_conf()").await.unwrap();
    // The rules count from the moment on that a connection made after the reload is refused.
    while let Ok(early) =
        EnvironmentFixture::new().parse_target(&host_connection_string("localhost", &nobody, "")).connect("").await
    {
        early.close().await;
    }

    assert!(!connect(&host_connection_string("localhost", &plain, "sslmode=prefer")).await.is_encrypted());
    assert!(!connect(&host_connection_string("localhost", &plain, "sslmode=allow")).await.is_encrypted());
    assert!(connect(&host_connection_string("localhost", &encrypted, "sslmode=prefer")).await.is_encrypted());
    assert!(connect(&host_connection_string("localhost", &encrypted, "sslmode=allow")).await.is_encrypted());
    insta::assert_snapshot!(redact_role(&connect_error_text(&host_connection_string("localhost", &plain, "sslmode=require")).await, &plain), @r#"
    caller: the database shop cannot be reached: the server's access rules refuse the connection
    owner: cannot connect to postgres at localhost:PORT/postgres as ROLE: the server's access rules refuse the connection (message of the server: pg_hba.conf rejects connection for host "127.0.0.1", user "ROLE", database "postgres", SSL encryption); the connection was with TLS; pg_hba.conf needs a line for this user, database and address
    "#);
    insta::assert_snapshot!(redact_role(&connect_error_text(&host_connection_string("localhost", &encrypted, "sslmode=disable")).await, &encrypted), @r#"
    caller: the database shop cannot be reached: the server's access rules refuse the connection
    owner: cannot connect to postgres at localhost:PORT/postgres as ROLE: the server's access rules refuse the connection (message of the server: pg_hba.conf rejects connection for host "127.0.0.1", user "ROLE", database "postgres", no encryption); the connection was without TLS; pg_hba.conf needs a line for this user, database and address
    "#);
    insta::assert_snapshot!(redact_role(&connect_error_text(&host_connection_string("localhost", &nobody, "sslmode=prefer")).await, &nobody), @r#"
    caller: the database shop cannot be reached: the server's access rules refuse the connection
    owner: cannot connect to postgres at localhost:PORT/postgres as ROLE: the server's access rules refuse the connection (message of the server: pg_hba.conf rejects connection for host "127.0.0.1", user "ROLE", database "postgres", SSL encryption); the connection was with TLS; pg_hba.conf needs a line for this user, database and address
    "#);
    let over_socket = superuser_string(&format!("user={peer} dbname=postgres"));
    let message = connect_error_text(&over_socket).await;
    assert!(message.contains("cannot be reached: the server did not accept the identity\n"), "{message}");
}

fn redact_role(message: &str, role: &str) -> String {
    message.replace(role, "ROLE").replace(&network_port().to_string(), "PORT")
}

/// An authority that signed nothing of the test server's.
const UNRELATED_AUTHORITY: &str = include_str!("../../certificates/authority.pem");
