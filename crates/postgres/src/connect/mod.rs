//! Connecting: from a connection string to an open, protected and authenticated connection, and its cancellation.
//!
//! Connection strings have the syntax and meaning of libpq: a string that works for `psql` works for Tidegate. Where
//! libpq would ignore an unsupported request, this module returns an error.
//!
//! A target is a connection string, completed from its environment as in libpq. It has servers, each with a name, an address,
//! or a folder with a socket, and its password.

mod connection_string;
mod environment;
mod error;
mod message_bound;
mod open;
mod open_connection;
mod tls;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslNegotiation};

pub use connection_string::{ConnectionStringError, is_connection_string, without_password};
pub use environment::ConnectEnvironment;
pub use error::{CertificateFlaw, ConnectError, ConnectErrorKind};
pub use message_bound::MESSAGE_BYTES_MAX;
pub use open_connection::{Canceller, OpenConnection};
pub use tls::TlsMode;

use connection_string::{SettingOrigin, Settings};
use environment::{PasswordFile, socket_name};
use tls::TlsSettings;

/// The default time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time limit for connecting to one address; applies also where no limit is configured.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// The target of a connection: servers, database, user and protection.
///
/// Parsed from a connection string, which is a URI or a list of keywords and values. Missing settings come from a
/// service, the environment, a password file and libpq's defaults, in this order.
#[derive(Debug, Clone)]
pub struct ConnectTarget {
    hosts: Vec<Host>,
    user: String,
    database: String,
    tls: TlsSettings,
    /// For each address.
    connect_timeout: Duration,
    session_role: SessionRole,
    /// Whether hosts and addresses are tried in random order.
    shuffles_hosts: bool,
    message_bytes_max: usize,
    warnings: Vec<String>,
}

/// The kinds of session that `target_session_attrs` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRole {
    /// Any session.
    Any,
    /// A session whose transactions may write.
    ReadWrite,
    /// A session whose transactions are read-only.
    ReadOnly,
    /// A session on a server that is not a standby.
    Primary,
    /// A session on a standby.
    Standby,
    /// A session on a standby if there is one, otherwise any.
    PreferStandby,
}

impl SessionRole {
    const NAMES: [(&'static str, Self); 6] = [
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];

    /// The name in a connection string.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, role)| *role == self).map_or("", |(name, _)| name)
    }
}

impl ConnectTarget {
    /// Parses the connection string `text` and completes it from `environment`. An empty text uses the
    /// environment only.
    ///
    /// # Errors
    /// Fails if the text, the service or an environment variable is invalid or unsupported. Errors never quote values.
    pub fn parse(text: &str, environment: &ConnectEnvironment<'_>) -> Result<Self, ConnectionStringError> {
        let settings = Settings::collect(text, environment)?;
        let user = settings.text("user").map(str::to_owned).or_else(|| environment.user.clone());
        let user = user.filter(|user| !user.is_empty()).ok_or_else(|| {
            ConnectionStringError::new("no user is set; set it in the connection string or in PGUSER")
        })?;
        let database = settings.text("dbname").unwrap_or(&user).to_owned();
        let tls = TlsSettings::from_settings(&settings, environment)?;
        let connect_timeout = read_connect_timeout(&settings)?;
        let mut config = Config::new();
        config.user(&user).dbname(&database).connect_timeout(connect_timeout);
        if tls.is_direct {
            config.ssl_negotiation(SslNegotiation::Direct);
        }
        configure_session(&mut config, &settings)?;
        configure_keepalive(&mut config, &settings)?;
        let load_balance = settings.choose("load_balance_hosts", &[("disable", false), ("random", true)])?;
        let mut target = Self {
            hosts: Host::list(&settings, environment, &config)?,
            user,
            database,
            tls,
            connect_timeout,
            session_role: settings.choose("target_session_attrs", &SessionRole::NAMES)?.unwrap_or(SessionRole::Any),
            shuffles_hosts: load_balance.unwrap_or(false),
            message_bytes_max: MESSAGE_BYTES_MAX,
            warnings: Vec::new(),
        };
        target.find_passwords(&settings, environment);
        Ok(target)
    }

    /// The target with a maximum size of one message of the server, in bytes. A larger one, such as a row with a long
    /// value, ends its statement with an error, and the connection.
    #[must_use]
    pub fn with_message_bytes_max(self, message_bytes_max: usize) -> Self {
        Self { message_bytes_max, ..self }
    }

    /// The target for logs: `postgres at db.example.com:5432/shop as reader`. Never contains the password.
    pub fn describe(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        format!("postgres at {}/{} as {}", hosts.join(","), self.database, self.user)
    }

    /// Warnings for the owner, such as an ignored password file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The role that connects.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The database on the server.
    pub fn database(&self) -> &str {
        &self.database
    }

    fn find_passwords(&mut self, settings: &Settings, environment: &ConnectEnvironment<'_>) {
        let of_home = || environment.home.as_ref().map(|home| home.join(".pgpass"));
        let path = settings.text("passfile").map(PathBuf::from).or_else(of_home);
        // No warning about a file that is not needed.
        let path = path.filter(|_| settings.text("password").is_none());
        let file = path.and_then(|path| match PasswordFile::read(&path) {
            Ok(file) => Some((path, file)),
            Err(warning) => {
                tracing::warn!("{warning}");
                self.warnings.push(warning);
                None
            }
        });
        for host in &mut self.hosts {
            let file = file.as_ref().map(|(path, file)| (path.as_path(), file));
            host.find_password(settings, file, &self.user, &self.database);
        }
    }
}

fn configure_session(config: &mut Config, settings: &Settings) -> Result<(), ConnectionStringError> {
    if let Some(name) = settings.text("application_name").or(settings.text("fallback_application_name")) {
        config.application_name(name);
    }
    if let Some(options) = settings.text("options") {
        config.options(options);
    }
    let bindings = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    if let Some(binding) = settings.choose("channel_binding", &bindings)? {
        config.channel_binding(binding);
    }
    Ok(())
}

/// Sets how a broken connection is detected. Zero selects the default.
fn configure_keepalive(config: &mut Config, settings: &Settings) -> Result<(), ConnectionStringError> {
    let number = |name| settings.read(name, "a number, 0 or more", |text| text.parse::<u32>().ok());
    let positive = |name, usual: u32| number(name).map(|value| value.filter(|value| *value > 0).unwrap_or(usual));
    // The two hours of the operating system exceed the connection timeout of most firewalls.
    config
        .keepalives(number("keepalives")? != Some(0))
        .keepalives_idle(Duration::from_secs(positive("keepalives_idle", 60)?.into()))
        .keepalives_interval(Duration::from_secs(positive("keepalives_interval", 15)?.into()))
        .keepalives_retries(positive("keepalives_count", 4)?);
    if let Some(limit_ms) = number("tcp_user_timeout")?.filter(|limit_ms| *limit_ms > 0) {
        config.tcp_user_timeout(Duration::from_millis(limit_ms.into()));
    }
    Ok(())
}

/// In libpq, zero or less means no limit; here the maximum applies instead.
fn read_connect_timeout(settings: &Settings) -> Result<Duration, ConnectionStringError> {
    let seconds = settings.read("connect_timeout", "a number of seconds", |text| text.parse::<i64>().ok())?;
    Ok(match seconds {
        None => CONNECT_TIMEOUT,
        Some(seconds) => match u64::try_from(seconds) {
            Ok(0) | Err(_) => CONNECT_TIMEOUT_MAX,
            Ok(seconds) => Duration::from_secs(seconds).min(CONNECT_TIMEOUT_MAX),
        },
    })
}

const DEFAULT_PORT: u16 = 5432;
const HOSTS_MAX: usize = 32;

#[derive(Debug, Clone)]
struct Host {
    location: HostLocation,
    port: u16,
    /// The settings of the driver, without address and TLS.
    config: Config,
    /// The source of the password, for errors.
    password_source: String,
}

#[derive(Debug, Clone)]
enum HostLocation {
    Network {
        /// The name that the certificate must match; it is resolved if there is no address.
        name: String,
        address: Option<IpAddr>,
    },
    /// A socket in this folder.
    Socket(PathBuf),
}

#[derive(Debug, Clone)]
enum ResolvedAddress {
    Network {
        name: String,
        address: IpAddr,
    },
    /// A socket in this folder.
    Socket(PathBuf),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            HostLocation::Network { name, .. } if name.contains(':') => write!(f, "[{name}]:{}", self.port),
            HostLocation::Network { name, .. } => write!(f, "{name}:{}", self.port),
            HostLocation::Socket(folder) => write!(f, "{}", folder.join(socket_name(self.port)).display()),
        }
    }
}

impl Host {
    /// The hosts in `settings`, or the default host; without passwords.
    fn list(
        settings: &Settings,
        environment: &ConnectEnvironment<'_>,
        config: &Config,
    ) -> Result<Vec<Self>, ConnectionStringError> {
        let (names, addresses, ports) = (settings.list("host"), settings.list("hostaddr"), settings.list("port"));
        let count = names.len().max(addresses.len()).max(1);
        let unequal = |first, first_count, second, second_count| {
            let message = format!("{first} lists {first_count} and {second} lists {second_count}; ");
            Err(ConnectionStringError::new(message + "they must list the same number"))
        };
        if !names.is_empty() && !addresses.is_empty() && names.len() != addresses.len() {
            return unequal("host", names.len(), "hostaddr", addresses.len());
        }
        if ports.len() > 1 && ports.len() != count {
            return unequal("port", ports.len(), "host", count);
        }
        if count > HOSTS_MAX {
            return Err(settings.bad_value("host", "a list of at most 32 hosts"));
        }
        (0..count)
            .map(|index| {
                let port = ports.get(index).or(ports.first()).map_or("", |port| port.trim());
                let port = read_port(port).ok_or_else(|| settings.bad_value("port", "a number from 1 to 65535"))?;
                let address = match addresses.get(index).map_or("", |address| address.trim()) {
                    "" => None,
                    text => Some(text.parse().map_err(|_| settings.bad_value("hostaddr", "an IP address"))?),
                };
                let name = names.get(index).map_or("", |name| name.trim());
                let location = locate_host(settings, environment, name, address, port)?;
                Ok(Self { location, port, config: config.clone(), password_source: "no password was given".to_owned() })
            })
            .collect()
    }

    /// Sets the password of the host: from `settings`, or else from `file`.
    fn find_password(&mut self, settings: &Settings, file: Option<(&Path, &PasswordFile)>, user: &str, database: &str) {
        let (password, source) = if let Some(password) = settings.text("password") {
            let source = match settings.origin("password") {
                SettingOrigin::Service(path, _) => format!("the service file {}", path.display()),
                SettingOrigin::Variable(name) => name.to_owned(),
                SettingOrigin::ConnectionString | SettingOrigin::Default => "the connection string".to_owned(),
            };
            (password.to_owned(), source)
        } else {
            let names = self.names();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let Some((path, file)) = file else { return };
            let Some(password) = file.find(&names, self.port, database, user) else { return };
            (password, format!("the password file {}", path.display()))
        };
        self.config.password(password);
        self.password_source = format!("the password is from {source}");
    }

    /// The names under which a password file may list the host.
    fn names(&self) -> Vec<String> {
        match &self.location {
            HostLocation::Network { name, .. } => vec![name.clone()],
            HostLocation::Socket(folder) => vec![folder.display().to_string(), "localhost".to_owned()],
        }
    }
}

fn locate_host(
    settings: &Settings,
    environment: &ConnectEnvironment<'_>,
    name: &str,
    address: Option<IpAddr>,
    port: u16,
) -> Result<HostLocation, ConnectionStringError> {
    if name.starts_with('@') {
        return Err(settings.bad_value("host", "a name, an address or a socket folder"));
    }
    let by_default = || environment.socket_folder(port).map(|folder| HostLocation::Socket(folder.to_owned()));
    Ok(match (name, address) {
        ("", Some(address)) => HostLocation::Network { name: address.to_string(), address: Some(address) },
        ("", None) => by_default().unwrap_or(HostLocation::Network { name: "localhost".to_owned(), address: None }),
        (name, None) if name.starts_with('/') => HostLocation::Socket(PathBuf::from(name)),
        (name, address) => HostLocation::Network { name: name.to_owned(), address },
    })
}

fn read_port(text: &str) -> Option<u16> {
    if text.is_empty() { Some(DEFAULT_PORT) } else { text.parse().ok().filter(|port| *port > 0) }
}
