//! Service files: named groups of keywords and values, so that a connection string can consist of `service=shop`.
//! <https://www.postgresql.org/docs/current/libpq-pgservice.html>

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::environment::ConnectEnvironment;
use super::keyword::{self, ConnectionStringError, KeywordValue, SettingOrigin};

/// The settings of the service `name` with their location. The file of the user comes before that of the system.
pub(super) fn find_service(
    name: &str,
    connect_environment: &ConnectEnvironment<'_>,
) -> Result<Vec<(KeywordValue, SettingOrigin)>, ConnectionStringError> {
    let paths = service_file_paths(connect_environment);
    for path in &paths {
        let content = match fs::read_to_string(path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(ConnectionStringError::new(format!("cannot read {}: {error}", path.display()))),
        };
        if let Some(pairs) = parse(&content, name, path)? {
            return Ok(pairs);
        }
    }
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let paths = if paths.is_empty() { "there are none".to_owned() } else { paths.join(", ") };
    Err(ConnectionStringError::new(format!("the service {name:?} is not in any service file ({paths})")))
}

fn service_file_paths(connect_environment: &ConnectEnvironment<'_>) -> Vec<PathBuf> {
    let of_home = || connect_environment.home.as_ref().map(|home| home.join(".pg_service.conf"));
    let own = connect_environment.variable("PGSERVICEFILE").map(PathBuf::from).or_else(of_home);
    let of_system =
        connect_environment.variable("PGSYSCONFDIR").map(|folder| Path::new(&folder).join("pg_service.conf"));
    own.into_iter().chain(of_system).collect()
}

/// The group `name` in `content`, if it exists.
fn parse(
    content: &str,
    name: &str,
    path: &Path,
) -> Result<Option<Vec<(KeywordValue, SettingOrigin)>>, ConnectionStringError> {
    let mut pairs: Option<Vec<(KeywordValue, SettingOrigin)>> = None;
    for (number, line) in (1..).zip(content.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(group) = line.strip_prefix('[') {
            if pairs.is_some() {
                break;
            }
            if group.strip_suffix(']') == Some(name) {
                pairs = Some(Vec::new());
            }
        } else if let Some(pairs) = &mut pairs {
            let origin = SettingOrigin::Service(path.to_owned(), number);
            pairs.push((parse_pair(line, &origin)?, origin));
        }
    }
    Ok(pairs)
}

fn parse_pair(line: &str, origin: &SettingOrigin) -> Result<KeywordValue, ConnectionStringError> {
    let malformed = |problem| ConnectionStringError::malformed(origin, problem, 1);
    let Some((name, value)) = line.split_once('=') else {
        return Err(malformed("a keyword without ="));
    };
    let (name, value) = (name.trim(), value.trim().to_owned());
    match keyword::find(name) {
        Some(keyword) if keyword.name == "service" => Err(malformed("a service within a service")),
        Some(keyword) => Ok(KeywordValue { keyword, value }),
        None => Err(ConnectionStringError::unknown_keyword(origin, name, 1, false)),
    }
}
