//! The files `_about.yaml` beside the data of a database, in which those who own the data describe it.
//!
//! What they say is data of others: no variable is expanded in it, it includes no other file, and a link is not followed.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_query::{ExternalKnowledge, Knowledge};

use super::document::{Document, render_report};
use super::knowledge::build_knowledge;
use super::parsing::parse_knowledge;
use super::problem::ConfigProblem;
use super::problems::Problems;
use super::types::{KnowledgeConfig, NotesConfig};

const FILE_NAME: &str = "_about.yaml";
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Problems of a file that are reported.
const PROBLEMS_MAX: usize = 50;

/// The files of one database. They are read again when they change.
#[derive(Clone)]
pub(super) struct AboutFiles(Arc<KnownFiles>);

struct KnownFiles {
    paths: Vec<PathBuf>,
    last: Mutex<ReadFiles>,
}

/// What the files said when they were read.
#[derive(Clone, Default)]
struct ReadFiles {
    versions: Vec<Option<FileVersion>>,
    knowledge: Arc<Knowledge>,
}

#[derive(Clone, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileVersion {
    fn new(metadata: &Metadata) -> Self {
        Self { inode: metadata.ino(), bytes: metadata.len(), changed: (metadata.ctime(), metadata.ctime_nsec()) }
    }
}

/// A file, as far as it could be parsed.
pub(super) struct AboutFile {
    path: PathBuf,
    document: Document,
    pub(super) knowledge: Knowledge,
}

impl AboutFile {
    /// The lines of `problems`, each with its place in the file.
    pub(super) fn report(&self, problems: &[ConfigProblem]) -> Vec<String> {
        report(&problems[..problems.len().min(PROBLEMS_MAX)], &self.path, &self.document)
    }
}

/// A line for each of `problems`, with its place in `document`.
pub(super) fn report(problems: &[ConfigProblem], path: &Path, document: &Document) -> Vec<String> {
    let line = |problem: &ConfigProblem| render_report(std::slice::from_ref(problem), path, Some(document));
    problems.iter().map(|problem| line(problem).trim_end().to_owned()).collect()
}

impl AboutFiles {
    /// Those in the folders among `paths`, and beside the files of globs.
    pub(super) fn new(paths: impl Iterator<Item = PathBuf>) -> Self {
        let folder = |path: PathBuf| match path.to_str().is_some_and(|text| text.contains(['*', '?'])) {
            true => path.parent().map(Path::to_owned),
            false => Some(path).filter(|path| path.is_dir()),
        };
        let paths = paths.filter_map(folder).map(|folder| folder.join(FILE_NAME)).collect();
        Self(Arc::new(KnownFiles { paths, last: Mutex::default() }))
    }

    /// The files with what they say, and what is wrong with them, a line for each.
    pub(super) fn read(&self) -> (Vec<AboutFile>, Vec<String>) {
        let (mut files, mut lines) = (Vec::new(), Vec::new());
        for path in &self.0.paths {
            match read_file(path) {
                Ok(None) => {}
                Ok(Some(text)) => {
                    let (file, problems) = parse_file(path, &text);
                    lines.extend(problems);
                    files.extend(file);
                }
                Err(reason) => lines.push(format!("{}: {reason}", path.display())),
            }
        }
        (files, lines)
    }

    /// What the files say now. They are read if one of them has changed since.
    fn current(&self) -> Arc<Knowledge> {
        let version = |path: &PathBuf| path.symlink_metadata().ok().map(|metadata| FileVersion::new(&metadata));
        // Before they are read, so that no later change is missed.
        let versions: Vec<Option<FileVersion>> = self.0.paths.iter().map(version).collect();
        let last = self.0.last.lock().clone();
        if last.versions == versions {
            return last.knowledge;
        }
        let (files, lines) = self.read();
        // At the start, the report of the configuration has them.
        if !last.versions.is_empty() {
            lines.iter().for_each(|line| tracing::warn!("{line}"));
        }
        let known = files.iter().fold(Knowledge::default(), |known, file| known.completed_by(&file.knowledge));
        let knowledge = Arc::new(known);
        *self.0.last.lock() = ReadFiles { versions, knowledge: knowledge.clone() };
        knowledge
    }
}

#[async_trait]
impl ExternalKnowledge for AboutFiles {
    async fn load(&self) -> Arc<Knowledge> {
        if self.0.paths.is_empty() {
            return Arc::default();
        }
        let files = self.clone();
        tokio::task::spawn_blocking(move || files.current()).await.unwrap_or_default()
    }
}

/// The text of the file at `path`; `None` if there is none.
fn read_file(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let Ok(named) = path.symlink_metadata() else { return Ok(None) };
    if !named.is_file() {
        return Err("is not read, because it is a link, a folder or a device; write a file".to_owned());
    }
    let file = File::open(path).map_err(unreadable)?;
    let opened = file.metadata().map_err(unreadable)?;
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return Err("is not read, because another file took its place".to_owned());
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is not read, because it is larger than {FILE_BYTES_MAX} bytes; shorten it"));
    }
    Ok(Some(text))
}

/// The file of `text`, unless it is no YAML, and what is wrong with it.
fn parse_file(path: &Path, text: &str) -> (Option<AboutFile>, Vec<String>) {
    let document = match Document::parse_data(path, text) {
        Ok(document) => document,
        Err(problems) => {
            let line = |problem: &ConfigProblem| render_report(std::slice::from_ref(problem), path, None);
            return (None, problems.iter().map(|problem| line(problem).trim_end().to_owned()).collect());
        }
    };
    let (config, mut found) = parse_knowledge(&document);
    let problems = Problems::default();
    let knowledge = config.map(|config| file_knowledge(&config, &problems)).unwrap_or_default();
    found.extend(problems.into_vec());
    found.truncate(PROBLEMS_MAX);
    let lines = report(&found, path, &document);
    (Some(AboutFile { path: path.to_owned(), document, knowledge }), lines)
}

fn file_knowledge(config: &KnowledgeConfig, problems: &Problems) -> Knowledge {
    let notes = match &config.notes {
        Some(NotesConfig::Text(text)) => Some(text.clone()),
        Some(NotesConfig::File(_)) => {
            problems.add("notes", "names a file, which is not read here; write the text itself");
            None
        }
        None => None,
    };
    build_knowledge(config, notes, false, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(text: &str) -> (tempfile::TempDir, AboutFiles) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        let files = AboutFiles::new([folder.path().to_owned()].into_iter());
        (folder, files)
    }

    #[test]
    fn a_file_says_what_it_says_and_reads_nothing_else() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "secret").unwrap();
        let text = format!("include: '*.yaml'\nnotes: '${{file:{}}} ${{HOME}}'\n", secret.path().display());
        let (folder, files) = folder_with(&text);
        let (read, lines) = files.read();
        assert_eq!(read[0].knowledge.notes, Some(format!("${{file:{}}} ${{HOME}}", secret.path().display())));
        assert!(lines.len() == 1 && lines[0].contains("_about.yaml:1:1: include: unknown key"), "{lines:?}");
        let (file, link) = (folder.path().join(FILE_NAME), secret.path());
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(link, &file).unwrap();
        let (read, lines) = files.read();
        assert!(read.is_empty() && lines[0].contains("it is a link"), "{lines:?}");
    }

    #[test]
    fn a_change_takes_effect() {
        let (folder, files) = folder_with("notes: first\n");
        assert_eq!(files.current().notes.as_deref(), Some("first"));
        assert!(Arc::ptr_eq(&files.current(), &files.current()), "it is read once");
        std::fs::write(folder.path().join("new"), "notes: second one\ntables: {t: {description: 1}}\n").unwrap();
        std::fs::rename(folder.path().join("new"), folder.path().join(FILE_NAME)).unwrap();
        assert_eq!(files.current().notes, None, "a value of a wrong type");
        std::fs::write(folder.path().join(FILE_NAME), "notes: third\n").unwrap();
        assert_eq!(files.current().notes.as_deref(), Some("third"));
        std::fs::remove_file(folder.path().join(FILE_NAME)).unwrap();
        assert_eq!(files.current().notes, None);
    }

    #[test]
    fn a_file_cannot_repeat_its_texts_without_end() {
        let values = vec!["*text"; 1_000].join(", ");
        let repeated = format!("notes: &text {}\nexamples: [{values}]\n", "x".repeat(10_000));
        let long_key = format!("tables: {{{}: [{}]}}\n", "k".repeat(1_000), vec!["1"; 10_000].join(","));
        for text in [repeated, long_key] {
            let (_folder, files) = folder_with(&text);
            let (read, lines) = files.read();
            assert!(read.is_empty() && lines.len() == 1 && lines[0].contains("makes the file too large"), "{lines:?}");
        }
    }

    #[test]
    fn a_large_file_is_not_read() {
        let (_folder, files) = folder_with(&format!("notes: '{}'\n", "x".repeat(1 << 16)));
        let (read, lines) = files.read();
        assert!(read.is_empty() && lines[0].contains("larger than 65536 bytes"), "{lines:?}");
    }
}
