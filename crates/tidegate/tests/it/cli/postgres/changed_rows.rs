//! A person who agrees to a number of rows, behind a foreign client.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, Implementation,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;

use super::super::rmcp_client::{CLIENT_TRANSPORTS, connect, serve};
use super::{ConfiguredFolder, psql, shop};

/// Agrees to each question; to the first one after `meanwhile` has run.
struct AgreeingClient {
    meanwhile: Box<dyn Fn() + Send + Sync>,
    questions: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for AgreeingClient {
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
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!("a form is expected") };
        let is_first = {
            let mut questions = self.questions.lock().unwrap();
            questions.push(message);
            questions.len() == 1
        };
        if is_first {
            (self.meanwhile)();
        }
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"confirm": true})))
    }
}

/// The text of the answer to a deletion of Ann's orders, and the questions; for each way to connect.
async fn delete_with(name: &str, returning: &str, meanwhile: &'static str) -> Vec<(String, Vec<String>)> {
    let mut outcomes = Vec::new();
    for (index, way) in CLIENT_TRANSPORTS.into_iter().enumerate() {
        let name = format!("{name}{index}");
        let target = shop(&name);
        let configured = ConfiguredFolder::new(&format!(
            "databases: [{{name: shop, postgres: '{target}'}}]
tools:
  - name: delete_orders
    description: D
    sql: DELETE FROM orders WHERE customer = :customer {returning}
    input: {{customer: {{type: string}}}}
    transaction: {{writes: true}}
    confirm: Delete {{{{changed_rows}}}} orders of {{{{customer}}}}?
"
        ));
        let server = serve(&configured);
        let database = format!("{name}_{}", std::process::id());
        let questions: Arc<Mutex<Vec<String>>> = Arc::default();
        let meanwhile = Box::new(move || {
            if !meanwhile.is_empty() {
                psql(&database, meanwhile);
            }
        });
        let client =
            connect(AgreeingClient { meanwhile, questions: questions.clone() }, way, &server, &configured).await;
        let arguments = json!({"customer": "Ann"}).as_object().unwrap().clone();
        let answer =
            client.call_tool(CallToolRequestParams::new("delete_orders").with_arguments(arguments)).await.unwrap();
        let left = configured.run(&["call", "sql", "sql=SELECT count(*) AS left FROM orders"]).stdout;
        let text = answer.content[0].as_text().unwrap().text.clone();
        outcomes.push((format!("{text} {}", left.trim()), questions.lock().unwrap().clone()));
        client.cancel().await.unwrap();
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_has_the_number_of_rows() {
    for (text, questions) in delete_with("agreed", "", "").await {
        assert_eq!(text, r#"[{"changed_rows":2}] [{"left":1}]"#);
        assert_eq!(questions, [r#"Delete 2 orders of "Ann"?"#]);
    }
    for (text, questions) in delete_with("returned", "RETURNING id", "").await {
        assert_eq!(text, r#"[{"id":1},{"id":3}] [{"left":1}]"#);
        assert_eq!(questions, [r#"Delete 2 orders of "Ann"?"#]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_is_never_deleted() {
    const ADDED: &str = "INSERT INTO orders SELECT max(id) + 1, 'Ann' FROM orders";
    for (text, questions) in delete_with("changed", "", ADDED).await {
        // A call that has waited is refused; a client that calls again answers a new question.
        let refusal = "nothing was done: the person agreed to change 2 rows, and the statement would now change 3";
        match questions.len() {
            1 => assert!(text.starts_with(refusal) && text.ends_with(r#"[{"left":4}]"#), "{text}"),
            _ => {
                assert!(questions[1].starts_with(r#"Delete 3 orders of "Ann"?"#), "{questions:?}");
                assert_eq!(text, r#"[{"changed_rows":3}] [{"left":1}]"#);
            }
        }
    }
}
