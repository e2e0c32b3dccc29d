//! The sources of connection settings outside the connection string: environment variables, home folder, user, sockets.
//!
//! It is a parameter, so that tests need not change the environment of the process.
//!
//! In password files such as `~/.pgpass`, each line is `host:port:database:user:password`, and `*` matches anything.
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tidegate_core::private_file::is_open_to_others;

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

/// A password file.
pub(super) struct PasswordFile(String);

impl PasswordFile {
    /// Reads the file at `path`. A missing file counts as empty; a file that other users could read is an error, and is
    /// ignored with this warning.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let ignored = |reason: &str| format!("the password file {} is ignored: {reason}", path.display());
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => return Err(ignored("it is not a regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self(String::new())),
            _ => {}
        }
        let read = || -> io::Result<Option<String>> {
            let (mut file, mut content) = (File::open(path)?, String::new());
            let is_open = is_open_to_others(&file)?;
            file.read_to_string(&mut content)?;
            Ok((!is_open).then_some(content))
        };
        let content = read().map_err(|error| ignored(&error.to_string()))?;
        content
            .map(Self)
            .ok_or_else(|| ignored("users other than its owner have access; its permissions must be 0600 or less"))
    }

    /// The password on the first line that matches; `hosts` are the names of one host.
    pub(super) fn find(&self, hosts: &[&str], port: u16, database: &str, user: &str) -> Option<String> {
        let port = port.to_string();
        self.0.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let mut rest = line;
            for values in [hosts, &[port.as_str()], &[database], &[user]] {
                let (field, after) = rest.split_at(field_length(rest));
                rest = after.strip_prefix(':')?;
                if field != ANY && !values.contains(&unescape(field).as_str()) {
                    return None;
                }
            }
            // Text after a further colon is not part of the password.
            let password = unescape(&rest[..field_length(rest)]);
            (!password.is_empty()).then_some(password)
        })
    }
}

const ANY: &str = "*";

fn field_length(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |character: char| {
        let end = character == ':' && !escaped;
        escaped = character == '\\' && !escaped;
        end
    };
    text.find(is_end).unwrap_or(text.len())
}

fn unescape(field: &str) -> String {
    let mut characters = field.chars();
    let mut plain = String::with_capacity(field.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            character => plain.push(character),
        }
    }
    plain
}
