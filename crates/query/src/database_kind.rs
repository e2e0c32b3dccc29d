//! Kinds of databases.

/// The kind of a database: the key of the configuration that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the keys of the configuration say it")]
pub enum DatabaseKind {
    Federated,
    Files,
    FlightSql,
    Ingest,
    Journal,
    Network,
    Postgres,
    Sqlite,
    System,
    /// A database of a program that embeds the server, with its name.
    Other(&'static str),
}

impl DatabaseKind {
    /// The name, as `list_databases` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Federated => "federated",
            Self::Files => "files",
            Self::FlightSql => "flight_sql",
            Self::Ingest => "ingest",
            Self::Journal => "journal",
            Self::Network => "network",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::System => "system",
            Self::Other(name) => name,
        }
    }
}
