//! HTTP/1.1 as bytes, and server-sent events.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::TEST_TIMEOUT;

/// A connection that stays open until one side closes it.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    /// Bytes of an event stream that are not a complete event yet.
    unread: Vec<u8>,
    /// The trailers of the last chunked body.
    pub(crate) trailers: Vec<(String, String)>,
}

/// Any duplex byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for S {}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

/// A connection that was closed within a body.
#[derive(Debug)]
pub(crate) struct Broken;

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

/// One server-sent event, or a comment.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SseEvent {
    pub(crate) event: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) is_comment: bool,
}

/// A request as bytes.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    let has = |name: &str| headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    if !has("host") {
        bytes.extend_from_slice(b"Host: 127.0.0.1\r\n");
    }
    if !has("content-length") && !has("transfer-encoding") && !body.is_empty() {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    /// A connection over an open stream.
    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)), unread: Vec::new(), trailers: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        timeout(TEST_TIMEOUT, self.stream.write_all(bytes)).await.unwrap().unwrap();
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    /// The next complete response.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        self.rest_of(head).await
    }

    /// The complete response whose head was already read.
    pub(crate) async fn rest_of(&mut self, head: Head) -> Answer {
        let mut body = Vec::new();
        match head.header("content-length") {
            Some(length) => {
                body.resize(length.parse().unwrap(), 0);
                timeout(TEST_TIMEOUT, self.stream.read_exact(&mut body)).await.unwrap().unwrap();
            }
            None if head.is_chunked() => {
                while let Some(chunk) = self.chunk().await {
                    body.extend_from_slice(&chunk);
                }
            }
            None => assert!([202, 204, 304].contains(&head.status), "a response without an end: {head:?}"),
        }
        Answer { head, body }
    }

    /// The head of the next response; `chunk` or `event` reads its body.
    pub(crate) async fn head(&mut self) -> Head {
        let status = self.line().await;
        let status = status.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("no response: {status:?}"));
        let status = status[..3].parse().unwrap();
        Head { status, headers: self.fields().await }
    }

    async fn fields(&mut self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { return fields };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        self.chunk_or_break().await.expect("the body breaks off")
    }

    /// The same for a body that may break.
    pub(crate) async fn chunk_or_break(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let size = self.line().await;
        if size.is_empty() {
            return Err(Broken);
        }
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("no chunk: {size:?}"));
        if size == 0 {
            self.trailers = self.fields().await;
            return Ok(None);
        }
        let mut chunk = vec![0; size + 2];
        timeout(TEST_TIMEOUT, self.stream.read_exact(&mut chunk)).await.unwrap().unwrap();
        assert_eq!(chunk.split_off(size), b"\r\n");
        Ok(Some(chunk))
    }

    /// The bytes of a chunked body until the connection breaks; it must not end before.
    pub(crate) async fn until_broken(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        timeout(TEST_TIMEOUT, self.stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
        assert!(!bytes.ends_with(b"0\r\n\r\n"), "the body has an end");
        bytes
    }

    /// The next event of an event stream that is not a comment; `None` at its end.
    pub(crate) async fn event(&mut self) -> Option<SseEvent> {
        loop {
            let event = self.event_or_comment().await?;
            if !event.is_comment {
                return Some(event);
            }
        }
    }

    /// Reads a chunked body until its unread bytes contain `words`.
    pub(crate) async fn wait_for_bytes(&mut self, words: &[u8]) {
        while !self.unread.windows(words.len()).any(|bytes| bytes == words) {
            let chunk = self.chunk().await.expect("the body ends");
            self.unread.extend_from_slice(&chunk);
        }
    }

    pub(crate) async fn event_or_comment(&mut self) -> Option<SseEvent> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.unread[searched..].windows(2).position(|pair| pair == b"\n\n") {
                let text: Vec<u8> = self.unread.drain(..searched + end + 2).collect();
                return Some(SseEvent::parse(std::str::from_utf8(&text).unwrap()));
            }
            searched = self.unread.len().saturating_sub(1);
            match self.chunk().await {
                Some(chunk) => self.unread.extend_from_slice(&chunk),
                None => {
                    assert!(self.unread.is_empty(), "an event without an end: {:?}", self.unread);
                    return None;
                }
            }
        }
    }

    /// Every event until the end of the stream.
    pub(crate) async fn events(&mut self) -> Vec<SseEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Whether the server closes its side without further data.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let next = timeout(TEST_TIMEOUT, self.stream.fill_buf()).await.unwrap();
        next.map_or(true, <[u8]>::is_empty)
    }

    /// The head of a refusal that may arrive before all of `request` was sent.
    pub(crate) async fn refused_head(&mut self, request: &[u8]) -> Head {
        let _ = timeout(TEST_TIMEOUT, self.stream.write_all(request)).await.unwrap();
        self.head().await
    }

    /// Whether the server closes its side, possibly after data that is not a response.
    pub(crate) async fn is_closed_after_noise(&mut self) -> bool {
        let mut text = Vec::new();
        // A reset counts as an end.
        let _ = timeout(TEST_TIMEOUT, self.stream.read_to_end(&mut text)).await.unwrap();
        !text.starts_with(b"HTTP/")
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(TEST_TIMEOUT, self.stream.read_line(&mut line)).await.unwrap().unwrap();
        line.trim_end_matches("\r\n").to_owned()
    }
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        let is = self.header("content-type") == Some("text/event-stream");
        if is {
            assert_eq!(self.header("x-accel-buffering"), Some("no"));
            assert_eq!(self.header("cache-control"), Some("no-cache"));
        }
        is
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The single JSON message of the body.
    pub(crate) fn message(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.text());
        assert!(!self.text().contains('\n'));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// `status code message`, or only the status if there is no error.
    pub(crate) fn summary(&self) -> String {
        let status = self.head.status;
        if self.body.is_empty() || self.header("content-type") != Some("application/json") {
            return status.to_string();
        }
        let message = self.message();
        match message.get("error") {
            Some(error) => format!("{status} {} {}", error["code"], error["message"].as_str().unwrap()),
            None => status.to_string(),
        }
    }
}

impl SseEvent {
    fn parse(text: &str) -> Self {
        let mut event = Self::default();
        for line in text.lines() {
            match line.split_once(':') {
                Some(("", _)) => event.is_comment = true,
                Some(("event", name)) => event.event = Some(name.trim_start().to_owned()),
                Some(("id", id)) => event.id = Some(id.trim_start().to_owned()),
                Some(("retry", retry)) => event.retry = Some(retry.trim_start().to_owned()),
                Some(("data", data)) => {
                    assert!(event.data.is_none(), "two lines of data: {text}");
                    event.data = Some(data.strip_prefix(' ').unwrap_or(data).to_owned());
                }
                _ => assert!(line.is_empty(), "what is this: {line:?}"),
            }
        }
        event
    }

    /// The message in the event.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}
