//! Databases, tables, jobs and stored results as resources, for clients that read instead of call.

pub(crate) mod database;
pub(crate) mod job;
pub(crate) mod result;
mod stored_file;
pub(crate) mod table;
mod watchers;

use tidegate_core::{Resource, ResourceTemplate, UriTemplate};

const JSON: &str = "application/json";

/// A URI template that is a constant of ours.
fn uri_template(text: &str) -> UriTemplate {
    // Both are parsed whenever the resources are registered, which every test does.
    #[allow(clippy::expect_used)]
    UriTemplate::parse(text).expect("a built-in URI template is valid")
}

/// One resource of `template`, reached through the same code.
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
