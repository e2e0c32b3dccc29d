//! What the environment, services and password files add to a connection string.

use tidegate_postgres::connect::{ConnectEnvironment, ConnectTarget};

use super::environment_fixture::EnvironmentFixture;

#[test]
fn empty_string_uses_environment_variables() {
    let scene = EnvironmentFixture::new()
        .with_variable("PGHOST", "db.example.com")
        .with_variable("PGHOSTADDR", "10.0.0.7")
        .with_variable("PGPORT", "6432")
        .with_variable("PGDATABASE", "shop")
        .with_variable("PGUSER", "reader")
        .with_variable("PGPASSWORD", "s3cret")
        .with_variable("PGSSLMODE", "verify-full")
        .with_variable("PGSSLROOTCERT", "/etc/ca.pem")
        .with_variable("PGSSLCERT", "/etc/me.pem")
        .with_variable("PGSSLKEY", "/etc/me.key")
        .with_variable("PGSSLNEGOTIATION", "direct")
        .with_variable("PGCONNECT_TIMEOUT", "4")
        .with_variable("PGTARGETSESSIONATTRS", "standby")
        .with_variable("PGAPPNAME", "night")
        .with_variable("PGOPTIONS", "-c geqo=off")
        .with_variable("PGCHANNELBINDING", "require")
        .with_variable("PGLOADBALANCEHOSTS", "random");
    insta::assert_snapshot!(scene.describe_settings(""), @r#"
    postgres at db.example.com:6432/shop as reader
      address: Some(10.0.0.7) }
      password: Some(_)
      options: Some("-c geqo=off")
      application_name: Some("night")
      connect_timeout: Some(4s)
      channel_binding: Require
      password_source: "the password is from PGPASSWORD" }]
      tls: TlsSettings { mode: VerifyFull
      is_direct: true
      roots: File(Some(TlsFile { path: "/etc/ca.pem"
      is_default: false }))
      certificate: Some(TlsFile { path: "/etc/me.pem"
      is_default: false })
      key: Some(TlsFile { path: "/etc/me.key"
      is_default: false })
      connect_timeout: 4s
      session_role: Standby
      shuffles_hosts: true
    "#);
}

#[test]
fn string_overrides_service_overrides_environment() {
    let scene = EnvironmentFixture::new()
        .with_variable("PGSERVICE", "shop")
        .with_variable("PGHOST", "of-environment")
        .with_variable("PGDATABASE", "of_environment")
        .with_variable("PGUSER", "of_environment")
        .with_file(".pg_service.conf", "[shop]\nhost=of-service\ndbname=of_service\npassword=s3cret\n");
    insta::assert_snapshot!(scene.describe_settings("host=of-string"), @r#"
    postgres at of-string:5432/of_service as of_environment
      password: Some(_)
      password_source: "the password is from the service file ~/.pg_service.conf" }]
    "#);
}

#[test]
fn empty_value_means_default_not_environment() {
    let scene =
        EnvironmentFixture::new().with_variable("PGDATABASE", "of_environment").with_variable("PGUSER", "reader");
    insta::assert_snapshot!(scene.describe_settings("host=h dbname=''"), @"postgres at h:5432/reader as reader");
}

#[test]
fn services_are_found_in_their_files() {
    let file = "# ours\n[shop]\n host = db.example.com \nport=6432\n\n[shop2]\nhost=other\n[shop]\nhost=late\n";
    let scene = EnvironmentFixture::new().with_file(".pg_service.conf", file);
    insta::assert_snapshot!(scene.describe_settings("service=shop"), @"postgres at db.example.com:6432/ann as ann");
    insta::assert_snapshot!(scene.describe_settings("postgres:///?service=shop2"), @"postgres at other:5432/ann as ann");
    insta::assert_snapshot!(scene.describe_settings("service=shop3"), @r#"error: the service "shop3" is not in any service file (~/.pg_service.conf)"#);

    let elsewhere = EnvironmentFixture::new()
        .with_file("services", "[shop]\nhost=elsewhere\n")
        .with_file("pg_service.conf", "[b]\nhost=sys\n");
    let path = elsewhere.home().join("services").display().to_string();
    let folder = elsewhere.home().display().to_string();
    let elsewhere = elsewhere.with_variable("PGSERVICEFILE", path).with_variable("PGSYSCONFDIR", folder);
    insta::assert_snapshot!(elsewhere.describe_settings("service=shop"), @"postgres at elsewhere:5432/ann as ann");
    insta::assert_snapshot!(elsewhere.describe_settings("service=b"), @"postgres at sys:5432/ann as ann");
    insta::assert_snapshot!(elsewhere.describe_settings("service=c"), @r#"error: the service "c" is not in any service file (~/services, ~/pg_service.conf)"#);
}

#[test]
fn service_file_errors_name_the_line() {
    let understand = |line: &str| {
        EnvironmentFixture::new()
            .with_file(".pg_service.conf", &format!("[shop]\n{line}\n"))
            .describe_settings("service=shop")
    };
    insta::assert_snapshot!(understand("host db"), @"error: line 2 of ~/.pg_service.conf cannot be read: a keyword without =, at character 1");
    insta::assert_snapshot!(understand("hosts=db"), @r#"error: line 2 of ~/.pg_service.conf has an unknown keyword "hosts"; did you mean host?"#);
    insta::assert_snapshot!(understand("service=other"), @"error: line 2 of ~/.pg_service.conf cannot be read: a service within a service, at character 1");
    insta::assert_snapshot!(understand("sslmode=on"), @"error: line 2 of ~/.pg_service.conf: sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full");
    insta::assert_snapshot!(understand("requirepeer=postgres"), @"error: line 2 of ~/.pg_service.conf: requirepeer is not supported; ignoring it could make the connection less secure");
}

#[test]
fn first_matching_password_line_is_used() {
    let file = "# comment\n\
        other:*:*:*:wrong\n\
        db:6432:shop:reader:exact\n\
        db:*:*:reader:any database\n\
        we\\:ird\\\\:*:*:*:escaped\n\
        localhost:*:*:*:for sockets\n";
    let scene = EnvironmentFixture::new().with_file(".pgpass", file);
    // The password itself cannot be seen; that one was found can.
    let finds = |text: &str| {
        scene.describe_settings(text).contains("password_source: \"the password is from the password file ~/.pgpass\"")
    };
    assert!(finds("host=db port=6432 dbname=shop user=reader"));
    assert!(finds("host=db user=reader"));
    assert!(!finds("host=db user=writer"));
    assert!(!finds("host=DB user=reader"));
    assert!(finds("host='we:ird\\\\' user=x"));
    assert!(finds("host=/run/pg user=x"));
    assert!(finds("host=localhost user=x"));
    assert!(finds("host=other user=x"));
    assert!(!finds("host=others user=x"));
    // With an address the name still is what counts.
    assert!(finds("host=db hostaddr=10.0.0.1 user=reader"));
    assert!(!finds("hostaddr=10.0.0.1 user=reader"));
}

#[test]
fn several_hosts_have_their_own_passwords() {
    let scene = EnvironmentFixture::new().with_file(".pgpass", "a:*:*:*:one\nb:*:*:*:two\n");
    insta::assert_snapshot!(scene.describe_settings("host=a,c user=x"), @r#"
    postgres at a:5432,c:5432/x as x
      password: Some(_)
      password_source: "the password is from the password file ~/.pgpass" }
    "#);
}

#[test]
fn readable_password_file_is_ignored_with_warning() {
    let scene = EnvironmentFixture::new().with_file(".pgpass", "*:*:*:*:s3cret\n").with_file_mode(".pgpass", 0o640);
    insta::assert_snapshot!(scene.describe_settings("host=h"), @r#"
    postgres at h:5432/ann as ann
      warnings: ["the password file ~/.pgpass is ignored: users other than its owner have access; its permissions must be 0600 or less"] }
      warning: the password file ~/.pgpass is ignored: users other than its owner have access; its permissions must be 0600 or less
    "#);
    // No warning about a file that is not needed.
    insta::assert_snapshot!(scene.describe_settings("host=h password=s3cret"), @r#"
    postgres at h:5432/ann as ann
      password: Some(_)
      password_source: "the password is from the connection string" }]
    "#);
}

#[test]
fn passfile_sets_the_password_file() {
    let scene = EnvironmentFixture::new().with_file("here", "*:*:*:*:s3cret\n");
    let path = scene.home().join("here").display().to_string();
    insta::assert_snapshot!(scene.describe_settings(&format!("host=h passfile={path}")), @r#"
    postgres at h:5432/ann as ann
      password: Some(_)
      password_source: "the password is from the password file ~/here" }]
    "#);
    let scene = scene.with_variable("PGPASSFILE", path);
    insta::assert_snapshot!(scene.describe_settings("host=h"), @r#"
    postgres at h:5432/ann as ann
      password: Some(_)
      password_source: "the password is from the password file ~/here" }]
    "#);
}

#[test]
fn missing_host_uses_the_default_socket() {
    let scene = EnvironmentFixture::new()
        .with_socket_folder("run")
        .with_socket_folder("tmp")
        .with_file("tmp/.s.PGSQL.5432", "");
    insta::assert_snapshot!(scene.describe_settings(""), @"postgres at ~/tmp/.s.PGSQL.5432/ann as ann");
    // No socket, but a folder for it: the server may only be down.
    insta::assert_snapshot!(scene.describe_settings("port=6000"), @"postgres at ~/run/.s.PGSQL.6000/ann as ann");
    insta::assert_snapshot!(EnvironmentFixture::new().describe_settings(""), @"postgres at localhost:5432/ann as ann");
}

#[test]
fn missing_user_is_rejected() {
    let scene = EnvironmentFixture::new().without_user();
    insta::assert_snapshot!(scene.describe_settings("host=h"), @"error: no user is set; set it in the connection string or in PGUSER");
    insta::assert_snapshot!(scene.with_variable("PGUSER", "reader").describe_settings("host=h"), @"postgres at h:5432/reader as reader");
}

#[test]
fn environment_can_be_read_from_process() {
    let connect_environment = ConnectEnvironment::from_process();
    assert!(connect_environment.user.is_some(), "the process runs as somebody");
    let target = ConnectTarget::parse("host=h dbname=shop user=reader", &connect_environment).unwrap();
    assert!(target.describe().starts_with("postgres at h:"));
}
