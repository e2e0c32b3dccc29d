//! Resources: what is read by URI, one by one or by template.

use serde_json::json;
use tidegate::core::{UriTemplate, UriTemplateError};
use tidegate::runtime::{Answer, Resource, ResourceTemplate, handler_fn};

use crate::media::pixel;

/// Every resource that has a URI of its own.
pub(crate) fn all() -> Vec<Resource> {
    vec![
        text("test://static-text", "static-text", "This is the content of the static text resource."),
        picture("test://static-binary", "static-binary"),
        text("test://watched-resource", "watched-resource", "Clients subscribe to this one."),
    ]
}

/// Every family of resources that share a template.
pub(crate) fn templates() -> Result<Vec<ResourceTemplate>, UriTemplateError> {
    let handler = handler_fn(|call| async move {
        let id = call.variable("id").unwrap_or_default();
        let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
        Ok(Answer::text(data.to_string()))
    });
    let uri = UriTemplate::parse("test://template/{id}/data")?;
    let mut template = ResourceTemplate::new(uri, "data-by-id", handler);
    template.description = Some("The data of one id.".to_owned());
    template.mime_type = Some("application/json".to_owned());
    Ok(vec![template])
}

/// A text.
fn text(uri: &str, name: &str, text: &'static str) -> Resource {
    let handler = handler_fn(move |_call| async move { Ok(Answer::text(text)) });
    let mut resource = Resource::new(uri, name, handler);
    resource.description = Some("A fixed text.".to_owned());
    resource.mime_type = Some("text/plain".to_owned());
    resource
}

/// Bytes.
fn picture(uri: &str, name: &str) -> Resource {
    let handler = handler_fn(|_call| async { Ok(Answer::content(vec![pixel()])) });
    let mut resource = Resource::new(uri, name, handler);
    resource.description = Some("A fixed picture.".to_owned());
    resource.mime_type = Some("image/png".to_owned());
    resource
}
