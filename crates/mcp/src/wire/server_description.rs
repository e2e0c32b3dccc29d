//! The identity of the server (`Implementation`).
//!
//! [MCP 2026-07-28, `server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover)

use serde_json::{Map, Value};

use super::insert_some;
use crate::revision::Dialect;

/// The identity of the server, and its instructions for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDescription {
    /// The name for programs.
    pub name: String,
    /// The title for people.
    pub title: Option<String>,
    /// The version of the software.
    pub version: String,
    /// Short instructions for models.
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
