//! Databases, tables, jobs and stored results as resources.

pub(crate) mod database;
pub(crate) mod job;
pub(crate) mod result;
mod stored_file;
pub(crate) mod table;
mod watchers;

use tidegate_core::UriTemplate;
use tidegate_runtime::{Resource, ResourceTemplate};

const JSON: &str = "application/json";

/// A constant URI template.
fn uri_template(text: &str) -> UriTemplate {
    // All are parsed at registration, which every test does.
    #[allow(clippy::expect_used)]
    UriTemplate::parse(text).expect("a built-in URI template is valid")
}

/// One resource of `template`, with its handler.
fn resource_from_template(
    template: &ResourceTemplate,
    values: &[&str],
    name: String,
    description: Option<String>,
) -> Resource {
    let mut resource = Resource::new(template.template.expand(values), name, template.handler.clone());
    resource.description = description;
    resource.mime_type = template.mime_type.clone();
    resource
}
