//! Connection strings in the two forms of libpq: `postgresql://reader@db.example.com/shop?sslmode=verify-full` and
//! `host=db.example.com dbname=shop`.
//!
//! The driver parses the part of a URI before its parameters. Among parameters and keywords, the driver would refuse
//! those of libpq that it does not know, so they are separated here.
//! <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>

use std::error::Error as _;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::keyword::{self, ConnectionStringError, KeywordValue, SettingOrigin};

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
    if keyword::find(first).is_none() {
        return false;
    }
    let keywords = text.match_indices('=').filter(|(at, _)| keyword::find(word_before(*at)).is_some()).count();
    let is_path = || value.contains(['/', '*', '?', '[']) || Path::new(value).exists();
    keywords > 1 || (SUFFICIENT_KEYWORDS.contains(&first) && !is_path())
}

/// The connection string `text` as a URI without the password; `None` if it has none.
///
/// # Errors
/// `text` is no valid connection string.
pub fn without_password(text: &str) -> Result<Option<String>, ConnectionStringError> {
    let pairs = parse(text)?;
    if !has_password(&pairs) {
        return Ok(None);
    }
    let others = pairs.iter().filter(|pair| pair.keyword.name != PASSWORD);
    let parameters =
        others.map(|pair| format!("{}={}", pair.keyword.name, utf8_percent_encode(&pair.value, NOT_IN_VALUES)));
    Ok(Some(format!("postgresql://?{}", parameters.collect::<Vec<_>>().join("&"))))
}

pub(super) fn parse(text: &str) -> Result<Vec<KeywordValue>, ConnectionStringError> {
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
        Ok(KeywordValue { keyword: keyword::find(name).ok_or_else(unknown)?, value })
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
    parameter.contains('@') && keyword::find(name).is_none()
}

fn has_password(pairs: &[KeywordValue]) -> bool {
    pairs.iter().any(|pair| pair.keyword.name == PASSWORD)
}

/// As in C: a Unicode blank may be part of a password.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}
