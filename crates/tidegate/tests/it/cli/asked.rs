//! A person behind a foreign client, who is asked by tools of the configuration.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, Implementation,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use serde_json::{Value, json};

use super::Configured;
use super::foreign::{WAYS, Way, connected, serve};
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
const MISSING_ABILITY: i32 = -32_021;

/// Gives the same answer to all that is asked, and remembers it.
struct Person {
    answer: ElicitResult,
    asked: Mutex<Vec<String>>,
}

impl Person {
    fn who(answer: ElicitResult) -> Arc<Self> {
        Arc::new(Self { answer, asked: Mutex::default() })
    }

    fn fills_in(content: Value) -> Arc<Self> {
        Self::who(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl ClientHandler for Person {
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
        self.asked.lock().unwrap().push(message);
        Ok(self.answer.clone())
    }
}

/// A server whose tools ask.
struct Shop {
    configured: Configured,
    server: Server,
}

impl Shop {
    fn open() -> Self {
        let configured = Configured::new(CONFIGURATION);
        let server = serve(&configured);
        Self { configured, server }
    }

    async fn visited_by<H: ClientHandler>(&self, handler: H, way: Way) -> RunningService<RoleClient, H> {
        connected(handler, way, &self.server, &self.configured).await
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
fn said(result: &CallToolResult) -> (bool, &str) {
    (result.is_error.unwrap_or_default(), result.content[0].as_text().unwrap().text.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_which_the_person_agrees_is_answered() {
    let shop = Shop::open();
    for way in WAYS {
        let person = Person::fills_in(json!({"confirm": true}));
        let client = shop.visited_by(person.clone(), way).await;
        let result = client.call_tool(refund()).await.unwrap();
        assert_eq!(said(&result), (false, r#"[{"id":3,"refunded":2.5}]"#), "{way:?}");
        assert_eq!(person.asked(), ["Refund 2.5 for order 3?"], "{way:?}");
        client.cancel().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_when_the_person_does_not_agree() {
    let shop = Shop::open();
    for way in WAYS {
        for person in [
            Person::fills_in(json!({"confirm": false})),
            Person::who(ElicitResult::new(ElicitationAction::Decline)),
            Person::who(ElicitResult::new(ElicitationAction::Cancel)),
        ] {
            let client = shop.visited_by(person.clone(), way).await;
            let result = client.call_tool(refund()).await.unwrap();
            let (is_error, message) = said(&result);
            assert!(is_error && message.contains("nothing was done"), "{way:?}: {message}");
            assert_eq!(person.asked().len(), 1, "{way:?}");
            client.cancel().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_was_left_out_is_asked_for() {
    let shop = Shop::open();
    for way in WAYS {
        let person = Person::fills_in(json!({"customer": "Ann"}));
        let client = shop.visited_by(person.clone(), way).await;
        let result = client.call_tool(call("orders_of", json!({}))).await.unwrap();
        assert_eq!(said(&result), (false, r#"[{"id":1},{"id":3}]"#), "{way:?}");
        let given = client.call_tool(call("orders_of", json!({"customer": "Bob"}))).await.unwrap();
        assert_eq!(said(&given), (false, r#"[{"id":2}]"#), "{way:?}");
        assert_eq!(person.asked(), ["Which customer?"], "{way:?}");
        client.cancel().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_forms_is_told_what_is_missing() {
    let shop = Shop::open();
    for way in WAYS {
        let client = shop.visited_by((), way).await;
        match client.call_tool(refund()).await {
            Ok(result) => {
                let (is_error, message) = said(&result);
                assert!(way.is_legacy && is_error && message.contains("elicitation"), "{way:?}: {message}");
            }
            Err(ServiceError::McpError(error)) => {
                assert!(!way.is_legacy && error.code.0 == MISSING_ABILITY, "{way:?}: {error:?}");
                let required = &error.data.as_ref().unwrap()["requiredCapabilities"];
                assert!(required.get("elicitation").is_some(), "{way:?}: {error:?}");
            }
            Err(error) => panic!("{way:?}: {error}"),
        }
        let result = client.call_tool(call("orders_of", json!({}))).await.unwrap();
        let (is_error, message) = said(&result);
        assert!(is_error && message.contains("customer"), "{way:?}: {message}");
        client.cancel().await.unwrap();
    }
}
