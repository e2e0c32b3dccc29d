//! TLS in all its modes.

use tidegate_postgres::connect::{Connected, Problem, Startup};
use tokio_postgres::SimpleQueryMessage;

use super::scene::{Scene, authority, connect, make_role, network, network_port, refusal, superuser};

/// Whether the server itself says that the session is encrypted.
async fn server_sees_tls(connected: &Connected) -> bool {
    let query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let messages = connected.client().simple_query(query).await.unwrap();
    messages.iter().any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")))
}

/// A connection string to `host`, whose address is the test server's, whatever its name.
fn named(host: &str, role: &str, more: &str) -> String {
    let port = network_port();
    format!("host={host} hostaddr=127.0.0.1 port={port} user={role} password=right-password dbname=postgres {more}")
}

#[tokio::test]
async fn each_mode_is_as_encrypted_as_it_says() {
    let role = make_role("modes").await;
    let roots = format!("sslrootcert={}", authority());
    for (mode, encrypted) in [
        ("sslmode=disable".to_owned(), false),
        ("sslmode=allow".to_owned(), false),
        ("sslmode=prefer".to_owned(), true),
        (String::new(), true),
        ("sslmode=require".to_owned(), true),
        (format!("sslmode=require {roots}"), true),
        (format!("sslmode=verify-ca {roots}"), true),
        (format!("sslmode=verify-full {roots}"), true),
        (format!("sslmode=require ssl_max_protocol_version=TLSv1.2"), true),
        (format!("sslmode=require ssl_min_protocol_version=TLSv1.3 sslsni=0"), true),
        (format!("sslmode=require channel_binding=require"), true),
        (format!("sslmode=disable channel_binding=disable"), false),
    ] {
        let connected = connect(&named("localhost", &role, &mode)).await;
        assert_eq!(connected.is_encrypted(), encrypted, "{mode}");
        assert_eq!(server_sees_tls(&connected).await, encrypted, "{mode}");
    }
}

#[tokio::test]
async fn the_name_counts_for_verify_full_alone() {
    let role = make_role("names").await;
    let roots = format!("sslrootcert={}", authority());
    connect(&network(&format!("user={role} password=right-password dbname=postgres sslmode=verify-full {roots}")))
        .await;
    connect(&named("db.example.com", &role, &format!("sslmode=verify-ca {roots}"))).await;
    connect(&named("no_host's_name", &role, &format!("sslmode=verify-ca {roots}").replace('\'', ""))).await;
    let told = refusal(&named("db.example.com", &role, &format!("sslmode=verify-full {roots}"))).await;
    insta::assert_snapshot!(tidy(&told, &role), @"");
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_not_trusted() {
    let role = make_role("stranger").await;
    // A well-formed authority, made once for this test; it signed nothing.
    let scene = Scene::new().file("other.crt", OTHER_AUTHORITY).file(".postgresql/root.crt", OTHER_AUTHORITY);
    let other = scene.home().join("other.crt").display().to_string();
    for mode in ["require", "verify-ca", "verify-full"] {
        let told = refusal(&named("localhost", &role, &format!("sslmode={mode} sslrootcert={other}"))).await;
        assert!(told.contains("the server's certificate is not trusted: no trusted authority signed it"), "{told}");
    }
    // As in libpq, roots that lie at their usual place make `require` a check, and `prefer` goes on without TLS.
    let target = scene.target(&named("localhost", &role, "sslmode=require"));
    let error = target.connect(&Startup::default()).await.unwrap_err();
    assert!(matches!(error.problem(), Problem::Certificate(_)), "{error}");
    let target = scene.target(&named("localhost", &role, "sslmode=prefer"));
    assert!(!target.connect(&Startup::default()).await.unwrap().is_encrypted());
    // The system's roots did not sign it either.
    let told = refusal(&named("localhost", &role, "sslrootcert=system")).await;
    assert!(told.contains("certificate is not trusted") || told.contains("root certificates of the system"), "{told}");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let scene =
        Scene::new().file("empty.pem", "").file("key.pem", "no key").file("open.key", "no key").mode("open.key", 0o644);
    let path = |name: &str| scene.home().join(name).display().to_string();
    let tell = async |more: String| {
        let target = scene.target(&format!("host=127.0.0.1 port=1 user=x {more}"));
        let error = target.connect(&Startup::default()).await.unwrap_err();
        error.to_string().replace(&scene.home().display().to_string(), "~")
    };
    insta::assert_snapshot!(tell("sslmode=verify-full".to_owned()).await, @"");
    insta::assert_snapshot!(tell(format!("sslrootcert={}", path("missing.pem"))).await, @"");
    insta::assert_snapshot!(tell(format!("sslrootcert={}", path("empty.pem"))).await, @"");
    insta::assert_snapshot!(tell(format!("sslcert={}", path("empty.pem"))).await, @"");
    insta::assert_snapshot!(tell(format!("sslcert={} sslkey={}", authority(), path("open.key"))).await, @"");
    insta::assert_snapshot!(tell(format!("sslcert={} sslkey={}", authority(), path("key.pem"))).await, @"");
}

#[tokio::test]
async fn a_server_without_direct_tls_is_told_apart() {
    let role = make_role("direct").await;
    let text = named("localhost", &role, "sslmode=require sslnegotiation=direct");
    let version = connect(&superuser("")).await.server_version();
    let target = Scene::new().target(&text);
    let outcome = target.connect(&Startup::default()).await;
    // Servers speak it from version 17 on.
    assert_eq!(outcome.is_ok(), version.number() >= 170_000, "{outcome:?}");
}

#[tokio::test]
async fn what_the_servers_rules_refuse_one_way_is_tried_the_other_way() {
    let [plain, encrypted, nobody] = [make_role("plain").await, make_role("crypt").await, make_role("unwelcome").await];
    let admin = connect(&superuser("")).await;
    let rules =
        format!("hostssl all {plain} all reject\nhostnossl all {encrypted} all reject\nhost all {nobody} all reject\n");
    let statement = format!(
        "DO $do$ BEGIN EXECUTE format('COPY (SELECT unnest(string_to_array(%L, E''\\n''))) TO %L', \
         '{rules}' || pg_read_file(current_setting('hba_file')), current_setting('hba_file')); END $do$"
    );
    admin.client().batch_execute(&statement).await.unwrap();
    admin.client().batch_execute("SELECT pg_reload_conf()").await.unwrap();
    // The rules count from the moment on that a connection made after the reload is refused.
    while let Ok(early) = Scene::new().target(&named("localhost", &nobody, "")).connect(&Startup::default()).await {
        early.close().await;
    }

    assert!(!connect(&named("localhost", &plain, "sslmode=prefer")).await.is_encrypted());
    assert!(!connect(&named("localhost", &plain, "sslmode=allow")).await.is_encrypted());
    assert!(connect(&named("localhost", &encrypted, "sslmode=prefer")).await.is_encrypted());
    assert!(connect(&named("localhost", &encrypted, "sslmode=allow")).await.is_encrypted());
    insta::assert_snapshot!(tidy(&refusal(&named("localhost", &plain, "sslmode=require")).await, &plain), @"");
    insta::assert_snapshot!(tidy(&refusal(&named("localhost", &encrypted, "sslmode=disable")).await, &encrypted), @"");
    insta::assert_snapshot!(tidy(&refusal(&named("localhost", &nobody, "sslmode=prefer")).await, &nobody), @"");
}

fn tidy(told: &str, role: &str) -> String {
    told.replace(role, "ROLE").replace(&network_port().to_string(), "PORT")
}

/// An authority that signed nothing.
const OTHER_AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBjzCCATWgAwIBAgIUehTTqNn0QcuOzFY6eZ2tqnkoGAMwCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRQW5vdGhlciBhdXRob3JpdHkwIBcNMjYxMTIyMDYwOTQyWhgP
MjEyNjEwMjkwNjA5NDJaMBwxGjAYBgNVBAMMEUFub3RoZXIgYXV0aG9yaXR5MFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEzPyn/cQf1sCCivzhI6M/d/XFlx+kIfH7
XBG8FFMxxNg3eLj7mXvycxszKhFgrDFv9kKcB3aC+xGyTUUNVJP/WaNTMFEwHQYD
VR0OBBYEFAaTs1nNbBI66sPLgHyMPd1aeq6xMB8GA1UdIwQYMBaAFAaTs1nNbBI6
6sPLgHyMPd1aeq6xMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIg
IvnveneXQQpMR6r1GR0ivKdaaqFIht2gqoBZPiMWvZsCIQCbNMnav2TLprQ3XPxW
/TfVkVo5WWWRNctHJeEfnEOe+Q==
-----END CERTIFICATE-----
";
