//! The target of a connection: a connection string, completed from its environment as in libpq.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslNegotiation};

use super::environment::ConnectEnvironment;
use super::host::Host;
use super::keyword::ConnectionStringError;
use super::message_bound::MESSAGE_BYTES_MAX;
use super::password_file::PasswordFile;
use super::settings::Settings;
use super::tls_settings::TlsSettings;

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
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    database: String,
    pub(super) tls: TlsSettings,
    /// For each address.
    pub(super) connect_timeout: Duration,
    pub(super) session_role: SessionRole,
    /// Whether hosts and addresses are tried in random order.
    pub(super) shuffles_hosts: bool,
    pub(super) message_bytes_max: usize,
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
