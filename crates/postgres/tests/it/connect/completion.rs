//! What the environment, services and password files add to a connection string.

use tidegate_postgres::connect::{Surroundings, Target};

use super::scene::Scene;

#[test]
fn an_empty_string_leaves_everything_to_the_environment() {
    let scene = Scene::new()
        .variable("PGHOST", "db.example.com")
        .variable("PGHOSTADDR", "10.0.0.7")
        .variable("PGPORT", "6432")
        .variable("PGDATABASE", "shop")
        .variable("PGUSER", "reader")
        .variable("PGPASSWORD", "s3cret")
        .variable("PGSSLMODE", "verify-full")
        .variable("PGSSLROOTCERT", "/etc/ca.pem")
        .variable("PGSSLCERT", "/etc/me.pem")
        .variable("PGSSLKEY", "/etc/me.key")
        .variable("PGSSLNEGOTIATION", "direct")
        .variable("PGCONNECT_TIMEOUT", "4")
        .variable("PGTARGETSESSIONATTRS", "standby")
        .variable("PGAPPNAME", "night")
        .variable("PGOPTIONS", "-c geqo=off")
        .variable("PGCHANNELBINDING", "require")
        .variable("PGLOADBALANCEHOSTS", "random");
    insta::assert_snapshot!(scene.understand(""), @r#"
    postgres at db.example.com:6432/shop as reader
      hostaddr: 10.0.0.7
      password: the password is from PGPASSWORD
      sslmode: verify-full
      sslnegotiation: direct
      sslrootcert: /etc/ca.pem
      sslcert: /etc/me.pem
      sslkey: /etc/me.key
      channel_binding: require
      target_session_attrs: standby
      load_balance_hosts: random
      application_name: night
      options: -c geqo=off
      connect_timeout: 4
    "#);
}

#[test]
fn the_string_outranks_the_service_and_the_service_the_environment() {
    let scene = Scene::new()
        .variable("PGSERVICE", "shop")
        .variable("PGHOST", "of-environment")
        .variable("PGDATABASE", "of_environment")
        .variable("PGUSER", "of_environment")
        .file(".pg_service.conf", "[shop]\nhost=of-service\ndbname=of_service\npassword=s3cret\n");
    insta::assert_snapshot!(scene.understand("host=of-string"), @r#"
    postgres at of-string:5432/of_service as of_environment
      password: the password is from the service file ~/.pg_service.conf
    "#);
}

#[test]
fn an_empty_value_in_the_string_means_the_default_and_not_the_environment() {
    let scene = Scene::new().variable("PGDATABASE", "of_environment").variable("PGUSER", "reader");
    insta::assert_snapshot!(scene.understand("host=h dbname=''"), @"postgres at h:5432/reader as reader");
}

#[test]
fn services_are_found_in_their_files() {
    let file = "# ours\n[shop]\n host = db.example.com \nport=6432\n\n[shop2]\nhost=other\n[shop]\nhost=late\n";
    let scene = Scene::new().file(".pg_service.conf", file);
    insta::assert_snapshot!(scene.understand("service=shop"), @"postgres at db.example.com:6432/ann as ann");
    insta::assert_snapshot!(scene.understand("postgres:///?service=shop2"), @"postgres at other:5432/ann as ann");
    insta::assert_snapshot!(scene.understand("service=shop3"), @r#"error: the service "shop3" is in none of the service files (~/.pg_service.conf)"#);

    let elsewhere =
        Scene::new().file("services", "[shop]\nhost=elsewhere\n").file("pg_service.conf", "[b]\nhost=sys\n");
    let path = elsewhere.home().join("services").display().to_string();
    let folder = elsewhere.home().display().to_string();
    let elsewhere = elsewhere.variable("PGSERVICEFILE", path).variable("PGSYSCONFDIR", folder);
    insta::assert_snapshot!(elsewhere.understand("service=shop"), @"postgres at elsewhere:5432/ann as ann");
    insta::assert_snapshot!(elsewhere.understand("service=b"), @"postgres at sys:5432/ann as ann");
    insta::assert_snapshot!(elsewhere.understand("service=c"), @r#"error: the service "c" is in none of the service files (~/services, ~/pg_service.conf)"#);
}

#[test]
fn what_is_wrong_with_a_service_file_is_told_with_its_line() {
    let understand =
        |line: &str| Scene::new().file(".pg_service.conf", &format!("[shop]\n{line}\n")).understand("service=shop");
    insta::assert_snapshot!(understand("host db"), @"error: line 2 of ~/.pg_service.conf cannot be read: a keyword without =, at character 1");
    insta::assert_snapshot!(understand("hosts=db"), @r#"error: line 2 of ~/.pg_service.conf has an unknown keyword "hosts"; the nearest known is host"#);
    insta::assert_snapshot!(understand("service=other"), @"error: line 2 of ~/.pg_service.conf cannot be read: a service within a service, at character 1");
    insta::assert_snapshot!(understand("sslmode=on"), @"error: line 2 of ~/.pg_service.conf: sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full");
    insta::assert_snapshot!(understand("requirepeer=postgres"), @"error: line 2 of ~/.pg_service.conf: requirepeer is not supported, and it would be unsafe to go on as if it were not there");
}

#[test]
fn the_first_line_of_a_password_file_that_matches_counts() {
    let file = "# comment\n\
        other:*:*:*:wrong\n\
        db:6432:shop:reader:exact\n\
        db:*:*:reader:any database\n\
        we\\:ird\\\\:*:*:*:escaped\n\
        localhost:*:*:*:for sockets\n";
    let scene = Scene::new().file(".pgpass", file);
    // The password itself cannot be seen; that one was found can.
    let finds = |text: &str| scene.understand(text).contains("the password is from the password file ~/.pgpass");
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
    let scene = Scene::new().file(".pgpass", "a:*:*:*:one\nb:*:*:*:two\n");
    insta::assert_snapshot!(scene.understand("host=a,c user=x"), @r#"
    postgres at a:5432,c:5432/x as x
      password: the password is from the password file ~/.pgpass
    "#);
}

#[test]
fn a_password_file_that_others_may_read_is_ignored_with_a_warning() {
    let scene = Scene::new().file(".pgpass", "*:*:*:*:s3cret\n").mode(".pgpass", 0o640);
    insta::assert_snapshot!(scene.understand("host=h"), @r#"
    postgres at h:5432/ann as ann
      warning: the password file ~/.pgpass is ignored: others than its owner may reach it; its permissions must be 0600 or less
    "#);
    // Nobody is warned who does not need it.
    insta::assert_snapshot!(scene.understand("host=h password=s3cret"), @r#"
    postgres at h:5432/ann as ann
      password: the password is the connection string's
    "#);
}

#[test]
fn the_password_file_may_lie_elsewhere() {
    let scene = Scene::new().file("here", "*:*:*:*:s3cret\n");
    let path = scene.home().join("here").display().to_string();
    insta::assert_snapshot!(scene.understand(&format!("host=h passfile={path}")), @r#"
    postgres at h:5432/ann as ann
      password: the password is from the password file ~/here
    "#);
    let scene = scene.variable("PGPASSFILE", path);
    insta::assert_snapshot!(scene.understand("host=h"), @r#"
    postgres at h:5432/ann as ann
      password: the password is from the password file ~/here
    "#);
}

#[test]
fn without_a_host_the_socket_is_taken_where_it_lies() {
    let scene = Scene::new().socket_folder("run").socket_folder("tmp").file("tmp/.s.PGSQL.5432", "");
    insta::assert_snapshot!(scene.understand(""), @"postgres at ~/tmp/.s.PGSQL.5432/ann as ann");
    // No socket, but a folder for it: the server may only be down.
    insta::assert_snapshot!(scene.understand("port=6000"), @"postgres at ~/run/.s.PGSQL.6000/ann as ann");
    insta::assert_snapshot!(Scene::new().understand(""), @"postgres at localhost:5432/ann as ann");
}

#[test]
fn somebody_must_be_named() {
    let scene = Scene::new().nobody();
    insta::assert_snapshot!(scene.understand("host=h"), @"error: no user is named: give one in the connection string or in PGUSER");
    insta::assert_snapshot!(scene.variable("PGUSER", "reader").understand("host=h"), @"postgres at h:5432/reader as reader");
}

#[test]
fn this_process_has_surroundings() {
    let surroundings = Surroundings::of_process();
    assert!(surroundings.user.is_some(), "the process runs as somebody");
    let target = Target::read("host=h dbname=shop user=reader", &surroundings).unwrap();
    assert!(target.describe().starts_with("postgres at h:"));
}
