//! The settings of a connection: from the string, a service, and the environment, in this order of precedence.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::connection_string;
use super::environment::ConnectEnvironment;
use super::keyword::{self, ConnectionStringError, KEYWORDS, Keyword, KeywordValue, SettingOrigin, Support};

/// The values of the keywords. Contains the password, so it has no `Debug`.
pub(super) struct Settings(BTreeMap<&'static str, Setting>);

struct Setting {
    value: String,
    origin: SettingOrigin,
}

impl Settings {
    /// Collects the settings in `text`; missing ones are taken from a service and from the environment.
    pub(super) fn collect(text: &str, environment: &ConnectEnvironment<'_>) -> Result<Self, ConnectionStringError> {
        let mut settings = Self(BTreeMap::new());
        for KeywordValue { keyword, value } in connection_string::parse(text)? {
            // If a string contains a keyword twice, the last value applies.
            settings.0.insert(keyword.name, Setting { value, origin: SettingOrigin::ConnectionString });
        }
        let service = settings.text("service").map(str::to_owned).or_else(|| environment.variable("PGSERVICE"));
        if let Some(service) = service {
            for (pair, origin) in find_service(&service, environment)? {
                settings.set_default(pair.keyword, pair.value, origin);
            }
        }
        for keyword in KEYWORDS {
            if let Some(value) = environment.variable(keyword.variable) {
                settings.set_default(keyword, value, SettingOrigin::Variable(keyword.variable));
            }
        }
        settings.check_support()?;
        Ok(settings)
    }

    /// The value of the keyword `name`; an empty value counts as missing.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|setting| setting.value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn origin(&self, name: &str) -> SettingOrigin {
        self.0.get(name).map_or(SettingOrigin::Default, |setting| setting.origin.clone())
    }

    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).map_or_else(Vec::new, |list| list.split(',').collect())
    }

    pub(super) fn read<T>(
        &self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ConnectionStringError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        read(text.trim()).map(Some).ok_or_else(|| self.bad_value(name, expected))
    }

    /// The value of the keyword `name`, which must be one of `choices`.
    pub(super) fn choose<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ConnectionStringError> {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        let expected = format!("one of {}", names.join(", "));
        self.read(name, &expected, |text| choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value))
    }

    pub(super) fn bad_value(&self, name: &'static str, expected: &str) -> ConnectionStringError {
        ConnectionStringError::new(format!("{}: {name} must be {expected}", self.origin(name)))
    }

    fn set_default(&mut self, keyword: &'static Keyword, value: String, origin: SettingOrigin) {
        self.0.entry(keyword.name).or_insert(Setting { value, origin });
    }

    fn check_support(&self) -> Result<(), ConnectionStringError> {
        // The protocol ends each text with a zero byte.
        if let Some((name, setting)) = self.0.iter().find(|(_, setting)| setting.value.contains('\0')) {
            return Err(ConnectionStringError::new(format!("{}: {name} contains a NUL character", setting.origin)));
        }
        for (name, setting) in self.0.iter().filter(|(_, setting)| !setting.value.is_empty()) {
            match keyword::find(name).map(|keyword| &keyword.support) {
                Some(Support::Rejected) => {
                    return Err(ConnectionStringError::new(format!(
                        "{}: {name} is not supported; ignoring it could make the connection less secure",
                        setting.origin
                    )));
                }
                Some(Support::OnlyValues(values)) if !values.contains(&setting.value.as_str()) => {
                    return Err(self.bad_value(name, &format!("{}, if it is set", values.join(" or "))));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The settings of the service `name` with their location. Service files contain named groups of keywords and values, so
/// that a connection string can consist of `service=shop`.
/// <https://www.postgresql.org/docs/current/libpq-pgservice.html>
///
/// The file of the user comes before that of the system.
fn find_service(
    name: &str,
    environment: &ConnectEnvironment<'_>,
) -> Result<Vec<(KeywordValue, SettingOrigin)>, ConnectionStringError> {
    let paths = service_file_paths(environment);
    for path in &paths {
        let content = match fs::read_to_string(path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(ConnectionStringError::new(format!("cannot read {}: {error}", path.display()))),
        };
        if let Some(pairs) = parse_service(&content, name, path)? {
            return Ok(pairs);
        }
    }
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let paths = if paths.is_empty() { "there are none".to_owned() } else { paths.join(", ") };
    Err(ConnectionStringError::new(format!("the service {name:?} is not in any service file ({paths})")))
}

fn service_file_paths(environment: &ConnectEnvironment<'_>) -> Vec<PathBuf> {
    let of_home = || environment.home.as_ref().map(|home| home.join(".pg_service.conf"));
    let own = environment.variable("PGSERVICEFILE").map(PathBuf::from).or_else(of_home);
    let of_system = environment.variable("PGSYSCONFDIR").map(|folder| Path::new(&folder).join("pg_service.conf"));
    own.into_iter().chain(of_system).collect()
}

/// The group `name` in `content`, if it exists.
fn parse_service(
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
