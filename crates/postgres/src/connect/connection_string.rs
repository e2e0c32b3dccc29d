//! Connection strings in the two forms of libpq: `postgresql://reader@db.example.com/shop?sslmode=verify-full` and
//! `host=db.example.com dbname=shop`. The settings of a connection come from the string, a service, and the environment, in
//! this order of precedence.
//!
//! The driver parses the part of a URI before its parameters. Among parameters and keywords, the driver would refuse
//! those of libpq that it does not know, so they are separated here.
//! <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>
//!
//! Unsupported keywords of libpq are errors and are not ignored: most of them make a connection safer, and the user
//! relies on them.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::environment::ConnectEnvironment;

use Support::{Ignored, OnlyValues, Rejected, Supported};

/// What is percent-encoded in the values of a URI.
const NOT_IN_VALUES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
const JDBC: &str = "jdbc:";
const PASSWORD: &str = "password";
const SCHEMES: [&str; 2] = ["postgresql", "postgres"];
/// Keywords that are enough for a connection string, if no path follows them.
const SUFFICIENT_KEYWORDS: [&str; 5] = ["dbname", "host", "password", "service", "user"];

/// Whether `text` is meant as a connection string of PostgreSQL, and not as a path or a path after a name (`host=./data`).
/// Another driver may have its form, such as `postgresql+asyncpg://` or `jdbc:postgresql://`; to parse it shows what is wrong.
pub fn is_connection_string(text: &str) -> bool {
    find_scheme(text.trim_ascii()).is_some() || is_keyword_list(text)
}

/// The scheme of a URI of PostgreSQL, without its colon, such as `postgresql`, `postgresql+asyncpg` or `jdbc:postgresql`.
fn find_scheme(uri: &str) -> Option<&str> {
    let jdbc = uri.get(..JDBC.len()).filter(|start| start.eq_ignore_ascii_case(JDBC)).map_or(0, str::len);
    let scheme = &uri[..jdbc + uri[jdbc..].find(':')?];
    let name = scheme[jdbc..].split('+').next().unwrap_or_default();
    SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(name)).then_some(scheme)
}

/// Whether `text` begins with a keyword and has another one, or a value that is no path.
fn is_keyword_list(text: &str) -> bool {
    let word_before = |end: usize| text[..end].trim_end_matches(is_blank).rsplit(is_blank).next().unwrap_or_default();
    let Some((first, value)) = text.split_once('=') else { return false };
    let first = first.trim_matches(is_blank);
    if find_keyword(first).is_none() {
        return false;
    }
    let keywords = text.match_indices('=').filter(|(at, _)| find_keyword(word_before(*at)).is_some()).count();
    let is_path = || value.contains(['/', '*', '?', '[']) || Path::new(value).exists();
    keywords > 1 || (SUFFICIENT_KEYWORDS.contains(&first) && !is_path())
}

/// The connection string `text` as a URI without the password; `None` if it has none.
///
/// # Errors
/// `text` is no valid connection string.
pub fn without_password(text: &str) -> Result<Option<String>, ConnectionStringError> {
    let pairs = parse_pairs(text)?;
    if !has_password(&pairs) {
        return Ok(None);
    }
    let others = pairs.iter().filter(|pair| pair.keyword.name != PASSWORD);
    let parameters =
        others.map(|pair| format!("{}={}", pair.keyword.name, utf8_percent_encode(&pair.value, NOT_IN_VALUES)));
    Ok(Some(format!("postgresql://?{}", parameters.collect::<Vec<_>>().join("&"))))
}

fn parse_pairs(text: &str) -> Result<Vec<KeywordValue>, ConnectionStringError> {
    // A URI contains no blanks. In a keyword string, the last character may be an escaped blank.
    let uri = text.trim_ascii();
    if let Some(scheme) = find_scheme(uri) {
        let text = ConnectionString(uri);
        if scheme.contains(':') {
            return Err(ConnectionStringError::new(
                "the connection string is one of JDBC; write it as postgresql://USER@HOST:PORT/DATABASE, and put the \
                 password into PGPASSWORD or .pgpass",
            ));
        }
        // The name of a driver in the scheme, as in postgresql+asyncpg, means nothing to the server.
        let rest = uri[scheme.len()..].strip_prefix("://");
        return text.parse_uri(rest.ok_or_else(|| text.foreign_uri())?);
    }
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.:".contains(&byte));
    let text = ConnectionString(text);
    if text.0.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme)) {
        return Err(text.foreign_uri());
    }
    text.parse_keywords()
}

struct ConnectionString<'a>(&'a str);

impl<'a> ConnectionString<'a> {
    /// Parses a URI; `rest` is its part after the scheme.
    fn parse_uri(&self, rest: &'a str) -> Result<Vec<KeywordValue>, ConnectionStringError> {
        self.check_percent_encoding(rest)?;
        let user = rest.find(['@', '/']).filter(|end| rest[*end..].starts_with('@')).map_or(0, |end| end + 1);
        let (location, parameters) = rest[user..].split_once('?').unwrap_or((&rest[user..], ""));
        if location.contains('@') || parameters.split('&').any(is_end_of_password) {
            // Most likely a password ends there, and a character of it has ended the name and the password before.
            return Err(match rest.find('/').filter(|_| user == 0) {
                Some(slash) => {
                    let problem =
                        "a / before the @ that follows name and password; write it as %2F in a name or password";
                    self.malformed(problem, &rest[slash..])
                }
                None => {
                    self.malformed("an @ among hosts and database; write it as %40 in a name or password", location)
                }
            });
        }
        let known_to_driver = format!("postgresql://{}", &rest[..user + location.len()]);
        let mut pairs = self.parse_location(&known_to_driver, location)?;
        for parameter in parameters.split('&').filter(|_| !parameters.is_empty()) {
            let pair = self.parse_parameter(parameter, &pairs)?;
            pairs.push(pair);
        }
        Ok(pairs)
    }

    /// The driver reads an incomplete encoding as text; libpq rejects it.
    fn check_percent_encoding(&self, rest: &'a str) -> Result<(), ConnectionStringError> {
        let is_encoded = |digits: &[u8]| digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
        for (start, _) in rest.match_indices('%') {
            let digits = rest.as_bytes().get(start + 1..start + 3).unwrap_or_default();
            if !is_encoded(digits) {
                return Err(self.malformed("a % without two hexadecimal digits", &rest[start..]));
            }
        }
        Ok(())
    }

    /// Parses the part of a URI before its parameters. `location` is its part with hosts, ports and database.
    fn parse_location(&self, uri: &str, location: &'a str) -> Result<Vec<KeywordValue>, ConnectionStringError> {
        let names = location.split('/').next().unwrap_or_default();
        if names.contains("[]") {
            // The driver reads it as a missing name, which means this machine.
            return Err(self.malformed("an empty address between [ and ]", location));
        }
        let not_utf8 = || self.malformed("an encoding that is not UTF-8", location);
        let config: Config = uri.parse().map_err(|error: tokio_postgres::Error| {
            self.malformed(&error.source().unwrap_or(&error).to_string(), location)
        })?;
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => Some(name.as_str()),
            Host::Unix(folder) => folder.to_str(),
        });
        let hosts: Vec<&str> = hosts.collect::<Option<_>>().ok_or_else(not_utf8)?;
        let password = config.get_password().map(std::str::from_utf8).transpose().map_err(|_| not_utf8())?;
        let mut values = vec![
            ("user", config.get_user().unwrap_or_default().to_owned()),
            ("password", password.unwrap_or_default().to_owned()),
            ("dbname", config.get_dbname().unwrap_or_default().to_owned()),
        ];
        if hosts.iter().any(|host| !host.is_empty()) {
            values.push(("host", hosts.join(",")));
        }
        // The driver sets a port where the URI has none, which would hide that of a service or of the environment.
        if names.contains("]:") || names.split(',').any(|name| !name.starts_with('[') && name.contains(':')) {
            let ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
            values.push(("port", ports.join(",")));
        }
        let pairs = values.into_iter().filter(|(_, value)| !value.is_empty());
        pairs.map(|(name, value)| self.pair(name, value, location, true)).collect()
    }

    fn parse_parameter(
        &self,
        parameter: &'a str,
        pairs: &[KeywordValue],
    ) -> Result<KeywordValue, ConnectionStringError> {
        let decode = |encoded: &'a str| {
            let decoded = percent_decode_str(encoded).decode_utf8();
            decoded.map_err(|_| self.malformed("an encoding that is not UTF-8", encoded))
        };
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(self.malformed("a parameter without =", parameter));
        };
        if value.contains('=') {
            return Err(self.malformed("a second = in a parameter; write it as %3D in a value", parameter));
        }
        // Other drivers use this form, and libpq accepts it too.
        if (name, value) == ("ssl", "true") {
            return self.pair("sslmode", "require".to_owned(), parameter, false);
        }
        // The text before an @, or after a password among the parameters, may be part of the password.
        let is_secret = self.0[self.offset(parameter)..].contains('@') || has_password(pairs);
        self.pair(&decode(name)?, decode(value)?.into_owned(), parameter, is_secret)
    }

    /// Parses keywords and values. Single quotes enclose a value with blanks, and a backslash escapes the next character.
    fn parse_keywords(&self) -> Result<Vec<KeywordValue>, ConnectionStringError> {
        let mut pairs = Vec::new();
        let mut rest = self.0.trim_start_matches(is_blank);
        while !rest.is_empty() {
            let start = rest;
            let name = &start[..start.find(|other| other == '=' || is_blank(other)).unwrap_or(start.len())];
            let after = start[name.len()..].trim_start_matches(is_blank).strip_prefix('=');
            let value = after.ok_or_else(|| self.malformed("a keyword without =", start))?;
            let (value, after) = self.take_value(value.trim_start_matches(is_blank))?;
            // The rest of an unquoted password with a blank would be read as a keyword.
            let pair = self.pair(name, value, start, has_password(&pairs))?;
            pairs.push(pair);
            rest = after.trim_start_matches(is_blank);
        }
        Ok(pairs)
    }

    /// The value at the beginning of `start`, and the text after it.
    fn take_value(&self, start: &'a str) -> Result<(String, &'a str), ConnectionStringError> {
        let unquoted = start.strip_prefix('\'');
        let mut characters = unquoted.unwrap_or(start).chars();
        let mut value = String::new();
        loop {
            let rest = characters.as_str();
            match characters.next() {
                Some('\'') if unquoted.is_some() => return Ok((value, characters.as_str())),
                Some('\\') => value.extend(characters.next()),
                Some(blank) if unquoted.is_none() && is_blank(blank) => return Ok((value, rest)),
                Some(character) => value.push(character),
                None if unquoted.is_some() => return Err(self.malformed("an unclosed quote", start)),
                None => return Ok((value, rest)),
            }
        }
    }

    fn pair(
        &self,
        name: &str,
        value: String,
        at: &'a str,
        is_secret: bool,
    ) -> Result<KeywordValue, ConnectionStringError> {
        let unknown = || {
            ConnectionStringError::unknown_keyword(&SettingOrigin::ConnectionString, name, self.position(at), is_secret)
        };
        Ok(KeywordValue { keyword: find_keyword(name).ok_or_else(unknown)?, value })
    }

    fn foreign_uri(&self) -> ConnectionStringError {
        self.malformed("a URI that does not begin with postgresql:// or postgres://", self.0)
    }

    fn malformed(&self, problem: &str, at: &'a str) -> ConnectionStringError {
        ConnectionStringError::malformed(&SettingOrigin::ConnectionString, problem, self.position(at))
    }

    /// The position of the part `at` in the text, in characters from 1.
    fn position(&self, at: &'a str) -> usize {
        self.0.get(..self.offset(at)).map_or(0, |before| before.chars().count()) + 1
    }

    fn offset(&self, at: &'a str) -> usize {
        (at.as_ptr() as usize).saturating_sub(self.0.as_ptr() as usize)
    }
}

/// Whether `parameter` has no name of a parameter, but the @ after a password.
fn is_end_of_password(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    parameter.contains('@') && find_keyword(name).is_none()
}

fn has_password(pairs: &[KeywordValue]) -> bool {
    pairs.iter().any(|pair| pair.keyword.name == PASSWORD)
}

/// As in C: a Unicode blank may be part of a password.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    /// The environment variable with the same meaning, if not empty.
    pub(super) variable: &'static str,
    support: Support,
}

#[derive(Debug)]
enum Support {
    /// It has its usual effect.
    Supported,
    /// It has no effect here, whatever its value.
    Ignored,
    /// Only these values are accepted; they describe the behaviour that always applies.
    OnlyValues(&'static [&'static str]),
    Rejected,
}

struct KeywordValue {
    pub(super) keyword: &'static Keyword,
    pub(super) value: String,
}

#[derive(Debug, Clone)]
pub(super) enum SettingOrigin {
    ConnectionString,
    /// A line of a service file, counted from 1.
    Service(PathBuf, usize),
    Variable(&'static str),
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionString => f.write_str("the connection string"),
            Self::Service(path, line) => write!(f, "line {line} of {}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Default => f.write_str("by default"),
        }
    }
}

/// An error in a connection string, or in a setting that completes it.
///
/// No value is ever quoted: any part of a connection string may be an unescaped part of the password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionStringError(String);

impl ConnectionStringError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The text of `origin` has no valid syntax at the character `position`, counted from 1.
    fn malformed(origin: &SettingOrigin, problem: &str, position: usize) -> Self {
        Self(format!("{origin} cannot be read: {problem}, at character {position}"))
    }

    /// `origin` has the unknown keyword `name` at the character `position`. If the name may be part of a password, the
    /// error has only its position.
    fn unknown_keyword(origin: &SettingOrigin, name: &str, position: usize, is_secret: bool) -> Self {
        if let Some((name, instead)) = FOREIGN_KEYWORDS.iter().find(|(foreign, _)| *foreign == name) {
            return Self(format!("{origin} has the keyword {name}, which is one of another driver; {instead}"));
        }
        let subject = if is_secret { format!("at character {position}") } else { format!("{name:?}") };
        let usable = KEYWORDS.iter().filter(|keyword| !matches!(keyword.support, Rejected));
        let nearest = tidegate_core::nearest_names(name, usable.map(|keyword| keyword.name)).into_iter().next();
        let nearest = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
        Self(format!("{origin} has an unknown keyword {subject}{nearest}"))
    }
}

fn find_keyword(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

const SCHEMA_ADVICE: &str = "write options=-csearch_path%3DNAME in a URI, or the schema before the name of each table";
const POOL_ADVICE: &str = "leave it out: the pool is one of Tidegate, with its own settings in tidegate.yaml";

/// Keywords of other drivers, and what has their effect here.
const FOREIGN_KEYWORDS: [(&str, &str); 12] = [
    ("currentSchema", SCHEMA_ADVICE),
    ("schema", SCHEMA_ADVICE),
    ("search_path", SCHEMA_ADVICE),
    ("pgbouncer", "write pgbouncer: true of the database in tidegate.yaml"),
    ("connection_limit", POOL_ADVICE),
    ("pool_timeout", POOL_ADVICE),
    ("pool_size", POOL_ADVICE),
    ("prepareThreshold", "leave it out"),
    ("prepared_statement_cache_size", "leave it out"),
    ("ApplicationName", "write application_name"),
    ("loginTimeout", "write connect_timeout"),
    ("ssl", "write sslmode=require, or another mode of sslmode"),
];

const fn keyword(name: &'static str, variable: &'static str, support: Support) -> Keyword {
    Keyword { name, variable, support }
}

const KEYWORDS: &[Keyword] = &[
    // Location.
    keyword("service", "PGSERVICE", Supported),
    keyword("host", "PGHOST", Supported),
    keyword("hostaddr", "PGHOSTADDR", Supported),
    keyword("port", "PGPORT", Supported),
    keyword("dbname", "PGDATABASE", Supported),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS", Supported),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS", Supported),
    // Authentication.
    keyword("user", "PGUSER", Supported),
    keyword("password", "PGPASSWORD", Supported),
    keyword("passfile", "PGPASSFILE", Supported),
    keyword("channel_binding", "PGCHANNELBINDING", Supported),
    keyword("application_name", "PGAPPNAME", Supported),
    keyword("fallback_application_name", "", Supported),
    keyword("options", "PGOPTIONS", Supported),
    // Protection.
    keyword("sslmode", "PGSSLMODE", Supported),
    keyword("sslnegotiation", "PGSSLNEGOTIATION", Supported),
    keyword("sslrootcert", "PGSSLROOTCERT", Supported),
    keyword("sslcert", "PGSSLCERT", Supported),
    keyword("sslkey", "PGSSLKEY", Supported),
    keyword("sslsni", "PGSSLSNI", Supported),
    keyword("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Supported),
    keyword("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Supported),
    // Timeouts.
    keyword("connect_timeout", "PGCONNECT_TIMEOUT", Supported),
    keyword("keepalives", "", Supported),
    keyword("keepalives_idle", "", Supported),
    keyword("keepalives_interval", "", Supported),
    keyword("keepalives_count", "", Supported),
    keyword("tcp_user_timeout", "", Supported),
    // Without effect here.
    keyword("client_encoding", "PGCLIENTENCODING", OnlyValues(&["UTF8", "utf8", "UTF-8", "utf-8", "auto"])),
    keyword("gssencmode", "PGGSSENCMODE", OnlyValues(&["disable", "prefer"])),
    keyword("sslcertmode", "PGSSLCERTMODE", OnlyValues(&["allow"])),
    keyword("sslcompression", "", Ignored),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION", OnlyValues(&["3.0"])),
    keyword("replication", "", OnlyValues(&["false", "off", "no", "0"])),
    keyword("max_protocol_version", "", Ignored),
    keyword("krbsrvname", "", Ignored),
    keyword("gsslib", "", Ignored),
    keyword("gssdelegation", "", Ignored),
    // Unsupported.
    keyword("require_auth", "PGREQUIREAUTH", Rejected),
    keyword("requirepeer", "PGREQUIREPEER", Rejected),
    keyword("sslpassword", "", Rejected),
    keyword("sslcrl", "PGSSLCRL", Rejected),
    keyword("sslcrldir", "PGSSLCRLDIR", Rejected),
    keyword("sslkeylogfile", "", Rejected),
    keyword("scram_client_key", "", Rejected),
    keyword("scram_server_key", "", Rejected),
    keyword("servicefile", "", Rejected),
    keyword("oauth_issuer", "", Rejected),
    keyword("oauth_client_id", "", Rejected),
    keyword("oauth_client_secret", "", Rejected),
    keyword("oauth_scope", "", Rejected),
];

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
        for KeywordValue { keyword, value } in parse_pairs(text)? {
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
            match find_keyword(name).map(|keyword| &keyword.support) {
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
    match find_keyword(name) {
        Some(keyword) if keyword.name == "service" => Err(malformed("a service within a service")),
        Some(keyword) => Ok(KeywordValue { keyword, value }),
        None => Err(ConnectionStringError::unknown_keyword(origin, name, 1, false)),
    }
}
