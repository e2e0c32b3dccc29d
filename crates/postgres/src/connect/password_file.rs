//! Password files such as `~/.pgpass`: each line is `host:port:database:user:password`, and `*` matches anything.
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::fmt;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The source of a password, so that an error can name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PasswordSource {
    /// No password was given.
    None,
    ConnectionString,
    /// A service file.
    Service(PathBuf),
    /// The environment variable `PGPASSWORD`.
    Variable,
    /// A password file such as `~/.pgpass`.
    File(PathBuf),
}

impl fmt::Display for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no password was given"),
            Self::ConnectionString => f.write_str("the password is from the connection string"),
            Self::Service(path) => write!(f, "the password is from the service file {}", path.display()),
            Self::Variable => f.write_str("the password is from PGPASSWORD"),
            Self::File(path) => write!(f, "the password is from the password file {}", path.display()),
        }
    }
}

/// The connection for which a password is looked up.
pub(super) struct PasswordLookup<'a> {
    /// The names of the host.
    pub(super) hosts: &'a [String],
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// A password file, or the reason why it is ignored.
pub(super) struct PasswordFile {
    content: String,
    /// Why the file is ignored, if it exists and is ignored.
    pub(super) warning: Option<String>,
}

impl PasswordFile {
    /// Reads the file at `path`. A missing file counts as empty; a file that other users could read is ignored.
    pub(super) fn read(path: &Path) -> Self {
        let ignored = |why: &str| Self {
            content: String::new(),
            warning: Some(format!("the password file {} is ignored: {why}", path.display())),
        };
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Self { content: String::new(), warning: None };
            }
            Err(error) => return ignored(&error.to_string()),
        };
        if !metadata.is_file() {
            return ignored("it is not a regular file");
        }
        if is_open_to_others(&metadata) {
            return ignored("users other than its owner have access; its permissions must be 0600 or less");
        }
        match fs::read_to_string(path) {
            Ok(content) => Self { content, warning: None },
            Err(error) => ignored(&error.to_string()),
        }
    }

    /// The password on the first line that matches.
    pub(super) fn find(&self, password_lookup: &PasswordLookup<'_>) -> Option<String> {
        let port = password_lookup.port.to_string();
        self.content.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let mut rest = line;
            let mut matches = |values: &[&str]| {
                let field = take_field(&mut rest)?;
                let matches = field == ANY || values.contains(&unescape(field).as_str());
                matches.then_some(())
            };
            let hosts: Vec<&str> = password_lookup.hosts.iter().map(String::as_str).collect();
            matches(&hosts)?;
            matches(&[&port])?;
            matches(&[password_lookup.database])?;
            matches(&[password_lookup.user])?;
            // Text after a further colon is not part of the password.
            let password = unescape(&rest[..field_length(rest)]);
            (!password.is_empty()).then_some(password)
        })
    }
}

const ANY: &str = "*";

/// Takes a field off `rest`, and the colon that must follow it.
fn take_field<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let (field, after) = rest.split_at(field_length(rest));
    *rest = after.strip_prefix(':')?;
    Some(field)
}

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

/// Whether users other than the owner have access to a file.
#[cfg(unix)]
fn is_open_to_others(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Metadata) -> bool {
    false
}
