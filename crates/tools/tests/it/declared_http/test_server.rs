//! A small HTTP server that records requests and sends the bytes that a test specifies.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A piece of an answer.
pub(crate) enum ResponseStep {
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// The same bytes until the connection closes.
    Forever(Vec<u8>),
    /// Nothing until the peer closes the connection.
    Silence,
}

type Answer = dyn Fn(&str) -> Vec<ResponseStep> + Send + Sync;

/// The server. It ends with the test's runtime.
pub(crate) struct TestServer {
    pub(crate) port: u16,
    /// Requests as they came.
    pub(crate) requests: mpsc::Receiver<String>,
    /// A message for each peer that went away during a silence.
    pub(crate) gone: mpsc::Receiver<()>,
}

impl TestServer {
    /// A server that answers requests, which it sees as text, with `answer`.
    pub(crate) async fn start(answer: impl Fn(&str) -> Vec<ResponseStep> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer: Arc<Answer> = Arc::new(answer);
        let (requests_sender, requests) = mpsc::channel(100);
        let (gone_sender, gone) = mpsc::channel(100);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), requests_sender.clone(), gone_sender.clone()));
            }
        });
        Self { port, requests, gone }
    }

    /// A server that always answers the same.
    pub(crate) async fn respond_with(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_| vec![ResponseStep::Bytes(answer.clone())]).await
    }

    /// A server that sends `bytes` before any request.
    pub(crate) async fn responding_first(bytes: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((_, requests), (_, gone)) = (mpsc::channel(1), mpsc::channel(1));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(bytes).await;
                // Closing before everything is read would reset the connection.
                while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
            }
        });
        Self { port, requests, gone }
    }

    /// Host and port, as a list of hosts has them.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host())
    }

    /// The requests that came since the last time.
    pub(crate) fn received_requests(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

/// An answer with a body of a known length.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}").into_bytes()
}

/// A JSON response with status 200.
pub(crate) fn json_response(body: &str) -> Vec<u8> {
    response("200 OK", "Content-Type: application/json\r\n", body)
}

/// The first line and the headers of a request, in lower case and sorted, with the body last.
pub(crate) fn normalize_request(request: &str) -> String {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let first = lines.next().unwrap().to_owned();
    let mut headers: Vec<String> = lines.map(str::to_ascii_lowercase).collect();
    headers.sort();
    [vec![first], headers, vec![body.to_owned()]].concat().join("\n").trim_end().to_owned()
}

async fn serve(mut stream: TcpStream, answer: Arc<Answer>, requests: mpsc::Sender<String>, gone: mpsc::Sender<()>) {
    let Some(request) = read(&mut stream).await else { return };
    let parts = answer(&request);
    // A test that does not look at the requests has dropped the receiver.
    let _ = requests.send(request).await;
    for part in parts {
        match part {
            ResponseStep::Bytes(bytes) => {
                let _ = stream.write_all(&bytes).await;
            }
            ResponseStep::Forever(bytes) => while stream.write_all(&bytes).await.is_ok() {},
            ResponseStep::Silence => {
                let mut byte = [0];
                let _ = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut byte)).await;
                let _ = gone.send(()).await;
            }
        }
    }
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut chunk).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&chunk[..read]),
            _ => return None,
        }
    }
}
