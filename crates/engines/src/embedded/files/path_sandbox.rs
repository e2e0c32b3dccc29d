//! The path sandbox of a database: no file outside its paths is ever opened. Nor is a file that is no longer the one
//! that was probed.
//!
//! A path is checked when it is found. After opening, the real path of the file is read from the operating system and
//! checked again, so replacing a symbolic link in between has no effect.
//!
//! DataFusion opens files by their location in the database, in a read-only object store of one snapshot. A location
//! that is not in the snapshot does not exist in this store, even if the file is on disk.
//!
//! Files are often replaced while they are served: by an atomic rename, or by rewriting them. Header, types and
//! positions of one file are invalid for another file with the same name. So they apply only if the open file is the
//! same file; otherwise the query is planned again. File systems reuse inode numbers and timestamps, so the beginning
//! of a text file is compared as well.
//!
//! Clocks of file systems tick: a file that is written twice within a tick has one time for both. A version that was
//! read so early equals no other, and what was read from the file is read again.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path as Location;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// The real paths that a database may read: folders with all their contents, and single files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathSandbox {
    allowed_paths: Vec<PathBuf>,
}

const OPEN_ATTEMPTS_MAX: usize = 16;

#[derive(Debug)]
pub(crate) enum OpenRefusal {
    /// It is outside the paths of the database, possibly behind a symbolic link.
    Outside,
    /// It is a device, a pipe or a folder.
    NotAFile,
    Vanished,
    Io(io::Error),
}

impl OpenRefusal {
    /// The reason for callers. It contains no path of this machine.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Outside => "it is a symbolic link that points outside the database folder".to_owned(),
            Self::NotAFile => "it is not a regular file".to_owned(),
            Self::Vanished => "the file no longer exists".to_owned(),
            Self::Io(error) => io_error_reason(error),
        }
    }
}

impl From<io::Error> for OpenRefusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Vanished,
            _ => Self::Io(error),
        }
    }
}

/// The description of an I/O error, without the operating system's error number and without a path.
pub(crate) fn io_error_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotFound => "the file no longer exists".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}

impl PathSandbox {
    /// A sandbox of `real_paths`, which must not contain symbolic links.
    pub(crate) fn new(real_paths: Vec<PathBuf>) -> Self {
        Self { allowed_paths: real_paths }
    }

    /// Whether `real_path`, which must not contain symbolic links, may be read.
    pub(crate) fn contains(&self, real_path: &Path) -> bool {
        self.allowed_paths.iter().any(|allowed| real_path.starts_with(allowed))
    }

    /// Opens the file at `path` if its real path is allowed. If the file is being replaced, opens the new one.
    pub(crate) fn open(&self, path: &Path) -> Result<File, OpenRefusal> {
        for _ in 0..OPEN_ATTEMPTS_MAX {
            match self.open_once(path) {
                Err(OpenRefusal::Vanished) => {}
                opened => return opened,
            }
        }
        self.open_once(path)
    }

    fn open_once(&self, path: &Path) -> Result<File, OpenRefusal> {
        let real = fs::canonicalize(path)?;
        if !self.contains(&real) {
            return Err(OpenRefusal::Outside);
        }
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if !fs::symlink_metadata(&real)?.is_file() {
            return Err(OpenRefusal::NotAFile);
        }
        let file = OpenOptions::new().read(true).open(&real)?;
        if !file.metadata()?.is_file() {
            return Err(OpenRefusal::NotAFile);
        }
        match path_of(&file, &real)? {
            Some(opened) if self.contains(&opened) => Ok(file),
            Some(_) => Err(OpenRefusal::Outside),
            None => Err(OpenRefusal::Vanished),
        }
    }
}

/// The real path of an open file; `None` if the file was deleted.
#[cfg(target_os = "linux")]
fn path_of(file: &File, _believed: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    if file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map(Some)
}

/// The real path of an open file as far as this system reports it: `believed`, if the same file is still there.
#[cfg(all(unix, not(target_os = "linux")))]
fn path_of(file: &File, believed: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::fs::MetadataExt;

    let (opened, there) = (file.metadata()?, fs::symlink_metadata(believed)?);
    if (opened.dev(), opened.ino()) != (there.dev(), there.ino()) {
        return Ok(None);
    }
    fs::canonicalize(believed).map(Some)
}

/// The real path of an open file, as far as this system reports it.
#[cfg(not(unix))]
fn path_of(_file: &File, believed: &Path) -> io::Result<Option<PathBuf>> {
    fs::canonicalize(believed).map(Some)
}

const STORE_NAME: &str = "files";
/// How many files of a folder are compared with a file that was renamed.
const RENAMED_ENTRIES_MAX: usize = 10_000;
/// What object_store writes before the messages of this store.
pub(crate) const STORE_ERROR_PREFIX: &str = "Generic files error: ";

#[derive(Debug, Clone)]
pub(crate) struct PinnedFile {
    pub(crate) path: PathBuf,
    /// The identity that the file must have. `None` for text files that were not probed.
    pub(crate) identity: Option<FileIdentity>,
    /// Whether the file is searched in its folder if another one has its name now, because logs are rotated.
    pub(crate) may_be_renamed: bool,
}

#[derive(Clone)]
pub(crate) struct FilesObjectStore {
    pub(crate) sandbox: PathSandbox,
    pub(crate) files: Arc<HashMap<Location, PinnedFile>>,
    /// Keep the files of a [`TableRecorder`](super::TableRecorder) while a statement may read them.
    #[expect(dead_code, reason = "they are kept, not used")]
    pub(crate) leases: Arc<[Arc<dyn Any + Send + Sync>]>,
}

/// The error when another program writes or replaces a file during the query.
pub(crate) const CHANGED_WHILE_READ: &str = "it changed while it was being read; retry";

impl FilesObjectStore {
    fn open(&self, location: &Location) -> Result<File> {
        let failed = |reason: String| unreadable_error(location, &reason);
        let stored = self.files.get(location).ok_or_else(|| failed("it is not in the catalog".to_owned()))?;
        match (self.sandbox.open(&stored.path), &stored.identity) {
            (Ok(file), None) => Ok(file),
            (Ok(file), Some(identity))
                if identity.matches_file(&file).map_err(|error| failed(io_error_reason(&error)))? =>
            {
                Ok(file)
            }
            (Ok(_) | Err(OpenRefusal::Vanished), Some(identity)) if stored.may_be_renamed => {
                let renamed = find_renamed(&self.sandbox, &stored.path, identity);
                renamed.ok_or_else(|| failed(CHANGED_WHILE_READ.to_owned()))
            }
            // A file that is removed is planned without, if there is still a table.
            (Ok(_) | Err(OpenRefusal::Vanished), _) => Err(failed(CHANGED_WHILE_READ.to_owned())),
            (Err(refusal), _) => Err(failed(refusal.reason())),
        }
    }

    fn get(&self, location: &Location, options: &GetOptions) -> Result<GetResult> {
        let file = self.open(location)?;
        let metadata = file.metadata().map_err(|error| unreadable_error(location, &io_error_reason(&error)))?;
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: metadata.modified().unwrap_or(std::time::SystemTime::UNIX_EPOCH).into(),
            size: metadata.len(),
            e_tag: None,
            version: None,
        };
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(|error| generic_error(error.to_string()))?,
            None => 0..meta.size,
        };
        // The path is used only in messages, so it must not reveal a path of this machine.
        let payload = GetResultPayload::File(file, PathBuf::from(location.as_ref()));
        Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
    }

    fn read_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut file = self.open(location)?;
        let failed = |reason: String| unreadable_error(location, &reason);
        let bytes = file.metadata().map_err(|error| failed(io_error_reason(&error)))?.len();
        ranges.iter().map(|range| read_range(&mut file, bytes, range).map_err(failed)).collect()
    }
}

/// The file that was at `path`, under another name of its folder; or else a copy of it that is at least as long, because
/// some rotations copy the file and then truncate it.
fn find_renamed(sandbox: &PathSandbox, path: &Path, identity: &FileIdentity) -> Option<File> {
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path.parent()?).ok()?.take(RENAMED_ENTRIES_MAX).flatten() {
        let other = entry.path();
        if entry.metadata().is_ok_and(|metadata| metadata.is_file() && identity.is_same_file(&metadata))
            && let Ok(file) = sandbox.open(&other)
            && identity.matches_file(&file).is_ok_and(|matches| matches)
        {
            return Some(file);
        }
        entries.push(other);
    }
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let has_stem = |other: &PathBuf| other.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem));
    let candidates = entries.into_iter().filter(|other| other != path && has_stem(other));
    candidates
        .filter_map(|other| sandbox.open(&other).ok())
        .find(|file| identity.is_copy(file).is_ok_and(|is_copy| is_copy))
}

/// The error is the reason why the range cannot be read.
fn read_range(file: &mut File, file_bytes: u64, range: &Range<u64>) -> Result<Bytes, String> {
    // A damaged footer may refer to any range. Check it before allocating memory.
    if range.start > range.end || range.end > file_bytes {
        return Err(format!("it is damaged: it refers to bytes {range:?} of {file_bytes}"));
    }
    let unreadable = |error: std::io::Error| io_error_reason(&error);
    file.seek(SeekFrom::Start(range.start)).map_err(unreadable)?;
    let length = usize::try_from(range.end - range.start).map_err(|error| error.to_string())?;
    let mut buffer = vec![0; length];
    file.read_exact(&mut buffer).map_err(unreadable)?;
    Ok(buffer.into())
}

fn unreadable_error(location: &Location, reason: &str) -> Error {
    generic_error(format!("the file {location} cannot be read: {reason}"))
}

fn generic_error(reason: String) -> Error {
    Error::Generic { store: STORE_NAME, source: reason.into() }
}

fn read_only_error(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: STORE_NAME.to_owned() }
}

impl fmt::Debug for FilesObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilesObjectStore({} files)", self.files.len())
    }
}

impl fmt::Display for FilesObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STORE_NAME)
    }
}

#[async_trait]
impl ObjectStore for FilesObjectStore {
    async fn put_opts(&self, _: &Location, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only_error("put"))
    }

    async fn put_multipart_opts(&self, _: &Location, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only_error("put"))
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        let (store, location) = (self.clone(), location.clone());
        run_on_blocking_thread(move || store.get(&location, &options)).await
    }

    async fn get_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (store, location, ranges) = (self.clone(), location.clone(), ranges.to_vec());
        run_on_blocking_thread(move || store.read_ranges(&location, &ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Location>>) -> BoxStream<'static, Result<Location>> {
        locations.map(|_| Err(read_only_error("delete"))).boxed()
    }

    fn list(&self, _: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        futures::stream::once(async { Err(read_only_error("list")) }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Location>) -> Result<ListResult> {
        Err(read_only_error("list"))
    }

    async fn copy_opts(&self, _: &Location, _: &Location, _: CopyOptions) -> Result<()> {
        Err(read_only_error("copy"))
    }
}

/// Runs `work`, which waits for the disk, on a thread where it does not block queries.
async fn run_on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(generic_error(error.to_string())))
}

const BEGINNING_BYTES_MAX: u64 = 16 << 10;
/// Longer than a tick of a kernel, which takes at most 10 ms, and more if a virtual machine pauses.
const TICK: Duration = Duration::from_millis(50);
/// The tick of file systems that store whole seconds, such as FAT.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// The version of a file or folder, from its metadata, without reading it. Two versions are equal only if the file
/// cannot have changed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    /// Device and inode number. Zero if the system has none.
    id: (u64, u64),
    /// The time of the last change, which no program can set; if the system has none, `modified`.
    changed: SystemTime,
    /// When this was read, if a later change may have the same time.
    unsettled_at: Option<SystemTime>,
}

impl FileVersion {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let (id, changed) = identity_of(metadata).unwrap_or(((0, 0), modified));
        let now = SystemTime::now();
        let unsettled_at = may_change_unseen(changed, now).then_some(now);
        Self { bytes: metadata.len(), modified, id, changed, unsettled_at }
    }

    /// Whether each later change gives the file another version.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled_at.is_none()
    }

    /// Identifies the file, whatever its name is. `None` if the system has no such identifier.
    pub(crate) fn file_id(&self) -> Option<(u64, u64)> {
        (self.id.1 != 0).then_some(self.id)
    }

    pub(crate) fn is_on_device_of(&self, other: &Self) -> bool {
        self.id.0 == other.id.0
    }

    pub(crate) fn may_have_grown_to(&self, later: &Self) -> bool {
        self.id == later.id && self.bytes <= later.bytes
    }

    /// The metadata alone: equal to that of a later time, even if the file may have changed in between.
    pub(crate) fn metadata(self) -> Self {
        Self { unsettled_at: None, ..self }
    }

    /// A text that identifies the version, as versions of objects in a store are written.
    pub(crate) fn tag(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// Whether a file that changed at `changed` may change after `now` and keep that time.
fn may_change_unseen(changed: SystemTime, now: SystemTime) -> bool {
    let second = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let tick = if second.subsec_nanos() == 0 { COARSE_TICK } else { TICK };
    // The clock of another machine may be ahead.
    let distance = now.duration_since(changed).unwrap_or_else(|ahead| ahead.duration());
    distance < tick
}

#[cfg(unix)]
fn identity_of(metadata: &Metadata) -> Option<((u64, u64), SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    let since_1970 = Duration::new(metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
    Some(((metadata.dev(), metadata.ino()), SystemTime::UNIX_EPOCH.checked_add(since_1970)?))
}

#[cfg(not(unix))]
fn identity_of(_metadata: &Metadata) -> Option<((u64, u64), SystemTime)> {
    None
}

/// A file or folder, and its version when it was scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathVersion {
    pub(crate) path: PathBuf,
    pub(crate) version: FileVersion,
    /// Whether it is on this machine, so that its metadata can be read at once.
    pub(crate) is_local: bool,
}

impl PathVersion {
    /// The current version of the file or folder at `path`.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let version = FileVersion::from_metadata(&fs::metadata(path)?);
        Ok(Self { path: path.to_path_buf(), version, is_local: is_local(path) })
    }

    /// Whether it still has this version. Reads only metadata.
    pub(crate) fn is_unchanged(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| FileVersion::from_metadata(&metadata) == self.version)
    }
}

/// A symbolic link to a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderLink {
    path: PathBuf,
    /// The real path of the folder.
    real: PathBuf,
    /// Whether the folder is on this machine.
    is_local: bool,
}

impl FolderLink {
    pub(crate) fn new(path: PathBuf, real: PathBuf) -> Self {
        let is_local = is_local(&real);
        Self { path, real, is_local }
    }

    /// Whether it still leads to this folder.
    pub(crate) fn is_unchanged(&self) -> bool {
        fs::canonicalize(&self.path).is_ok_and(|real| real == self.real)
    }
}

/// Maximum number of files and folders whose metadata is read on the thread of a request.
const QUICK_CHECKS_MAX: usize = 16;

/// Whether `paths` and `links` can be compared with what they are now on the thread of a request.
pub(crate) fn is_quick<'a>(paths: impl Iterator<Item = &'a PathVersion> + Clone, links: &[FolderLink]) -> bool {
    paths.clone().count() + links.len() <= QUICK_CHECKS_MAX
        && paths.map(|path| path.is_local).chain(links.iter().map(|link| link.is_local)).all(|is_local| is_local)
}

/// What a scan depends on, as it was before it was read. As long as nothing of it changes, a scan finds the same.
#[derive(Debug, Default)]
pub(crate) struct ScanInputs {
    paths: Vec<PathVersion>,
    /// Files that did not exist.
    absent: Vec<PathBuf>,
    /// Whether there are others: too many, on another machine, or without a version, as the target of a broken link.
    has_others: bool,
}

impl ScanInputs {
    /// Adds a file or folder. `read` returns `None` if it has no version.
    pub(crate) fn add(&mut self, read: impl FnOnce() -> Option<PathVersion>) {
        if self.has_others {
            return;
        }
        match read().filter(|path| path.is_local) {
            Some(path) if self.has_room() => self.paths.push(path),
            _ => self.has_others = true,
        }
    }

    /// As [`ScanInputs::add`], if it exists. If it does not, another input changes when it is created.
    pub(crate) fn add_if_exists(&mut self, read: impl FnOnce() -> Option<PathVersion>) {
        if !self.has_others
            && let Some(path) = read()
        {
            self.add(|| Some(path));
        }
    }

    /// Adds a file that does not exist.
    pub(crate) fn add_absent(&mut self, path: &Path) {
        match self.has_room() {
            true => self.absent.push(path.to_path_buf()),
            false => self.has_others = true,
        }
    }

    /// All inputs, if they can be compared on the thread of a request.
    pub(crate) fn if_quick(self) -> Option<Self> {
        (!self.has_others).then_some(self)
    }

    /// Whether nothing has changed. Reads only metadata.
    pub(crate) fn are_unchanged(&self) -> bool {
        self.paths.iter().all(PathVersion::is_unchanged) && !self.absent.iter().any(|path| path.exists())
    }

    fn has_room(&self) -> bool {
        self.paths.len() + self.absent.len() < QUICK_CHECKS_MAX
    }
}

/// Magic numbers of file systems on local devices and in memory (`statfs(2)`): bcachefs, Btrfs, ext2 to ext4, F2FS,
/// overlays of containers, tmpfs, XFS, ZFS.
#[cfg(target_os = "linux")]
const LOCAL: [u32; 8] =
    [0xca45_1a4e, 0x9123_683e, 0xef53, 0xf2f5_2010, 0x794c_7630, 0x0102_1994, 0x5846_5342, 0x2fc1_2fc1];

/// Whether the file at `path` is on a file system that is known to be local, on this machine. The metadata of files of
/// another machine may take long to read.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(path: &Path) -> bool {
    let kind = rustix::fs::statfs(path).map(|status| u32::try_from(status.f_type));
    matches!(kind, Ok(Ok(magic)) if LOCAL.contains(&magic))
}

/// Other systems do not report it in the same way.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: &Path) -> bool {
    false
}

/// Identifies a probed file: its version, and the beginning of a text that may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) version: FileVersion,
    /// Length and hash of the beginning, for files that may grow.
    beginning: Option<(u64, u64)>,
}

impl FileIdentity {
    /// For a file whose recorded positions are only valid if it does not change at all.
    pub(crate) fn exact(version: FileVersion) -> Self {
        Self { version, beginning: None }
    }

    /// For a file that was not read, and at whose end rows may be added later.
    pub(crate) fn growing(version: FileVersion) -> Self {
        Self { version, beginning: Some((0, DefaultHasher::new().finish())) }
    }

    /// Whether `metadata` is that of the probed file, which may have another name now.
    pub(crate) fn is_same_file(&self, metadata: &Metadata) -> bool {
        self.version.may_have_grown_to(&FileVersion::from_metadata(metadata))
    }

    /// Whether the open `file` begins with what was probed, and is at least as long. Another file may be a copy.
    fn is_copy(&self, file: &File) -> io::Result<bool> {
        let Some((bytes, hash)) = self.beginning.filter(|(bytes, _)| *bytes > 0) else { return Ok(false) };
        Ok(file.metadata()?.len() >= self.version.bytes && hash_beginning(file, bytes)? == hash)
    }

    /// The identity of an open file. With `may_grow`, rows may be added at its end later. Rewinds the file.
    pub(crate) fn from_file(file: &File, may_grow: bool) -> io::Result<Self> {
        let version = FileVersion::from_metadata(&file.metadata()?);
        let beginning = if may_grow {
            let bytes = version.bytes.min(BEGINNING_BYTES_MAX);
            Some((bytes, hash_beginning(file, bytes)?))
        } else {
            None
        };
        Ok(Self { version, beginning })
    }

    /// Whether the open `file` is still the probed one. The file must be at its beginning, and is there again
    /// afterwards.
    pub(crate) fn matches_file(&self, file: &File) -> io::Result<bool> {
        let now = FileVersion::from_metadata(&file.metadata()?);
        match self.beginning {
            None => Ok(now.metadata() == self.version.metadata()),
            Some((bytes, hash)) => Ok(self.version.may_have_grown_to(&now) && hash_beginning(file, bytes)? == hash),
        }
    }
}

/// The hash of the first `bytes` bytes. A shorter file has another hash.
fn hash_beginning(mut file: &File, bytes: u64) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    file.rewind()?;
    file.take(bytes).read_to_end(&mut buffer)?;
    file.rewind()?;
    hasher.write(&buffer);
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    #[cfg(unix)]
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn opens_only_files_inside_the_allowed_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (inside, outside) = (root.join("in"), root.join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(inside.join("a.csv"), "x").unwrap();
        fs::write(outside.join("secret.csv"), "x").unwrap();
        symlink(outside.join("secret.csv"), inside.join("link.csv")).unwrap();
        symlink("a.csv", inside.join("alias.csv")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        let path_sandbox = PathSandbox::new(vec![inside.clone()]);

        assert!(path_sandbox.open(&inside.join("a.csv")).is_ok());
        assert!(path_sandbox.open(&inside.join("alias.csv")).is_ok());
        for path in ["link.csv", "folder/secret.csv", "../out/secret.csv"] {
            assert!(matches!(path_sandbox.open(&inside.join(path)), Err(OpenRefusal::Outside)), "{path}");
        }
        assert!(matches!(path_sandbox.open(&inside.join("none.csv")), Err(OpenRefusal::Vanished)));
        assert!(matches!(path_sandbox.open(&inside), Err(OpenRefusal::NotAFile)));
        assert!(!path_sandbox.contains(&root.join("inside-by-prefix-only")));
    }

    #[test]
    fn accepts_grown_file_and_rejects_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let open = || File::open(&path).unwrap();
        let (text, exact) =
            (FileIdentity::from_file(&open(), true).unwrap(), FileIdentity::from_file(&open(), false).unwrap());
        assert!(text.matches_file(&open()).unwrap() && exact.matches_file(&open()).unwrap());

        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"3,4\n").unwrap();
        assert!(text.matches_file(&open()).unwrap());
        assert!(!exact.matches_file(&open()).unwrap());

        std::fs::write(&path, "b,a\n1,2\n3,4\n5,6\n").unwrap();
        assert!(!text.matches_file(&open()).unwrap(), "written anew, and longer");
        let other = folder.path().join("b.csv");
        std::fs::write(&other, "a,b\n1,2\n3,4\n").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!text.matches_file(&open()).unwrap(), "another file, though it begins alike");
    }

    #[test]
    fn inputs_are_compared_if_they_are_few_and_local_and_have_versions() {
        let folder = tempfile::tempdir().unwrap();
        let path = || PathVersion::read(folder.path()).ok();
        let is_quick = |paths: Vec<Option<PathVersion>>| {
            let mut inputs = ScanInputs::default();
            paths.into_iter().for_each(|path| inputs.add(|| path));
            inputs.if_quick().is_some()
        };
        assert!(is_quick(vec![path(); QUICK_CHECKS_MAX]));
        assert!(!is_quick(vec![path(); QUICK_CHECKS_MAX + 1]));
        assert!(!is_quick(vec![path(), None, path()]));
        assert!(!is_quick(vec![path().map(|path| PathVersion { is_local: false, ..path })]));
    }

    #[test]
    fn a_version_is_settled_when_the_clock_has_moved_on() {
        let at = |millis: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert!(may_change_unseen(at(5_001), at(5_001)) && may_change_unseen(at(5_001), at(5_050)));
        assert!(!may_change_unseen(at(5_001), at(5_051)));
        assert!(may_change_unseen(at(5_000), at(6_999)), "whole seconds");
        assert!(!may_change_unseen(at(5_000), at(7_000)));
        assert!(may_change_unseen(at(5_001), at(4_999)), "the clock of another machine");
        assert!(!may_change_unseen(at(9_001), at(5_000)), "a clock that was wrong once");
    }

    #[test]
    fn versions_of_a_file_that_has_just_changed_are_not_equal() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = std::fs::metadata(folder.path()).unwrap();
        let settled = FileVersion { unsettled_at: None, ..FileVersion::from_metadata(&metadata) };
        let at = |millis: u64| FileVersion {
            unsettled_at: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)),
            ..settled
        };
        assert!(at(1) != at(2) && at(1) != settled && at(1).tag() != at(2).tag());
        assert!(at(1).metadata() == at(2).metadata() && at(1).metadata() == settled);
    }
}
