//! A declared resource: the answer of a statement, or a file, at a URI or a URI template with typed variables.
//!
//! A file is sent inline as far as it fits, and stored as a result otherwise. The answer and the stored result are read
//! from one open file, so that it cannot be replaced between the two.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value};
use tidegate_core::{
    Access, CallLimits, Caller, Content, Error, ErrorKind, Format, JsonSchema, ResourceBody, ResourceContents,
    TemplateVariables, UriTemplate,
};
use tidegate_query::{OutputOptions, QueryRequest};
use tidegate_results::{FILE_PIECE_BYTES, FileDescription, ResultStore, pieces_to_rows};
use tidegate_runtime::{
    Answer, AnswerMeta, CacheHint, Handler, Job, ReplySender, Resource, ResourceTemplate, ResourceWatcher, RunningCall,
};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::declared_query::DeclaredQuery;
use super::input::{DeclaredInput, InputKind, ScalarType, object_schema};
use super::{DeclarationProblem, TextTemplate};
use crate::result_resource::{PreviewExtent, send_preview};
use crate::tool_services::ToolServices;

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
    pub source: ResourceContent,
    /// What a caller must hold.
    pub access: Access,
    /// Limits of its reads.
    pub limits: CallLimits,
    /// How long clients may cache what they read.
    pub cache: Option<CacheHint>,
}

/// The source of a resource's contents.
#[derive(Debug, Clone)]
pub enum ResourceContent {
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
        services: &Arc<ToolServices>,
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
            open_source(self.source, &variables, mime_type.clone(), services).await?;
        let access = match database {
            Some(database) => services.databases.tenancy().restrict(&database, self.access),
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
    source: ResourceContent,
    variables: &[String],
    mime_type: Option<String>,
    services: &Arc<ToolServices>,
) -> Result<ResourceBackend, Vec<DeclarationProblem>> {
    match source {
        ResourceContent::Sql { database, sql, inputs, format } => {
            let variables = TypedUriVariables::new(variables, inputs)?;
            let query = DeclaredQuery::parse(services, database.as_deref(), &sql, variables.inputs().to_vec())?;
            let unreachable = match query.prepare(&services.statements).await {
                Ok(_) => None,
                Err(error) if error.kind() == ErrorKind::Unavailable || error.is_configuration_fault() => Some(error),
                Err(error) => return Err(vec![DeclarationProblem::new("sql", error)]),
            };
            let database = Some(query.database.name().to_owned());
            let handler = Arc::new(SqlResourceHandler { services: services.clone(), query, variables, format });
            Ok(ResourceBackend { handler, watcher: None, unreachable, database })
        }
        ResourceContent::File { folder, path, inputs } => {
            let unknown = path.names().into_iter().find(|name| !variables.iter().any(|other| other == name));
            if let Some(name) = unknown {
                let message = format!("{{{{{name}}}}} is not a variable of the URI");
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(variables.iter().cloned());
                return Err(vec![DeclarationProblem::new("file", error)]);
            }
            let variables = Arc::new(TypedUriVariables::new(variables, inputs)?);
            let watcher = FileWatcher { folder: folder.clone(), path: path.clone(), variables: variables.clone() };
            let handler =
                Arc::new(FileResourceHandler { services: services.clone(), folder, path, variables, mime_type });
            Ok(ResourceBackend { handler, watcher: Some(Arc::new(watcher)), unreachable: None, database: None })
        }
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|character: char| character.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
}

fn infer_mime_type(source: &ResourceContent) -> Option<&'static str> {
    match source {
        ResourceContent::Sql { format, .. } => Some(format.displayed_media_type()),
        ResourceContent::File { path, .. } => {
            let name = path.fill(|_| String::new());
            media_type_from_extension(Path::new(&name))
        }
    }
}

struct SqlResourceHandler {
    services: Arc<ToolServices>,
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
            statement: self.query.bind_statement(&arguments, call.principal(), &self.services.statements)?,
            output: OutputOptions {
                format: Some(self.format),
                overflow_hint: "Use a tool to read the rest.",
                ..OutputOptions::default()
            },
        };
        Ok(self.services.executor.answer(request))
    }
}

#[derive(Debug)]
pub(super) struct TypedUriVariables {
    inputs: Vec<DeclaredInput>,
    schema: JsonSchema,
}

impl TypedUriVariables {
    /// The variables `names`, declared by `inputs`; text by default.
    pub(super) fn new(names: &[String], mut inputs: Vec<DeclaredInput>) -> Result<Self, Vec<DeclarationProblem>> {
        let problem = |at: String, message: String| {
            let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(names.iter().cloned());
            vec![DeclarationProblem::new(at, error)]
        };
        if let Some(input) = inputs.iter().find(|input| !names.contains(&input.name)) {
            let message = format!("{} is not a variable of the URI; a resource has no other parameters", input.name);
            return Err(problem(format!("input.{}", input.name), message));
        }
        if let Some(input) = inputs.iter().find(|input| input.ask.is_some()) {
            let message = format!("{} is part of the URI and always has a value; only tools support ask", input.name);
            let error = Error::new(ErrorKind::InvalidArguments, message);
            return Err(vec![DeclarationProblem::new(format!("input.{}.ask", input.name), error)]);
        }
        let is_untyped = |name: &&String| inputs.iter().all(|input| input.name != **name);
        let untyped: Vec<DeclaredInput> = names
            .iter()
            .filter(is_untyped)
            .map(|name| DeclaredInput::new(name.clone(), InputKind::Scalar(ScalarType::String)))
            .collect();
        inputs.extend(untyped);
        let schema = JsonSchema::object(object_schema(&inputs, Map::new()));
        let schema = schema.map_err(|error| problem("input".to_owned(), error.to_string()))?;
        Ok(Self { inputs, schema })
    }

    pub(super) fn inputs(&self) -> &[DeclaredInput] {
        &self.inputs
    }

    /// The values in the URI that `job` reads, checked like the arguments of a tool.
    fn parse_from_job(&self, job: &Job) -> Result<Map<String, Value>, Error> {
        self.parse_values(|name| job.variable(name).unwrap_or_default().to_owned())
    }

    fn parse_values(&self, text: impl Fn(&str) -> String) -> Result<Map<String, Value>, Error> {
        let mut values = Map::new();
        for input in &self.inputs {
            values.insert(input.name.clone(), parse_value(input, &text(&input.name))?);
        }
        let values = Value::Object(values);
        self.schema
            .check(&values)
            .map_err(|violations| Error::invalid_arguments("the variables of the URI are invalid:", violations))?;
        match values {
            Value::Object(values) => Ok(values),
            _ => Ok(Map::new()),
        }
    }
}

fn parse_value(input: &DeclaredInput, text: &str) -> Result<Value, Error> {
    match &input.kind {
        InputKind::Scalar(scalar) => parse_scalar(*scalar, &input.name, text),
        InputKind::List(scalar) => text.split(',').map(|item| parse_scalar(*scalar, &input.name, item)).collect(),
        InputKind::Identifier(_) => Ok(Value::from(text)),
    }
}

fn parse_scalar(scalar: ScalarType, name: &str, text: &str) -> Result<Value, Error> {
    let expected = |subject: &str| {
        let message = format!("{name} is {text:?} in the URI; expected {subject}");
        Err(Error::new(ErrorKind::InvalidArguments, message))
    };
    match scalar {
        ScalarType::Integer => text.parse::<i64>().map(Value::from).or_else(|_| expected("a whole number")),
        ScalarType::Number => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::from(number)),
            _ => expected("a number"),
        },
        ScalarType::Boolean => text.parse::<bool>().map(Value::from).or_else(|_| expected("true or false")),
        ScalarType::String | ScalarType::Date | ScalarType::Timestamp => Ok(Value::from(text)),
    }
}

/// Files that are not text are sent whole up to this size, for clients that can display them.
const BINARY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A file that changed within this time may change again without a new timestamp.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

type ByteStream = BoxStream<'static, Result<Bytes, Error>>;

struct FileResourceHandler {
    services: Arc<ToolServices>,
    folder: PathBuf,
    path: TextTemplate,
    variables: Arc<TypedUriVariables>,
    /// The media type of all its files, if configured.
    mime_type: Option<String>,
}

struct OpenResourceFile {
    file: File,
    metadata: std::fs::Metadata,
    stored_file: FileDescription,
}

#[async_trait]
impl Handler for FileResourceHandler {
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let open_file = self.open(&call).await?;
        let store = self.services.executor.store().cloned();
        Ok(Answer::written(move |reply| async move { open_file.send(store, &reply).await }))
    }
}

impl FileResourceHandler {
    async fn open(&self, job: &Job) -> Result<OpenResourceFile, Error> {
        let absent = || Error::new(ErrorKind::NotFound, format!("there is no resource {:?}", job.target().name()));
        // A caller may name any file. What cannot be opened counts as absent; missing permissions are logged.
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => absent().with_detail(format!("{}: {error}", self.folder.display())),
            _ => absent(),
        };
        let lost = |error: std::io::Error| Error::internal(format!("{}: {error}", self.folder.display()));
        self.variables.parse_from_job(job)?;
        let parts = |name: &str| job.variable(name).unwrap_or_default().to_owned();
        if self.path.names().iter().any(|name| !is_safe_path_component(&parts(name))) {
            return Err(absent());
        }
        let path = self.folder.join(self.path.fill(parts));
        let path = tokio::fs::canonicalize(path).await.map_err(unreadable)?;
        let folder = tokio::fs::canonicalize(&self.folder).await.map_err(lost)?;
        if !path.starts_with(&folder) {
            // A link leads out of the folder.
            return Err(absent());
        }
        // Opening a pipe would wait for a writer.
        if !tokio::fs::metadata(&path).await.map_err(unreadable)?.is_file() {
            return Err(absent());
        }
        let file = File::open(&path).await.map_err(unreadable)?;
        let metadata = file.metadata().await.map_err(unreadable)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let media_type = self.mime_type.clone().or_else(|| media_type_from_extension(&path).map(str::to_owned));
        Ok(OpenResourceFile {
            file,
            stored_file: FileDescription { name, media_type, bytes: metadata.len() },
            metadata,
        })
    }
}

impl OpenResourceFile {
    async fn send(&self, store: Option<Arc<ResultStore>>, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let bytes_max = reply.job().limits().inline.bytes;
        let preview_extent = send_preview(self.byte_stream().await?, bytes_max, reply).await?;
        match (preview_extent, store) {
            (PreviewExtent::Complete, _) => Ok(AnswerMeta::default()),
            (PreviewExtent::NotText, _) if self.metadata.len() <= BINARY_BYTES_MAX => self.send_whole(reply).await,
            (PreviewExtent::NotText, None) => Err(self.too_large()),
            (PreviewExtent::Truncated(_), None) => self.end_truncated(preview_extent, reply).await,
            (_, Some(store)) => self.store_remainder(preview_extent, &store, reply).await,
        }
    }

    /// The bytes of the file from the start, even if it changes.
    async fn byte_stream(&self) -> Result<ByteStream, Error> {
        let chunks = stream::try_unfold(self.rewound_file().await?, |mut file| async move {
            let chunk = read_chunk(&mut file, FILE_PIECE_BYTES as u64).await?;
            Ok((!chunk.is_empty()).then_some((chunk, file)))
        });
        Ok(chunks.boxed())
    }

    /// The bytes of the file from the start; an error if it changes.
    async fn verified_byte_stream(&self) -> Result<ByteStream, Error> {
        let reading = (self.rewound_file().await?, self.metadata.clone(), self.metadata.len());
        let chunks = stream::try_unfold(reading, |(mut file, metadata, left)| async move {
            let expected = left.min(FILE_PIECE_BYTES as u64);
            let chunk = read_chunk(&mut file, expected).await?;
            if (chunk.len() as u64) < expected {
                return Err(changed_error());
            }
            if left == 0 {
                return check_unchanged(&file, &metadata).await.map(|()| None);
            }
            Ok(Some((chunk, (file, metadata, left - expected))))
        });
        Ok(chunks.boxed())
    }

    /// The open file at its start. Clones share one position, so they must be read one after the other.
    async fn rewound_file(&self) -> Result<File, Error> {
        let mut file = self.file.try_clone().await.map_err(|error| read_error(&error))?;
        file.rewind().await.map_err(|error| read_error(&error))?;
        Ok(file)
    }

    /// Ends the answer after the preview, and stores the whole file.
    async fn store_remainder(
        &self,
        preview_extent: PreviewExtent,
        store: &Arc<ResultStore>,
        reply: &ReplySender,
    ) -> Result<AnswerMeta, Error> {
        let job = reply.job();
        let state = self.fingerprint();
        let kept = state.as_deref().and_then(|state| store.find_file(&self.stored_file, state, job));
        let begun = match kept {
            Some(result) => Ok((result, None)),
            None => {
                let begun = store.begin_file(self.stored_file.clone(), state.as_deref(), job).await;
                begun.map(|writer| (writer.result().clone(), Some(writer)))
            }
        };
        let (result, writer) = match begun {
            Ok(begun) => begun,
            Err(error) if preview_extent == PreviewExtent::NotText => return Err(error),
            // If nothing can be stored, the answer ends as it would without a store.
            Err(_) => return self.end_truncated(preview_extent, reply).await,
        };
        let uri = result.header().id.uri();
        job.set_result_uri(uri.clone());
        self.append_note(&format!("{} All of it is stored at {uri}.", self.truncation_note(preview_extent)), reply)
            .await?;
        let metadata = AnswerMeta { result_uri: Some(uri), is_truncated: Some(true), ..AnswerMeta::default() };
        let Some(writer) = writer else { return Ok(metadata) };
        let rows = pieces_to_rows(result.schema().clone(), self.verified_byte_stream().await?);
        reply.end_early(metadata, store.limits().timeout).await?;
        // Chunks of a file are not counted as rows.
        writer.write_all(rows, u64::MAX, job).await?;
        Ok(AnswerMeta::default())
    }

    async fn end_truncated(&self, preview_extent: PreviewExtent, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        self.append_note(&self.truncation_note(preview_extent), reply).await?;
        Ok(AnswerMeta { is_truncated: Some(true), ..AnswerMeta::default() })
    }

    async fn append_note(&self, line: &str, reply: &ReplySender) -> Result<(), Error> {
        reply.end_text().await?;
        reply.send_item(Content::text(line)).await
    }

    fn truncation_note(&self, preview_extent: PreviewExtent) -> String {
        let FileDescription { name, media_type, bytes } = &self.stored_file;
        match preview_extent {
            PreviewExtent::Truncated(visible) => format!("Shown: the first {visible} of the file's {bytes} bytes."),
            PreviewExtent::Complete | PreviewExtent::NotText => {
                let media_type = media_type.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
                format!("{name}{media_type} has {bytes} bytes and is not text; its content is not shown.")
            }
        }
    }

    fn too_large(&self) -> Error {
        let bytes = self.metadata.len();
        let message =
            format!("the file has {bytes} bytes; the limit for files that are not text is {BINARY_BYTES_MAX}");
        Error::new(ErrorKind::TooLarge, message)
    }

    async fn send_whole(&self, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let mut chunks = self.byte_stream().await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await.transpose()? {
            bytes.extend_from_slice(&chunk);
        }
        let (uri, mime_type) = (reply.job().target().name().to_owned(), None);
        let contents = ResourceContents { uri, mime_type, body: ResourceBody::Blob(bytes.into()) };
        reply.send_item(Content::Resource(contents)).await?;
        Ok(AnswerMeta::default())
    }

    /// Identifies the current content; `None` if the file changed so recently that a change could go unnoticed.
    fn fingerprint(&self) -> Option<String> {
        let metadata = &self.metadata;
        let is_settled = metadata.modified().ok()?.elapsed().ok()? >= SETTLED_AFTER;
        let numbers = [metadata.dev(), metadata.ino(), metadata.len()];
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        is_settled.then(|| format!("{numbers:?} {times:?}"))
    }
}

/// Detects changes of the file of a declared resource by its length and modification time. A file that the resource could not read counts as absent.
struct FileWatcher {
    folder: PathBuf,
    path: TextTemplate,
    variables: Arc<TypedUriVariables>,
}

impl FileWatcher {
    async fn metadata(&self, variables: &TemplateVariables) -> Option<std::fs::Metadata> {
        let value = |name: &str| variables.get(name).cloned().unwrap_or_default();
        self.variables.parse_values(value).ok()?;
        if self.path.names().iter().any(|name| !is_safe_path_component(&value(name))) {
            return None;
        }
        let path = tokio::fs::canonicalize(self.folder.join(self.path.fill(value))).await.ok()?;
        let folder = tokio::fs::canonicalize(&self.folder).await.ok()?;
        let metadata = tokio::fs::metadata(&path).await.ok()?;
        (path.starts_with(&folder) && metadata.is_file()).then_some(metadata)
    }
}

#[async_trait]
impl ResourceWatcher for FileWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, _caller: &Caller) -> Result<Option<String>, Error> {
        let metadata = self.metadata(variables).await;
        Ok(metadata.map(|metadata| format!("{} {:?}", metadata.len(), metadata.modified().ok())))
    }
}

/// The next `expected` bytes; fewer at the end of the file.
async fn read_chunk(file: &mut File, expected: u64) -> Result<Bytes, Error> {
    let mut chunk = Vec::with_capacity(FILE_PIECE_BYTES);
    file.take(expected).read_to_end(&mut chunk).await.map_err(|error| read_error(&error))?;
    Ok(chunk.into())
}

async fn check_unchanged(file: &File, metadata: &std::fs::Metadata) -> Result<(), Error> {
    let now = file.metadata().await.map_err(|error| read_error(&error))?;
    // Not the other metadata: the file may be unlinked while it is read.
    let size_and_time = |metadata: &std::fs::Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    if size_and_time(&now) == size_and_time(metadata) { Ok(()) } else { Err(changed_error()) }
}

fn changed_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the file changed while it was read").with_hint("Read the resource again.")
}

fn read_error(error: &std::io::Error) -> Error {
    Error::internal(format!("cannot read the file of a resource: {error}"))
}

pub(crate) fn is_safe_path_component(value: &str) -> bool {
    !value.is_empty() && !value.starts_with('.') && !value.contains(['/', '\\', '\0'])
}

pub(crate) fn media_type_from_extension(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
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
