//! The sources of connection settings outside the connection string: environment variables, home folder, user, sockets.
//!
//! It is a parameter, so that tests need not change the environment of the process.

use std::path::{Path, PathBuf};

/// The environment that completes a connection string.
#[derive(Clone)]
pub struct ConnectEnvironment<'a> {
    /// Environment variables by name.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
    /// The home folder of the user, which contains `.pgpass`, `.pg_service.conf` and `.postgresql`.
    pub home: Option<PathBuf>,
    /// The user of the operating system: the default database user.
    pub user: Option<String>,
    /// Folders that may contain the socket of a server, the most likely first.
    pub socket_folders: Vec<PathBuf>,
}

impl ConnectEnvironment<'static> {
    /// The environment of this process.
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

    /// The folder with the socket of the server at `port`. If no socket exists, returns the most likely folder, since
    /// the server may be stopped.
    pub(super) fn socket_folder(&self, port: u16) -> Option<&Path> {
        let holds_socket = |folder: &&PathBuf| folder.join(socket_name(port)).exists();
        let folder = self.socket_folders.iter().find(holds_socket);
        folder.or_else(|| self.socket_folders.first().filter(|folder| folder.is_dir())).map(PathBuf::as_path)
    }
}

pub(super) fn socket_name(port: u16) -> String {
    format!(".s.PGSQL.{port}")
}

fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Like libpq, the name of the effective user id. The environment variable is used only if that user has no name, as in
/// some containers.
fn process_user() -> Option<String> {
    let from_environment = || ["USER", "LOGNAME"].into_iter().find_map(read_variable);
    whoami::username().ok().or_else(from_environment).filter(|user| !user.is_empty())
}
