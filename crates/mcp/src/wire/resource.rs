//! Encodes resources and resource templates.
//!
//! [MCP 2026-07-28, Resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources)

use serde_json::{Map, Value};
use tidegate_core::{Annotations, Icon};
use tidegate_runtime::{Resource, ResourceTemplate};

use super::{encode_annotations, encode_icons, insert_meta, insert_some};
use crate::revision::Dialect;

/// The resource in the encoding of the revision.
pub(crate) fn encode_resource(resource: &Resource, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("uri".to_owned(), resource.uri.clone().into());
    object.insert("name".to_owned(), resource.name.clone().into());
    let title = resource.title.as_ref();
    insert_description(&mut object, title, resource.description.as_ref(), resource.mime_type.as_ref(), dialect);
    insert_annotations(&mut object, resource.annotations.as_ref(), &resource.icons, dialect);
    insert_some(&mut object, "size", resource.size_bytes);
    insert_meta(&mut object, &resource.meta, dialect);
    Value::Object(object)
}

/// The template in the encoding of the revision.
pub(crate) fn encode_resource_template(template: &ResourceTemplate, dialect: &Dialect) -> Value {
    let mut object = Map::new();
    object.insert("uriTemplate".to_owned(), template.template.as_str().into());
    object.insert("name".to_owned(), template.name.clone().into());
    let title = template.title.as_ref();
    insert_description(&mut object, title, template.description.as_ref(), template.mime_type.as_ref(), dialect);
    insert_annotations(&mut object, template.annotations.as_ref(), &template.icons, dialect);
    insert_meta(&mut object, &template.meta, dialect);
    Value::Object(object)
}

fn insert_description(
    object: &mut Map<String, Value>,
    title: Option<&String>,
    description: Option<&String>,
    mime_type: Option<&String>,
    dialect: &Dialect,
) {
    insert_some(object, "title", title.filter(|_| dialect.titles).cloned());
    insert_some(object, "description", description.cloned());
    insert_some(object, "mimeType", mime_type.cloned());
}

fn insert_annotations(
    object: &mut Map<String, Value>,
    hints: Option<&Annotations>,
    pictures: &[Icon],
    dialect: &Dialect,
) {
    insert_some(object, "annotations", hints.map(encode_annotations));
    insert_some(object, "icons", (dialect.icons && !pictures.is_empty()).then(|| encode_icons(pictures)));
}
