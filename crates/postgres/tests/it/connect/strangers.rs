//! Hosts that are no PostgreSQL, or that say nothing.

use tidegate_postgres::connect::{Problem, Startup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::scene::{Scene, refusal};

/// Listens, and answers whatever comes with `answer`, then hangs up.
async fn stranger(answer: &'static [u8]) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 64];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(answer).await;
        }
    });
    (port, task)
}

#[tokio::test]
async fn a_web_server_is_no_postgres() {
    let (port, task) = stranger(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
    for mode in ["disable", "allow", "prefer", "require"] {
        let told = refusal(&format!("host=127.0.0.1 port={port} user=reader dbname=shop sslmode={mode}")).await;
        let told = told.replace(&port.to_string(), "PORT");
        assert_eq!(
            told,
            "caller: the database shop cannot be reached: what listens there is not PostgreSQL\n\
             owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: what listens there is not \
             PostgreSQL; is the port right?",
            "{mode}"
        );
    }
    task.abort();
}

#[tokio::test]
async fn a_secure_shell_whose_greeting_begins_like_a_yes_is_no_postgres() {
    let (port, task) = stranger(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n").await;
    for mode in ["disable", "require"] {
        let told = refusal(&format!("host=127.0.0.1 port={port} user=reader dbname=shop sslmode={mode}")).await;
        assert!(told.contains("what listens there is not PostgreSQL"), "{mode}: {told}");
    }
    task.abort();
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart_from_a_stranger() {
    let (port, task) = stranger(b"N").await;
    let told = refusal(&format!("host=127.0.0.1 port={port} user=reader dbname=shop sslmode=require")).await;
    insta::assert_snapshot!(told.replace(&port.to_string(), "PORT"), @r#"
    caller: the database shop cannot be reached: TLS is required and the server does not offer it
    owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: TLS is required and the server does not offer it; sslmode is require; set ssl = on in the server, or a weaker sslmode
    "#);
    task.abort();
}

#[tokio::test]
async fn a_host_that_says_nothing_costs_no_more_than_its_time() {
    // The system accepts for the listener, which itself never does.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!("host=127.0.0.1 port={port} user=reader dbname=shop connect_timeout=1");
    insta::assert_snapshot!(refusal(&text).await.replace(&port.to_string(), "PORT"), @r#"
    caller: the database shop cannot be reached: no answer within 1 s
    owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: no answer within 1 s
    "#);
}

#[tokio::test]
async fn a_port_where_nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let told = refusal(&format!("host=127.0.0.1 port={port} user=reader dbname=shop")).await;
    insta::assert_snapshot!(told.replace(&port.to_string(), "PORT"), @r#"
    caller: the database shop cannot be reached: connection refused
    owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: connection refused
    "#);
}

#[tokio::test]
async fn a_name_without_an_address() {
    let target = Scene::new().target("host=no-such-host.invalid user=reader dbname=shop");
    let error = target.connect(&Startup::default()).await.unwrap_err();
    assert_eq!(error.problem(), &Problem::HostNotFound);
    insta::assert_snapshot!(error.to_string(), @"cannot connect to postgres at no-such-host.invalid:5432/shop as reader: the host was not found");
}

#[tokio::test]
async fn a_socket_that_is_not_there() {
    insta::assert_snapshot!(refusal("host=/nowhere user=reader dbname=shop").await, @r#"
    caller: the database shop cannot be reached: the server's socket is not there
    owner: cannot connect to postgres at /nowhere/.s.PGSQL.5432/shop as reader: the server's socket is not there
    "#);
}

#[tokio::test]
async fn several_hosts_are_told_of_one_by_one() {
    insta::assert_snapshot!(refusal("host=/nowhere,no-such-host.invalid user=reader dbname=shop").await, @r#"
    caller: the database shop cannot be reached: the host was not found
    owner: cannot connect to postgres at /nowhere/.s.PGSQL.5432,no-such-host.invalid:5432/shop as reader
    - /nowhere/.s.PGSQL.5432: the server's socket is not there
    - no-such-host.invalid:5432: the host was not found
    "#);
}
