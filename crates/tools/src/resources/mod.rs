//! Databases, tables, jobs and stored results as resources.

pub(crate) mod database;
pub(crate) mod job;
pub(crate) mod result;
mod stored_file;
pub(crate) mod table;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tidegate_core::{Caller, Error, ErrorKind, TemplateVariables, UriTemplate};
use tidegate_results::{ResultEnd, StoredResult};
use tidegate_runtime::{Handler, Job, Resource, ResourceTemplate, ResourceWatcher};

use crate::tool_context::ToolContext;

const JSON: &str = "application/json";

fn uri_template(text: &str) -> UriTemplate {
    // All are parsed at registration, which every test does.
    #[allow(clippy::expect_used)]
    UriTemplate::parse(text).expect("a built-in URI template is valid")
}

fn json_template(
    template: &str,
    name: &str,
    title: &str,
    description: &str,
    handler: Arc<dyn Handler>,
) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(uri_template(template), name, handler);
    template.title = Some(title.to_owned());
    template.description = Some(description.to_owned());
    template.mime_type = Some(JSON.to_owned());
    template
}

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

/// Watches one table, or all tables of a database, by cheap checks only.
struct TablesWatcher(Arc<ToolContext>);

#[async_trait]
impl ResourceWatcher for TablesWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let variable = |name: &str| variables.get(name).map(String::as_str);
        match self.0.databases.get(variable("database"), &caller.principal) {
            Ok(database) => database.version_tag(variable("table"), &caller.principal).await,
            // Hidden or absent.
            Err(_) => Ok(None),
        }
    }
}

fn accepts_partial(job: &Job) -> bool {
    job.arguments().get("partial").is_some_and(|partial| *partial == Value::Bool(true))
}

/// Checks that `result` is complete so far, or that the caller accepts its stored part.
fn check_complete(result: &StoredResult, takes_part: bool) -> Result<(), Error> {
    let progress = result.progress();
    match &progress.end {
        Some(ResultEnd::Incomplete(reason)) if !takes_part => {
            let message = match result.file() {
                Some(file) => format!(
                    "the stored file is incomplete: {} of its {} bytes were stored before it ended: {reason}",
                    result.stored_file_bytes(),
                    file.bytes
                ),
                None => format!(
                    "the stored result is incomplete: {} rows were stored before it ended: {reason}",
                    progress.rows()
                ),
            };
            Err(Error::new(ErrorKind::Unavailable, message).with_hint("?partial=true returns what is stored."))
        }
        Some(ResultEnd::Removed(reason)) => {
            Err(Error::new(ErrorKind::NotFound, format!("the stored result no longer exists: {reason}")))
        }
        _ => Ok(()),
    }
}
