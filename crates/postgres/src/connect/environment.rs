//! What a connection string is completed from: environment, home, user, sockets.
//!
//! Handed in, so that a test needs no environment of the whole process.

use std::fs;
use std::path::{Path, PathBuf};

/// What a connection string is completed from.
#[derive(Clone)]
pub struct ConnectEnvironment<'a> {
    /// Environment variables by name.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
    /// The user's home, where `.pgpass`, `.pg_service.conf` and `.postgresql` lie.
    pub home: Option<PathBuf>,
    /// The user of the operating system, who is the default user of the database.
    pub user: Option<String>,
    /// Folders in which a server's socket may lie, the likeliest first.
    pub socket_folders: Vec<PathBuf>,
}

impl ConnectEnvironment<'static> {
    /// Those of this process.
    pub fn from_process() -> Self {
        Self {
            variables: &read_variable,
            home: read_variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            user: process_user(),
            socket_folders: ["/var/run/postgresql", "/tmp"].map(PathBuf::from).to_vec(),
        }
    }
}

impl ConnectEnvironment<'_> {
    /// The environment variable `name`, unless it is empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// The folder of the socket of the server at `port`. Where no socket lies, the likeliest folder, if there is
    /// one: the server may only be down.
    pub(super) fn socket_folder(&self, port: u16) -> Option<&Path> {
        let holds_socket = |folder: &&PathBuf| folder.join(socket_name(port)).exists();
        let folder = self.socket_folders.iter().find(holds_socket);
        folder.or_else(|| self.socket_folders.first().filter(|folder| folder.is_dir())).map(PathBuf::as_path)
    }
}

/// How a server that listens at `port` names its socket.
pub(super) fn socket_name(port: u16) -> String {
    format!(".s.PGSQL.{port}")
}

fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// As libpq, the name that goes with the effective user id; the environment's word only where that finds none, as in
/// a container whose user has no entry.
fn process_user() -> Option<String> {
    let from_environment = || ["USER", "LOGNAME"].into_iter().find_map(read_variable);
    user_of_process_id().or_else(from_environment).filter(|user| !user.is_empty())
}

#[cfg(unix)]
fn user_of_process_id() -> Option<String> {
    let id = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").ok()?).to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    })
}

#[cfg(not(unix))]
fn user_of_process_id() -> Option<String> {
    None
}
