//! Connection strings: `mysql://user:password@host:3306/database?ssl-mode=VERIFY_IDENTITY`, also with `mariadb://`; and
//! keywords: `host=db user=reader password='p@ss' database=shop`.
//!
//! [MySQL, Connecting Using URI-Like Strings](https://dev.mysql.com/doc/refman/8.4/en/connecting-using-uri-or-key-value-pairs.html)

use std::path::PathBuf;
use std::time::Duration;

use mysql_async::{ClientIdentity, OptsBuilder, SslOpts};
use percent_encoding::percent_decode_str;

const SCHEMES: [&str; 2] = ["mysql://", "mariadb://"];
const DEFAULT_PORT: u16 = 3306;
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The statements that a connection keeps prepared.
const STATEMENTS_MAX: usize = 100;

/// A connection string that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MySqlConnectionStringError(String);

/// Where a server is, and the account that logs in there.
#[derive(Clone)]
pub struct MySqlTarget {
    pub(crate) options: OptsBuilder,
    pub(crate) tls: TlsSettings,
    pub(crate) connect_timeout: Duration,
    /// The host and the port, or the socket, for messages.
    pub(crate) address: String,
    database: Option<String>,
}

/// Whether connections are encrypted, and which servers are trusted. The names are those of MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// Never.
    Disabled,
    /// If the server has it. Its certificate is not checked.
    Preferred,
    /// Always. The certificate of the server is not checked.
    Required,
    /// Always, with a certificate that is valid for the name of the host.
    VerifyIdentity,
}

#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    pub(crate) mode: TlsMode,
    /// The file with the authorities; otherwise those of the system are trusted.
    pub(crate) authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// Whether `text` is a connection string in the form of a URI.
pub fn is_mysql_uri(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// `text`, a URI, without its password; `None` if it has none.
pub fn without_mysql_password(text: &str) -> Option<String> {
    let start = text.find("://")? + 3;
    let end = text[start..].find(['/', '?']).map_or(text.len(), |end| start + end);
    let host = start + text[start..end].rfind('@')?;
    let colon = start + text[start..host].find(':')?;
    Some(format!("{}{}", &text[..colon], &text[host..]))
}

impl MySqlTarget {
    /// Parses `text`, a URI or keywords.
    ///
    /// # Errors
    /// If it is neither, or has a parameter that is not known.
    pub fn parse(text: &str) -> Result<Self, MySqlConnectionStringError> {
        let parts = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let target = match parts {
            Some(parts) => Self::parse_uri(parts)?,
            None if text.split_once('=').is_none_or(|(name, _)| name.contains("://")) => {
                return Err(error("it begins with mysql:// or mariadb://, such as mysql://USER@HOST:3306/DATABASE"));
            }
            None => Self::parse_keywords(text)?,
        };
        if target.tls.certificate.is_some() != target.tls.key.is_some() {
            return Err(error("ssl-cert and ssl-key belong together"));
        }
        Ok(target)
    }

    fn new(host: &str, port: u16, user: Option<String>, password: Option<String>, database: Option<String>) -> Self {
        let host = if host.is_empty() { "localhost" } else { host };
        let database = database.filter(|database| !database.is_empty());
        let options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(port)
            .user(user.filter(|user| !user.is_empty()))
            .pass(password)
            .db_name(database.clone())
            .prefer_socket(false)
            .stmt_cache_size(STATEMENTS_MAX);
        let tls = TlsSettings { mode: TlsMode::Preferred, authorities: None, certificate: None, key: None };
        let address = format!("{host}:{port}");
        Self { options, tls, connect_timeout: DEFAULT_CONNECT_TIMEOUT, address, database }
    }

    fn parse_uri(parts: &str) -> Result<Self, MySqlConnectionStringError> {
        let (location, parameters) = parts.split_once('?').unwrap_or((parts, ""));
        let (authority, database) = location.split_once('/').unwrap_or((location, ""));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
        let (host, port) = split_port(host)?;
        let password = password.map(decode).transpose()?;
        let mut target = Self::new(host, port, Some(decode(user)?), password, Some(decode(database)?));
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            target.set_parameter(name, decode(value)?)?;
        }
        Ok(target)
    }

    /// In keywords, the values of variables need no percent encoding.
    fn parse_keywords(text: &str) -> Result<Self, MySqlConnectionStringError> {
        let mut pairs = read_keywords(text)?;
        let mut take = |keyword: &str| {
            let index = pairs.iter().position(|(name, _)| name == keyword)?;
            Some(pairs.remove(index).1)
        };
        let host = take("host").unwrap_or_default();
        let port = take("port").map_or(Ok(DEFAULT_PORT), |port| parse_port(&port))?;
        let (user, password, database) = (take("user"), take("password"), take("database"));
        let mut target = Self::new(&host, port, user, password, database);
        for (name, value) in pairs {
            target.set_parameter(&name, value)?;
        }
        Ok(target)
    }

    /// The database that the connection string names.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Drivers write the same names in different ways: `ssl-mode`, `ssl_mode`, `sslMode`.
    fn set_parameter(&mut self, name: &str, value: String) -> Result<(), MySqlConnectionStringError> {
        let plain: String = name.chars().filter(|character| !"-_".contains(*character)).collect();
        match plain.to_ascii_lowercase().as_str() {
            "sslmode" => self.tls.mode = tls_mode(&value)?,
            "sslca" => self.tls.authorities = Some(value.into()),
            "sslcert" => self.tls.certificate = Some(value.into()),
            "sslkey" => self.tls.key = Some(value.into()),
            "socket" => {
                self.address = value.clone();
                self.options = self.options.clone().socket(Some(value));
            }
            "connecttimeout" => {
                let seconds = value.parse::<u64>().ok().filter(|seconds| *seconds > 0);
                let seconds = seconds.ok_or_else(|| error(format!("{name} must be a number of seconds")))?;
                self.connect_timeout = Duration::from_secs(seconds);
            }
            // Sessions have it anyway.
            "charset" if ["utf8mb4", "utf8"].contains(&value.to_ascii_lowercase().as_str()) => {}
            _ => {
                let known = "ssl-mode, ssl-ca, ssl-cert, ssl-key, socket and connect-timeout";
                return Err(error(format!("the parameter {name} is not known; known are {known}")));
            }
        }
        Ok(())
    }
}

impl TlsSettings {
    /// The options of the driver. `authorities` are certificates in DER, if no file has some.
    pub(crate) fn to_options(&self, authorities: Vec<Vec<u8>>) -> SslOpts {
        let checks = self.mode == TlsMode::VerifyIdentity;
        let identity = self.certificate.clone().zip(self.key.clone());
        let identity = identity.map(|(certificate, key)| ClientIdentity::new(certificate.into(), key.into()));
        let roots = match &self.authorities {
            Some(file) => vec![file.clone().into()],
            None => authorities.into_iter().map(Into::into).collect(),
        };
        // Without a check, the driver needs some authority all the same.
        SslOpts::default()
            .with_client_identity(identity)
            .with_root_certs(roots)
            .with_disable_built_in_roots(checks)
            .with_danger_accept_invalid_certs(!checks)
    }
}

/// Also the names that PostgreSQL has for the same, which configurations of other programs use for all servers.
fn tls_mode(value: &str) -> Result<TlsMode, MySqlConnectionStringError> {
    Ok(match value.to_ascii_uppercase().replace('-', "_").as_str() {
        "DISABLED" | "DISABLE" => TlsMode::Disabled,
        "PREFERRED" | "PREFER" => TlsMode::Preferred,
        "REQUIRED" | "REQUIRE" => TlsMode::Required,
        "VERIFY_IDENTITY" | "VERIFY_FULL" => TlsMode::VerifyIdentity,
        "VERIFY_CA" => {
            return Err(error("ssl-mode VERIFY_CA is not supported; VERIFY_IDENTITY checks the name of the host too"));
        }
        _ => {
            let modes = "DISABLED, PREFERRED, REQUIRED or VERIFY_IDENTITY";
            return Err(error(format!("ssl-mode {value} is not known; write {modes}")));
        }
    })
}

/// The host, without the brackets of IPv6, and the port.
fn split_port(host: &str) -> Result<(&str, u16), MySqlConnectionStringError> {
    let (host, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    match port {
        None | Some("") => Ok((host, DEFAULT_PORT)),
        Some(port) => Ok((host, parse_port(port)?)),
    }
}

fn parse_port(text: &str) -> Result<u16, MySqlConnectionStringError> {
    let port = text.parse::<u16>().ok().filter(|port| *port > 0);
    port.ok_or_else(|| error(format!("{text} is no port")))
}

/// The pairs of `name=value name='a value'`, where `\\` takes the next character as it is.
fn read_keywords(text: &str) -> Result<Vec<(String, String)>, MySqlConnectionStringError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=').ok_or_else(|| error("write keywords as host=HOST user=USER"))?;
        let behind = behind.trim_start();
        let is_quoted = behind.starts_with('\'');
        let (mut value, mut end, mut escaped) = (String::new(), None, false);
        for (at, character) in behind.char_indices().skip(usize::from(is_quoted)) {
            if escaped {
                value.push(character);
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if is_quoted && character == '\'' {
                end = Some(at + 1);
                break;
            } else if !is_quoted && character.is_whitespace() {
                end = Some(at);
                break;
            } else {
                value.push(character);
            }
        }
        if is_quoted && end.is_none() {
            return Err(error("a quotation mark is not closed"));
        }
        pairs.push((name.trim().to_owned(), value));
        rest = behind[end.unwrap_or(behind.len())..].trim_start();
    }
    Ok(pairs)
}

fn decode(text: &str) -> Result<String, MySqlConnectionStringError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| error("a part of it is not UTF-8 after its percent signs are decoded"))
}

fn error(message: impl Into<String>) -> MySqlConnectionStringError {
    MySqlConnectionStringError(message.into())
}

#[cfg(test)]
mod tests {
    use mysql_async::Opts;

    use super::*;

    fn parse(text: &str) -> (MySqlTarget, Opts) {
        let target = MySqlTarget::parse(text).unwrap();
        let options = Opts::from(target.options.clone());
        (target, options)
    }

    fn refusal(text: &str) -> String {
        MySqlTarget::parse(text).err().unwrap().to_string()
    }

    #[test]
    fn the_parts_of_a_uri_are_found() {
        let (target, options) =
            parse("mysql://ann:p%40ss%3Aword@db.example:3307/shop?ssl-mode=verify_identity&ssl_ca=/ca.pem");
        assert_eq!((options.user(), options.pass()), (Some("ann"), Some("p@ss:word")));
        assert_eq!((options.ip_or_hostname(), options.tcp_port()), ("db.example", 3307));
        assert_eq!((target.database(), options.db_name()), (Some("shop"), Some("shop")));
        assert_eq!(target.tls.mode, TlsMode::VerifyIdentity);
        assert_eq!(target.tls.authorities, Some(PathBuf::from("/ca.pem")));
        assert_eq!(target.address, "db.example:3307");
    }

    #[test]
    fn parts_may_be_missing() {
        let (target, options) = parse("mariadb://localhost");
        assert_eq!((options.user(), options.pass(), target.database()), (None, None, None));
        assert_eq!((options.tcp_port(), target.tls.mode), (3306, TlsMode::Preferred));
        assert_eq!(parse("mysql://a@[::1]:33/x").1.ip_or_hostname(), "::1");
        let (target, options) = parse("mysql://root@/shop?socket=%2Frun%2Fmysqld%2Fmysqld.sock&connectTimeout=3");
        assert_eq!(options.socket(), Some("/run/mysqld/mysqld.sock"));
        assert_eq!(target.connect_timeout, Duration::from_secs(3));
    }

    #[test]
    fn the_password_of_a_uri_is_removed() {
        let without = without_mysql_password;
        assert_eq!(without("mysql://ann:s%3A@cret@[::1]:33/x?a=b").as_deref(), Some("mysql://ann@[::1]:33/x?a=b"));
        assert_eq!(without("mariadb://ann:secret@db").as_deref(), Some("mariadb://ann@db"));
        for text in ["mysql://ann@db:3306/x", "mysql://db:3306/a@b:c", "mysql://localhost"] {
            assert_eq!(without(text), None, "{text}");
        }
    }

    #[test]
    fn keywords_need_no_percent_encoding() {
        let (target, options) =
            parse(r"host=db.example port=3307 user=ann password='p@ss %\'\\ /' database=shop sslmode=verify-full");
        assert_eq!((options.user(), options.pass()), (Some("ann"), Some(r"p@ss %'\ /")));
        assert_eq!((options.ip_or_hostname(), options.tcp_port()), ("db.example", 3307));
        assert_eq!((target.database(), target.tls.mode), (Some("shop"), TlsMode::VerifyIdentity));
        let (target, options) = parse("user=ann password=''");
        assert_eq!((target.address.as_str(), options.pass()), ("localhost:3306", Some("")));
    }

    #[test]
    fn other_strings_are_refused_with_what_is_right() {
        assert!(refusal("postgres://a@b/c").contains("mysql://USER@HOST"));
        assert!(refusal("mysql://a@b:x/c").contains("x is no port"));
        assert!(refusal("mysql://a@b/c?tls=true").contains("known are ssl-mode"));
        assert!(refusal("mysql://a@b/c?ssl-mode=VERIFY_CA").contains("VERIFY_IDENTITY"));
        assert!(refusal("mysql://a@b/c?ssl-cert=x").contains("belong together"));
        assert!(refusal("reader@localhost").contains("mysql://USER@HOST"));
        assert!(refusal("host=a password='b").contains("not closed"));
        assert!(refusal("host=a colour=blue").contains("colour is not known"));
    }
}
