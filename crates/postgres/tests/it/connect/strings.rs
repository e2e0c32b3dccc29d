//! What is understood of connection strings, and what is said of those that are not.

use super::scene::Scene;

fn check(texts: &[&str]) -> String {
    let scene = Scene::new();
    texts.iter().map(|text| format!("{text}\n=> {}\n", scene.understand(text))).collect()
}

#[test]
fn uris() {
    insta::assert_snapshot!(check(&[
        "postgres://",
        "postgresql://db.example.com",
        "postgresql://db.example.com:6432/shop",
        "postgres://reader:s3cret@db.example.com/shop?sslmode=verify-full",
        "postgres://re%61der:%40%3A%2F%3F%25@h/sh%2Fop",
        "postgres://reader:pa?ss&wo=rd#@h/shop",
        "postgres://:s3cret@h",
        "postgres://reader:@h",
        "postgres://@h",
        "postgresql:///shop?host=/run/pg&port=5433",
        "postgresql://%2Frun%2Fpg/shop",
        "postgresql://%2Frun%2Fpg:5433/shop",
        "postgresql://[2001:db8::1]:5433/shop",
        "postgresql://[::1]",
        "postgresql://a,b:5433,[::1]:5434/shop?target_session_attrs=primary",
        "postgresql://a:5433,b:5433",
        "postgresql://h/shop?user=reader&password=s3cret&connect_timeout=3",
        "postgresql://h/shop?ssl=true",
        "postgresql://h?dbname=shop",
        "postgresql://h/shop?dbname=other",
        "postgresql://h?application_name=a+b%20c",
        "postgresql://h?options=-c%20statement_timeout%3D5s",
        "postgresql://h?sslmode=require&channel_binding=require",
        "postgresql://h?hostaddr=10.0.0.7",
        "postgresql://h?",
    ]), @"");
}

#[test]
fn keywords_and_values() {
    insta::assert_snapshot!(check(&[
        "host=h",
        "  host = h   dbname = shop ",
        "host=h dbname='my shop' user='o\\'brien' password='a b\\\\c'",
        "host=h dbname=my\\ shop",
        "host=h\nport=5433\tuser=reader",
        "host=h user=''",
        "host=a,b,c port=1,2,3",
        "host=a,b port=5433",
        "host=a,b hostaddr=10.0.0.1,10.0.0.2",
        "hostaddr=10.0.0.1",
        "hostaddr=::1 port=5433",
        "host=a,,c port=5433,,5434",
        "host=/run/pg port=5433",
        "host=/run/pg,db.example.com",
        "host=h host=i",
        "host=h sslmode=verify-ca sslrootcert=/etc/ca.pem sslcert=/etc/me.pem sslkey=/etc/me.key",
        "host=h sslrootcert=system",
        "host=h sslnegotiation=direct sslmode=require",
        "host=h connect_timeout=0",
        "host=h connect_timeout=-1",
        "host=h connect_timeout=1",
        "host=h connect_timeout=99999999999",
        "host=h load_balance_hosts=random target_session_attrs=prefer-standby",
        "host=h fallback_application_name=loader",
        "host=h fallback_application_name=loader application_name=night",
        "host=h gssencmode=disable client_encoding=UTF8 sslcompression=1 krbsrvname=postgres",
        "host=h keepalives=0 keepalives_idle=30 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=9000",
        "host=h ssl_min_protocol_version=TLSv1.3 sslsni=0",
    ]), @"");
}

#[test]
fn strings_that_cannot_be_read() {
    insta::assert_snapshot!(check(&[
        "mysql://h/shop",
        "jdbc:postgresql://h/shop",
        "shop",
        "host",
        "host=h dbname",
        "=h",
        "host=h dbname='shop",
        "hots=h",
        "host=h sslmod=require",
        "host=h pgbouncer=true",
        "host=h pasword=s3cret",
        "host=h password=s3cret phrase=more",
        "host=h port=http",
        "host=h port=0",
        "host=h port=65536",
        "host=h port=1,2",
        "host=a,b hostaddr=10.0.0.1",
        "host=h hostaddr=example.com",
        "host=@abstract",
        "host=h sslmode=on",
        "host=h connect_timeout=soon",
        "host=h keepalives_idle=-3",
        "host=h target_session_attrs=master",
        "host=h channel_binding=yes",
        "host=h sslrootcert=system sslmode=require",
        "host=h sslnegotiation=direct",
        "host=h ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2",
        "host=h ssl_min_protocol_version=TLSv1",
        "host=h require_auth=scram-sha-256",
        "host=h sslcrl=/etc/crl.pem",
        "host=h gssencmode=require",
        "host=h client_encoding=LATIN1",
        "postgres://h:http/shop",
        "postgres://reader:pa/ss@h/shop",
        "postgres://reader:p@ss@h/shop",
        "postgres://reader:12/ss?a=b@h/shop",
        "postgres://[::1/shop",
        "postgres://[]/shop",
        "postgres://[::1]5432/shop",
        "postgres://h/shop?sslmode",
        "postgres://h/shop?sslmode=a=b",
        "postgres://h/shop?sslmod=require",
        "postgres://h/sh%zzop",
        "postgres://h/sh%0",
        "postgres://h/sh%00op",
        "postgres://h/sh%ffop",
    ]), @"");
}
