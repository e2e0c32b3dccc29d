//! A client of the node over each transport and endpoint, with each answer as one text.

mod event_stream;
mod rest;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Client;
use serde_json::{Map, Value, json};

use crate::cli::{CommandOutput, run_in, tidegate};
use event_stream::SseClient;
use rest::RestClient;

/// A way to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// Streamable HTTP, each request by itself (2026-07-28).
    Modern,
    /// Streamable HTTP in a session (2025-11-25).
    Session,
    /// HTTP+SSE (2024-11-05).
    EventStream,
    /// WebSocket, through the bridge.
    WebSocket,
    /// The bridge over Streamable HTTP.
    Bridge,
    /// Tools as paths.
    Rest,
    /// A child process.
    Stdio,
    /// `tidegate call` and `tidegate tools`.
    CommandLine,
}

impl Transport {
    /// Whether it knows no more than listing and calling tools.
    pub(super) fn supports_only_tools(self) -> bool {
        matches!(self, Self::Rest | Self::CommandLine)
    }

    /// Whether it leads to the node that serves everybody; the others begin one of their own.
    pub(super) fn reaches_the_server(self) -> bool {
        !matches!(self, Self::Stdio | Self::CommandLine)
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attempt {
    Done(Value),
    /// Status, code and text, as the caller sees them.
    Refused(String),
}

impl Attempt {
    /// The same with `wanted` where it speaks of `absent_answer`, or of a part of it.
    pub(super) fn with_name_of(self, absent: &str, expected: &str) -> Self {
        let Self::Refused(text) = self else { return self };
        let text = text.replace(absent, expected);
        let mark = absent.find('~').and_then(|at| expected.get(at..=at));
        Self::Refused(mark.map_or(text.clone(), |letter| text.replace('~', letter)))
    }
}

/// A client at an endpoint.
pub(super) enum ClientConnection<'a> {
    Http { url: String, key: Option<&'a str>, session: Option<String>, client: &'a Client },
    EventStream(SseClient<'a>),
    Rest(RestClient<'a>),
    Stdio { child: Child, input: ChildStdin, output: BufReader<ChildStdout> },
    Shell { folder: &'a Path, configuration: String, transport: Option<String> },
}

impl<'a> ClientConnection<'a> {
    /// Connects over `transport` to the endpoint, or to the one of the whole registry; the refusal if it is rejected.
    pub(super) async fn over_http(
        client: &'a Client,
        whole: &str,
        key: Option<&'a str>,
        transport: Transport,
        toolset: Option<&str>,
    ) -> Result<Self, String> {
        let url = toolset.map_or_else(|| whole.to_owned(), |toolset| format!("{whole}/{toolset}"));
        let mut line = match transport {
            Transport::EventStream => Self::EventStream(SseClient::open(client, &url, key).await?),
            Transport::WebSocket => Self::through_bridge(&format!("{}/ws", url.replace("http://", "ws://")), key),
            Transport::Bridge => Self::through_bridge(&url, key),
            Transport::Rest => Self::Rest(RestClient::new(client, whole, key)),
            _ => Self::Http { url, key, session: None, client },
        };
        if transport == Transport::Session {
            line.begin_session().await?;
        } else if let Attempt::Refused(refused) = line.request("tools/list", json!({})).await {
            return Err(refused);
        }
        Ok(line)
    }

    /// A process that passes everything on to the server at `url`.
    fn through_bridge(url: &str, key: Option<&str>) -> Self {
        let mut command = tidegate();
        command.args(["stdio", "--log", "error", "--connect", url]);
        command.envs(key.map(|key| ("TIDEGATE_BEARER", key)));
        Self::child(command)
    }

    fn child(mut command: Command) -> Self {
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self::Stdio { child, input, output }
    }

    /// A process whose user holds what the configuration of that name says.
    pub(super) async fn stdio(folder: &Path, configuration: &str, toolset: Option<&str>) -> Result<Self, String> {
        let mut command = tidegate();
        command.current_dir(folder).args(["stdio", "--log", "error", "--config", configuration]);
        command.args(toolset.into_iter().flat_map(|toolset| ["--toolset", toolset]));
        let mut line = Self::child(command);
        match line.request("tools/list", json!({})).await {
            Attempt::Done(_) => Ok(line),
            Attempt::Refused(refused) => Err(refused),
        }
    }

    /// The verbs that ask once.
    pub(super) async fn command_line(
        folder: &'a Path,
        configuration: &str,
        toolset: Option<&str>,
    ) -> Result<Self, String> {
        let mut line =
            Self::Shell { folder, configuration: configuration.to_owned(), transport: toolset.map(str::to_owned) };
        // The endpoint of the whole registry exists for all.
        if toolset.is_none() {
            return Ok(line);
        }
        match line.request("tools/list", json!({})).await {
            Attempt::Done(_) => Ok(line),
            Attempt::Refused(refused) => Err(refused),
        }
    }

    /// Asks one thing. The command line knows no more than listing and calling tools.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Attempt {
        match self {
            Self::Http { url, key, session, client } => {
                let request = client.post(url.as_str()).header("accept", "application/json, text/event-stream");
                let request = match session {
                    Some(session) => request
                        .header("mcp-protocol-version", "2025-11-25")
                        .header("mcp-session-id", session.as_str())
                        .json(&message(method, params)),
                    None => stateless_request(request, method, params),
                };
                let request = key.iter().fold(request, |request, key| request.bearer_auth(key));
                read_answer(request.send().await.unwrap()).await
            }
            Self::EventStream(stream) => stream.request(&message(method, with_meta(params))).await,
            Self::Rest(rest) => rest.request(method, &params).await,
            Self::Stdio { child, input, output } => {
                let sent = writeln!(input, "{}", message(method, with_meta(params)));
                let mut answer = String::new();
                if sent.is_err() || output.read_line(&mut answer).unwrap() == 0 {
                    let mut content = String::new();
                    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut content).unwrap();
                    return Attempt::Refused(format!("{:?} {content}", child.wait().unwrap().code()));
                }
                parse_answer("", &serde_json::from_str(&answer).unwrap())
            }
            Self::Shell { folder, configuration, transport: toolset } => {
                let mut arguments = match method {
                    "tools/list" => vec!["tools".to_owned(), "--json".to_owned()],
                    "tools/call" => call_arguments(&params),
                    other => panic!("the command line does not ask {other}"),
                };
                arguments.extend(toolset.iter().flat_map(|toolset| ["--toolset".to_owned(), toolset.clone()]));
                arguments.extend([
                    "--log".to_owned(),
                    "error".to_owned(),
                    "--config".to_owned(),
                    configuration.clone(),
                ]);
                let ran = run_in(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
                parse_output(ran, method)
            }
        }
    }

    async fn begin_session(&mut self) -> Result<(), String> {
        let Self::Http { url, key, session, client } = self else { panic!("sessions are of HTTP") };
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "matrix", "version": "1"},
        });
        let post = |body: Value| {
            let request = client.post(url.as_str()).header("accept", "application/json, text/event-stream").json(&body);
            key.iter().fold(request, |request, key| request.bearer_auth(key))
        };
        let response = post(message("initialize", about)).send().await.unwrap();
        let Some(id) = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned()) else {
            let Attempt::Refused(refused) = read_answer(response).await else { panic!("a session has an id") };
            return Err(refused);
        };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let response = post(initialized).header("mcp-session-id", &id).send().await.unwrap();
        assert!(response.status().is_success());
        *session = Some(id);
        Ok(())
    }
}

impl Drop for ClientConnection<'_> {
    fn drop(&mut self) {
        if let Self::Stdio { child, .. } = self {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn message(method: &str, params: Value) -> Value {
    // Each request of a connection has its own id.
    static LAST_ID: AtomicU64 = AtomicU64::new(0);
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn with_meta(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn stateless_request(request: reqwest::RequestBuilder, method: &str, params: Value) -> reqwest::RequestBuilder {
    let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
    let request = request
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .json(&message(method, with_meta(params)));
    name.into_iter().fold(request, |request, name| request.header("mcp-name", name))
}

async fn read_answer(response: reqwest::Response) -> Attempt {
    let status = response.status().as_u16().to_string();
    let text = response.text().await.unwrap();
    // Where the answer comes as events, it is the last of them.
    let json = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap_or(&text);
    parse_answer(&status, &serde_json::from_str(json).unwrap_or(Value::String(text.clone())))
}

/// The answer as the client sees it.
fn parse_answer(status: &str, answer: &Value) -> Attempt {
    if answer["result"].is_null() {
        let error = &answer["error"];
        return Attempt::Refused(format!("{status} {} {}\n{}", error["code"], text(&error["message"]), error["data"]));
    }
    let result = &answer["result"];
    if result["isError"] == true {
        return Attempt::Refused(format!("{status} {}", text(&result["content"][0]["text"])));
    }
    Attempt::Done(result.clone())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The arguments of `tidegate call` for a call of a tool.
fn call_arguments(params: &Value) -> Vec<String> {
    let nothing = Map::new();
    let arguments = params["arguments"].as_object().unwrap_or(&nothing);
    let pairs = arguments.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    ["call".to_owned(), text(&params["name"]).to_owned()].into_iter().chain(pairs).collect()
}

/// What a verb printed, in the shape that MCP gives it.
fn parse_output(ran: CommandOutput, method: &str) -> Attempt {
    match (ran.code, method) {
        (Some(0), "tools/list") => Attempt::Done(json!({"tools": serde_json::from_str::<Value>(&ran.stdout).unwrap()})),
        (Some(0), _) => Attempt::Done(json!({"content": [{"type": "text", "text": ran.stdout.trim_end()}]})),
        (code, _) => Attempt::Refused(format!("{code:?} {}", ran.stderr)),
    }
}
