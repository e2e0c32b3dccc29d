//! A server of a connection string: a name, an address, or a folder with a socket; and its password.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;

use super::environment::{ConnectEnvironment, socket_name};
use super::keyword::{ConnectionStringError, SettingOrigin};
use super::password_file::PasswordFile;
use super::settings::Settings;

const DEFAULT_PORT: u16 = 5432;
const HOSTS_MAX: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) location: HostLocation,
    pub(super) port: u16,
    /// The settings of the driver, without address and TLS.
    pub(super) config: Config,
    /// The source of the password, for errors.
    pub(super) password_source: String,
}

#[derive(Debug, Clone)]
pub(super) enum HostLocation {
    Network {
        /// The name that the certificate must match; it is resolved if there is no address.
        name: String,
        address: Option<IpAddr>,
    },
    /// A socket in this folder.
    Socket(PathBuf),
}

#[derive(Debug, Clone)]
pub(super) enum ResolvedAddress {
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
    pub(super) fn list(
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
    pub(super) fn find_password(
        &mut self,
        settings: &Settings,
        file: Option<(&Path, &PasswordFile)>,
        user: &str,
        database: &str,
    ) {
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
