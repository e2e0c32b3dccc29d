//! A small identity provider on this machine that tests control: it publishes keys and metadata, introspects tokens, is
//! slow or unavailable, and counts requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;

/// A provider. Dropping it ends it.
pub(crate) struct Provider {
    pub(crate) url: String,
    shared: Arc<Shared>,
    server: AbortHandle,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, Answer>>,
    requests: Mutex<Vec<ReceivedRequest>>,
    open: AtomicUsize,
    changed: Notify,
    semaphore_of_answers: Mutex<Option<Arc<Semaphore>>>,
}

/// The response of a path.
#[derive(Clone)]
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

/// The requests so far.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let served = shared.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        Self { url, shared, server: server.abort_handle() }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Sets the response of `path`.
    pub(crate) fn answer(&self, path: &str, status: u16, headers: &str, body: impl ToString) {
        let answer = Answer { status, headers: headers.to_owned(), body: body.to_string() };
        self.shared.answers.lock().insert(path.to_owned(), answer);
    }

    /// Publishes these keys at `/keys`, with a lifetime of ten minutes.
    pub(crate) fn show_keys(&self, keys: &[Value]) {
        self.answer("/keys", 200, "cache-control: public, max-age=600\r\n", json!({ "keys": keys }));
    }

    /// Stalls all responses until [`Provider::go_on`] is called.
    pub(crate) fn hold(&self) {
        *self.shared.semaphore_of_answers.lock() = Some(Arc::new(Semaphore::new(0)));
    }

    pub(crate) fn go_on(&self) {
        if let Some(semaphore) = self.shared.semaphore_of_answers.lock().take() {
            semaphore.close();
        }
    }

    /// The number of requests to `path` so far.
    pub(crate) fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().iter().filter(|received_request| received_request.path == path).cloned().collect()
    }

    /// Waits for so many requests to `path`.
    pub(crate) async fn wait_for_requests(&self, path: &str, times: usize) {
        loop {
            let changed = self.shared.changed.notified();
            if self.requests(path).len() >= times {
                return;
            }
            changed.await;
        }
    }

    /// Waits until it has no open connections.
    pub(crate) async fn wait_until_disconnected(&self) {
        loop {
            let changed = self.shared.changed.notified();
            if self.shared.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let _ = self.answer(&mut stream).await;
        drop(stream);
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    async fn answer(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let received_request = read(stream).await?;
        let found = self.answers.lock().get(&received_request.path).cloned();
        self.requests.lock().push(received_request);
        self.changed.notify_waiters();
        let semaphore = self.semaphore_of_answers.lock().clone();
        if let Some(semaphore) = semaphore {
            // A client that stops waiting closes the connection, which ends this too.
            let mut byte = [0];
            tokio::select! {
                _ = semaphore.acquire() => {}
                _ = stream.read(&mut byte) => return Ok(()),
            }
        }
        let Answer { status, headers, body } =
            found.unwrap_or(Answer { status: 404, headers: String::new(), body: String::new() });
        let head =
            format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    }
}

/// Reads one request.
async fn read(stream: &mut TcpStream) -> std::io::Result<ReceivedRequest> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok()).unwrap_or(0);
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (head, body) = (text(&bytes[..head]), text(&bytes[head..]));
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(ReceivedRequest { path, head, body })
}
