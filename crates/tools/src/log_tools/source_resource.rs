//! `tidegate://logs/{source}`: the columns of a log source. Clients subscribe to it and learn of new entries.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{
    Access, Caller, Completion, CompletionRequest, Error, ErrorKind, Principal, TemplateVariables, UriTemplate,
};
use tidegate_runtime::{
    Answer, Completer, Job, Resource, ResourceLister, ResourceTemplate, ResourceWatcher, RunningCall,
};

use super::LogContext;
use crate::log_sources::{LogSource, ResolvedSource, unknown_source_message};
use crate::tool_definition::context_handler;

pub(crate) const NAME: &str = "log_source";
const TEMPLATE: &str = "tidegate://logs/{source}";
const JSON: &str = "application/json";
/// The maximum number of sources in the list; others are found by completion.
const SOURCES_LISTED_MAX: usize = 1_000;

pub(crate) fn template(context: &Arc<LogContext>, access: Access) -> ResourceTemplate {
    let mut template = base_template(context, access);
    let shared = Arc::new(Sources { context: context.clone(), access: template.access.clone() });
    template.completer = Some(shared.clone());
    template.lister = Some(shared.clone());
    template.watcher = Some(shared);
    template
}

fn base_template(context: &Arc<LogContext>, access: Access) -> ResourceTemplate {
    // Parsed at registration, which tests do.
    #[allow(clippy::expect_used)]
    let uri = UriTemplate::parse(TEMPLATE).expect("a built-in URI template is valid");
    let mut template = ResourceTemplate::new(uri, NAME, context_handler(context, read));
    template.title = Some("Log source".to_owned());
    template.description =
        Some("The columns of a log source, as JSON. Subscribe to it to learn of new entries.".to_owned());
    template.mime_type = Some(JSON.to_owned());
    template.access = access;
    template
}

async fn read(context: Arc<LogContext>, call: RunningCall) -> Result<Answer, Error> {
    let (services, principal) = (&context.services, call.principal());
    let name = call.variable("source").unwrap_or_default();
    let source = find(&context, name, principal).ok_or_else(|| {
        let visible = context.sources.visible_to(&services.databases, principal);
        Error::new(ErrorKind::NotFound, unknown_source_message(name, &visible))
    })?;
    let resolved = ResolvedSource::resolve(source, &services.databases, principal).await?;
    let column = |column: &crate::source_columns::SourceColumn| {
        let role = resolved.columns.role(&column.name);
        json!({"name": column.name, "type": column.type_name.to_lowercase(), "role": role})
    };
    let columns: Vec<Value> = resolved.columns.columns.iter().map(column).collect();
    let answer = json!({
        "name": source.name,
        "kind": resolved.database.kind().name(),
        "table": format!("{}.{}", source.database, source.table),
        "columns": columns,
    });
    Ok(Answer::text(answer.to_string()))
}

fn find<'a>(context: &'a LogContext, name: &str, principal: &Principal) -> Option<&'a LogSource> {
    let visible = context.sources.visible_to(&context.services.databases, principal);
    visible.into_iter().find(|source| source.name == name)
}

struct Sources {
    context: Arc<LogContext>,
    access: Access,
}

impl Sources {
    fn names(&self, principal: &Principal) -> impl Iterator<Item = String> {
        let visible = self.context.sources.visible_to(&self.context.services.databases, principal);
        visible.into_iter().map(|source| source.name.clone())
    }
}

#[async_trait]
impl Completer for Sources {
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error> {
        Ok(Completion::matching(self.names(job.principal()), &request.value))
    }
}

#[async_trait]
impl ResourceLister for Sources {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_template(&self.context, self.access.clone());
        let resource = |name: String| {
            let mut resource = Resource::new(template.template.expand(&[&name]), name, template.handler.clone());
            resource.mime_type = template.mime_type.clone();
            resource
        };
        Ok(self.names(principal).take(SOURCES_LISTED_MAX).map(resource).collect())
    }
}

#[async_trait]
impl ResourceWatcher for Sources {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let principal = &caller.principal;
        let name = variables.get("source").map(String::as_str).unwrap_or_default();
        // Hidden or absent.
        let Some(source) = find(&self.context, name, principal) else { return Ok(None) };
        match self.context.services.databases.get(Some(&source.database), principal) {
            Ok(database) => database.rows_version_tag(&source.table, principal).await,
            Err(_) => Ok(None),
        }
    }
}
