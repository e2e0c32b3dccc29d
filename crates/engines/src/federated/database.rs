//! A database whose tables are those of other databases.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use futures::future::{join_all, try_join_all};
use object_store::memory::InMemory;
use tidegate_core::{Error, ErrorKind, Principal, nearest};
use tidegate_query::{Catalog, Column, Database, LastingStamp, Plan, SqlDialect, Statement, TableEntry};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::catalogs::{is_catalog, objects};
use super::member::MemberTable;
use super::push::{Asking, push_down};
use super::tables::MemberTables;
use crate::embedded::{
    Engine, Scope, Sessions, SystemCatalogs, Wanted, describe, error_of, optimized, ready, tables_of, watched,
};

/// How long closing waits for members that are being asked.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// Tables of a statement at most: each may need a connection of its own.
const TABLES_MAX: usize = 32;

/// A database whose tables are those of its members, called `member.table`.
pub struct FederatedDatabase {
    name: Arc<str>,
    members: BTreeMap<String, Arc<dyn Database>>,
    engine: Engine,
    sessions: Arc<Sessions>,
    tasks: TaskTracker,
}

impl FederatedDatabase {
    /// A database called `name` of the tables of `members`. It is to them what a view is to its tables: who may ask it
    /// asks them through it, as whoever they are, whether or not they may ask them by themselves.
    ///
    /// # Errors
    /// `Internal` when the engine's session cannot be made.
    pub fn new(
        name: impl Into<String>,
        members: impl IntoIterator<Item = Arc<dyn Database>>,
        engine: &Engine,
    ) -> Result<Self, Error> {
        let name: Arc<str> = name.into().into();
        let sessions = Sessions::new(&name, engine).map_err(|error| Error::internal(error.to_string()))?;
        let members = members.into_iter().map(|member| (member.name().to_owned(), member)).collect();
        Ok(Self { name, members, engine: engine.clone(), sessions: Arc::new(sessions), tasks: TaskTracker::new() })
    }

    /// The member that `parts` begin with, and the table's name in it.
    fn member(&self, parts: &[String]) -> Result<(&Arc<dyn Database>, String), Error> {
        // In one part stands a name as the catalog lists it.
        let (member, table) = match parts {
            [whole] => {
                whole.split_once('.').map_or((whole.as_str(), None), |(member, table)| (member, Some(table.to_owned())))
            }
            [member, table @ ..] => {
                let parts: Vec<&str> = table.iter().map(String::as_str).collect();
                let dialect = self.members.get(member).map_or(SqlDialect::DataFusion, |member| member.dialect());
                (member.as_str(), Some(dialect.table_name(&parts)))
            }
            [] => return Err(Error::internal("a table without a name")),
        };
        let Some(table) = table else {
            let message = format!("the table {member:?} wants the name of its database before it");
            let choices = self.members.keys().map(|database| format!("{database}.{member}"));
            return Err(Error::new(ErrorKind::NotFound, message).with_choices(choices));
        };
        let found = self.members.get(member).ok_or_else(|| {
            let near = nearest(member, self.members.keys().map(String::as_str));
            let choices = if near.is_empty() { self.members.keys().cloned().collect() } else { near };
            let message = format!("there is no database {member:?} in {}", self.name);
            Error::new(ErrorKind::NotFound, message).with_choices(choices)
        })?;
        Ok((found, table))
    }

    /// The tables that `statement` mentions.
    async fn tables(
        &self,
        statement: &Statement,
        principal: &Principal,
        asking: Asking,
    ) -> Result<MemberTables, Error> {
        let mut references = tables_of(statement, self.sessions.base(), MemberTables::is_bare, &self.name)?;
        let catalogs = match SystemCatalogs::needs_of(statement) {
            Some(needs) => {
                references.retain(|reference| !is_catalog(&MemberTables::parts(reference), &self.members));
                let objects = objects(&self.name, &self.members, principal, needs.columns).await?;
                SystemCatalogs::new(&needs, objects, &self.name)?
            }
            None => SystemCatalogs::default(),
        };
        if references.len() > TABLES_MAX {
            let message =
                format!("the statement reads {} tables; at most {TABLES_MAX} can be joined", references.len());
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let loading = references.iter().map(|reference| async move {
            let parts = MemberTables::parts(reference);
            let (member, name) = self.member(&parts)?;
            Ok::<_, Error>((parts, MemberTable::load(member.clone(), &name, principal).await?))
        });
        let mut tables: HashMap<_, _> = try_join_all(loading).await?.into_iter().collect();
        self.estimate(tables.values_mut().collect(), principal).await;
        Ok(MemberTables { database: self.name.clone(), tables: Arc::new(tables), asking, catalogs })
    }

    /// Adds what the members expect of their tables, which decides what is joined with what first.
    async fn estimate(&self, mut tables: Vec<&mut MemberTable>, principal: &Principal) {
        if tables.len() < 2 {
            return;
        }
        let names: BTreeSet<String> = tables.iter().map(|table| table.member.name().to_owned()).collect();
        let members = names.iter().filter_map(|name| self.members.get(name));
        let catalogs = join_all(members.map(|member| async { (member.name(), member.catalog(principal).await) })).await;
        for table in &mut tables {
            let catalog = catalogs.iter().find(|(member, _)| *member == table.member.name());
            let Some((_, Ok(catalog))) = catalog else { continue };
            table.rows = catalog.tables.iter().find(|entry| entry.name == table.name).and_then(|entry| entry.rows);
        }
    }

    fn session(&self, tables: &MemberTables, principal: &Principal) -> SessionState {
        let store = Arc::new(InMemory::new());
        self.sessions.session_of(principal, Arc::new(tables.clone()), &tables.catalogs, store)
    }

    fn asking(&self, principal: &Principal) -> Asking {
        Asking {
            principal: Arc::new(principal.clone()),
            wanted: Wanted::until(self.engine.closing()),
            runtime: Handle::current(),
            tasks: self.tasks.clone(),
        }
    }
}

#[async_trait]
impl Database for FederatedDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "federated"
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    /// The tables of all members that answer.
    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        let asked = self.members.values().map(|member| async move { (member, member.catalog(principal).await) });
        let mut tables = Vec::new();
        for (member, catalog) in join_all(asked).await {
            // A member that is away takes its own tables along, and no others.
            let Ok(catalog) = catalog else { continue };
            let named =
                |table: &TableEntry| TableEntry { name: format!("{}.{}", member.name(), table.name), ..table.clone() };
            tables.extend(catalog.tables.iter().map(named));
        }
        tables.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Arc::new(Catalog::of(tables)))
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<Column>, Error> {
        let (member, name) = self.member(&[table.to_owned()])?;
        member.columns(&name, principal).await
    }

    /// Of all members; zero where none of them tells principals apart.
    fn row_policy_stamp(&self, principal: &Principal) -> u64 {
        let all = self.members.iter();
        LastingStamp::of_named(all.map(|(name, member)| (name.as_str(), member.row_policy_stamp(principal))))
    }

    /// That of the member, or of all members; those that are away have none.
    async fn stamp(&self, table: Option<&str>, principal: &Principal) -> Result<Option<String>, Error> {
        if let Some(table) = table {
            return match self.member(&[table.to_owned()]) {
                Ok((member, name)) => member.stamp(Some(&name), principal).await,
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
        }
        let asked = self.members.values().map(|member| member.stamp(None, principal));
        let stamps = join_all(asked).await.into_iter().map(|stamp| stamp.ok().flatten().unwrap_or_default());
        Ok(Some(stamps.collect::<Vec<String>>().join(" ")))
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        let asking = self.asking(principal);
        let tables = self.tables(statement, principal, asking.clone()).await?;
        let session = self.session(&tables, principal);
        let session = watched(session, &asking.wanted);
        // Who no longer waits for the plan ends the functions that are computed for it.
        let ends_the_planning = asking.wanted.token().clone().drop_guard();
        let lane = self.engine.lane(principal)?;
        let (statement, of_plan) = (statement.clone(), lane.clone());
        let planning = async move {
            let logical = optimized(&statement, &session, &tables).await?;
            let logical = push_down(logical, &asking).map_err(|error| error_of(&error, tables.database()))?;
            ready(logical, session, &tables, of_plan, asking.wanted).await
        };
        let plan = lane.run(planning).await?;
        ends_the_planning.disarm();
        Ok(Box::new(plan))
    }

    async fn describe(&self, statement: &Statement, principal: &Principal) -> Result<SchemaRef, Error> {
        let tables = self.tables(statement, principal, self.asking(principal)).await?;
        let session = self.session(&tables, principal);
        let statement = statement.clone();
        self.engine.lane(principal)?.run(async move { describe(&statement, &session, &tables).await }).await
    }

    async fn close(&self) {
        self.tasks.close();
        // The members are closed by themselves, which ends what is left.
        let _ = tokio::time::timeout(CLOSE_WITHIN, self.tasks.wait()).await;
    }
}
