//! Valid connection strings, and the errors for invalid ones.

use tidegate_postgres::connect::{is_connection_string, without_password};

use super::environment_fixture::EnvironmentFixture;

fn check(texts: &[&str]) -> String {
    let scene = EnvironmentFixture::new();
    texts.iter().map(|text| format!("{text}\n=> {}\n", scene.describe_settings(text))).collect()
}

#[test]
fn parses_uris() {
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
        "postgresql+asyncpg://reader:s3cret@h:5433/shop",
        "POSTGRES://h/shop",
    ]), @r#"
    postgres://
    => postgres at localhost:5432/ann as ann
    postgresql://db.example.com
    => postgres at db.example.com:5432/ann as ann
    postgresql://db.example.com:6432/shop
    => postgres at db.example.com:6432/shop as ann
    postgres://reader:s3cret@db.example.com/shop?sslmode=verify-full
    => postgres at db.example.com:5432/shop as reader
      password: Some(_)
      password_source: "the password is from the connection string" }]
      tls: TlsSettings { mode: VerifyFull
    postgres://re%61der:%40%3A%2F%3F%25@h/sh%2Fop
    => postgres at h:5432/sh/op as reader
      password: Some(_)
      password_source: "the password is from the connection string" }]
    postgres://reader:pa?ss&wo=rd#@h/shop
    => postgres at h:5432/shop as reader
      password: Some(_)
      password_source: "the password is from the connection string" }]
    postgres://:s3cret@h
    => postgres at h:5432/ann as ann
      password: Some(_)
      password_source: "the password is from the connection string" }]
    postgres://reader:@h
    => postgres at h:5432/reader as reader
    postgres://@h
    => postgres at h:5432/ann as ann
    postgresql:///shop?host=/run/pg&port=5433
    => postgres at /run/pg/.s.PGSQL.5433/shop as ann
    postgresql://%2Frun%2Fpg/shop
    => postgres at /run/pg/.s.PGSQL.5432/shop as ann
    postgresql://%2Frun%2Fpg:5433/shop
    => postgres at /run/pg/.s.PGSQL.5433/shop as ann
    postgresql://[2001:db8::1]:5433/shop
    => postgres at [2001:db8::1]:5433/shop as ann
    postgresql://[::1]
    => postgres at [::1]:5432/ann as ann
    postgresql://a,b:5433,[::1]:5434/shop?target_session_attrs=primary
    => postgres at a:5432,b:5433,[::1]:5434/shop as ann
      password_source: "no password was given" }
      password_source: "no password was given" }
      session_role: Primary
    postgresql://a:5433,b:5433
    => postgres at a:5433,b:5433/ann as ann
      password_source: "no password was given" }
    postgresql://h/shop?user=reader&password=s3cret&connect_timeout=3
    => postgres at h:5432/shop as reader
      password: Some(_)
      connect_timeout: Some(3s)
      password_source: "the password is from the connection string" }]
      connect_timeout: 3s
    postgresql://h/shop?ssl=true
    => postgres at h:5432/shop as ann
      tls: TlsSettings { mode: Require
    postgresql://h?dbname=shop
    => postgres at h:5432/shop as ann
    postgresql://h/shop?dbname=other
    => postgres at h:5432/other as ann
    postgresql://h?application_name=a+b%20c
    => postgres at h:5432/ann as ann
      application_name: Some("a+b c")
    postgresql://h?options=-c%20statement_timeout%3D5s
    => postgres at h:5432/ann as ann
      options: Some("-c statement_timeout=5s")
    postgresql://h?sslmode=require&channel_binding=require
    => postgres at h:5432/ann as ann
      channel_binding: Require
      tls: TlsSettings { mode: Require
    postgresql://h?hostaddr=10.0.0.7
    => postgres at h:5432/ann as ann
      address: Some(10.0.0.7) }
    postgresql://h?
    => postgres at h:5432/ann as ann
    postgresql+asyncpg://reader:s3cret@h:5433/shop
    => postgres at h:5433/shop as reader
      password: Some(_)
      password_source: "the password is from the connection string" }]
    POSTGRES://h/shop
    => postgres at h:5432/shop as ann
    "#);
}

#[test]
fn parses_keywords_and_values() {
    insta::assert_snapshot!(check(&[
        "host=h",
        "  host = h   dbname = shop",
        "host=h dbname='my shop' user='o\\'brien' password='a b\\\\c'",
        "host=h dbname=my\\ shop",
        "host=h dbname=shop\u{a0}2",
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
    ]), @r#"
    host=h
    => postgres at h:5432/ann as ann
      host = h   dbname = shop
    => postgres at h:5432/shop as ann
    host=h dbname='my shop' user='o\'brien' password='a b\\c'
    => postgres at h:5432/my shop as o'brien
      password: Some(_)
      password_source: "the password is from the connection string" }]
    host=h dbname=my\ shop
    => postgres at h:5432/my shop as ann
    host=h dbname=shop 2
    => postgres at h:5432/shop 2 as ann
    host=h
    port=5433	user=reader
    => postgres at h:5433/reader as reader
    host=h user=''
    => postgres at h:5432/ann as ann
    host=a,b,c port=1,2,3
    => postgres at a:1,b:2,c:3/ann as ann
      password_source: "no password was given" }
      password_source: "no password was given" }
    host=a,b port=5433
    => postgres at a:5433,b:5433/ann as ann
      password_source: "no password was given" }
    host=a,b hostaddr=10.0.0.1,10.0.0.2
    => postgres at a:5432,b:5432/ann as ann
      address: Some(10.0.0.1) }
      password_source: "no password was given" }
      address: Some(10.0.0.2) }
    hostaddr=10.0.0.1
    => postgres at 10.0.0.1:5432/ann as ann
      address: Some(10.0.0.1) }
    hostaddr=::1 port=5433
    => postgres at [::1]:5433/ann as ann
      address: Some(::1) }
    host=a,,c port=5433,,5434
    => postgres at a:5433,localhost:5432,c:5434/ann as ann
      password_source: "no password was given" }
      password_source: "no password was given" }
    host=/run/pg port=5433
    => postgres at /run/pg/.s.PGSQL.5433/ann as ann
    host=/run/pg,db.example.com
    => postgres at /run/pg/.s.PGSQL.5432,db.example.com:5432/ann as ann
      password_source: "no password was given" }
    host=h host=i
    => postgres at i:5432/ann as ann
    host=h sslmode=verify-ca sslrootcert=/etc/ca.pem sslcert=/etc/me.pem sslkey=/etc/me.key
    => postgres at h:5432/ann as ann
      tls: TlsSettings { mode: VerifyCa
      roots: File(Some(TlsFile { path: "/etc/ca.pem"
      is_default: false }))
      certificate: Some(TlsFile { path: "/etc/me.pem"
      is_default: false })
      key: Some(TlsFile { path: "/etc/me.key"
      is_default: false })
    host=h sslrootcert=system
    => postgres at h:5432/ann as ann
      tls: TlsSettings { mode: VerifyFull
      roots: System
    host=h sslnegotiation=direct sslmode=require
    => postgres at h:5432/ann as ann
      tls: TlsSettings { mode: Require
      is_direct: true
    host=h connect_timeout=0
    => postgres at h:5432/ann as ann
      connect_timeout: Some(600s)
      connect_timeout: 600s
    host=h connect_timeout=-1
    => postgres at h:5432/ann as ann
      connect_timeout: Some(600s)
      connect_timeout: 600s
    host=h connect_timeout=1
    => postgres at h:5432/ann as ann
      connect_timeout: Some(1s)
      connect_timeout: 1s
    host=h connect_timeout=99999999999
    => postgres at h:5432/ann as ann
      connect_timeout: Some(600s)
      connect_timeout: 600s
    host=h load_balance_hosts=random target_session_attrs=prefer-standby
    => postgres at h:5432/ann as ann
      session_role: PreferStandby
      shuffles_hosts: true
    host=h fallback_application_name=loader
    => postgres at h:5432/ann as ann
      application_name: Some("loader")
    host=h fallback_application_name=loader application_name=night
    => postgres at h:5432/ann as ann
      application_name: Some("night")
    host=h gssencmode=disable client_encoding=UTF8 sslcompression=1 krbsrvname=postgres
    => postgres at h:5432/ann as ann
    host=h keepalives=0 keepalives_idle=30 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=9000
    => postgres at h:5432/ann as ann
      tcp_user_timeout: Some(9s)
      keepalives: false
      keepalives_idle: 30s
      keepalives_interval: Some(5s)
      keepalives_retries: Some(3)
    host=h ssl_min_protocol_version=TLSv1.3 sslsni=0
    => postgres at h:5432/ann as ann
      sends_name: false
      version_min: V1_3
    "#);
}

#[test]
fn trailing_escaped_blank_is_kept() {
    assert_eq!(EnvironmentFixture::new().parse_target("host=h user=an\\ ").user(), "an ");
    assert_eq!(EnvironmentFixture::new().parse_target(" postgres://an@h \n").user(), "an");
}

#[test]
fn malformed_strings_are_rejected() {
    insta::assert_snapshot!(check(&[
        "mysql://h/shop",
        "jdbc:postgresql://h/shop",
        "postgres:/reader:s3cret@h/shop",
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
        "postgres://reader:p?s/s#@h/shop",
        "postgres://[::1/shop",
        "postgres://[]/shop",
        "postgres://[::1]5432/shop",
        "postgres://h/shop?sslmode",
        "postgres://h/shop?sslmode=a=b",
        "postgres://h/shop?sslmod=require",
        "postgres://reader:s3cret@h/shop?currentSchema=sales",
        "postgresql+asyncpg://h/shop?ssl=require",
        "postgres://h/sh%zzop",
        "postgres://h/sh%0",
        "postgres://h/sh%00op",
        "postgres://h/sh%ffop",
    ]), @r#"
    mysql://h/shop
    => error: the connection string cannot be read: a URI that does not begin with postgresql:// or postgres://, at character 1
    jdbc:postgresql://h/shop
    => error: the connection string is one of JDBC; write it as postgresql://USER@HOST:PORT/DATABASE, and put the password into PGPASSWORD or .pgpass
    postgres:/reader:s3cret@h/shop
    => error: the connection string cannot be read: a URI that does not begin with postgresql:// or postgres://, at character 1
    shop
    => error: the connection string cannot be read: a keyword without =, at character 1
    host
    => error: the connection string cannot be read: a keyword without =, at character 1
    host=h dbname
    => error: the connection string cannot be read: a keyword without =, at character 8
    =h
    => error: the connection string has an unknown keyword ""
    host=h dbname='shop
    => error: the connection string cannot be read: an unclosed quote, at character 15
    hots=h
    => error: the connection string has an unknown keyword "hots"; did you mean host?
    host=h sslmod=require
    => error: the connection string has an unknown keyword "sslmod"; did you mean sslmode?
    host=h pgbouncer=true
    => error: the connection string has the keyword pgbouncer, which is one of another driver; write pgbouncer: true of the database in tidegate.yaml
    host=h pasword=s3cret
    => error: the connection string has an unknown keyword "pasword"; did you mean password?
    host=h password=s3cret phrase=more
    => error: the connection string has an unknown keyword at character 24; did you mean passfile?
    host=h port=http
    => error: the connection string: port must be a number from 1 to 65535
    host=h port=0
    => error: the connection string: port must be a number from 1 to 65535
    host=h port=65536
    => error: the connection string: port must be a number from 1 to 65535
    host=h port=1,2
    => error: port lists 2 and host lists 1; they must list the same number
    host=a,b hostaddr=10.0.0.1
    => error: host lists 2 and hostaddr lists 1; they must list the same number
    host=h hostaddr=example.com
    => error: the connection string: hostaddr must be an IP address
    host=@abstract
    => error: the connection string: host must be a name, an address or a socket folder
    host=h sslmode=on
    => error: the connection string: sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full
    host=h connect_timeout=soon
    => error: the connection string: connect_timeout must be a number of seconds
    host=h keepalives_idle=-3
    => error: the connection string: keepalives_idle must be a number, 0 or more
    host=h target_session_attrs=master
    => error: the connection string: target_session_attrs must be one of any, read-write, read-only, primary, standby, prefer-standby
    host=h channel_binding=yes
    => error: the connection string: channel_binding must be one of disable, prefer, require
    host=h sslrootcert=system sslmode=require
    => error: sslrootcert=system requires sslmode=verify-full, because public authorities issue certificates to anyone
    host=h sslnegotiation=direct
    => error: sslnegotiation=direct requires sslmode=require or stronger, because it never falls back to a connection without TLS
    host=h ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2
    => error: ssl_min_protocol_version is above ssl_max_protocol_version
    host=h ssl_min_protocol_version=TLSv1
    => error: the connection string: ssl_min_protocol_version must be one of TLSv1.2, TLSv1.3
    host=h require_auth=scram-sha-256
    => error: the connection string: require_auth is not supported; ignoring it could make the connection less secure
    host=h sslcrl=/etc/crl.pem
    => error: the connection string: sslcrl is not supported; ignoring it could make the connection less secure
    host=h gssencmode=require
    => error: the connection string: gssencmode must be disable or prefer, if it is set
    host=h client_encoding=LATIN1
    => error: the connection string: client_encoding must be UTF8 or utf8 or UTF-8 or utf-8 or auto, if it is set
    postgres://h:http/shop
    => error: the connection string cannot be read: invalid value for option `port`, at character 12
    postgres://reader:pa/ss@h/shop
    => error: the connection string cannot be read: a / before the @ that follows name and password; write it as %2F in a name or password, at character 21
    postgres://reader:p@ss@h/shop
    => error: the connection string cannot be read: an @ among hosts and database; write it as %40 in a name or password, at character 21
    postgres://reader:12/ss?a=b@h/shop
    => error: the connection string cannot be read: a / before the @ that follows name and password; write it as %2F in a name or password, at character 21
    postgres://reader:p?s/s#@h/shop
    => error: the connection string cannot be read: a / before the @ that follows name and password; write it as %2F in a name or password, at character 22
    postgres://[::1/shop
    => error: the connection string cannot be read: invalid value for option `host`, at character 12
    postgres://[]/shop
    => error: the connection string cannot be read: an empty address between [ and ], at character 12
    postgres://[::1]5432/shop
    => error: the connection string cannot be read: invalid value for option `host`, at character 12
    postgres://h/shop?sslmode
    => error: the connection string cannot be read: a parameter without =, at character 19
    postgres://h/shop?sslmode=a=b
    => error: the connection string cannot be read: a second = in a parameter; write it as %3D in a value, at character 19
    postgres://h/shop?sslmod=require
    => error: the connection string has an unknown keyword "sslmod"; did you mean sslmode?
    postgres://reader:s3cret@h/shop?currentSchema=sales
    => error: the connection string has the keyword currentSchema, which is one of another driver; write options=-csearch_path%3DNAME in a URI, or the schema before the name of each table
    postgresql+asyncpg://h/shop?ssl=require
    => error: the connection string has the keyword ssl, which is one of another driver; write sslmode=require, or another mode of sslmode
    postgres://h/sh%zzop
    => error: the connection string cannot be read: a % without two hexadecimal digits, at character 16
    postgres://h/sh%0
    => error: the connection string cannot be read: a % without two hexadecimal digits, at character 16
    postgres://h/sh%00op
    => error: the connection string: dbname contains a NUL character
    postgres://h/sh%ffop
    => error: the connection string cannot be read: invalid utf-8 sequence of 1 bytes from index 2, at character 12
    "#);
}

#[test]
fn passwords_can_be_left_out() {
    let scene = EnvironmentFixture::new();
    let mut text = String::new();
    for with_password in [
        "postgres://reader:s3%2Fcret@db.example.com:6432/shop?sslmode=verify-full",
        "host=/run/pg dbname='my shop' password='s3 cret' user=a@b",
        "postgres://h/shop?password=s3cret",
        "postgres://:s3cret@",
    ] {
        let without = without_password(with_password).unwrap().unwrap();
        assert!(is_connection_string(&without) && without_password(&without).unwrap().is_none(), "{without}");
        let settings = |text: &str| {
            let settings = scene.describe_settings(text);
            settings.lines().filter(|line| !line.contains("password")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(settings(&without), settings(with_password));
        text.push_str(&format!("{without}\n"));
    }
    insta::assert_snapshot!(text, @"
    postgresql://?user=reader&dbname=shop&host=db.example.com&port=6432&sslmode=verify-full
    postgresql://?host=%2Frun%2Fpg&dbname=my%20shop&user=a%40b
    postgresql://?dbname=shop&host=h
    postgresql://?
    ");
    assert_eq!(without_password("postgres://reader@h/shop").unwrap(), None);
    assert!(without_password("postgres://reader:pa/ss@h/shop").is_err());
}

#[test]
fn connection_strings_are_no_paths() {
    for text in [
        "postgres://h/shop",
        "postgresql+psycopg2://reader:s3cret@h/shop",
        "jdbc:postgresql:shop?user=reader&password=s3cret",
        "Postgres:/reader:s3cret@h/shop",
        "host=localhost dbname=shop user=reader password=s3cret",
        "host = localhost  port = 5433",
        "host=/run/postgresql dbname=shop",
        "dbname=shop",
        "service=shop",
        "password=s3cret",
    ] {
        assert!(is_connection_string(text), "{text}");
    }
    for text in ["./data", "shop=./data", "host=./data", "host=*.csv", "port=ports", "postgres", "=", "mysql://h/shop"]
    {
        assert!(!is_connection_string(text), "{text}");
    }
}
