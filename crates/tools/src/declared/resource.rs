//! A declared resource: the answer of a statement, or a file (`file_resource`), at a URI or a URI template.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Access, CallLimits, Error, ErrorKind, Format, UriTemplate};
use tidegate_query::{OutputOptions, QueryRequest};
use tidegate_runtime::{Answer, CacheHint, Handler, Resource, ResourceTemplate, ResourceWatcher, RunningCall};

use super::declared_query::DeclaredQuery;
use super::file_resource::{FileResourceHandler, FileWatcher, media_type_from_extension};
use super::input::DeclaredInput;
use super::uri_variables::TypedUriVariables;
use super::{DeclarationProblem, TextTemplate};
use crate::tool_context::ToolContext;

/// A declared resource.
#[derive(Debug, Clone)]
pub struct DeclaredResource {
    /// The URI, or a template with `{variable}`s.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The media type; by default that of the format or of the file's extension.
    pub mime_type: Option<String>,
    /// The source of its contents.
    pub source: ResourceSource,
    /// What a caller must hold.
    pub access: Access,
    /// Limits of its reads.
    pub limits: CallLimits,
    /// How long clients may cache what they read.
    pub cache: Option<CacheHint>,
}

/// The source of a resource's contents.
#[derive(Debug, Clone)]
pub enum ResourceSource {
    /// The answer of a statement.
    Sql {
        /// The database; optional when there is only one.
        database: Option<String>,
        /// The statement; its parameters are the variables of the URI.
        sql: String,
        /// The types of the variables; text by default.
        inputs: Vec<DeclaredInput>,
        /// The output format.
        format: Format,
    },
    /// A file in a folder.
    File {
        /// The folder. No variable can lead out of it.
        folder: PathBuf,
        /// The path within the folder; `{{variable}}` is a part of a name.
        path: TextTemplate,
        /// Constraints on the variables; any text by default.
        inputs: Vec<DeclaredInput>,
    },
}

/// A resource with a fixed URI, or a template.
pub enum PreparedResource {
    /// At one URI.
    Resource(Box<Resource>),
    /// At all URIs of a template.
    Template(Box<ResourceTemplate>),
}

impl DeclaredResource {
    /// Builds the resource. The second value is the error of its database, if that is unavailable.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub async fn prepare(
        self,
        node: &Arc<ToolContext>,
    ) -> Result<(PreparedResource, Option<Error>), Vec<DeclarationProblem>> {
        let problem = |at: &str, message: String| {
            vec![DeclarationProblem::new(at, Error::new(ErrorKind::InvalidArguments, message))]
        };
        let template = UriTemplate::parse(&self.uri).map_err(|error| problem("uri", error.to_string()))?;
        if !self.uri.split_once("://").is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty()) {
            return Err(problem("uri", format!("{:?} has no scheme; write it as reports://sales/{{year}}", self.uri)));
        }
        let variables: Vec<String> = template.variables().map(str::to_owned).collect();
        let mime_type = self.mime_type.clone().or_else(|| infer_mime_type(&self.source).map(str::to_owned));
        let ResourceBackend { handler, watcher, unreachable, database } =
            open_source(self.source, &variables, mime_type.clone(), node).await?;
        let access = match database {
            Some(database) => node.databases.tenancy().restrict(&database, self.access),
            None => self.access,
        };
        let prepared = if variables.is_empty() {
            let mut resource = Resource::new(self.uri, self.name, handler);
            (resource.title, resource.description, resource.mime_type) = (self.title, self.description, mime_type);
            (resource.access, resource.limits, resource.cache) = (access, self.limits, self.cache);
            resource.watcher = watcher;
            PreparedResource::Resource(Box::new(resource))
        } else {
            let mut resource = ResourceTemplate::new(template, self.name, handler);
            (resource.title, resource.description, resource.mime_type) = (self.title, self.description, mime_type);
            (resource.access, resource.limits, resource.cache) = (access, self.limits, self.cache);
            resource.watcher = watcher;
            PreparedResource::Template(Box::new(resource))
        };
        Ok((prepared, unreachable))
    }
}

struct ResourceBackend {
    handler: Arc<dyn Handler>,
    watcher: Option<Arc<dyn ResourceWatcher>>,
    /// The error of its database, if that is unavailable.
    unreachable: Option<Error>,
    database: Option<String>,
}

async fn open_source(
    source: ResourceSource,
    variables: &[String],
    mime_type: Option<String>,
    node: &Arc<ToolContext>,
) -> Result<ResourceBackend, Vec<DeclarationProblem>> {
    match source {
        ResourceSource::Sql { database, sql, inputs, format } => {
            let variables = TypedUriVariables::new(variables, inputs)?;
            let query = DeclaredQuery::parse(node, database.as_deref(), &sql, variables.inputs().to_vec())?;
            let unreachable = match query.prepare(&node.statements).await {
                Ok(_) => None,
                Err(error) if error.kind() == ErrorKind::Unavailable || error.is_configuration_fault() => Some(error),
                Err(error) => return Err(vec![DeclarationProblem::new("sql", error)]),
            };
            let database = Some(query.database.name().to_owned());
            let handler = Arc::new(SqlResourceHandler { node: node.clone(), query, variables, format });
            Ok(ResourceBackend { handler, watcher: None, unreachable, database })
        }
        ResourceSource::File { folder, path, inputs } => {
            let unknown = path.names().into_iter().find(|name| !variables.iter().any(|other| other == name));
            if let Some(name) = unknown {
                let message = format!("{{{{{name}}}}} is not a variable of the URI");
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(variables.iter().cloned());
                return Err(vec![DeclarationProblem::new("file", error)]);
            }
            let variables = Arc::new(TypedUriVariables::new(variables, inputs)?);
            let watcher = FileWatcher { folder: folder.clone(), path: path.clone(), variables: variables.clone() };
            let handler = Arc::new(FileResourceHandler { node: node.clone(), folder, path, variables, mime_type });
            Ok(ResourceBackend { handler, watcher: Some(Arc::new(watcher)), unreachable: None, database: None })
        }
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|character: char| character.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
}

fn infer_mime_type(source: &ResourceSource) -> Option<&'static str> {
    match source {
        ResourceSource::Sql { format, .. } => Some(format.displayed_media_type()),
        ResourceSource::File { path, .. } => {
            let name = path.fill(|_| String::new());
            media_type_from_extension(Path::new(&name))
        }
    }
}

struct SqlResourceHandler {
    node: Arc<ToolContext>,
    query: DeclaredQuery,
    variables: TypedUriVariables,
    format: Format,
}

#[async_trait]
impl Handler for SqlResourceHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let arguments = self.variables.parse_from_job(&call)?;
        let request = QueryRequest {
            database: self.query.database.clone(),
            statement: self.query.bind_statement(&arguments, call.principal(), &self.node.statements)?,
            output: OutputOptions {
                format: self.format,
                overflow_hint: "Use a tool to read the rest.",
                ..OutputOptions::default()
            },
        };
        Ok(self.node.executor.answer(request))
    }
}
