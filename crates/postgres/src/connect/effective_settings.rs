//! The effective settings of a connection string, for diagnosis.

use std::path::Path;

use super::host::HostLocation;
use super::target::{CHANNEL_BINDINGS, ConnectTarget};
use super::tls_settings::{ClientFile, RootCertificates, TlsVersion};

impl ConnectTarget {
    /// Every setting as a keyword and its value, for diagnosis. For passwords, only their source.
    pub fn effective_settings(&self) -> Vec<(&'static str, String)> {
        let mut members = self.host_settings();
        members.push(("user", self.user.clone()));
        members.push(("dbname", self.database.clone()));
        members.extend(self.tls_settings());
        let binding = CHANNEL_BINDINGS.iter().find(|(_, binding)| *binding == self.channel_binding);
        members.push(("channel_binding", binding.map_or("", |(name, _)| name).to_owned()));
        members.push(("target_session_attrs", self.session_role.name().to_owned()));
        members.push(("load_balance_hosts", if self.shuffles_hosts { "random" } else { "disable" }.to_owned()));
        members.push(("application_name", self.application_name.clone().unwrap_or_default()));
        members.push(("options", self.options.clone().unwrap_or_default()));
        members.extend(self.timeout_settings());
        members
    }

    fn host_settings(&self) -> Vec<(&'static str, String)> {
        let of_host = self.hosts.iter().flat_map(|host| {
            let address = match &host.location {
                HostLocation::Network { address, .. } => *address,
                HostLocation::Socket(_) => None,
            };
            [
                Some(("host", host.to_string())),
                address.map(|address| ("hostaddr", address.to_string())),
                Some(("password", host.password_source.to_string())),
            ]
        });
        of_host.flatten().collect()
    }

    fn tls_settings(&self) -> Vec<(&'static str, String)> {
        let roots = match &self.tls.roots {
            RootCertificates::System => "system".to_owned(),
            RootCertificates::File(path) => path.display().to_string(),
            RootCertificates::FileIfPresent(path) => if_present(path),
            RootCertificates::None => String::new(),
        };
        let version = |version| match version {
            TlsVersion::V1_2 => "TLSv1.2".to_owned(),
            TlsVersion::V1_3 => "TLSv1.3".to_owned(),
        };
        vec![
            ("sslmode", self.tls.mode.name().to_owned()),
            ("sslnegotiation", if self.tls.is_direct { "direct" } else { "postgres" }.to_owned()),
            ("sslrootcert", roots),
            ("sslcert", client_file(&self.tls.certificate)),
            ("sslkey", client_file(&self.tls.key)),
            ("sslsni", u8::from(self.tls.sends_name).to_string()),
            ("ssl_min_protocol_version", version(self.tls.version_min)),
            ("ssl_max_protocol_version", version(self.tls.version_max)),
        ]
    }

    fn timeout_settings(&self) -> Vec<(&'static str, String)> {
        let user_timeout_ms = self.keepalive.user_timeout.map_or(0, |timeout| timeout.as_millis());
        vec![
            ("connect_timeout", self.connect_timeout.as_secs().to_string()),
            ("keepalives", u8::from(self.keepalive.enabled).to_string()),
            ("keepalives_idle", self.keepalive.idle.as_secs().to_string()),
            ("keepalives_interval", self.keepalive.interval.as_secs().to_string()),
            ("keepalives_count", self.keepalive.count.to_string()),
            ("tcp_user_timeout", user_timeout_ms.to_string()),
        ]
    }
}

fn client_file(file: &ClientFile) -> String {
    match file {
        ClientFile::Named(path) => path.display().to_string(),
        ClientFile::IfPresent(path) => if_present(path),
        ClientFile::None => String::new(),
    }
}

fn if_present(path: &Path) -> String {
    format!("{}, if it exists", path.display())
}
