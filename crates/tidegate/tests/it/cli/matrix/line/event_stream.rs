//! HTTP+SSE: a stream of all that the node says, and a POST for each question.

use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;

use super::{Answer, answer_of, seen};

/// An open stream.
pub(in super::super) struct EventStream<'a> {
    client: &'a Client,
    key: Option<&'a str>,
    endpoint: String,
    response: Response,
    said: String,
}

impl<'a> EventStream<'a> {
    /// Opens the stream of the door at `url`; what is said there if it stays shut.
    pub(super) async fn open(client: &'a Client, url: &str, key: Option<&'a str>) -> Result<Self, String> {
        let response = shown(client.get(format!("{url}/sse")), key).send().await.unwrap();
        if !response.status().is_success() {
            let Answer::Refused(refused) = answer_of(response).await else { panic!("it was refused") };
            return Err(refused);
        }
        let mut stream = Self { client, key, endpoint: String::new(), response, said: String::new() };
        let path = stream.data_of("endpoint").await;
        let origin_bytes = url.find("/mcp").unwrap();
        stream.endpoint = format!("{}{path}", &url[..origin_bytes]);
        Ok(stream)
    }

    /// Asks one thing and waits for its answer on the stream.
    pub(super) async fn ask(&mut self, message: &Value) -> Answer {
        let posted = shown(self.client.post(&self.endpoint).json(message), self.key).send().await.unwrap();
        if !posted.status().is_success() {
            return answer_of(posted).await;
        }
        loop {
            let answer: Value = serde_json::from_str(&self.data_of("message").await).unwrap();
            if answer["id"] == message["id"] {
                return seen("", &answer);
            }
        }
    }

    /// The data of the next event of that name.
    async fn data_of(&mut self, name: &str) -> String {
        loop {
            if let Some((event, rest)) = self.said.split_once("\n\n") {
                let member = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let data = (member("event:") == Some(name)).then(|| member("data:").unwrap_or_default().to_owned());
                self.said = rest.to_owned();
                if let Some(data) = data {
                    return data;
                }
                continue;
            }
            let piece = self.response.chunk().await.unwrap().expect("the stream stays open");
            // A character may be cut in two between pieces, but nothing here is said in others than ASCII.
            self.said.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

fn shown(request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    key.into_iter().fold(request, |request, key| request.bearer_auth(key))
}
