//! A client of one revision, which checks every message that it receives.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use serde_json::{Value, json};
use tidegate_core::{Budget, CallOrigin, Caller, Principal, TransportKind};
use tidegate_mcp::{
    DecodeError, InFlightRequests, IncomingMessage, McpService, RequestContext, ResponseFrame, Revision, RpcAnswer,
    RpcError, RpcRequest, decode,
};

use tidegate_testkit::host::Host;
use tidegate_testkit::schema::{check_notification, check_response};

/// A client that has agreed on its revision.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) service: Arc<McpService>,
    pub(crate) context: RequestContext,
    pub(crate) revision: Revision,
    /// What it declares that it can do.
    pub(crate) capabilities: Value,
}

/// What came back for one request.
#[derive(Debug, Default)]
pub(crate) struct ClientResult {
    pub(crate) notifications: Vec<Value>,
    /// None when the server kept silent.
    pub(crate) response: Option<Value>,
    /// In how many pieces the response came.
    pub(crate) pieces: usize,
}

impl ClientResult {
    pub(crate) fn result(self) -> Value {
        let mut response = self.response.unwrap();
        assert!(response.get("error").is_none(), "{response}");
        response["result"].take()
    }

    /// `result …` or `error code: message data`, without what every modern result carries.
    pub(crate) fn text(self) -> String {
        let Some(mut response) = self.response else { return "silence".to_owned() };
        if let Some(error) = response.get("error") {
            let data = error.get("data").map(|data| format!(" {data}")).unwrap_or_default();
            return format!("error {}: {}{data}", error["code"], error["message"].as_str().unwrap());
        }
        let result = response["result"].as_object_mut().unwrap();
        result.shift_remove("resultType");
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.shift_remove("io.modelcontextprotocol/serverInfo");
            if meta.is_empty() {
                result.shift_remove("_meta");
            }
        }
        format!("result {}", response["result"])
    }
}

impl Client {
    /// A client of `revision` with the host's entries.
    pub(crate) fn of(revision: Revision) -> Self {
        Self::for_host(&Host::new(), revision)
    }

    pub(crate) fn modern() -> Self {
        Self::of(Revision::V2026_07_28)
    }

    pub(crate) fn for_host(host: &Host, revision: Revision) -> Self {
        Self::with_capabilities(host, revision, json!({}))
    }

    /// A client that declares `capabilities`.
    pub(crate) fn with_capabilities(host: &Host, revision: Revision, capabilities: Value) -> Self {
        Self::with_service_and_capabilities(host.service.clone(), revision, capabilities)
    }

    /// A client of `revision` with a service of its own.
    pub(crate) fn for_service(service: Arc<McpService>, revision: Revision) -> Self {
        Self::with_service_and_capabilities(service, revision, json!({}))
    }

    fn with_service_and_capabilities(service: Arc<McpService>, revision: Revision, capabilities: Value) -> Self {
        let in_flight = Arc::new(InFlightRequests::default());
        let mut context = RequestContext {
            caller: Caller::new(Principal::process_user(), CallOrigin { transport: TransportKind::Stdio, peer: None }),
            inline_limit: Budget::default(),
            accepts_server_requests: true,
            session: None,
            in_flight: Some(in_flight.clone()),
        };
        if revision.is_legacy() {
            let params = json!({
                "protocolVersion": revision.name(),
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            });
            let request = request(&message("hello", "initialize", params));
            let initialized = service.initialize(&request, &context.caller, in_flight).now_or_never();
            let (session, answer) = initialized.expect("nobody who does not ask too often waits").unwrap();
            let answer: Value = serde_json::from_slice(&answer.bytes).unwrap();
            check_response(revision, "initialize", &answer);
            assert_eq!(answer["result"]["protocolVersion"], revision.name());
            context.session = Some(Arc::new(session));
        }
        Self { service, context, revision, capabilities }
    }

    /// The answers of a batch, each message of which has the client as its caller.
    pub(crate) async fn batch(
        &self,
        messages: Vec<Result<IncomingMessage, DecodeError>>,
    ) -> Result<Option<Bytes>, RpcError> {
        let messages = messages.into_iter().map(|message| (message, self.context.caller.clone()));
        self.service.answer_rpc_batch(futures::stream::iter(messages), &self.context).await
    }

    /// One client of each revision, oldest first.
    pub(crate) fn all_revisions() -> impl Iterator<Item = Self> {
        Revision::ALL.into_iter().map(Self::of)
    }

    /// The message with what the revision demands of each.
    pub(crate) fn message(&self, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
        if !self.revision.is_legacy() {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision.name());
            let capabilities = meta.as_object_mut().unwrap().entry("io.modelcontextprotocol/clientCapabilities");
            capabilities.or_insert_with(|| self.capabilities.clone());
        }
        message(id, method, params)
    }

    /// Sends a request and receives the whole answer.
    pub(crate) async fn send_request(&self, method: &str, params: Value) -> ClientResult {
        self.send(&self.message(1, method, params)).await
    }

    /// Sends a request as a modern client that declares `capabilities`, and receives the whole answer.
    pub(crate) async fn send_request_with(&self, capabilities: Value, method: &str, mut params: Value) -> ClientResult {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        self.send_request(method, params).await
    }

    /// Calls the tool `script`.
    pub(crate) async fn script(&self, steps: Value) -> ClientResult {
        self.call("script", steps).await
    }

    /// Calls a tool that takes steps.
    pub(crate) async fn call(&self, tool: &str, steps: Value) -> ClientResult {
        self.send_request("tools/call", json!({"name": tool, "arguments": {"steps": steps}})).await
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, message: &Value) -> ClientResult {
        let request = request(message);
        let method = request.method.clone();
        let client_result = collect_answer(self.service.answer(request, &self.context).await).await;
        for notification in &client_result.notifications {
            check_notification(self.revision, notification);
        }
        if let Some(response) = &client_result.response {
            check_response(self.revision, &method, response);
            assert_eq!(response["id"], message["id"]);
        }
        client_result
    }

    /// Sends what answers a request of the server.
    pub(crate) fn respond(&self, response: &Value) {
        let text = response.to_string();
        let Ok(IncomingMessage::Response(response)) = decode(text.as_bytes()) else { panic!("{text}") };
        self.service.handle_response(&response, &self.context);
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        let Ok(IncomingMessage::Notification(notification)) = decode(text.as_bytes()) else { panic!("{text}") };
        self.service.handle_notification(&notification, &self.context);
    }
}

pub(crate) fn message(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn request(message: &Value) -> RpcRequest {
    match decode(message.to_string().as_bytes()) {
        Ok(IncomingMessage::Request(request)) => request,
        other => panic!("no request: {other:?}"),
    }
}

/// The response of an answer, exactly as it is written.
pub(crate) async fn bytes(answer: RpcAnswer) -> Vec<u8> {
    let mut stream = match answer {
        RpcAnswer::NoResponse => return Vec::new(),
        RpcAnswer::Whole(message) => return message.bytes.to_vec(),
        RpcAnswer::Listen(stream) => return stream.end().bytes.to_vec(),
        RpcAnswer::Stream(stream) => stream,
    };
    let mut response = Vec::new();
    while let Some(frame) = stream.next().await {
        if let ResponseFrame::ResponseBytes(piece) = frame {
            response.extend_from_slice(&piece);
        }
    }
    response
}

/// Everything of an answer. Notifications come first, messages are one line of JSON.
pub(crate) async fn collect_answer(answer: RpcAnswer) -> ClientResult {
    let mut client_result = ClientResult::default();
    let read = |bytes: &[u8]| -> Value {
        assert!(bytes.iter().all(|byte| *byte >= 0x20), "more than one line: {:?}", String::from_utf8_lossy(bytes));
        serde_json::from_slice(bytes).unwrap()
    };
    match answer {
        RpcAnswer::NoResponse => {}
        RpcAnswer::Whole(message) => {
            let response = read(&message.bytes);
            assert_eq!(message.error_code, response["error"]["code"].as_i64());
            (client_result.response, client_result.pieces) = (Some(response), 1);
        }
        // The pending notifications, and the end.
        RpcAnswer::Listen(mut stream) => {
            client_result
                .notifications
                .extend(std::iter::from_fn(|| stream.feed().next_message()).map(|bytes| read(&bytes)));
            (client_result.response, client_result.pieces) = (Some(read(&stream.end().bytes)), 1);
        }
        RpcAnswer::Stream(mut stream) => {
            let mut response = Vec::new();
            while let Some(frame) = stream.next().await {
                match frame {
                    ResponseFrame::Notification(bytes) => {
                        assert!(response.is_empty(), "a notification within the response");
                        client_result.notifications.push(read(&bytes));
                    }
                    ResponseFrame::ResponseBytes(bytes) => {
                        response.extend_from_slice(&bytes);
                        client_result.pieces += 1;
                    }
                }
            }
            client_result.response = stream.is_complete().then(|| read(&response));
        }
    }
    client_result
}
