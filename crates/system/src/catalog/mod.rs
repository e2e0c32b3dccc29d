//! The tables and their descriptions.

mod load_and_memory;
mod network;
mod processes;
mod services_and_users;
mod storage;

use std::sync::LazyLock;

use strum::VariantArray as _;

use crate::description::{SystemColumn, SystemColumnType, SystemTableDescription};

/// One of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SystemTable {
    /// Running processes.
    Processes,
    /// Open network connections.
    Connections,
    /// Ports that accept connections or datagrams.
    ListeningPorts,
    /// Mounted file systems.
    Mounts,
    /// Block devices.
    Disks,
    /// Network interfaces.
    Interfaces,
    /// systemd services.
    Services,
    /// Local user accounts.
    Users,
    /// Load, CPU and pressure; one row.
    Load,
    /// Main memory and swap; one row.
    Memory,
}

impl SystemTable {
    /// All tables.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name, such as `listening_ports`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The description.
    pub fn description(self) -> &'static SystemTableDescription {
        static DESCRIPTIONS: [LazyLock<SystemTableDescription>; 10] = [
            LazyLock::new(processes::processes),
            LazyLock::new(network::connections),
            LazyLock::new(network::listening_ports),
            LazyLock::new(storage::mounts),
            LazyLock::new(storage::disks),
            LazyLock::new(network::interfaces),
            LazyLock::new(services_and_users::services),
            LazyLock::new(services_and_users::users),
            LazyLock::new(load_and_memory::load),
            LazyLock::new(load_and_memory::memory),
        ];
        let [processes, connections, listening_ports, mounts, disks, interfaces, services, users, load, memory] =
            &DESCRIPTIONS;
        match self {
            Self::Processes => processes,
            Self::Connections => connections,
            Self::ListeningPorts => listening_ports,
            Self::Mounts => mounts,
            Self::Disks => disks,
            Self::Interfaces => interfaces,
            Self::Services => services,
            Self::Users => users,
            Self::Load => load,
            Self::Memory => memory,
        }
    }
}

fn text(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Text, description)
}

fn integer(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Integer, description)
}

fn count(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Unsigned, description)
}

fn bytes(name: &'static str, description: &'static str) -> SystemColumn {
    count(name, description).with_unit("bytes")
}

fn float(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Float, description)
}

fn percent(name: &'static str, description: &'static str) -> SystemColumn {
    float(name, description).with_unit("percent")
}

fn boolean(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Boolean, description)
}

fn timestamp(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Timestamp, description)
}

fn seconds(name: &'static str, description: &'static str) -> SystemColumn {
    SystemColumn::new(name, SystemColumnType::Duration, description).with_unit("seconds")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn descriptions_are_complete_and_consistent() {
        for table in SystemTable::ALL {
            let description = table.description();
            assert_eq!(description.name, table.name());
            assert!(description.description.ends_with('.'), "{}", description.name);
            let names: BTreeSet<_> = description.column_names().collect();
            assert_eq!(names.len(), description.columns.len(), "{}", description.name);
            for column in &description.columns {
                let name = format!("{}.{}", description.name, column.name);
                assert!(
                    column.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                    "{name}"
                );
                assert!(column.description.ends_with('.') && column.description.len() > 10, "{name}");
                let has_suffix = |suffix: &str| column.name.ends_with(suffix);
                assert_eq!(has_suffix("bytes"), column.unit.as_deref() == Some("bytes"), "{name}");
                assert_eq!(has_suffix("percent"), column.unit.as_deref() == Some("percent"), "{name}");
                assert_eq!(has_suffix("_seconds"), column.column_type == SystemColumnType::Duration, "{name}");
                let is_flag = ["is_", "can_", "has_"].iter().any(|prefix| column.name.starts_with(prefix));
                assert_eq!(is_flag, column.column_type == SystemColumnType::Boolean, "{name}");
            }
            let is_filter = |column: &SystemColumn| column.is_good_filter;
            let has_one_row = matches!(table, SystemTable::Load | SystemTable::Memory);
            assert!(has_one_row || description.columns.iter().any(is_filter), "{}", description.name);
        }
    }

    #[test]
    fn only_command_lines_and_environments_are_sensitive() {
        let sensitive: Vec<String> = SystemTable::ALL
            .iter()
            .flat_map(|table| table.description().columns.iter().map(move |column| (table.name(), column)))
            .filter(|(_, column)| column.is_sensitive)
            .map(|(table, column)| format!("{table}.{}", column.name))
            .collect();
        assert_eq!(sensitive, ["processes.command_line", "processes.environment"]);
    }
}
