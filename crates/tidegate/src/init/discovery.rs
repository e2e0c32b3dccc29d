//! Finds data in a folder and its subfolders, and databases in the environment and in Compose files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tidegate_engines::table_glob;

use super::proposed_database::{ProposedDatabase, path_text, with_unique_names};
use crate::config::{ServerKind, postgres_services, server_kind_of, server_kinds};
use crate::database_argument::is_sqlite;

const SQLITE_EXTENSIONS: [&str; 4] = ["db", "db3", "sqlite", "sqlite3"];
const COMPOSE_FILES: [&str; 4] = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
/// Variables that choose a server or database of libpq.
const LIBPQ_VARIABLES: [&str; 3] = ["PGSERVICE", "PGHOST", "PGDATABASE"];
/// Folders with files of programs.
const IGNORED_FOLDERS: [&str; 5] = ["node_modules", "target", "venv", "dist", "build"];
/// Entries of one folder that are read.
const ENTRIES_MAX: usize = 10_000;
const SUBFOLDERS_MAX: usize = 200;
/// Folders within a subfolder that are looked into, one in the other.
const DEPTH_MAX: usize = 3;
const COMPOSE_BYTES_MAX: u64 = 1024 * 1024;

/// The databases that `folder` and the environment offer.
pub(crate) fn discover(folder: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Vec<ProposedDatabase> {
    let mut sources = files_in(folder, folder);
    for subfolder in subfolders(folder) {
        sources.extend(files_in(&subfolder, folder));
    }
    sources.extend(from_environment(variable));
    sources.extend(COMPOSE_FILES.iter().flat_map(|name| from_compose(&folder.join(name), name)));
    with_unique_names(sources)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| !is_hidden(path)).collect();
    paths.sort();
    paths
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'))
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let is_ignored = |path: &PathBuf| path.file_name().is_some_and(|name| IGNORED_FOLDERS.iter().any(|it| name == *it));
    let folders = entries(folder).into_iter().filter(|path| path.is_dir() && !is_ignored(path));
    folders.take(SUBFOLDERS_MAX).collect()
}

/// The tables and SQLite files directly in `folder`, with paths relative to `base`.
fn files_in(folder: &Path, base: &Path) -> Vec<ProposedDatabase> {
    let files: Vec<PathBuf> = entries(folder).into_iter().filter(|path| path.is_file()).collect();
    let relative = |path: &Path| path_text(path.strip_prefix(base).unwrap_or(path));
    let mut sources = Vec::new();
    let globs: Vec<String> = files.iter().filter_map(|path| file_glob(path)).collect();
    let below = if folder == base { 0 } else { tables_below(folder, DEPTH_MAX, &mut { ENTRIES_MAX }) };
    let tables = globs.len() + below;
    if tables > 0 {
        let description = match tables {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        // The subfolders are databases of their own.
        let locations = if folder == base {
            let globs: BTreeSet<String> = globs.into_iter().map(|glob| format!("./{glob}")).collect();
            globs.into_iter().collect()
        } else {
            vec![relative(folder)]
        };
        let name =
            if folder == base { "files".into() } else { folder.file_name().unwrap_or_default().to_string_lossy() };
        sources.push(ProposedDatabase::new(&name, "files", locations, description));
    }
    for path in files.iter().filter(|path| has_extension(path, &SQLITE_EXTENSIONS) && is_sqlite(path)) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        sources.push(ProposedDatabase::new(&name, "sqlite", vec![relative(path)], "SQLite"));
    }
    sources
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| extensions.contains(&extension.as_str()))
}

/// The glob for the files that are read like this one, if it is a table.
fn file_glob(path: &Path) -> Option<String> {
    table_glob(path.file_name()?.to_str()?)
}

/// The number of tables in the folders below `folder`, as far as so many entries and so deep folders show it.
fn tables_below(folder: &Path, depth: usize, entries_left: &mut usize) -> usize {
    let Some(depth) = depth.checked_sub(1) else { return 0 };
    let mut count = 0;
    for inner in subfolders(folder) {
        let found = entries(&inner);
        *entries_left = entries_left.saturating_sub(found.len());
        if *entries_left == 0 {
            break;
        }
        count += found.iter().filter(|path| path.is_file() && file_glob(path).is_some()).count();
        count += tables_below(&inner, depth, entries_left);
    }
    count
}

fn from_environment(variable: &dyn Fn(&str) -> Option<String>) -> Option<ProposedDatabase> {
    let address = |server: &'static ServerKind, name: &'static str| {
        let text = variable(name).filter(|text| (server.is_address)(text))?;
        // The check of the file reports what is wrong in it.
        let database = (server.database)(&text).unwrap_or_else(|_| server.key.to_owned());
        Some(ProposedDatabase::on_server(server, &database, format!("${{{name}}}"), ", from the environment"))
    };
    let of_server = |server: &'static ServerKind| server.variables.iter().find_map(|name| address(server, name));
    if let Some(found) = server_kinds().find_map(of_server) {
        return Some(found);
    }
    let set = LIBPQ_VARIABLES.iter().find(|name| variable(name).is_some_and(|value| !value.is_empty()))?;
    let name = variable("PGDATABASE").unwrap_or_else(|| "postgres".to_owned());
    // An empty connection string: all parts come from the variables.
    let (server, address) = (server_kind_of("postgres://")?, "postgres://".to_owned());
    Some(ProposedDatabase::on_server(server, &name, address, &format!(", from {set}")))
}

fn from_compose(path: &Path, name: &str) -> Vec<ProposedDatabase> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(COMPOSE_BYTES_MAX).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let services = postgres_services(&text).unwrap_or_else(|reason| {
        tracing::warn!("{name} is not searched for databases: {reason}");
        Vec::new()
    });
    let source = |service: crate::config::ComposePostgres| {
        let address = format!("postgres://{}@127.0.0.1:{}/{}", service.user, service.port, service.database);
        let origin = format!(", service {} of {name}", service.service);
        Some(ProposedDatabase::on_server(server_kind_of(&address)?, &service.database, address, &origin))
    };
    services.into_iter().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &[u8])], variables: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let variable =
            |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let lines = discover(folder.path(), &variable)
            .into_iter()
            .map(|source| format!("{}: {} ({})\n", source.name, source.values.join(", "), source.description));
        lines.collect()
    }

    #[test]
    fn data_of_the_folder_is_found() {
        let files: [(&str, &[u8]); 12] = [
            ("a.csv", b"x\n1\n"),
            ("b.csv.gz", b""),
            ("events.json", b"{}"),
            ("app.log", b""),
            ("app.log.1", b""),
            ("old.xls", b""),
            ("events/year=2024/a.parquet", b""),
            ("sales 2024/q1.parquet", b""),
            ("sales 2024/notes.md", b""),
            ("node_modules/x/data.csv", b""),
            ("app.db", b"SQLite format 3\0"),
            ("other.db", b"something else"),
        ];
        insta::assert_snapshot!(check(&files, &[]), @r"
        files: ./*.csv, ./*.csv.gz, ./*.json, ./*.log* (5 files)
        app: ./app.db (SQLite)
        events: ./events (1 file)
        sales_2024: ./sales 2024 (1 file)
        ");
    }

    #[test]
    fn databases_of_the_environment_and_of_compose_are_found() {
        let compose = "services: {db: {image: postgres, ports: ['5433:5432'], environment: {POSTGRES_USER: shop}}}";
        let files: [(&str, &[u8]); 1] = [("docker-compose.yml", compose.as_bytes())];
        let variables = [("DATABASE_URL", "postgres://ann:secret@db/shop?sslmode=require"), ("PGHOST", "other")];
        insta::assert_snapshot!(check(&files, &variables), @r"
        shop: ${DATABASE_URL} (PostgreSQL, from the environment)
        shop_2: postgres://shop@127.0.0.1:5433/shop (PostgreSQL, service db of docker-compose.yml)
        ");
        assert_eq!(check(&[], &[("PGDATABASE", "orders")]), "orders: postgres:// (PostgreSQL, from PGDATABASE)\n");
        let mysql = "y: ${DATABASE_URL} (MySQL, from the environment)\n";
        assert_eq!(check(&[], &[("DATABASE_URL", "mysql://x/y")]), mysql);
        assert_eq!(check(&[], &[("DATABASE_URL", "oracle://x/y")]), "");
    }
}
