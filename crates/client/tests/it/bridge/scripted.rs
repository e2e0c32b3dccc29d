//! An HTTP server with arbitrary answers, which records its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tidegate_client::bridge::{BridgeOptions, ServerAddress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Client;

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    head: String,
    pub(super) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(super) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The server.
pub(super) struct ScriptedServer {
    pub(super) address: SocketAddr,
    pub(super) requested: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ScriptedServer {
    /// Answers each request with the bytes of `answer`, and closes its connection.
    pub(super) async fn start(answer: impl Fn(&ReceivedRequest) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requested: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (noted, answer) = (requested.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut stream = stream;
                    let Some(received_request) = read_request(&mut stream).await else { return };
                    noted.lock().push(received_request.clone());
                    let _ = stream.write_all(&answer(&received_request)).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, requested }
    }

    pub(super) fn options(&self) -> BridgeOptions {
        BridgeOptions::new(ServerAddress::parse(&format!("http://{}/mcp", self.address)).unwrap())
    }

    pub(super) fn client(&self) -> Client {
        Client::bridged(self.options())
    }

    /// The methods of the received messages, in order; the HTTP method for requests without a body.
    pub(super) fn methods(&self) -> Vec<String> {
        let method = |received_request: &ReceivedRequest| {
            received_request.message()["method"].as_str().unwrap_or(&received_request.method).to_owned()
        };
        self.requested.lock().iter().map(method).collect()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
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
    let method = head.split(' ').next().unwrap().to_owned();
    let mut received_request = ReceivedRequest { method, head, body: bytes.split_off(head_end + 4) };
    let length = received_request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while received_request.body.len() < length {
        stream.read_buf(&mut received_request.body).await.ok()?;
    }
    Some(received_request)
}

/// A response with a body.
pub(super) fn response(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len()).into()
}

pub(super) fn json(body: &str) -> Vec<u8> {
    response("200 OK", &[("Content-Type", "application/json")], body)
}

pub(super) fn events(body: &str) -> Vec<u8> {
    response("200 OK", &[("Content-Type", "text/event-stream")], body)
}
