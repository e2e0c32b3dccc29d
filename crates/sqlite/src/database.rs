//! A database of SQLite files.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Catalog, Column, Database, Freshness, Plan, SqlDialect, Stamps, Statement, stamp_of_shape};

use crate::files::Files;
use crate::options::SqliteOptions;
use crate::plan::{Asked, plan};
use crate::pool::Pool;
use crate::session::Running;
use crate::tables;

/// A database whose tables are those of one or several SQLite files.
///
/// The tables of a single file go by their names; of several files each is named after its stem, and a table is
/// `stem.table`. A file that is replaced is opened again by the next question.
pub struct SqliteDatabase {
    name: Arc<str>,
    pool: Arc<Pool>,
    stamps: Stamps,
}

impl SqliteDatabase {
    /// A database called `name` of `files`.
    ///
    /// Nothing is read yet but whether the files exist.
    ///
    /// # Errors
    /// `InvalidArguments` when there is no file or are more than ten, one does not exist, or two have the same stem.
    pub fn open(name: impl Into<String>, files: Vec<PathBuf>, options: SqliteOptions) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let files = Files::new(&name, files)?;
        Ok(Self { pool: Arc::new(Pool::new(name.clone(), files, options)), name, stamps: Stamps::default() })
    }

    /// Connections that could start a query now.
    pub fn free_connections(&self) -> usize {
        self.pool.free()
    }
}

#[async_trait]
impl Database for SqliteDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    async fn freshness(&self, statement: &Statement, _principal: &Principal) -> Freshness {
        Freshness::within(self.pool.options().answers_kept, statement)
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        self.pool.read(Running::unbounded(), |reading| tables::catalog(reading).map(Arc::new)).await
    }

    async fn columns(&self, table: &str, _principal: &Principal) -> Result<Vec<Column>, Error> {
        let (table, database) = (table.to_owned(), self.name.clone());
        let work = move |reading: &crate::session::Reading<'_>| {
            let table = tables::find(reading, &table, &database)?;
            let columns = tables::columns(reading, &table)?;
            Ok(columns.into_iter().map(|column| column.describe(&table)).collect())
        };
        self.pool.read(Running::unbounded(), work).await
    }

    /// Of the files and of the columns or tables: it tells of rows too, of those in other tables as well. The files alone are
    /// looked at while they stay as they are.
    async fn stamp(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        let files = self.pool.files().clone();
        let away = |why: String| {
            let message = format!("the files of {} cannot be seen now", self.name);
            Error::new(ErrorKind::Unavailable, message).with_detail(why)
        };
        let version = tokio::task::spawn_blocking(move || files.version()).await;
        let version = version.map_err(|error| away(error.to_string()))?.map_err(|error| away(error.to_string()))?;
        let finding = stamp_of_shape(self, table, principal);
        let shape = self.stamps.get(format!("{table:?}"), version, finding).await?;
        Ok(shape.map(|shape| format!("{version:016x} {shape}")))
    }

    async fn plan(&self, statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(plan(self.pool.clone(), Asked::from(statement)).await?))
    }
}
