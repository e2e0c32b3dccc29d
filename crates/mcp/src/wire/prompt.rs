//! Encodes a prompt of `prompts/list` and a message of `prompts/get`.
//!
//! [MCP 2026-07-28, Prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts)

use serde_json::{Map, Value, json};
use tidegate_core::{Content, ContentRole};
use tidegate_runtime::Prompt;

use super::{encode_content, encode_icons, insert_meta, insert_some};
use crate::revision::Dialect;

/// The prompt in the encoding of the revision.
pub(crate) fn encode_prompt(prompt: &Prompt, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), prompt.name.clone().into());
    insert_some(&mut object, "title", prompt.title.clone().filter(|_| dialect.titles));
    insert_some(&mut object, "description", prompt.description.clone());
    insert_some(&mut object, "icons", (dialect.icons && !prompt.icons.is_empty()).then(|| encode_icons(&prompt.icons)));
    let arguments = prompt.arguments.iter().map(|argument| {
        let mut object = Map::new();
        object.insert("name".to_owned(), argument.name.clone().into());
        insert_some(&mut object, "title", argument.title.clone().filter(|_| dialect.titles));
        insert_some(&mut object, "description", argument.description.clone());
        object.insert("required".to_owned(), argument.required.into());
        Value::Object(object)
    });
    object.insert("arguments".to_owned(), arguments.collect());
    insert_meta(&mut object, &prompt.meta, dialect);
    Value::Object(object)
}

/// A message of the prompt.
pub(crate) fn encode_prompt_message(speaker: ContentRole, content: &Content, dialect: &Dialect) -> Value {
    json!({"role": super::encode_role(speaker), "content": encode_content(content, dialect)})
}
