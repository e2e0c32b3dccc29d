//! `explore` and `ask`.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{Registry, Role, Target};

use crate::fake::{call, gather, node, shop, unreachable};

async fn prompt(registry: &Arc<Registry>, name: &str, arguments: Value) -> String {
    match registry.call(call(Target::Prompt(name.to_owned()), arguments)) {
        Ok(reply) => match gather(reply).await {
            Ok(answer) => {
                let [(Role::User, text)] = answer.messages.as_slice() else { panic!("{answer:?}") };
                text.clone()
            }
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn explore_brings_tables_and_columns_along() {
    let registry = node([shop()]);
    insta::assert_snapshot!(prompt(&registry, "explore", json!({})).await);
}

#[tokio::test]
async fn ask_brings_the_question_and_the_columns() {
    let registry = node([shop(), unreachable()]);
    insta::assert_snapshot!(
        prompt(&registry, "ask", json!({"question": "Who ordered most?", "database": "shop"})).await
    );
}

#[tokio::test]
async fn prompts_tell_what_to_mend() {
    let registry = node([shop(), unreachable()]);
    insta::assert_snapshot!(prompt(&registry, "ask", json!({})).await, @r#"
    the arguments of prompt "ask" are wrong:
    - question: is required
    "#);
    insta::assert_snapshot!(prompt(&registry, "explore", json!({"database": "shpo"})).await, @r#"
    there is no database "shpo"
    Valid choices: shop
    "#);
    insta::assert_snapshot!(prompt(&registry, "explore", json!({})).await, @r#"
    name the database to ask: argument "database"
    Valid choices: shop, warehouse
    "#);
}
