//! The target of a connection: a connection string, completed from its environment as in libpq.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::ChannelBinding;

use super::environment::ConnectEnvironment;
use super::host::Host;
use super::password_file::PasswordFile;
use super::settings::Settings;
use super::target_error::TargetError;
use super::tls_settings::{TlsMode, TlsSettings};

/// The default time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time limit for connecting to one address; applies also where no limit is configured.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The maximum number of hosts in a connection string.
const HOSTS_MAX: usize = 32;

/// The target of a connection: servers, database, user and protection.
///
/// Parsed from a connection string, which is a URI or a list of keywords and values. Missing settings come from a
/// service, the environment, a password file and libpq's defaults, in this order.
#[derive(Debug, Clone)]
pub struct ConnectTarget {
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) tls: TlsSettings,
    pub(super) channel_binding: ChannelBinding,
    /// For each address.
    pub(super) connect_timeout: Duration,
    pub(super) keepalive: Keepalive,
    pub(super) session_role: SessionRole,
    /// Whether hosts and addresses are tried in random order.
    pub(super) shuffles_hosts: bool,
    pub(super) application_name: Option<String>,
    pub(super) options: Option<String>,
    warnings: Vec<String>,
}

/// The settings that detect a broken connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keepalive {
    pub(super) enabled: bool,
    pub(super) idle: Duration,
    pub(super) interval: Duration,
    pub(super) count: u32,
    /// The maximum time that sent data may stay unacknowledged.
    pub(super) user_timeout: Option<Duration>,
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
    /// Parses the connection string `text` and completes it from `connect_environment`. An empty text uses the
    /// environment only.
    ///
    /// # Errors
    /// Fails if the text, the service or an environment variable is invalid or unsupported. Errors never quote values.
    pub fn parse(text: &str, connect_environment: &ConnectEnvironment<'_>) -> Result<Self, TargetError> {
        let settings = Settings::collect(text, connect_environment)?;
        let user = settings.text("user").map(str::to_owned).or_else(|| connect_environment.user.clone());
        let user = user.filter(|user| !user.is_empty()).ok_or(TargetError::NoUser)?;
        let database = settings.text("dbname").unwrap_or(&user).to_owned();
        let application_name = settings.text("application_name").or(settings.text("fallback_application_name"));
        let mut target = Self {
            hosts: Host::list(&settings, connect_environment)?,
            tls: TlsSettings::from_settings(&settings, connect_environment)?,
            channel_binding: settings.choose("channel_binding", &CHANNEL_BINDINGS)?.unwrap_or(ChannelBinding::Prefer),
            connect_timeout: read_connect_timeout(&settings)?,
            keepalive: Keepalive::from_settings(&settings)?,
            session_role: settings.choose("target_session_attrs", &SessionRole::NAMES)?.unwrap_or(SessionRole::Any),
            shuffles_hosts: settings
                .choose("load_balance_hosts", &[("disable", false), ("random", true)])?
                .unwrap_or(false),
            application_name: application_name.map(str::to_owned),
            options: settings.text("options").map(str::to_owned),
            warnings: Vec::new(),
            user,
            database,
        };
        if target.hosts.len() > HOSTS_MAX {
            return Err(settings.bad_value("host", "a list of at most 32 hosts"));
        }
        // The protocol ends each text with a zero byte.
        let texts = [Some(&target.user), Some(&target.database), target.application_name.as_ref()];
        if texts.into_iter().chain([target.options.as_ref()]).flatten().any(|text| text.contains('\0')) {
            return Err(TargetError::Contradiction("a value contains a NUL character"));
        }
        target.find_passwords(&settings, connect_environment);
        Ok(target)
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

    /// The TLS mode.
    pub fn tls_mode(&self) -> TlsMode {
        self.tls.mode
    }

    fn find_passwords(&mut self, settings: &Settings, connect_environment: &ConnectEnvironment<'_>) {
        let of_home = || connect_environment.home.as_ref().map(|home| home.join(".pgpass"));
        let path = settings.text("passfile").map(PathBuf::from).or_else(of_home);
        // No warning about a file that is not needed.
        let path = path.filter(|_| settings.text("password").is_none());
        let file = path.map(|path| (PasswordFile::read(&path), path));
        for host in &mut self.hosts {
            let file = file.as_ref().map(|(file, path)| (path.as_path(), file));
            host.find_password(settings, file, &self.user, &self.database);
        }
        if let Some((PasswordFile { warning: Some(warning), .. }, _)) = file {
            tracing::warn!("{warning}");
            self.warnings.push(warning);
        }
    }
}

impl Keepalive {
    fn from_settings(settings: &Settings) -> Result<Self, TargetError> {
        let number = |name| settings.read(name, "a number, 0 or more", |text| text.parse::<u32>().ok());
        // Zero selects the default.
        let seconds = |name, usual: u32| {
            number(name).map(|value| Duration::from_secs(value.filter(|value| *value > 0).unwrap_or(usual).into()))
        };
        Ok(Self {
            enabled: number("keepalives")? != Some(0),
            // The two hours of the operating system exceed the connection timeout of most firewalls.
            idle: seconds("keepalives_idle", 60)?,
            interval: seconds("keepalives_interval", 15)?,
            count: number("keepalives_count")?.filter(|count| *count > 0).unwrap_or(4),
            user_timeout: number("tcp_user_timeout")?
                .filter(|timeout_ms| *timeout_ms > 0)
                .map(|timeout_ms| Duration::from_millis(timeout_ms.into())),
        })
    }
}

pub(super) const CHANNEL_BINDINGS: [(&str, ChannelBinding); 3] =
    [("disable", ChannelBinding::Disable), ("prefer", ChannelBinding::Prefer), ("require", ChannelBinding::Require)];

/// In libpq, zero or less means no limit; here the maximum applies instead.
fn read_connect_timeout(settings: &Settings) -> Result<Duration, TargetError> {
    let seconds = settings.read("connect_timeout", "a number of seconds", |text| text.parse::<i64>().ok())?;
    Ok(match seconds {
        None => CONNECT_TIMEOUT,
        Some(seconds) => match u64::try_from(seconds) {
            Ok(0) | Err(_) => CONNECT_TIMEOUT_MAX,
            Ok(seconds) => Duration::from_secs(seconds).min(CONNECT_TIMEOUT_MAX),
        },
    })
}
