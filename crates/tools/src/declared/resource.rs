//! A declared resource: the answer of a statement, or a file, at a URI or a template of URIs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{
    Access, CacheHint, CallLimits, Content, Error, ErrorKind, Handler, Job, Metadata, ReplySender, Resource,
    ResourceBody, ResourceContents, ResourceTemplate, UriTemplate,
};
use tidegate_query::{Format, Mode, Question, Rest};
use tokio::io::AsyncReadExt;

use super::file_watcher::FileWatcher;
use super::input::Input;
use super::question::DeclaredQuestion;
use super::uri_variables::UriVariables;
use super::{Problem, TextTemplate};
use crate::node::NodeView;

/// Text of a file that leaves at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// Files that are not text are sent whole; larger ones are refused.
const BINARY_BYTES_MAX: u64 = 4 * 1024 * 1024;

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
        let (handler, unreachable) = handler(self.source, &variables, node).await?;
        let prepared = if variables.is_empty() {
            let mut resource = Resource::new(self.uri, self.name, handler);
            (resource.title, resource.description, resource.mime_type) = (self.title, self.description, mime_type);
            (resource.access, resource.limits, resource.cache) = (self.access, self.limits, self.cache);
            resource.watcher = watcher;
            Prepared::Resource(Box::new(resource))
        } else {
            let mut resource = ResourceTemplate::new(template, self.name, handler);
            (resource.title, resource.description, resource.mime_type) = (self.title, self.description, mime_type);
            (resource.access, resource.limits, resource.cache) = (self.access, self.limits, self.cache);
            resource.watcher = watcher;
            Prepared::Template(Box::new(resource))
        };
        Ok((prepared, unreachable))
    }
}

/// The handler of a source, and why its database cannot be asked now, if so.
async fn handler(
    source: ResourceSource,
    variables: &[String],
    node: &Arc<NodeView>,
) -> Result<(Arc<dyn Handler>, Option<Error>), Vec<Problem>> {
    match source {
        ResourceSource::Sql { database, sql, inputs, format } => {
            let variables = UriVariables::new(variables, inputs)?;
            let question = DeclaredQuestion::read(node, database.as_deref(), &sql, variables.inputs().to_vec())?;
            let unreachable = match question.prepare(&node.statements).await {
                Ok(_) => None,
                Err(error) if error.kind() == ErrorKind::Unavailable => Some(error),
                Err(error) => return Err(vec![Problem::at("sql", error)]),
            };
            Ok((Arc::new(Ask { node: node.clone(), question, variables, format }), unreachable))
        }
        ResourceSource::File { folder, path, inputs } => {
            let unknown = path.names().into_iter().find(|name| !variables.iter().any(|other| other == name));
            if let Some(name) = unknown {
                let message = format!("{{{{{name}}}}} is no variable of the URI");
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(variables.iter().cloned());
                return Err(vec![Problem::at("file", error)]);
            }
            Ok((Arc::new(Read { folder, path, variables: UriVariables::new(variables, inputs)? }), None))
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
            Some(match Path::new(&name).extension()?.to_str()? {
                "md" => "text/markdown",
                "txt" | "sql" => "text/plain",
                "json" => "application/json",
                "yaml" | "yml" => "application/yaml",
                "csv" => "text/csv",
                "html" => "text/html",
                "png" => "image/png",
                "jpg" | "jpeg" => "image/jpeg",
                "svg" => "image/svg+xml",
                "pdf" => "application/pdf",
                _ => return None,
            })
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
            structured: false,
            rest: Rest::default(),
            more: Some("A tool can be asked for the rest.".to_owned()),
        };
        self.node.executor.answer(question, &job, &reply).await
    }
}

/// Reads a file.
struct Read {
    folder: PathBuf,
    path: TextTemplate,
    variables: UriVariables,
}

#[async_trait]
impl Handler for Read {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let absent = || Error::new(ErrorKind::NotFound, format!("there is no resource {:?}", job.target().name()));
        // A caller may ask for any name; what cannot be read by it is not there. What we may not read the log hears of.
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => absent().with_detail(format!("{}: {error}", self.folder.display())),
            _ => absent(),
        };
        let lost = |error: std::io::Error| Error::internal(format!("{}: {error}", self.folder.display()));
        self.variables.values(&job)?;
        let parts = |name: &str| job.variable(name).unwrap_or_default().to_owned();
        if self.path.names().iter().any(|name| !is_part_of_a_name(&parts(name))) {
            return Err(absent());
        }
        let path = self.folder.join(self.path.fill(parts));
        let path = tokio::fs::canonicalize(path).await.map_err(unreadable)?;
        let folder = tokio::fs::canonicalize(&self.folder).await.map_err(lost)?;
        if !path.starts_with(&folder) {
            // A link that leads out of the folder.
            return Err(absent());
        }
        // Opening a pipe would wait for somebody who writes.
        if !tokio::fs::metadata(&path).await.map_err(unreadable)?.is_file() {
            return Err(absent());
        }
        let mut file = tokio::fs::File::open(&path).await.map_err(unreadable)?;
        let size_bytes = file.metadata().await.map_err(unreadable)?.len();
        send(&mut file, size_bytes, &job, &reply).await
    }
}

/// What a variable may put into a path.
pub(super) fn is_part_of_a_name(value: &str) -> bool {
    !value.is_empty() && !value.starts_with('.') && !value.contains(['/', '\\', '\0'])
}

/// Sends text piece by piece within the budget, and anything else whole.
async fn send(file: &mut tokio::fs::File, size_bytes: u64, job: &Job, reply: &ReplySender) -> Result<Metadata, Error> {
    let broken = |error: std::io::Error| Error::internal(format!("a file of a resource broke off: {error}"));
    let mut left = job.inline_budget().bytes.unwrap_or(usize::MAX);
    let mut piece = vec![0; PIECE_BYTES];
    // Bytes of a character whose rest comes with the next piece.
    let mut begun = 0;
    let mut is_text = false;
    loop {
        let read = file.read(&mut piece[begun..]).await.map_err(broken)?;
        if read == 0 {
            return Ok(Metadata::new());
        }
        let filled = begun + read;
        let text_bytes = match std::str::from_utf8(&piece[..filled]) {
            Ok(_) => filled,
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) if !is_text => return send_binary(file, size_bytes, job, reply).await,
            Err(_) => filled,
        };
        is_text = true;
        // What is no UTF-8 behind a text of some length is shown as such.
        let text = String::from_utf8_lossy(&piece[..text_bytes]);
        if text.len() > left {
            reply.text(&text[..text.floor_char_boundary(left)]).await?;
            reply.end_text().await?;
            let line = format!("Shown: the beginning; the file has {size_bytes} bytes.");
            reply.block(Content::text(line)).await?;
            return Ok(Metadata::new());
        }
        left -= text.len();
        reply.text(text).await?;
        piece.copy_within(text_bytes..filled, 0);
        begun = filled - text_bytes;
    }
}

async fn send_binary(
    file: &mut tokio::fs::File,
    size_bytes: u64,
    job: &Job,
    reply: &ReplySender,
) -> Result<Metadata, Error> {
    use tokio::io::AsyncSeekExt as _;
    let broken = |error: std::io::Error| Error::internal(format!("a file of a resource broke off: {error}"));
    if size_bytes > BINARY_BYTES_MAX {
        let message =
            format!("the file has {size_bytes} bytes; files that are not text are sent up to {BINARY_BYTES_MAX}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    file.rewind().await.map_err(broken)?;
    let mut bytes = Vec::new();
    file.take(BINARY_BYTES_MAX).read_to_end(&mut bytes).await.map_err(broken)?;
    let (uri, mime_type) = (job.target().name().to_owned(), None);
    reply.block(Content::Resource(ResourceContents { uri, mime_type, body: ResourceBody::Blob(bytes.into()) })).await?;
    Ok(Metadata::new())
}
