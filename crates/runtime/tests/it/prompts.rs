//! Prompts: their arguments are text, known and complete.

use serde_json::{Value, json};
use tidegate_core::{CallTarget, Content, ContentRole};
use tidegate_runtime::{Answer, Prompt, PromptArgument, SnapshotBuilder, handler_fn};

use crate::host::{Host, call, with_arguments};

async fn check(arguments: Value) -> String {
    let handler = handler_fn(|call| async move {
        let text = Value::Object(call.arguments().clone()).to_string();
        Ok(Answer::messages(vec![(ContentRole::User, Content::text(text))]))
    });
    let argument =
        |name: &str, required| PromptArgument { name: name.to_owned(), required, ..PromptArgument::default() };
    let mut prompt = Prompt::new("explore", "", handler);
    prompt.arguments = vec![argument("database", true), argument("table", true), argument("focus", false)];
    let host = Host::new(SnapshotBuilder::new().prompt(prompt));
    host.call_to_text(with_arguments(call(CallTarget::Prompt("explore".to_owned())), arguments)).await
}

#[tokio::test]
async fn complete_arguments_reach_the_handler() {
    insta::assert_snapshot!(check(json!({"database": "shop", "table": "orders", "focus": null})).await, @r#"
    User {"database":"shop","table":"orders"}
    done {}
    "#);
}

#[tokio::test]
async fn reports_all_violations_at_once() {
    insta::assert_snapshot!(check(json!({"table": 7, "colour": "red", "focus": null})).await, @r#"
    refused invalid_arguments: the arguments of prompt "explore" are wrong:
    - database: is required
    - colour: is no argument of this prompt
    - table: must be a string
    "#);
}
