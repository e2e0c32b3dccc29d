//! What a connection and a call send to the server: their cost, without a clock.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_postgres::PostgresOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::test_database::{OpenDatabase as _, TestDatabase, owner_statement, wait_until};

/// How much of a statement is recorded: enough to recognise it.
const EXCERPT_CHARACTERS: usize = 90;

/// A server in front of PostgreSQL that records the statements of its clients.
struct Recorder {
    host: String,
    statements: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    /// `host` is a connection string with host and port.
    async fn start(host: &str) -> Self {
        let value = |key: &str| host.split_whitespace().find_map(|pair| pair.strip_prefix(key)).unwrap().to_owned();
        let server = format!("{}:{}", value("host="), value("port="));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let statements = Arc::<Mutex<Vec<String>>>::default();
        let recorded = statements.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (read, mut write) = client.into_split();
                let (mut from_server, to_server) = TcpStream::connect(&server).await.unwrap().into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut write).await });
                tokio::spawn(record(read, to_server, recorded.clone()));
            }
        });
        Self { host: format!("host=127.0.0.1 port={port}"), statements }
    }

    fn count(&self, text: &str) -> usize {
        self.statements.lock().iter().filter(|statement| statement.contains(text)).count()
    }

    /// The statements since the last time, a line each.
    fn take(&self) -> String {
        std::mem::take(&mut *self.statements.lock()).join("\n")
    }
}

/// Forwards messages: the first has no tag. [Message formats](https://www.postgresql.org/docs/15/protocol-message-formats.html)
async fn record(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, statements: Arc<Mutex<Vec<String>>>) {
    let mut is_first = true;
    loop {
        let mut message = vec![0; if is_first { 4 } else { 5 }];
        if client.read_exact(&mut message).await.is_err() {
            return;
        }
        let length = message.last_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length));
        let head = message.len();
        message.resize(head + length as usize - 4, 0);
        client.read_exact(&mut message[head..]).await.unwrap();
        let text = |at: usize| {
            let bytes = message[head..].split(|byte| *byte == 0).nth(at).unwrap();
            let line = String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
            line.chars().take(EXCERPT_CHARACTERS).collect::<String>()
        };
        match (is_first, message[0]) {
            (true, _) => statements.lock().push("(connection)".to_owned()),
            (false, b'Q') => statements.lock().push(format!("query: {}", text(0))),
            (false, b'P') => statements.lock().push(format!("parse: {}", text(1))),
            _ => {}
        }
        is_first = false;
        if server.write_all(&message).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_new_connection_and_the_first_calls_send_few_statements() {
    let scene =
        TestDatabase::new("CREATE TABLE t (id int); INSERT INTO t VALUES (1); GRANT SELECT ON t TO {login}").await;
    if scene.pooler {
        return;
    }
    assert_eq!(scene.value("SELECT (boot_val = setting)::text FROM pg_settings WHERE name = 'jit'").await, "true");
    let recorder = Recorder::start(&scene.host).await;
    let node =
        scene.open_at(&recorder.host, &scene.login(), PostgresOptions { connections_max: 1, ..Default::default() });
    assert_eq!(node.run_to_text("SELECT id FROM t").await, "1");
    // The roles are inspected after the call, which does not wait for that.
    wait_until("the inspection", || async { recorder.count("ROLLBACK") == 3 }).await;
    insta::assert_snapshot!("first_call", recorder.take());
    assert_eq!(node.run_to_text("SELECT id FROM t").await, "1");
    insta::assert_snapshot!("further_call", recorder.take());
    let owner = owner_statement("SELECT id + 1 FROM t", Vec::new());
    for _ in 0..2 {
        assert_eq!(node.lines(&owner).await.unwrap(), "2");
    }
    insta::assert_snapshot!("statement_of_the_owner_twice", recorder.take());
}
