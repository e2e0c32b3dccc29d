//! The ingest folders that a node has open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tidegate_core::{Error, ErrorKind, private_file};
use tidegate_engines::TableRecorder;
use tidegate_ingest::{IngestError, IngestFolder, IngestOptions, TableDeclaration};
use tokio::sync::Mutex;

use super::table_recorder::{ClosedTables, StoredTables, WrittenTables};

/// When a caller may try again: the other process must end first.
const LOCKED_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The longest time after which a folder that could not be opened for a reason that may pass is tried again.
pub(crate) const REOPEN_LONGEST: Duration = Duration::from_secs(60);

/// The open ingest folders by their real path. A folder stays open when its configuration changes, as it has one writer.
#[derive(Debug, Default)]
pub(crate) struct IngestFolders {
    /// Whether this process takes rows. Commands that only ask questions leave the folders to the server.
    writes: bool,
    open: Mutex<BTreeMap<PathBuf, Arc<IngestFolder>>>,
    /// Whether the process ends, so that none is opened any more.
    is_closed: AtomicBool,
}

/// The tables of an ingest folder.
pub(crate) struct OpenedTables {
    pub(crate) source: Arc<dyn TableRecorder>,
    pub(crate) folder_use: FolderUse,
    /// Why this process takes no rows for them, for the administrator.
    pub(crate) warning: Option<String>,
    /// What is damaged, and what else the administrator should know: one sentence each.
    pub(crate) problems: Vec<String>,
}

/// What this process does with a folder.
#[derive(Clone)]
pub(crate) enum FolderUse {
    /// It takes rows.
    Writes(DeclaredTables),
    /// It would take rows, but another process does, which this refusal names.
    Locked(Error),
    /// It would take rows, but the folder cannot be opened, as this refusal says. Nothing is read either.
    Closed(Error),
    /// It only reads the tables.
    Reads,
}

impl FolderUse {
    /// What the configuration declares, if this process writes to the folder.
    pub(crate) fn declared(&self) -> Option<&DeclaredTables> {
        match self {
            Self::Writes(declared) => Some(declared),
            Self::Locked(_) | Self::Closed(_) | Self::Reads => None,
        }
    }

    /// Whether it is closed for a reason that may pass, so that opening it is tried again.
    pub(crate) fn is_tried_again(&self) -> bool {
        matches!(self, Self::Closed(refusal) if refusal.retry_after().is_some())
    }

    /// Whether it is what `before` was, apart from the words of a refusal.
    pub(crate) fn is_same_use(&self, before: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(before)
            && self.is_tried_again() == before.is_tried_again()
    }
}

/// A folder that this process writes, with what its configuration declares.
#[derive(Clone)]
pub(crate) struct DeclaredTables {
    pub(crate) folder: Arc<IngestFolder>,
    tables: Arc<BTreeMap<String, TableDeclaration>>,
    create_tables: bool,
}

impl IngestFolders {
    /// Folders of a process that takes rows if `writes`.
    pub(crate) fn new(writes: bool) -> Self {
        Self { writes, open: Mutex::default(), is_closed: AtomicBool::new(false) }
    }

    /// Opens the folder at `path`, which is created if it does not exist. If it is open, its declarations are checked only.
    /// A folder that is damaged as a whole costs its database only: its tables are closed.
    ///
    /// # Errors
    /// When the folder cannot be created, when a declaration does not fit, or after [`Self::close`].
    pub(crate) async fn open(
        &self,
        name: &str,
        path: &Path,
        tables: BTreeMap<String, TableDeclaration>,
        create_tables: bool,
    ) -> Result<OpenedTables, IngestError> {
        if !self.writes {
            return Ok(OpenedTables {
                source: Arc::new(StoredTables::new(path.to_owned(), &tables)),
                folder_use: FolderUse::Reads,
                warning: None,
                problems: Vec::new(),
            });
        }
        private_file::create_folder(path).map_err(IngestError::io("create", path))?;
        let real = std::fs::canonicalize(path).map_err(IngestError::io("open", path))?;
        let mut open = self.open.lock().await;
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(IngestError::Closed);
        }
        let folder = match open.get(&real) {
            Some(folder) => {
                folder.check_declarations(&tables)?;
                folder.clone()
            }
            None => {
                let options = IngestOptions { tables: tables.clone(), create_tables, ..IngestOptions::default() };
                match IngestFolder::open(name, real.clone(), options).await {
                    Ok(folder) => folder,
                    Err(IngestError::Locked { folder, holder }) => {
                        let source = Arc::new(StoredTables::new(real, &tables));
                        let folder_use = FolderUse::Locked(locked_error(name, &holder));
                        let error = IngestError::Locked { folder, holder };
                        let warning = Some(format!("takes no rows, and may lack the latest ones: {error}"));
                        return Ok(OpenedTables { source, folder_use, warning, problems: Vec::new() });
                    }
                    // The owner corrects it where it is declared.
                    Err(error @ IngestError::Declaration { .. }) => return Err(error),
                    Err(error) => return Ok(OpenedTables::closed(name, real, &tables, &error)),
                }
            }
        };
        open.insert(real, folder.clone());
        let closed = folder.closed_tables().into_iter();
        let closed = closed.map(|(table, reason)| format!("table \"{table}\" is closed: {reason}"));
        let problems = closed.chain(folder.notes()).collect();
        let source = Arc::new(WrittenTables::new(folder.clone()));
        let declared = DeclaredTables { folder, tables: Arc::new(tables), create_tables };
        Ok(OpenedTables { source, folder_use: FolderUse::Writes(declared), warning: None, problems })
    }

    /// Makes `declared` the declarations of their folders, and closes all other folders.
    pub(crate) async fn enter<'a>(&self, declared: impl Iterator<Item = &'a DeclaredTables>) {
        let mut used = Vec::new();
        for tables in declared {
            tables.folder.set_declarations(&tables.tables, tables.create_tables);
            used.push(tables.folder.clone());
        }
        self.close_unused(&used).await;
    }

    /// Closes the folders that are not among `used`.
    async fn close_unused(&self, used: &[Arc<IngestFolder>]) {
        let mut open = self.open.lock().await;
        let is_used = |folder: &Arc<IngestFolder>| used.iter().any(|used| Arc::ptr_eq(used, folder));
        let unused: Vec<PathBuf> =
            open.iter().filter(|(_, folder)| !is_used(folder)).map(|(path, _)| path.clone()).collect();
        // At the same time, as each one may move rows for some seconds.
        let closing = unused.into_iter().filter_map(|path| open.remove(&path).map(|folder| (path, folder)));
        let closed = join_all(closing.map(async |(path, folder)| (path, folder.close().await))).await;
        for (path, result) in closed {
            if let Err(error) = result {
                tracing::error!(
                    "rows that were received stay in the log until {} is opened again: {error}",
                    path.display()
                );
            }
        }
    }

    /// Closes all folders. A configuration that is applied meanwhile opens none again.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.close_unused(&[]).await;
    }
}

impl OpenedTables {
    /// The tables of the folder `root` that cannot be opened because of `error`.
    fn closed(name: &str, root: PathBuf, tables: &BTreeMap<String, TableDeclaration>, error: &IngestError) -> Self {
        // Callers read it, and need not know where the folder is.
        let problem = error.to_string().replace(&format!("{}/", root.display()), "");
        let advice = match error.is_transient() {
            true => "a server opens it when that has passed",
            false => "mend that, or restore the folder of the database from a backup, and restart the server",
        };
        let reason = format!("is closed: {problem}; {advice}");
        let mut refusal = Error::new(ErrorKind::Unavailable, format!("database {name:?} {reason}"));
        if error.is_transient() {
            refusal = refusal.with_retry_after(REOPEN_LONGEST);
        }
        Self {
            source: Arc::new(ClosedTables::new(root, tables, format!("the database {reason}"))),
            folder_use: FolderUse::Closed(refusal),
            warning: Some(reason),
            problems: Vec::new(),
        }
    }
}

/// The refusal of rows for a folder that `writer` writes, as that process describes itself.
fn locked_error(database: &str, writer: &str) -> Error {
    let message = format!("database {database:?} takes no rows here, because its folder is in use by {writer}");
    let error = Error::new(ErrorKind::Unavailable, message).with_retry_after(LOCKED_RETRY_AFTER);
    error.with_hint("Send the rows to the server that writes to the folder.")
}
