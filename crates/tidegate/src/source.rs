//! Databases as the command line names them: `PATH` or `name=PATH`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tidegate_engines::{Engine, FileDatabase, glob_folder};
use tidegate_query::Database;

use crate::failure::Failure;

/// What a database without a name is called when its path has none either (`/`).
const NAMELESS: &str = "files";

/// One database to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    name: Option<String>,
    path: PathBuf,
}

impl Source {
    /// Reads `PATH` or `name=PATH`. What stands before `=` is a name unless it looks like a path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.contains(['/', '\\', '.']) => match (name.trim(), path) {
                ("", _) => Err("the name before = is empty".to_owned()),
                (_, "") => Err("the path after = is empty".to_owned()),
                (name, path) => Ok(Self { name: Some(name.to_owned()), path: path.into() }),
            },
            _ => Ok(Self { name: None, path: text.into() }),
        }
    }

    /// The files of one folder.
    pub(crate) fn named(name: &str, path: &Path) -> Self {
        Self { name: Some(name.to_owned()), path: path.to_owned() }
    }

    /// The argument that means the same wherever the command is started.
    pub(crate) fn absolute_argument(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        match &self.name {
            Some(name) => format!("{name}={}", path.display()),
            None => path.display().to_string(),
        }
    }

    /// The name given, else the folder's (of a glob, the one that it looks into), else the file's without its ending.
    fn database_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let path = glob_folder(&self.path).unwrap_or_else(|| self.path.clone());
            let whole = path.canonicalize().unwrap_or(path);
            let name = if whole.is_dir() { whole.file_name() } else { whole.file_stem() };
            name.map_or_else(|| NAMELESS.to_owned(), |name| name.to_string_lossy().into_owned())
        })
    }
}

/// The databases of `sources`.
pub(crate) fn databases(sources: &[Source], engine: &Engine) -> Result<Vec<Arc<dyn Database>>, Failure> {
    let open = |(name, path)| {
        let database = FileDatabase::open(name, vec![path], engine);
        let database = database.map_err(|error| Failure::Usage(format!("cannot open {error}")))?;
        for idle in database.idle_globs() {
            tracing::warn!("database {}: no file fits {idle} yet", database.name());
        }
        Ok(Arc::new(database) as Arc<dyn Database>)
    };
    by_name(sources)?.into_iter().map(open).collect()
}

/// `sources`, or the current folder when nothing is named.
pub(crate) fn sources_or_here(sources: &[Source]) -> &[Source] {
    static HERE: LazyLock<[Source; 1]> = LazyLock::new(|| [Source { name: None, path: PathBuf::from(".") }]);
    if sources.is_empty() { &*HERE } else { sources }
}

fn by_name(sources: &[Source]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut named = BTreeMap::new();
    for source in sources {
        let name = source.database_name();
        if let Some(other) = named.insert(name.clone(), source.path.clone()) {
            let (path, other) = (source.path.display(), other.display());
            let message = format!("{other} and {path} would both be the database {name:?}; name one: other={path}");
            return Err(Failure::Usage(message));
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_stand_before_the_path() {
        let parsed = |text| Source::parse(text).unwrap();
        assert_eq!(parsed("shop=./data"), Source { name: Some("shop".into()), path: "./data".into() });
        assert_eq!(parsed("./a=b/c"), Source { name: None, path: "./a=b/c".into() });
        assert_eq!(parsed("data"), Source { name: None, path: "data".into() });
        assert!(Source::parse("=data").is_err());
        assert!(Source::parse("shop=").is_err());
    }

    #[test]
    fn a_database_is_called_like_its_folder_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let shop = folder.path().join("shop.v1");
        std::fs::create_dir(&shop).unwrap();
        std::fs::write(shop.join("orders.csv"), "id\n1\n").unwrap();
        let name = |path: PathBuf| Source { name: None, path }.database_name();
        assert_eq!(name(shop.clone()), "shop.v1");
        assert_eq!(name(shop.join("orders.csv")), "orders");
        assert_eq!(name(shop.join("2024-*.csv")), "shop.v1");
        assert_eq!(name("/".into()), NAMELESS);
    }
}
