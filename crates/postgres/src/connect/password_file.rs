//! Password files such as `~/.pgpass`: each line is `host:port:database:user:password`, and `*` matches anything.
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use tidegate_core::private_file::is_open_to_others;

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
