//! The files of declared folders, as they are: `list_files`, and `read_file` in pages.
//!
//! A path has the components that a caller sees, without hidden files. It leads where the file system leads it, also by
//! links, but never out of the folder.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, TimestampMillisecondArray};
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{
    Access, AllowedNames, Content, Error, ErrorKind, Principal, PrincipalRule, ResourceBody, ResourceContents,
    Violation, percent_encode,
};
use tidegate_query::OutputOptions;
use tidegate_runtime::{Answer, AnswerMeta, Job, ReplySender, RunningCall, SnapshotBuilder, Tool};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::arguments::{OutputArguments, non_empty, parse_arguments};
use crate::declared::{is_safe_path_component, media_type_from_extension};
use crate::tool_definition::{InputSchemaBuilder, add_tools, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, count_column, text_column};

/// The entries that one call of `list_files` has at most.
const ENTRIES_MAX: usize = 1_000;
/// The bytes of a page for a model, and for a program.
const PAGE_BYTES_MAX: usize = 32 * 1024;
const BODY_PAGE_BYTES_MAX: usize = 256 * 1024;
/// What of a budget is left for the note and the fence, and the smallest page.
const NOTE_BYTES: usize = 1_024;
const PAGE_BYTES_MIN: usize = 512;

const MORE_ENTRIES_HINT: &str = "For more, repeat the call with after: the last path.";

/// A folder whose files callers may read.
#[derive(Debug, Clone)]
pub struct SharedFolder {
    /// Its name in calls.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The access names that callers must hold.
    pub access: Vec<String>,
}

/// The folders of a server, with what their tools need of it.
struct SharedFolders {
    services: Arc<ToolServices>,
    folders: Vec<SharedFolder>,
}

/// Adds the tools that read `folders` to `builder`, as far as `allowed` includes their names. A caller has them only if it
/// may read one of the folders.
pub fn register_file_tools(
    builder: SnapshotBuilder,
    services: &Arc<ToolServices>,
    folders: Vec<SharedFolder>,
    allowed: &AllowedNames,
) -> SnapshotBuilder {
    if folders.is_empty() {
        return builder;
    }
    let folders = Arc::new(SharedFolders { services: services.clone(), folders });
    let readable = folders.clone();
    let rule = PrincipalRule::new(move |principal| readable.visible_to(principal).next().is_some());
    let access = Access { principal_rule: Some(rule), ..Access::default() };
    add_tools(builder, [list_files_tool(&folders), read_file_tool(&folders)], &access, allowed)
}

impl SharedFolder {
    fn is_visible_to(&self, principal: &Principal) -> bool {
        self.access.iter().all(|name| principal.grants.access.includes(name))
    }

    /// The real path of `path`, which is inside the folder.
    async fn resolve(&self, path: &str) -> Result<PathBuf, Error> {
        let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
        if !components.iter().all(|component| is_safe_path_component(component)) {
            return Err(self.absent(path));
        }
        let lost = |error: std::io::Error| {
            let message = format!("the folder {:?} cannot be read", self.name);
            Error::new(ErrorKind::Unavailable, message).with_detail(format!("{}: {error}", self.path.display()))
        };
        let root = tokio::fs::canonicalize(&self.path).await.map_err(lost)?;
        let found = tokio::fs::canonicalize(root.join(components.join("/"))).await;
        let real = found.map_err(|error| self.unreadable(path, &error))?;
        // A link may lead out of the folder.
        if real.starts_with(&root) { Ok(real) } else { Err(self.absent(path)) }
    }

    /// What cannot be opened counts as absent; a missing permission is logged.
    fn unreadable(&self, path: &str, error: &std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => self.absent(path).with_detail(format!("{path}: {error}")),
            _ => self.absent(path),
        }
    }

    fn absent(&self, path: &str) -> Error {
        Error::new(ErrorKind::NotFound, format!("there is no file {path:?} in the folder {:?}", self.name))
            .with_hint("list_files has the paths.")
    }
}

impl SharedFolders {
    fn visible_to(&self, principal: &Principal) -> impl Iterator<Item = &SharedFolder> {
        self.folders.iter().filter(move |folder| folder.is_visible_to(principal))
    }

    /// The folder `name`, else the only one.
    fn find(&self, name: Option<&str>, principal: &Principal) -> Result<&SharedFolder, Error> {
        let visible: Vec<&SharedFolder> = self.visible_to(principal).collect();
        let message = match (name, visible.as_slice()) {
            (None, [only]) => return Ok(*only),
            (None, _) => "name the folder in the argument \"folder\"".to_owned(),
            (Some(name), folders) => match folders.iter().find(|folder| folder.name == name) {
                Some(folder) => return Ok(*folder),
                None => format!("there is no folder {name:?}"),
            },
        };
        let names = visible.iter().map(|folder| folder.name.clone());
        Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(names))
    }
}

fn list_files_tool(folders: &Arc<SharedFolders>) -> Tool {
    read_only_tool(
        "list_files",
        "List files",
        "Files and folders in a folder of this server, by path.",
        InputSchemaBuilder::new()
            .with("folder", json!({"type": "string", "description": "Default: the only one"}))
            .with("path", json!({"type": "string", "description": "A folder inside; default: the folder itself"}))
            .with("after", json!({"type": "string", "description": "Only paths after this one"}))
            .with_output_arguments(),
        context_handler(folders, handle_list_files),
    )
}

#[derive(Deserialize)]
struct ListFilesArguments {
    #[serde(default, deserialize_with = "non_empty")]
    folder: Option<String>,
    #[serde(default)]
    path: String,
    #[serde(default)]
    after: String,
    #[serde(flatten)]
    shape: OutputArguments,
}

/// An entry of a folder.
struct FileEntry {
    is_folder: bool,
    metadata: std::fs::Metadata,
}

async fn handle_list_files(folders: Arc<SharedFolders>, call: RunningCall) -> Result<Answer, Error> {
    let ListFilesArguments { folder, path, after, shape } = parse_arguments(&call)?;
    let output = OutputOptions {
        rows_max: Some(ENTRIES_MAX as u64),
        limit_hint: Some(MORE_ENTRIES_HINT),
        ..shape.output_options(MORE_ENTRIES_HINT)?
    };
    let folder = folders.find(folder.as_deref(), call.principal())?;
    let entries = read_entries(folder, &path, &after).await?;
    let modified: ArrayRef = Arc::new(
        entries
            .values()
            .map(|entry| {
                let modified = entry.metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
                i64::try_from(modified.as_millis()).ok()
            })
            .collect::<TimestampMillisecondArray>()
            .with_timezone("UTC"),
    );
    let kind = |entry: &FileEntry| if entry.is_folder { "folder" } else { "file" }.to_owned();
    let media_type = |path: &String| media_type_from_extension(Path::new(path)).map(str::to_owned);
    let rows = TableBuilder::new()
        .with_column("path", text_column(entries.keys().map(|path| Some(path.clone()))))
        .with_column("kind", text_column(entries.values().map(|entry| Some(kind(entry)))))
        .with_column(
            "bytes",
            count_column(entries.values().map(|entry| (!entry.is_folder).then_some(entry.metadata.len()))),
        )
        .with_column("modified_at", modified)
        .with_column("media_type", text_column(entries.keys().map(media_type)))
        .into_rows()?;
    Ok(folders.services.executor.answer_rows(rows, output))
}

/// The first entries of `path` after the path `after`, and one more, so that the answer states whether more exist.
async fn read_entries(folder: &SharedFolder, path: &str, after: &str) -> Result<BTreeMap<String, FileEntry>, Error> {
    let real = folder.resolve(path).await?;
    let root = folder.resolve("").await?;
    let unreadable = |error: std::io::Error| folder.unreadable(path, &error);
    let mut reading = tokio::fs::read_dir(&real).await.map_err(unreadable)?;
    let inside = path.trim_matches('/');
    let mut entries: BTreeMap<String, FileEntry> = BTreeMap::new();
    while let Some(entry) = reading.next_entry().await.map_err(unreadable)? {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_safe_path_component(name)) else { continue };
        let listed = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
        let is_behind_page =
            entries.len() > ENTRIES_MAX && entries.last_key_value().is_some_and(|(last, _)| listed > *last);
        if listed.as_str() <= after || is_behind_page {
            continue;
        }
        // A link that leads nowhere or out of the folder is not listed, as little as a device.
        let Ok(target) = tokio::fs::canonicalize(entry.path()).await else { continue };
        let Ok(metadata) = tokio::fs::metadata(&target).await else { continue };
        if !target.starts_with(&root) || !(metadata.is_dir() || metadata.is_file()) {
            continue;
        }
        entries.insert(listed, FileEntry { is_folder: metadata.is_dir(), metadata });
        if entries.len() > ENTRIES_MAX + 1 {
            entries.pop_last();
        }
    }
    Ok(entries)
}

fn read_file_tool(folders: &Arc<SharedFolders>) -> Tool {
    read_only_tool(
        "read_file",
        "Read a file",
        "The text of a file, or its bytes, in pages. list_files has the paths.",
        InputSchemaBuilder::new()
            .with("folder", json!({"type": "string", "description": "Default: the only one"}))
            .with_required("path", json!({"type": "string"}))
            .with("cursor", json!({"type": "string", "description": "The cursor of the page before"})),
        context_handler(folders, handle_read_file),
    )
    .with_pagination()
}

#[derive(Deserialize)]
struct ReadFileArguments {
    #[serde(default, deserialize_with = "non_empty")]
    folder: Option<String>,
    path: String,
    #[serde(default, deserialize_with = "non_empty")]
    cursor: Option<String>,
}

async fn handle_read_file(folders: Arc<SharedFolders>, call: RunningCall) -> Result<Answer, Error> {
    let ReadFileArguments { folder, path, cursor } = parse_arguments(&call)?;
    let cursor = cursor.as_deref().map(FileCursor::parse).transpose()?;
    let folder = folders.find(folder.as_deref(), call.principal())?;
    let page = FilePage::read(folder, &path, cursor, page_bytes_max(&call)).await?;
    let uri = format!("tidegate://folders/{}/{}", percent_encode(&folder.name), percent_encode(&path));
    Ok(Answer::written(move |reply| async move { page.send(uri, &reply).await }))
}

fn page_bytes_max(job: &Job) -> usize {
    let page = if job.format().is_some() { BODY_PAGE_BYTES_MAX } else { PAGE_BYTES_MAX };
    let budget = job.limits().inline.bytes.map_or(page, |bytes| bytes.saturating_sub(NOTE_BYTES));
    budget.clamp(PAGE_BYTES_MIN, page)
}

/// The position of a page: a byte of one version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileCursor {
    offset: u64,
    version: u64,
}

impl FileCursor {
    fn parse(text: &str) -> Result<Self, Error> {
        let parts = text.split_once('-').and_then(|(offset, version)| {
            Some(Self { offset: offset.parse().ok()?, version: u64::from_str_radix(version, 16).ok()? })
        });
        parts.ok_or_else(|| {
            let message = format!("{text:?} is no cursor of read_file; begin again without one");
            let violation = Violation { path: "cursor".to_owned(), message };
            Error::invalid_arguments("the arguments of tool \"read_file\" are wrong:", vec![violation])
        })
    }
}

impl std::fmt::Display for FileCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{:x}", self.offset, self.version)
    }
}

/// Identifies the content of a file, as far as its metadata do.
fn file_version(metadata: &std::fs::Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher);
    hasher.finish()
}

/// A part of a file.
struct FilePage {
    media_type: Option<&'static str>,
    offset: u64,
    content: PageContent,
    file_bytes: u64,
    next: Option<FileCursor>,
}

enum PageContent {
    Text(String),
    Bytes(Vec<u8>),
}

impl FilePage {
    async fn read(
        folder: &SharedFolder,
        path: &str,
        cursor: Option<FileCursor>,
        bytes_max: usize,
    ) -> Result<Self, Error> {
        let real = folder.resolve(path).await?;
        let unreadable = |error: std::io::Error| folder.unreadable(path, &error);
        // Opening a pipe would wait for a writer.
        if !tokio::fs::metadata(&real).await.map_err(unreadable)?.is_file() {
            return Err(folder.absent(path));
        }
        let mut file = File::open(&real).await.map_err(unreadable)?;
        let metadata = file.metadata().await.map_err(unreadable)?;
        // A link may have taken the place of a part of the path meanwhile.
        if !metadata.is_file() || tokio::fs::canonicalize(&real).await.map_err(unreadable)? != real {
            return Err(folder.absent(path));
        }
        let version = file_version(&metadata);
        let offset = cursor.map_or(0, |cursor| cursor.offset);
        if cursor.is_some_and(|cursor| cursor.version != version || cursor.offset > metadata.len()) {
            let message = format!("the file {path:?} has changed since the page before");
            return Err(Error::new(ErrorKind::Unavailable, message).with_hint("Read it again without a cursor."));
        }
        let mut bytes = Vec::new();
        file.seek(std::io::SeekFrom::Start(offset)).await.map_err(unreadable)?;
        file.take(bytes_max as u64).read_to_end(&mut bytes).await.map_err(unreadable)?;
        let is_last = |bytes: usize| offset + bytes as u64 >= metadata.len();
        let (content, length) = PageContent::new(bytes, bytes_max, is_last);
        let next = (!is_last(length)).then_some(FileCursor { offset: offset + length as u64, version });
        let media_type = media_type_from_extension(Path::new(path));
        Ok(Self { media_type, offset, content, file_bytes: metadata.len(), next })
    }

    async fn send(self, uri: String, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let length = self.content.len();
        let content = match self.content {
            PageContent::Text(text) => Content::text(reply.job().protection().fence_data(text)),
            PageContent::Bytes(bytes) => {
                let mime_type = self.media_type.map(str::to_owned);
                Content::Resource(ResourceContents { uri, mime_type, body: ResourceBody::Blob(bytes.into()) })
            }
        };
        reply.send_item(content).await?;
        let Some(next) = self.next.map(|next| next.to_string()) else { return Ok(AnswerMeta::default()) };
        let note = format!(
            "Bytes {} to {} of {}. To continue, repeat the call with \"cursor\": \"{next}\".",
            self.offset,
            self.offset + length as u64,
            self.file_bytes
        );
        reply.send_item(Content::text(note)).await?;
        Ok(AnswerMeta { is_truncated: Some(true), cursor: Some(next), ..AnswerMeta::default() })
    }
}

impl PageContent {
    /// The content of a page, and how many of `bytes` it has. Text ends with a line where more follows, so that neither a
    /// character nor a secret in a line is divided.
    fn new(mut bytes: Vec<u8>, bytes_max: usize, is_last: impl Fn(usize) -> bool) -> (Self, usize) {
        let valid = match std::str::from_utf8(&bytes) {
            Ok(_) => Some(bytes.len()),
            // The last character goes on behind the page.
            Err(error) if error.error_len().is_none() && !is_last(bytes.len()) => Some(error.valid_up_to()),
            Err(_) => None,
        };
        if let Some(valid) = valid.filter(|_| !bytes.contains(&0)) {
            let is_whole = is_last(bytes.len());
            let line_end = bytes.iter().rposition(|byte| *byte == b'\n').map(|line_break| line_break + 1);
            let length = if is_whole { valid } else { line_end.unwrap_or(valid) };
            bytes.truncate(length);
            return (Self::Text(String::from_utf8(bytes).unwrap_or_default()), length);
        }
        // Base64 has four characters for three bytes.
        bytes.truncate(bytes_max / 4 * 3);
        let length = bytes.len();
        (Self::Bytes(bytes), length)
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}
