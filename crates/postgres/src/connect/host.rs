//! A server of a connection string: a name, an address, or a folder with a socket; and its password.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;

use super::environment::{ConnectEnvironment, socket_name};
use super::keyword::{ConnectionStringError, SettingOrigin};
use super::password_file::{PasswordFile, PasswordLookup, PasswordSource};
use super::settings::Settings;

const DEFAULT_PORT: u16 = 5432;
/// The maximum number of hosts in a connection string.
const HOSTS_MAX: usize = 32;

/// A server of a connection string.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) location: HostLocation,
    pub(super) port: u16,
    /// The settings of the driver, without address and TLS.
    pub(super) config: Config,
    pub(super) password_source: PasswordSource,
}

/// The location of a server.
#[derive(Debug, Clone)]
pub(super) enum HostLocation {
    /// A TCP port.
    Network {
        /// The name that the certificate must match; it is resolved if there is no address.
        name: String,
        address: Option<IpAddr>,
    },
    /// A socket in this folder.
    Socket(PathBuf),
}

/// A resolved address of a host.
#[derive(Debug, Clone)]
pub(super) enum ResolvedAddress {
    /// An IP address, and the name that it was resolved from.
    Network { name: String, address: IpAddr },
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
    pub(super) fn list(
        settings: &Settings,
        connect_environment: &ConnectEnvironment<'_>,
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
                let location = locate_host(settings, connect_environment, name, address, port)?;
                Ok(Self { location, port, config: config.clone(), password_source: PasswordSource::None })
            })
            .collect()
    }

    /// Sets the password of the host: from `settings`, or else from `file`.
    pub(super) fn find_password(
        &mut self,
        settings: &Settings,
        file: Option<(&Path, &PasswordFile)>,
        user: &str,
        database: &str,
    ) {
        if let Some(password) = settings.text("password") {
            self.config.password(password);
            self.password_source = match settings.origin("password") {
                SettingOrigin::Service(path, _) => PasswordSource::Service(path),
                SettingOrigin::Variable(_) => PasswordSource::Variable,
                SettingOrigin::ConnectionString | SettingOrigin::Default => PasswordSource::ConnectionString,
            };
            return;
        }
        let hosts = self.names();
        let password_lookup = PasswordLookup { hosts: &hosts, port: self.port, database, user };
        if let Some((path, password)) = file.and_then(|(path, file)| Some((path, file.find(&password_lookup)?))) {
            self.config.password(password);
            self.password_source = PasswordSource::File(path.to_owned());
        }
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
    connect_environment: &ConnectEnvironment<'_>,
    name: &str,
    address: Option<IpAddr>,
    port: u16,
) -> Result<HostLocation, ConnectionStringError> {
    if name.starts_with('@') {
        return Err(settings.bad_value("host", "a name, an address or a socket folder"));
    }
    let by_default = || connect_environment.socket_folder(port).map(|folder| HostLocation::Socket(folder.to_owned()));
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
