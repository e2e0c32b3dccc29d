//! Databases, tables and jobs as resources.
//!
//! - `tidegate://databases/{database}`: the tables of a database.
//! - `tidegate://databases/{database}/notes`: what people wrote about it.
//! - `tidegate://databases/{database}/tables/{table}`: the columns of a table and its first rows.
//! - `tidegate://jobs/{id}`: one call of the caller, as in `list_jobs`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{
    CallOrigin, Caller, Completion, CompletionRequest, Error, Principal, TemplateVariables, TransportKind, UriTemplate,
};
use tidegate_query::{ColumnEntry, Database, OutputOptions, TableEntry, TableStatus};
use tidegate_runtime::{
    Answer, AnswerMeta, Completer, Handler, Job, JobStatus, Resource, ResourceLister, ResourceTemplate,
    ResourceWatcher, RunningCall,
};

use crate::catalog_tools::{KnowledgeText, list_catalogs, read_first_rows};
use crate::operations::{jobs_as_rows, unknown_job_error};
use crate::table_names::NameCompleter;
use crate::tool_definition::context_handler;
use crate::tool_services::ToolServices;

pub(crate) const JSON: &str = "application/json";

pub(crate) fn uri_template(text: &str) -> UriTemplate {
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
struct TablesWatcher(Arc<ToolServices>);

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

const DATABASE_TEMPLATE: &str = "tidegate://databases/{database}";
/// Tables in the answer at most; it also has the total number.
const TABLES_LISTED_MAX: usize = 1_000;

pub(crate) fn database_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    let mut template = base_database_template(services);
    template.completer = Some(Arc::new(NameCompleter(services.clone())));
    template.lister = Some(Arc::new(DatabaseLister(services.clone())));
    template.watcher = Some(Arc::new(TablesWatcher(services.clone())));
    template
}

fn base_database_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    json_template(
        DATABASE_TEMPLATE,
        "database",
        "Database",
        "The tables of a database, as JSON.",
        context_handler(services, read_database),
    )
}

async fn read_database(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let database = services.databases.get(call.variable("database"), call.principal())?;
    let catalog = database.catalog(call.principal()).await?;
    let catalog = services.databases.knowledge(&**database).await.describe_catalog(catalog);
    let tables: Vec<Value> = catalog.tables.iter().take(TABLES_LISTED_MAX).map(table_json).collect();
    let answer = json!({
        "name": database.name(), "kind": database.kind().name(), "sql": database.dialect().name(),
        "tables_in_all": catalog.tables.len(), "tables": tables,
    });
    // Comments and descriptions are data.
    Ok(Answer::text(call.protection().fence_data(answer.to_string())))
}

fn table_json(table: &TableEntry) -> Value {
    let mut object = json!({"name": table.name, "rows": table.rows, "comment": table.comment});
    if let TableStatus::Unreadable(reason) = &table.status {
        object["error"] = json!(reason);
    }
    object
}

struct DatabaseLister(Arc<ToolServices>);

#[async_trait]
impl ResourceLister for DatabaseLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_database_template(&self.0);
        let databases = self.0.databases.visible_to(principal);
        Ok(databases
            .map(|database| {
                let description = format!("Tables of the {} database {}.", database.kind().name(), database.name());
                resource_from_template(&template, &[database.name()], database.name().to_owned(), Some(description))
            })
            .collect())
    }
}

const NOTES_TEMPLATE: &str = "tidegate://databases/{database}/notes";

/// What people wrote about a database, for callers that may query it.
pub(crate) fn notes_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    let mut template = base_notes_template(services);
    template.completer = Some(Arc::new(NameCompleter(services.clone())));
    template.lister = Some(Arc::new(NotesLister(services.clone())));
    template.watcher = Some(Arc::new(NotesWatcher(services.clone())));
    template
}

fn base_notes_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    let handler = context_handler(services, read_notes);
    let description = "Notes on a database: what its tables and columns mean, joins, questions with their SQL.";
    let mut template = ResourceTemplate::new(uri_template(NOTES_TEMPLATE), "database_notes", handler);
    template.title = Some("Notes".to_owned());
    template.description = Some(description.to_owned());
    template.mime_type = Some("text/markdown".to_owned());
    template
}

async fn read_notes(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let database = services.databases.get(call.variable("database"), call.principal())?;
    let knowledge = services.databases.knowledge(&**database).await;
    let text = KnowledgeText::render(&knowledge, &**database, None, call.principal()).await;
    if text.is_empty() {
        return Ok(Answer::text(format!("There are no notes on {}.", database.name())));
    }
    Ok(Answer::written(move |reply| async move {
        text.send(&reply).await?;
        Ok(AnswerMeta::default())
    }))
}

struct NotesLister(Arc<ToolServices>);

#[async_trait]
impl ResourceLister for NotesLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_notes_template(&self.0);
        let visible: Vec<Arc<dyn Database>> = self.0.databases.visible_to(principal).cloned().collect();
        let mut resources = Vec::new();
        for database in visible {
            let knowledge = self.0.databases.knowledge(&*database).await;
            if knowledge.layers().any(|layer| !layer.is_empty()) {
                let (name, description) =
                    (format!("{} notes", database.name()), format!("Notes on {}.", database.name()));
                resources.push(resource_from_template(&template, &[database.name()], name, Some(description)));
            }
        }
        Ok(resources)
    }
}

/// Reports changes of what people wrote.
struct NotesWatcher(Arc<ToolServices>);

#[async_trait]
impl ResourceWatcher for NotesWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let name = variables.get("database").map(String::as_str);
        match self.0.databases.get(name, &caller.principal) {
            Ok(database) => Ok(Some(self.0.databases.knowledge(&**database).await.version_tag())),
            // Hidden or absent.
            Err(_) => Ok(None),
        }
    }
}

const TABLE_TEMPLATE: &str = "tidegate://databases/{database}/tables/{table}";
const ROWS_LISTED_MAX: usize = 5;
/// Tables of all databases in the list at most; others are found by completion.
const TABLES_OF_ALL_MAX: usize = 1_000;
const TRUNCATION_HINT: &str = "The tool query selects columns and rows.";

pub(crate) fn table_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    let mut template = base_table_template(services);
    template.completer = Some(Arc::new(NameCompleter(services.clone())));
    template.lister = Some(Arc::new(TableLister(services.clone())));
    template.watcher = Some(Arc::new(TablesWatcher(services.clone())));
    template
}

fn base_table_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    json_template(
        TABLE_TEMPLATE,
        "table",
        "Table",
        "The columns of a table, then its first rows, as JSON.",
        context_handler(services, read_table),
    )
}

/// Columns and rows are separate JSON, so that rows cut by the budget leave the columns valid.
async fn read_table(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let mut table = call.variable("table").unwrap_or_default().to_owned();
    let tables = std::iter::once(&mut table);
    let database = services.resolve_tables(call.variable("database"), tables, &call).await?.database;
    let mut columns = database.columns(&table, call.principal()).await?;
    services.databases.knowledge(&*database).await.describe_columns(&table, &mut columns);
    let rows = read_first_rows(&*database, &table, ROWS_LISTED_MAX, call.job()).await?;
    let columns: Vec<Value> = columns.iter().map(column_json).collect();
    let described = json!({"database": database.name(), "table": table, "columns": columns}).to_string();
    let output_options = OutputOptions { overflow_hint: TRUNCATION_HINT, ..OutputOptions::default() };
    let rows = services.executor.answer_rows(rows, output_options);
    Ok(Answer::written(move |reply| async move {
        reply.send_text(reply.job().protection().fence_data(described)).await?;
        reply.end_text().await?;
        rows.send(&reply).await
    }))
}

fn column_json(column: &ColumnEntry) -> Value {
    json!({
        "name": column.name, "type": column.type_name, "nullable": column.nullable, "comment": column.comment,
    })
}

struct TableLister(Arc<ToolServices>);

#[async_trait]
impl ResourceLister for TableLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_table_template(&self.0);
        let found = list_catalogs(&self.0.databases, None, principal).await?;
        let mut resources = Vec::new();
        for listing in &found {
            // An unavailable database lists nothing; its own resource reports the error.
            let Ok(catalog) = &listing.catalog else { continue };
            let database = listing.database.name();
            let readable = catalog.tables.iter().filter(|table| table.status == TableStatus::Readable);
            let room = TABLES_OF_ALL_MAX - resources.len();
            resources.extend(readable.take(room).map(|table| {
                // A list has no marks of data.
                let description = match listing.knowledge.is_described_by_files(&table.name) {
                    true => table.facts.clone(),
                    false => table.comment.clone(),
                };
                resource_from_template(&template, &[database, &table.name], table.name.clone(), description)
            }));
        }
        Ok(resources)
    }
}

const JOB_TEMPLATE: &str = "tidegate://jobs/{id}";
/// Jobs in the list at most; others are found by completion and by `list_jobs`.
const JOBS_LISTED_MAX: usize = 100;

pub(crate) fn job_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    let mut template = base_job_template(services);
    template.completer = Some(Arc::new(JobIdCompleter(services.clone())));
    template.lister = Some(Arc::new(JobLister(services.clone())));
    template.watcher = Some(Arc::new(JobWatcher(services.clone())));
    template
}

fn base_job_template(services: &Arc<ToolServices>) -> ResourceTemplate {
    json_template(
        JOB_TEMPLATE,
        "job",
        "Job",
        "One of your running or recent calls: its state, rows and bytes, as JSON.",
        context_handler(services, read_job),
    )
}

async fn read_job(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let (jobs, id) = (services.jobs()?, call.variable("id").unwrap_or_default());
    let Some(status) = jobs.get(id, call.caller()) else {
        return Err(unknown_job_error(id, &jobs.list(call.caller()), &call));
    };
    Ok(services.executor.answer_rows(jobs_as_rows(&[status])?, OutputOptions::default()))
}

struct JobIdCompleter(Arc<ToolServices>);

#[async_trait]
impl Completer for JobIdCompleter {
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error> {
        let open = self.0.jobs()?.list(job.caller());
        let open = open.iter().filter(|other| !other.state.has_ended() && other.id != job.id());
        Ok(Completion::matching(open.map(|other| other.id.to_string()), &request.value))
    }
}

/// Lists open jobs only, so that ended ones do not crowd out other resources.
struct JobLister(Arc<ToolServices>);

#[async_trait]
impl ResourceLister for JobLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_job_template(&self.0);
        // The address of the caller is unknown here, so anonymous callers, which are distinguished by address, find no
        // jobs.
        let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
        let jobs = self.0.jobs()?.list(&Caller::new(Arc::new(principal.clone()), origin));
        let open = jobs.iter().filter(|job| !job.state.has_ended()).take(JOBS_LISTED_MAX);
        Ok(open.map(|job| job_resource(&template, job)).collect())
    }
}

fn job_resource(template: &ResourceTemplate, job: &JobStatus) -> Resource {
    let (kind, target) = &job.target;
    resource_from_template(
        template,
        &[&job.id.to_string()],
        target.clone(),
        Some(format!("A call of the {kind} {target}.")),
    )
}

/// Reports changes of the state, and of the number of rows or bytes.
struct JobWatcher(Arc<ToolServices>);

#[async_trait]
impl ResourceWatcher for JobWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let Some(id) = variables.get("id") else { return Ok(None) };
        let version_tag =
            |job: JobStatus| format!("{} {} {} {}", job.state.name(), job.rows, job.bytes, job.result.is_some());
        Ok(self.0.jobs()?.get(id, caller).map(version_tag))
    }
}
