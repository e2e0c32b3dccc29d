//! A prompt of `prompts/list` and a message of `prompts/get`.
//!
//! [MCP 2026-07-28, Prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts)

use serde_json::{Map, Value, json};
use tidegate_core::{Content, Prompt, Role};

use super::{content_block, icons, meta, put};
use crate::revision::Dialect;

/// The prompt as the revision knows it.
pub(crate) fn prompt(prompt: &Prompt, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), prompt.name.clone().into());
    put(&mut object, "title", prompt.title.clone().filter(|_| dialect.titles));
    put(&mut object, "description", prompt.description.clone());
    put(&mut object, "icons", (dialect.icons && !prompt.icons.is_empty()).then(|| icons(&prompt.icons)));
    let arguments = prompt.arguments.iter().map(|argument| {
        let mut object = Map::new();
        object.insert("name".to_owned(), argument.name.clone().into());
        put(&mut object, "title", argument.title.clone().filter(|_| dialect.titles));
        put(&mut object, "description", argument.description.clone());
        object.insert("required".to_owned(), argument.required.into());
        Value::Object(object)
    });
    object.insert("arguments".to_owned(), arguments.collect());
    meta(&mut object, &prompt.meta, dialect);
    Value::Object(object)
}

/// A message of the prompt.
pub(crate) fn prompt_message(speaker: Role, content: &Content, dialect: &Dialect) -> Value {
    json!({"role": super::role(speaker), "content": content_block(content, dialect)})
}
