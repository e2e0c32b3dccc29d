//! A declared resource: the answer of a statement, or a file (`file`), at a URI or a template of URIs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{
    Access, CacheHint, CallLimits, Error, ErrorKind, Handler, Job, Metadata, ReplySender, Resource, ResourceTemplate,
    UriTemplate,
};
use tidegate_query::{Format, Mode, Question, Rest};

use super::file::{ReadFile, media_type_of};
use super::file_watcher::FileWatcher;
use super::input::Input;
use super::question::DeclaredQuestion;
use super::uri_variables::UriVariables;
use super::{Problem, TextTemplate};
use crate::node::NodeView;

/// A declared resource.
#[derive(Debug, Clone)]
pub struct DeclaredResource {
    /// Its URI, or a template with `{variable}`s.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Media type; by the format or the file's ending unless said.
    pub mime_type: Option<String>,
    /// Where its contents come from.
    pub source: ResourceSource,
    /// What a caller must hold.
    pub access: Access,
    /// Bounds of its reads.
    pub limits: CallLimits,
    /// How long clients may keep what they read.
    pub cache: Option<CacheHint>,
}

/// Where a resource's contents come from.
#[derive(Debug, Clone)]
pub enum ResourceSource {
    /// The answer of a statement.
    Sql {
        /// The database; may be left out when there is only one.
        database: Option<String>,
        /// The statement; its parameters are the variables of the URI.
        sql: String,
        /// The types of the variables; text unless said.
        inputs: Vec<Input>,
        /// The form of the answer.
        format: Format,
    },
    /// A file in a folder.
    File {
        /// The folder that no variable leads out of.
        folder: PathBuf,
        /// The path in it; `{{variable}}` stands for a part of a name.
        path: TextTemplate,
        /// What the variables may be; any text unless said.
        inputs: Vec<Input>,
    },
}

/// A resource with a fixed URI, or a template.
pub enum Prepared {
    /// At one URI.
    Resource(Box<Resource>),
    /// At all URIs that follow a template.
    Template(Box<ResourceTemplate>),
}

impl DeclaredResource {
    /// The resource. The second value says why its database cannot be asked now, if so.
    ///
    /// # Errors
    /// Everything that is wrong with the declaration.
    pub async fn prepare(self, node: &Arc<NodeView>) -> Result<(Prepared, Option<Error>), Vec<Problem>> {
        let wrong = |at: &str, message: String| vec![Problem::at(at, Error::new(ErrorKind::InvalidArguments, message))];
        let template = UriTemplate::parse(&self.uri).map_err(|error| wrong("uri", error.to_string()))?;
        if !self.uri.split_once("://").is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty()) {
            return Err(wrong("uri", format!("{:?} has no scheme; write it as reports://sales/{{year}}", self.uri)));
        }
        let variables: Vec<String> = template.variables().map(str::to_owned).collect();
        let mime_type = self.mime_type.clone().or_else(|| mime_type_of(&self.source).map(str::to_owned));
        let watcher = FileWatcher::of(&self.source, &variables);
        let Sourced { handler, unreachable, database } =
            sourced(self.source, &variables, mime_type.clone(), node).await?;
        let access = match database {
            Some(database) => node.databases.tenancy().restrict(&database, self.access),
            None => self.access,
        };
        let prepared = if variables.is_empty() {
            let mut resource = Resource::new(self.uri, self.name, handler);
            (resource.title, resource.description, resource.mime_type) = (self.title, self.description, mime_type);
            (resource.access, resource.limits, resource.cache) = (access, self.limits, self.cache);
            resource.watcher = watcher;
            Prepared::Resource(Box::new(resource))
        } else {
            let mut resource = ResourceTemplate::new(template, self.name, handler);
            (resource.title, resource.description, resource.mime_type) = (self.title, self.description, mime_type);
            (resource.access, resource.limits, resource.cache) = (access, self.limits, self.cache);
            resource.watcher = watcher;
            Prepared::Template(Box::new(resource))
        };
        Ok((prepared, unreachable))
    }
}

/// What answers from a source.
struct Sourced {
    handler: Arc<dyn Handler>,
    /// Why its database cannot be asked now, if so.
    unreachable: Option<Error>,
    /// The database, if it has one.
    database: Option<String>,
}

async fn sourced(
    source: ResourceSource,
    variables: &[String],
    mime_type: Option<String>,
    node: &Arc<NodeView>,
) -> Result<Sourced, Vec<Problem>> {
    match source {
        ResourceSource::Sql { database, sql, inputs, format } => {
            let variables = UriVariables::new(variables, inputs)?;
            let question = DeclaredQuestion::read(node, database.as_deref(), &sql, variables.inputs().to_vec())?;
            let unreachable = match question.prepare(&node.statements).await {
                Ok(_) => None,
                Err(error) if error.kind() == ErrorKind::Unavailable => Some(error),
                Err(error) => return Err(vec![Problem::at("sql", error)]),
            };
            let database = Some(question.database.name().to_owned());
            let handler = Arc::new(Ask { node: node.clone(), question, variables, format });
            Ok(Sourced { handler, unreachable, database })
        }
        ResourceSource::File { folder, path, inputs } => {
            let unknown = path.names().into_iter().find(|name| !variables.iter().any(|other| other == name));
            if let Some(name) = unknown {
                let message = format!("{{{{{name}}}}} is no variable of the URI");
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(variables.iter().cloned());
                return Err(vec![Problem::at("file", error)]);
            }
            let variables = UriVariables::new(variables, inputs)?;
            let handler = Arc::new(ReadFile { node: node.clone(), folder, path, variables, mime_type });
            Ok(Sourced { handler, unreachable: None, database: None })
        }
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

fn mime_type_of(source: &ResourceSource) -> Option<&'static str> {
    match source {
        ResourceSource::Sql { format, .. } => Some(match format {
            Format::Mcp | Format::Json => "application/json",
            Format::Csv => "text/csv",
            Format::Markdown => "text/markdown",
            Format::Ndjson => "application/x-ndjson",
            Format::Table | Format::Toon => "text/plain",
        }),
        ResourceSource::File { path, .. } => {
            let name = path.fill(|_| String::new());
            media_type_of(Path::new(&name))
        }
    }
}

/// Answers a statement.
struct Ask {
    node: Arc<NodeView>,
    question: DeclaredQuestion,
    variables: UriVariables,
    format: Format,
}

#[async_trait]
impl Handler for Ask {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let arguments = self.variables.values(&job)?;
        let question = Question {
            database: self.question.database.clone(),
            statement: self.question.statement(&arguments, &self.node.statements)?,
            max_rows: None,
            format: self.format,
            extract: None,
            mode: Mode::Auto,
            structured: None,
            rest: Rest::default(),
            more: Some("A tool can be asked for the rest.".to_owned()),
        };
        self.node.executor.answer(question, &job, &reply).await
    }
}
