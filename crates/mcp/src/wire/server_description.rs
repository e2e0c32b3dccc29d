//! Who the server is (`Implementation`).
//!
//! [MCP 2026-07-28, `server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover)

use serde_json::{Map, Value};

use super::insert_some;
use crate::revision::Dialect;

/// Who the server is and how a model should use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDescription {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// The version of the software.
    pub version: String,
    /// A short playbook for the model.
    pub instructions: Option<String>,
}

/// The server's identity.
pub(crate) fn encode_implementation(about: &ServerDescription, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), about.name.clone().into());
    if dialect.titles {
        insert_some(&mut object, "title", about.title.clone());
    }
    object.insert("version".to_owned(), about.version.clone().into());
    Value::Object(object)
}
