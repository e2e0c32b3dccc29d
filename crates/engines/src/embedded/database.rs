//! A database whose tables are files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Catalog, Column, Database, Plan, SqlDialect, Statement, type_name};

use super::engine::Engine;
use super::files::{FileLimits, Files, TextTable, Told};
use super::plan::{Sessions, Tables, describe, plan};

/// A database whose tables are the files below some paths.
///
/// New, changed and vanished files are seen without a restart: each call looks at the folders
/// again when the last look is old, and reads only what changed.
pub struct FileDatabase {
    name: Arc<str>,
    engine: Engine,
    files: Arc<Files>,
    sessions: Arc<Sessions>,
}

impl FileDatabase {
    /// A database called `name` of the files at `paths`: folders, or single files.
    ///
    /// Nothing is read yet but whether the paths exist.
    ///
    /// # Errors
    /// `InvalidArguments` when a path does not exist, or when there is none.
    pub fn open(name: impl Into<String>, paths: Vec<PathBuf>, engine: &Engine) -> Result<Self, Error> {
        Self::open_with(name, paths, engine, FileLimits::default())
    }

    /// As [`FileDatabase::open`], with other bounds.
    ///
    /// # Errors
    /// As [`FileDatabase::open`].
    pub fn open_with(
        name: impl Into<String>,
        paths: Vec<PathBuf>,
        engine: &Engine,
        limits: FileLimits,
    ) -> Result<Self, Error> {
        Self::open_told(name, paths, engine, limits, BTreeMap::new())
    }

    /// As [`FileDatabase::open_with`], with what the owner tells of tables of text files, by the tables' names.
    ///
    /// # Errors
    /// As [`FileDatabase::open`].
    pub fn open_told(
        name: impl Into<String>,
        paths: Vec<PathBuf>,
        engine: &Engine,
        limits: FileLimits,
        told: BTreeMap<String, TextTable>,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        if paths.is_empty() {
            let message = format!("the database {name:?} has no path");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        for path in &paths {
            std::fs::metadata(path).map_err(|error| {
                let reason = match error.kind() {
                    std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
                    _ => super::files::reason_of(&error),
                };
                let message = format!("{}: {reason}", path.display());
                Error::new(ErrorKind::InvalidArguments, message)
            })?;
        }
        // A relative path means the folder that we are in now, wherever we may be later.
        let paths = paths.into_iter().map(|path| std::path::absolute(&path).unwrap_or(path)).collect();
        let sessions = Sessions::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self {
            files: Arc::new(Files::new(paths, limits, Told::new(told), engine.clone())),
            sessions: Arc::new(sessions),
            engine: engine.clone(),
            name,
        })
    }

    async fn tables(&self) -> Result<Tables, Error> {
        Ok(Tables { database: self.name.clone(), snapshot: self.files.current().await?, files: self.files.clone() })
    }
}

#[async_trait]
impl Database for FileDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "files"
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(self.files.current().await?.catalog().clone())
    }

    async fn columns(&self, table: &str, _principal: &Principal) -> Result<Vec<Column>, Error> {
        let table = self.files.current().await?.table(table, &self.name)?;
        let fields = table.columns().fields();
        let of_files = table.schema.file_schema().fields().len();
        let columns = fields.iter().enumerate().map(|(position, field)| Column {
            name: field.name().clone(),
            type_name: type_name(field.data_type()),
            nullable: field.is_nullable(),
            comment: (position >= of_files).then(|| "from the names of the folders".to_owned()),
        });
        Ok(columns.collect())
    }

    async fn plan(&self, statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let planning = plan(statement.clone(), self.tables().await?, self.sessions.clone(), self.engine.clone());
        Ok(Box::new(self.engine.run(planning).await?))
    }

    async fn describe(&self, statement: &Statement, _principal: &Principal) -> Result<SchemaRef, Error> {
        self.engine.run(describe(statement.clone(), self.tables().await?, self.sessions.clone())).await
    }
}
