//! Databases as arguments of the command line: a path or the address of a server, or one of them after `name=`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tidegate_engines::{EmbeddedDatabase, Engine, FederatedDatabase, JournalTable, SystemDatabase, glob_folder};
use tidegate_postgres_handlers::{DatabaseHandlers, SchemaName};
use tidegate_query::Database;
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

use crate::argument_secrets::{has_user_and_password, mask_secrets};
use crate::command_error::CommandError;
use crate::config::{ServerKind, server_kind_of, server_kinds};

/// Name of a database without a name whose path has no name either (`/`).
const DEFAULT_DATABASE_NAME: &str = "files";
/// Name of the federated database of several databases of one command line.
pub(crate) const JOINED_DATABASE_NAME: &str = "all";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseArgument {
    name: Option<String>,
    location: DatabaseLocation,
    /// The schema with the handlers that are served.
    handlers: Option<SchemaName>,
}

/// The databases of the command line.
#[derive(Default)]
pub(crate) struct CommandLineDatabases {
    pub(crate) databases: Vec<Arc<dyn Database>>,
    /// The handlers of some of them, by their names.
    pub(crate) handlers: Vec<(String, Arc<DatabaseHandlers>)>,
    /// The paths of those with files, by their names.
    pub(crate) paths: BTreeMap<String, PathBuf>,
}

#[derive(Clone, PartialEq, Eq)]
enum DatabaseLocation {
    /// A folder, a file, or a SQLite file; the content decides.
    Path(PathBuf),
    /// An address.
    Server(&'static ServerKind, String),
}

impl std::fmt::Debug for DatabaseLocation {
    /// A connection string may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Server(server, _) => f.write_str(server.key),
        }
    }
}

impl DatabaseLocation {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(server) = server_kind_of(text) {
            return Ok(Self::Server(server, text.to_owned()));
        }
        check_path(text)?;
        Ok(Self::Path(text.into()))
    }

    /// The location as in messages, without a password.
    fn display_text(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Server(server, _) => format!("{}://…", server.key),
        }
    }
}

impl DatabaseArgument {
    /// Parses `PATH`, the address of a server, or one of them after `name=`. Text before `=` is a name unless it
    /// is a path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(name, _)| !name.contains(['/', '\\', '.']));
        match named.filter(|_| server_kind_of(text).is_none()) {
            Some((name, location)) => match (name.trim(), location) {
                ("", _) => Err("the name before = is empty".to_owned()),
                (_, "") => Err("the path after = is empty".to_owned()),
                (name, location) => {
                    if server_kind_of(location).is_none() {
                        check_path(text)?;
                    }
                    let location = DatabaseLocation::parse(location)?;
                    Ok(Self { name: Some(name.to_owned()), location, handlers: None })
                }
            },
            None => Ok(Self { name: None, location: DatabaseLocation::parse(text)?, handlers: None }),
        }
    }

    pub(crate) fn with_name(name: &str, path: &Path) -> Self {
        Self { name: Some(name.to_owned()), location: DatabaseLocation::Path(path.to_owned()), handlers: None }
    }

    /// The same arguments, of which databases with handlers serve those in `schema`.
    pub(crate) fn with_handlers(sources: &[Self], schema: &SchemaName) -> Result<Vec<Self>, CommandError> {
        let with_handlers = sources.iter().map(|source| {
            let handlers = source.has_handlers().then(|| schema.clone());
            Self { handlers, ..source.clone() }
        });
        let with_handlers: Vec<Self> = with_handlers.collect();
        if with_handlers.iter().all(|source| source.handlers.is_none()) {
            let message = "--handlers needs a database of PostgreSQL beside it, as in tidegate serve \
                           shop=postgres://USER@HOST:PORT/DATABASE --handlers; in a configuration, the key \
                           databases[].handlers names the schema";
            return Err(CommandError::Usage(message.to_owned()));
        }
        Ok(with_handlers)
    }

    fn has_handlers(&self) -> bool {
        matches!(&self.location, DatabaseLocation::Server(server, _) if server.open_with_handlers.is_some())
    }

    /// The same source without the password of its connection string.
    pub(crate) fn without_password(&self) -> Result<Self, CommandError> {
        let location = match &self.location {
            DatabaseLocation::Server(server, text) => {
                let without = (server.without_password)(text).map_err(|error| usage_error(server, &error))?;
                DatabaseLocation::Server(server, without.unwrap_or_else(|| text.clone()))
            }
            DatabaseLocation::Path(_) => self.location.clone(),
        };
        Ok(Self { location, ..self.clone() })
    }

    /// The argument with an absolute path, which works in any current folder.
    fn absolute_argument(&self) -> String {
        let location = match &self.location {
            DatabaseLocation::Path(path) => {
                std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()
            }
            DatabaseLocation::Server(_, text) => text.clone(),
        };
        match &self.name {
            Some(name) => format!("{name}={location}"),
            None => location,
        }
    }

    /// The given name, else the name of the folder (of a glob: the folder before its first wildcard), else the file
    /// name without its ending, else the name of the database on its server.
    fn database_name(&self) -> Result<String, CommandError> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        match &self.location {
            DatabaseLocation::Path(path) => {
                let path = glob_folder(path).unwrap_or_else(|| path.clone());
                let whole = path.canonicalize().unwrap_or(path);
                let name = if whole.is_dir() { whole.file_name() } else { whole.file_stem() };
                Ok(name.map_or_else(|| DEFAULT_DATABASE_NAME.to_owned(), |name| name.to_string_lossy().into_owned()))
            }
            DatabaseLocation::Server(server, text) => {
                (server.database)(text).map_err(|error| usage_error(server, &error))
            }
        }
    }

    fn open_database(&self, name: String, engine: &Engine) -> Result<Arc<dyn Database>, CommandError> {
        let failed = |error: tidegate_core::Error| CommandError::Usage(format!("cannot open {error}"));
        Ok(match &self.location {
            DatabaseLocation::Server(server, text) => {
                (server.open)(name, text).map_err(|error| usage_error(server, &error))?
            }
            DatabaseLocation::Path(path) if is_sqlite(path) => {
                let database = SqliteDatabase::open(name, vec![path.clone()], SqliteOptions::default());
                Arc::new(database.map_err(failed)?)
            }
            DatabaseLocation::Path(path) if JournalTable::is_journal_folder(path) => {
                let table = JournalTable::open(vec![path.clone()]).map_err(failed)?;
                Arc::new(SystemDatabase::of_journal(name, table, None, engine).map_err(failed)?)
            }
            DatabaseLocation::Path(path) => {
                let database = EmbeddedDatabase::open(name, vec![path.clone()], engine).map_err(failed)?;
                for glob in database.unmatched_globs() {
                    tracing::warn!("database {}: no file matches {glob} yet", database.name());
                }
                Arc::new(database)
            }
        })
    }
}

/// Checks that `text` is no address of another kind, and no connection string of another driver.
pub(crate) fn check_path(text: &str) -> Result<(), String> {
    let is_scheme =
        |scheme: &str| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    let is_path = || {
        // Text before `=` may be a name.
        let location = text.split_once('=').map_or(text, |(_, location)| location);
        location.starts_with(['.', '/']) || Path::new(location).exists()
    };
    let scheme = text.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
    match scheme.map(str::to_ascii_lowercase).as_deref() {
        _ if Path::new(text).exists() => Ok(()),
        Some("file" | "sqlite" | "sqlite3") => Err("a path is written without a scheme, such as ./app.db".to_owned()),
        Some(scheme) => {
            let forms = server_kinds().map(|server| server.form).collect::<Vec<_>>().join(" or ");
            Err(format!("addresses with {scheme}:// cannot be opened; write a path, or {forms}"))
        }
        None if text.contains([';', '&', ' ']) && matches!(mask_secrets(text), Cow::Owned(_)) => Err(
            "it is a connection string of another driver; write it as postgres://USER@HOST:PORT/DATABASE, and put the \
             password into PGPASSWORD or .pgpass"
                .to_owned(),
        ),
        None if has_user_and_password(text) && !is_path() => Err(
            "a connection string begins with postgresql://, such as postgresql://USER@HOST:PORT/DATABASE; a path with \
             such a name begins with ./"
                .to_owned(),
        ),
        None => Ok(()),
    }
}

/// The error about an address of `server`.
fn usage_error(server: &ServerKind, error: &str) -> CommandError {
    CommandError::Usage(format!("{}: {error}", server.key))
}

/// Whether a file begins with the header of SQLite.
///
/// [SQLite, Database File Format](https://www.sqlite.org/fileformat.html#magic_header_string)
pub(crate) fn is_sqlite(path: &Path) -> bool {
    let mut beginning = [0; 16];
    let mut read = || std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    // Opening a path that is not a regular file may block for ever.
    path.is_file() && read().is_ok() && &beginning == b"SQLite format 3\0"
}

pub(crate) fn open_databases(
    sources: &[DatabaseArgument],
    engine: &Engine,
) -> Result<CommandLineDatabases, CommandError> {
    let mut opened = CommandLineDatabases::default();
    for (name, source) in sources_by_name(sources)? {
        if let DatabaseLocation::Path(path) = &source.location {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            opened.paths.insert(name.clone(), path);
        }
        let database = match (&source.location, &source.handlers) {
            (DatabaseLocation::Server(ServerKind { open_with_handlers: Some(open), .. }, text), Some(schema)) => {
                let with_handlers = open(name.clone(), text, schema);
                let (database, handlers) =
                    with_handlers.map_err(|error| CommandError::Usage(format!("{name}: {error}")))?;
                opened.handlers.push((name, handlers));
                database
            }
            _ => source.open_database(name, engine)?,
        };
        opened.databases.push(database);
    }
    Ok(opened)
}

/// The names that the databases of `sources` get. One without a name is left out.
pub(crate) fn database_names(sources: &[DatabaseArgument]) -> Vec<String> {
    sources.iter().filter_map(|source| source.database_name().ok()).collect()
}

/// The database that joins `databases`, if there are several and none has its name.
pub(crate) fn join_databases(
    databases: &[Arc<dyn Database>],
    engine: &Engine,
) -> Result<Option<Arc<dyn Database>>, CommandError> {
    if databases.len() < 2 || databases.iter().any(|database| database.name() == JOINED_DATABASE_NAME) {
        return Ok(None);
    }
    let joined = FederatedDatabase::new(JOINED_DATABASE_NAME, databases.iter().cloned(), engine);
    Ok(Some(Arc::new(joined.map_err(anyhow::Error::from)?)))
}

pub(crate) fn stdio_arguments(config: Option<&Path>, sources: &[DatabaseArgument]) -> Vec<String> {
    let mut arguments = vec!["stdio".to_owned()];
    arguments.extend(config.into_iter().flat_map(|file| ["--config".to_owned(), file.display().to_string()]));
    let sources = if config.is_some() { sources } else { sources_or_current_folder(sources) };
    arguments.extend(sources.iter().map(DatabaseArgument::absolute_argument));
    arguments
}

pub(crate) fn sources_or_current_folder(sources: &[DatabaseArgument]) -> &[DatabaseArgument] {
    static HERE: LazyLock<[DatabaseArgument; 1]> = LazyLock::new(|| {
        let location = DatabaseLocation::Path(PathBuf::from("."));
        [DatabaseArgument { name: None, location, handlers: None }]
    });
    if sources.is_empty() { &*HERE } else { sources }
}

fn sources_by_name(sources: &[DatabaseArgument]) -> Result<BTreeMap<String, &DatabaseArgument>, CommandError> {
    let mut named: BTreeMap<String, &DatabaseArgument> = BTreeMap::new();
    for source in sources {
        let name = source.database_name()?;
        if let Some(other) = named.insert(name.clone(), source) {
            let (location, other) = (source.location.display_text(), other.location.display_text());
            let message = format!(
                "{other} and {location} have the same database name {name:?}; name one of them: other={location}"
            );
            return Err(CommandError::Usage(message));
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_optional_name_before_path() {
        let parsed = |text| DatabaseArgument::parse(text).unwrap();
        let argument =
            |name: Option<&str>, location| DatabaseArgument { name: name.map(str::to_owned), location, handlers: None };
        let path = |text: &str| DatabaseLocation::Path(text.into());
        assert_eq!(parsed("shop=./data"), argument(Some("shop"), path("./data")));
        assert_eq!(parsed("./a=b/c"), argument(None, path("./a=b/c")));
        assert_eq!(parsed("data"), argument(None, path("data")));
        let postgres = "postgres://ann:secret@db/shop?sslmode=require";
        let server = |text: &str| DatabaseLocation::Server(server_kind_of(text).unwrap(), text.into());
        assert_eq!(parsed(postgres), argument(None, server(postgres)));
        let named = format!("shop={postgres}");
        assert_eq!(parsed(&named).name.as_deref(), Some("shop"));
        assert!(!format!("{:?}", parsed(postgres)).contains("secret"));
        for text in ["host=db dbname=shop password=secret", "postgresql+asyncpg://ann:secret@db/shop", "dbname=shop"] {
            assert_eq!(parsed(text), argument(None, server(text)), "{text}");
            let named = format!("crm={text}");
            assert_eq!(DatabaseArgument::parse(&named).unwrap().name.as_deref(), Some("crm"), "{text}");
        }
        for text in
            ["oracle://ann:secret@db/shop", "Server=db;Password=secret", "sqlite:///app.db", "a=file:///tmp/a.csv"]
        {
            assert!(!DatabaseArgument::parse(text).unwrap_err().contains("secret"), "{text}");
        }
        for text in ["mysql://ann:secret@db/shop", "mariadb://ann:s%3Acret@db:3307/shop?ssl-mode=REQUIRED"] {
            let source = parsed(text);
            assert_eq!(source, argument(None, server(text)), "{text}");
            assert_eq!(source.database_name().unwrap(), "shop");
            let argument = source.without_password().unwrap().absolute_argument();
            assert!(!argument.contains("cret") && argument.contains("ann@db"), "{argument}");
            assert_eq!(DatabaseArgument::parse(&format!("crm={text}")).unwrap().name.as_deref(), Some("crm"), "{text}");
        }
        for text in ["ann:secret@db:5432/shop", "shop=ann:secret@db/shop", "postgresql//ann:secret@db/shop"] {
            let refusal = DatabaseArgument::parse(text).unwrap_err();
            assert!(refusal.starts_with("a connection string begins with postgresql://"), "{text}: {refusal}");
        }
        for text in ["./12:30@site/*.csv", "shop=./12:30@site/*.csv", "/12:30@site/*.csv"] {
            assert!(DatabaseArgument::parse(text).is_ok(), "{text}");
        }
        assert!(DatabaseArgument::parse("=data").is_err());
        assert!(DatabaseArgument::parse("shop=").is_err());
    }

    #[test]
    fn database_name_comes_from_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let shop = folder.path().join("shop.v1");
        std::fs::create_dir(&shop).unwrap();
        std::fs::write(shop.join("orders.csv"), "id\n1\n").unwrap();
        let name = |path: PathBuf| {
            let location = DatabaseLocation::Path(path);
            DatabaseArgument { name: None, location, handlers: None }.database_name().unwrap()
        };
        assert_eq!(name(shop.clone()), "shop.v1");
        assert_eq!(name(shop.join("orders.csv")), "orders");
        assert_eq!(name(shop.join("2024-*.csv")), "shop.v1");
        assert_eq!(name("/".into()), DEFAULT_DATABASE_NAME);
    }
}
