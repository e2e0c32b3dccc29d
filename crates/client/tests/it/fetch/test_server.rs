//! An HTTP server that gives the answers of a test, and records its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct RecordedRequest {
    pub(super) method: String,
    /// Without its query.
    pub(super) path: String,
    pub(super) query: String,
    head: String,
    pub(super) body: Vec<u8>,
}

impl RecordedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The requested block.
    pub(super) fn block(&self) -> Option<usize> {
        self.path.split_once("/blocks/")?.1.parse().ok()
    }

    pub(super) fn is_manifest(&self) -> bool {
        self.path.starts_with("/results/") && self.path.matches('/').count() == 2
    }
}

/// The bytes that are sent before the connection is closed.
pub(super) struct TestResponse {
    pub(super) bytes: Vec<u8>,
    /// Waited for first.
    pub(super) barrier: Option<Arc<Barrier>>,
}

impl TestResponse {
    pub(super) fn new(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        Self { bytes: [head.as_bytes(), body].concat(), barrier: None }
    }

    pub(super) fn json(body: &str) -> Self {
        Self::new("200 OK", &[("Content-Type", "application/json")], body.as_bytes())
    }

    pub(super) fn problem(status: &str, detail: &str) -> Self {
        let body = serde_json::json!({"title": "No", "detail": detail}).to_string();
        Self::new(status, &[("Content-Type", "application/problem+json")], body.as_bytes())
    }

    /// The same, and the connection breaks after that many bytes.
    pub(super) fn cut_at(mut self, bytes: usize) -> Self {
        self.bytes.truncate(bytes);
        self
    }

    pub(super) fn wait_for(self, security_barrier: Arc<Barrier>) -> Self {
        Self { barrier: Some(security_barrier), ..self }
    }
}

/// The server.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl TestServer {
    /// Answers each request with `answer`, and closes its connection.
    pub(super) async fn start(answer: impl Fn(&RecordedRequest) -> TestResponse + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requested: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let (noted, answer) = (requested.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut stream = stream;
                    let Some(recorded_request) = read_request(&mut stream).await else { return };
                    noted.lock().push(recorded_request.clone());
                    let TestResponse { bytes, barrier: security_barrier } = answer(&recorded_request);
                    if let Some(security_barrier) = security_barrier {
                        security_barrier.wait().await;
                    }
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, requests: requested }
    }

    /// The received requests, in order.
    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().clone()
    }

    /// The requested blocks, in order.
    pub(super) fn requested_blocks(&self) -> Vec<usize> {
        self.requests.lock().iter().filter_map(RecordedRequest::block).collect()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut line = head.split(' ');
    let (method, target) = (line.next().unwrap().to_owned(), line.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut recorded_request = RecordedRequest { method, path, query, head, body: bytes.split_off(head_end + 4) };
    let length = recorded_request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while recorded_request.body.len() < length {
        stream.read_buf(&mut recorded_request.body).await.ok()?;
    }
    Some(recorded_request)
}
