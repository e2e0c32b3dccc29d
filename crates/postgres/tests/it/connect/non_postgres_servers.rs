//! Hosts that are not PostgreSQL servers, or that do not respond.

use tidegate_postgres::connect::ConnectErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

use super::environment_fixture::{EnvironmentFixture, connect_error_text};

/// Listens, and answers whatever comes with `answer`, then hangs up.
async fn spawn_server_answering(answer: &'static [u8]) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut requested = [0; 64];
            let _ = stream.read(&mut requested).await;
            let _ = stream.write_all(answer).await;
        }
    });
    (port, task)
}

#[tokio::test]
async fn web_server_is_detected() {
    let (port, task) = spawn_server_answering(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
    for mode in ["disable", "allow", "prefer", "require"] {
        let messages =
            connect_error_text(&format!("host=127.0.0.1 port={port} user=reader dbname=shop sslmode={mode}")).await;
        let message = messages.replace(&port.to_string(), "PORT");
        assert_eq!(
            message,
            "caller: the database shop cannot be reached: the server at this address is not PostgreSQL\n\
             owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: the server at this \
             address is not PostgreSQL; check the port",
            "{mode}"
        );
    }
    task.abort();
}

#[tokio::test]
async fn ssh_server_is_detected() {
    let (port, task) = spawn_server_answering(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n").await;
    for mode in ["disable", "require"] {
        let messages =
            connect_error_text(&format!("host=127.0.0.1 port={port} user=reader dbname=shop sslmode={mode}")).await;
        assert!(messages.contains("the server at this address is not PostgreSQL"), "{mode}: {messages}");
    }
    task.abort();
}

#[tokio::test]
async fn postgres_without_tls_is_not_mistaken() {
    let (port, task) = spawn_server_answering(b"N").await;
    let message =
        connect_error_text(&format!("host=127.0.0.1 port={port} user=reader dbname=shop sslmode=require")).await;
    insta::assert_snapshot!(message.replace(&port.to_string(), "PORT"), @r#"
    caller: the database shop cannot be reached: TLS is required and the server does not offer it
    owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: TLS is required and the server does not offer it; sslmode is require; set ssl = on in the server, or use a weaker sslmode
    "#);
    task.abort();
}

#[tokio::test]
async fn silent_host_times_out() {
    // The system accepts for the listener, which itself never does.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!("host=127.0.0.1 port={port} user=reader dbname=shop connect_timeout=1");
    insta::assert_snapshot!(connect_error_text(&text).await.replace(&port.to_string(), "PORT"), @r#"
    caller: the database shop cannot be reached: no answer within 1 s
    owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: no answer within 1 s
    "#);
}

#[tokio::test]
async fn closed_port_is_refused() {
    // A bound socket that does not listen keeps its port closed.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let message = connect_error_text(&format!("host=127.0.0.1 port={port} user=reader dbname=shop")).await;
    insta::assert_snapshot!(message.replace(&port.to_string(), "PORT"), @r#"
    caller: the database shop cannot be reached: connection refused
    owner: cannot connect to postgres at 127.0.0.1:PORT/shop as reader: connection refused
    "#);
}

#[tokio::test]
async fn unresolvable_name_is_reported() {
    let target = EnvironmentFixture::new().parse_target("host=no-such-host.invalid user=reader dbname=shop");
    let error = target.connect("").await.unwrap_err();
    assert_eq!(error.kind(), &ConnectErrorKind::HostNotFound);
    insta::assert_snapshot!(error.to_string(), @"cannot connect to postgres at no-such-host.invalid:5432/shop as reader: the host was not found");
}

#[tokio::test]
async fn missing_socket_is_reported() {
    insta::assert_snapshot!(connect_error_text("host=/nowhere user=reader dbname=shop").await, @r#"
    caller: the database shop cannot be reached: the server's socket does not exist
    owner: cannot connect to postgres at /nowhere/.s.PGSQL.5432/shop as reader: the server's socket does not exist
    "#);
}

#[tokio::test]
async fn errors_list_each_host() {
    insta::assert_snapshot!(connect_error_text("host=/nowhere,no-such-host.invalid user=reader dbname=shop").await, @r#"
    caller: the database shop cannot be reached: the host was not found
    owner: cannot connect to postgres at /nowhere/.s.PGSQL.5432,no-such-host.invalid:5432/shop as reader
    - /nowhere/.s.PGSQL.5432: the server's socket does not exist
    - no-such-host.invalid:5432: the host was not found
    "#);
}
