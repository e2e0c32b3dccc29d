//! HTTP+SSE: a stream of all that the node says, and a POST for each question.

use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;

use super::{Attempt, parse_answer, read_answer};

/// An open stream.
pub(in super::super) struct SseClient<'a> {
    client: &'a Client,
    key: Option<&'a str>,
    endpoint: String,
    response: Response,
    buffer: String,
    /// The first bytes of a character whose others have not arrived.
    cut_character: Vec<u8>,
}

impl<'a> SseClient<'a> {
    /// Opens the stream of the endpoint at `url`; the refusal if it is rejected.
    pub(super) async fn open(client: &'a Client, url: &str, key: Option<&'a str>) -> Result<Self, String> {
        let response = render_answer(client.get(format!("{url}/sse")), key).send().await.unwrap();
        if !response.status().is_success() {
            let Attempt::Refused(refused) = read_answer(response).await else { panic!("it was refused") };
            return Err(refused);
        }
        let mut stream =
            Self { client, key, endpoint: String::new(), response, buffer: String::new(), cut_character: Vec::new() };
        let path = stream.next_event_data("endpoint").await;
        let origin_bytes = url.find("/mcp").unwrap();
        stream.endpoint = format!("{}{path}", &url[..origin_bytes]);
        Ok(stream)
    }

    /// Asks one thing and waits for its answer on the stream.
    pub(super) async fn request(&mut self, message: &Value) -> Attempt {
        let posted = render_answer(self.client.post(&self.endpoint).json(message), self.key).send().await.unwrap();
        if !posted.status().is_success() {
            return read_answer(posted).await;
        }
        loop {
            let answer: Value = serde_json::from_str(&self.next_event_data("message").await).unwrap();
            if answer["id"] == message["id"] {
                return parse_answer("", &answer);
            }
        }
    }

    /// The data of the next event of that name.
    async fn next_event_data(&mut self, name: &str) -> String {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let member = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let data = (member("event:") == Some(name)).then(|| member("data:").unwrap_or_default().to_owned());
                self.buffer = rest.to_owned();
                if let Some(data) = data {
                    return data;
                }
                continue;
            }
            let piece = self.response.chunk().await.unwrap().expect("the stream stays open");
            self.cut_character.extend(piece);
            let whole = match std::str::from_utf8(&self.cut_character) {
                Ok(text) => text.len(),
                Err(cut) => cut.valid_up_to(),
            };
            let rest = self.cut_character.split_off(whole);
            self.buffer.push_str(&String::from_utf8(std::mem::replace(&mut self.cut_character, rest)).unwrap());
        }
    }
}

fn render_answer(request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    key.into_iter().fold(request, |request, key| request.bearer_auth(key))
}
