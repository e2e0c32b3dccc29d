//! A person behind a foreign client, who is asked by tools of the configuration.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, Implementation,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use serde_json::{Value, json};

use super::ConfiguredFolder;
use super::rmcp_client::{CLIENT_TRANSPORTS, ClientTransport, connect, serve};
use super::server::Server;

const CONFIGURATION: &str = r#"
databases: [{name: shop, files: shop}]
tools:
  - name: refund
    description: What an order is refunded, when a person agrees.
    sql: SELECT id, CAST(:amount AS DOUBLE) AS refunded FROM orders WHERE id = :purchase
    confirm: "Refund {{amount}} for order {{purchase}}?"
    input: {purchase: {type: integer}, amount: {type: number}}
  - name: orders_of
    description: The orders of one customer.
    sql: SELECT id FROM orders WHERE customer = :customer ORDER BY id
    input: {customer: {type: string, ask: "Which customer?"}}
"#;
/// What a client must declare is missing.
const MISSING_CAPABILITY_CODE: i32 = -32_021;

/// Gives the same answer to all that is asked, and remembers it.
struct ElicitationClient {
    answer: ElicitResult,
    prompts: Mutex<Vec<String>>,
}

impl ElicitationClient {
    fn with_answer(answer: ElicitResult) -> Arc<Self> {
        Arc::new(Self { answer, prompts: Mutex::default() })
    }

    fn filling_form(content: Value) -> Arc<Self> {
        Self::with_answer(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    fn prompts(&self) -> Vec<String> {
        self.prompts.lock().unwrap().clone()
    }
}

impl ClientHandler for ElicitationClient {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new());
        ClientConfig::new(capabilities, Implementation::new("tests", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            panic!("it can fill in forms alone");
        };
        self.prompts.lock().unwrap().push(message);
        Ok(self.answer.clone())
    }
}

/// A server whose tools ask.
struct ElicitingServer {
    configured: ConfiguredFolder,
    server: Server,
}

impl ElicitingServer {
    fn start() -> Self {
        let configured = ConfiguredFolder::new(CONFIGURATION);
        let server = serve(&configured);
        Self { configured, server }
    }

    async fn connect<H: ClientHandler>(&self, handler: H, way: ClientTransport) -> RunningService<RoleClient, H> {
        connect(handler, way, &self.server, &self.configured).await
    }
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn refund() -> CallToolRequestParams {
    call("refund", json!({"purchase": 3, "amount": 2.5}))
}

/// Whether the tool failed, and what it said.
fn error_and_text(result: &CallToolResult) -> (bool, &str) {
    (result.is_error.unwrap_or_default(), result.content[0].as_text().unwrap().text.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_call_is_answered() {
    let shop = ElicitingServer::start();
    for way in CLIENT_TRANSPORTS {
        let person = ElicitationClient::filling_form(json!({"confirm": true}));
        let client = shop.connect(person.clone(), way).await;
        let result = client.call_tool(refund()).await.unwrap();
        assert_eq!(error_and_text(&result), (false, r#"[{"id":3,"refunded":2.5}]"#), "{way:?}");
        assert_eq!(person.prompts(), ["Refund 2.5 for order 3?"], "{way:?}");
        client.cancel().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_call_does_nothing() {
    let shop = ElicitingServer::start();
    for way in CLIENT_TRANSPORTS {
        for person in [
            ElicitationClient::filling_form(json!({"confirm": false})),
            ElicitationClient::with_answer(ElicitResult::new(ElicitationAction::Decline)),
            ElicitationClient::with_answer(ElicitResult::new(ElicitationAction::Cancel)),
        ] {
            let client = shop.connect(person.clone(), way).await;
            let result = client.call_tool(refund()).await.unwrap();
            let (is_error, message) = error_and_text(&result);
            assert!(is_error && message.contains("nothing was done"), "{way:?}: {message}");
            assert_eq!(person.prompts().len(), 1, "{way:?}");
            client.cancel().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_parameter_is_elicited() {
    let shop = ElicitingServer::start();
    for way in CLIENT_TRANSPORTS {
        let person = ElicitationClient::filling_form(json!({"customer": "Ann"}));
        let client = shop.connect(person.clone(), way).await;
        let result = client.call_tool(call("orders_of", json!({}))).await.unwrap();
        assert_eq!(error_and_text(&result), (false, r#"[{"id":1},{"id":3}]"#), "{way:?}");
        let given = client.call_tool(call("orders_of", json!({"customer": "Bob"}))).await.unwrap();
        assert_eq!(error_and_text(&given), (false, r#"[{"id":2}]"#), "{way:?}");
        assert_eq!(person.prompts(), ["Which customer?"], "{way:?}");
        client.cancel().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_without_elicitation_gets_an_error() {
    let shop = ElicitingServer::start();
    for way in CLIENT_TRANSPORTS {
        let client = shop.connect((), way).await;
        match client.call_tool(refund()).await {
            Ok(result) => {
                let (is_error, message) = error_and_text(&result);
                assert!(way.is_legacy && is_error && message.contains("elicitation"), "{way:?}: {message}");
            }
            Err(ServiceError::McpError(error)) => {
                assert!(!way.is_legacy && error.code.0 == MISSING_CAPABILITY_CODE, "{way:?}: {error:?}");
                let required = &error.data.as_ref().unwrap()["requiredCapabilities"];
                assert!(required.get("elicitation").is_some(), "{way:?}: {error:?}");
            }
            Err(error) => panic!("{way:?}: {error}"),
        }
        let result = client.call_tool(call("orders_of", json!({}))).await.unwrap();
        let (is_error, message) = error_and_text(&result);
        assert!(is_error && message.contains("customer"), "{way:?}: {message}");
        client.cancel().await.unwrap();
    }
}
