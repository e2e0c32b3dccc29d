//! The databases of a configuration: which are open, and which have to be opened or looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::nearest;
use tidegate_engines::{Engine, FederatedDatabase, FileDatabase, FileLimits};
use tidegate_postgres::PostgresDatabase;
use tidegate_query::Database;
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

use super::problem::Problem;
use super::quantities::SecretText;
use super::types::DatabaseEntry;
use super::{Loaded, policies, postgres, tables};

const ONE_KIND: &str = "wants one of files, sqlite, postgres and federated";

/// The databases of a configuration, by name.
#[derive(Clone, Default)]
pub(super) struct OpenDatabases {
    by_name: BTreeMap<String, Opened>,
}

#[derive(Clone)]
struct Opened {
    entry: DatabaseEntry,
    path: String,
    /// What its policies hash with.
    policies_key: Option<SecretText>,
    database: Arc<dyn Database>,
    /// The same as what it is, where there is something to look at.
    looked_at: LookedAt,
}

#[derive(Clone)]
enum LookedAt {
    Files(Arc<FileDatabase>),
    Postgres(Arc<PostgresDatabase>),
    Sqlite(Arc<SqliteDatabase>),
    Nothing,
}

impl OpenDatabases {
    /// The databases of `loaded`, those that did not change as they are in `known`. What is in `further` has its name
    /// already.
    pub(super) fn open(
        loaded: &Loaded,
        known: &Self,
        further: &[&str],
        engine: &Engine,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut all = Self::default();
        let mut names: BTreeSet<&str> = further.iter().copied().collect();
        let mut federated = Vec::new();
        for (index, entry) in loaded.config.databases.iter().enumerate() {
            let path = format!("databases[{index}]");
            if !names.insert(&entry.name) {
                problems.push(Problem::new(format!("{path}.name"), format!("{} is the name of another", entry.name)));
                continue;
            }
            if let Some(members) = &entry.federated {
                federated.push((path, entry, members));
                continue;
            }
            let is_same = |opened: &&Opened| {
                opened.entry == *entry
                    && (entry.policies.is_empty() || opened.policies_key == loaded.config.policies_key)
            };
            let unchanged = known.by_name.get(&entry.name).filter(is_same);
            let opened = match unchanged {
                Some(opened) => Ok(opened.clone()),
                None => open(loaded, entry, path, engine),
            };
            all.add(opened, problems);
        }
        // Only now are their members there.
        let opened =
            federated.into_iter().map(|(path, entry, members)| all.federate(entry, members, path, known, engine));
        let opened: Vec<_> = opened.collect();
        opened.into_iter().for_each(|opened| all.add(opened, problems));
        all
    }

    fn add(&mut self, opened: Result<Opened, Vec<Problem>>, problems: &mut Vec<Problem>) {
        match opened {
            Ok(opened) => {
                self.by_name.insert(opened.entry.name.clone(), opened);
            }
            Err(mut wrong) => problems.append(&mut wrong),
        }
    }

    /// The database `entry` of those of `members` that are open; the same as in `known` when nothing of it changed.
    fn federate(
        &self,
        entry: &DatabaseEntry,
        members: &[String],
        path: String,
        known: &Self,
        engine: &Engine,
    ) -> Result<Opened, Vec<Problem>> {
        check_members(entry, &path)?;
        if entry.files.is_some() || entry.sqlite.is_some() || entry.postgres.is_some() {
            return Err(vec![Problem::new(path, ONE_KIND)]);
        }
        let mut problems = Vec::new();
        let mut opened: Vec<Arc<dyn Database>> = Vec::new();
        for (index, name) in members.iter().enumerate() {
            match self.by_name.get(name) {
                Some(member) => opened.push(member.database.clone()),
                None => {
                    let near = nearest(name, self.by_name.keys().map(String::as_str));
                    let meant = near.first().map(|near| format!("; {near} is")).unwrap_or_default();
                    let message = format!("{name} is no database of files, postgres or sqlite{meant}");
                    problems.push(Problem::new(format!("{path}.federated[{index}]"), message));
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let is_same = |old: &&Opened| {
            let kept = |name: &String| match (known.by_name.get(name), self.by_name.get(name)) {
                (Some(old), Some(new)) => Arc::ptr_eq(&old.database, &new.database),
                _ => false,
            };
            old.entry == *entry && members.iter().all(kept)
        };
        if let Some(old) = known.by_name.get(&entry.name).filter(is_same) {
            return Ok(old.clone());
        }
        let database = FederatedDatabase::new(entry.name.clone(), opened, engine)
            .map_err(|error| vec![Problem::new(format!("{path}.federated"), error.to_string())])?;
        let (entry, database) = (entry.clone(), Arc::new(database));
        Ok(Opened { entry, path, policies_key: None, database, looked_at: LookedAt::Nothing })
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<dyn Database>> {
        self.by_name.values().map(|opened| opened.database.clone())
    }

    /// Those with handlers, by name.
    pub(super) fn with_handlers(&self) -> impl Iterator<Item = (&str, &Arc<PostgresDatabase>)> {
        self.by_name.values().filter(|opened| opened.entry.handlers.is_some()).filter_map(|opened| {
            match &opened.looked_at {
                LookedAt::Postgres(postgres) => Some((opened.entry.name.as_str(), postgres)),
                LookedAt::Files(_) | LookedAt::Sqlite(_) | LookedAt::Nothing => None,
            }
        })
    }

    /// Looks at files whose globs nothing fits, and at the PostgreSQL databases that are not in `known`: whether they
    /// answer, and what their roles could do beyond reading.
    pub(super) async fn inspect(&self, known: &Self, problems: &mut Vec<Problem>, warnings: &mut Vec<String>) {
        let is_new =
            |opened: &&Opened| known.by_name.get(&opened.entry.name).is_none_or(|old| old.entry != opened.entry);
        for opened in self.by_name.values() {
            if let LookedAt::Files(files) = &opened.looked_at {
                let name = &opened.entry.name;
                let idle = files.idle_globs().into_iter();
                warnings.extend(idle.map(|glob| format!("database {name}: no file fits {glob} yet")));
            }
            if is_new(&opened) {
                opened.check_policies(problems, warnings).await;
            }
        }
        let new = self.by_name.values().filter(is_new).filter_map(|opened| match &opened.looked_at {
            LookedAt::Postgres(postgres) => Some((opened, postgres)),
            LookedAt::Files(_) | LookedAt::Sqlite(_) | LookedAt::Nothing => None,
        });
        let looks = new.map(|(opened, postgres)| async move { (opened, postgres.inspect().await) });
        for (opened, outcome) in join_all(looks).await {
            let name = &opened.entry.name;
            match outcome {
                Ok(findings) if opened.entry.strict => problems.extend(
                    findings.iter().map(|finding| Problem::new(format!("{}.strict", opened.path), finding.to_string())),
                ),
                Ok(findings) => warnings.extend(findings.iter().map(|finding| format!("database {name}: {finding}"))),
                Err(error) => {
                    let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
                    warnings.push(format!("database {name}: {reason}"));
                }
            }
        }
    }
}

impl Opened {
    /// Holds the policies against the tables as they are now.
    async fn check_policies(&self, problems: &mut Vec<Problem>, warnings: &mut Vec<String>) {
        if self.entry.policies.is_empty() {
            return;
        }
        let found = match &self.looked_at {
            LookedAt::Files(files) => files.check_policies().await,
            LookedAt::Sqlite(sqlite) => sqlite.check_policies().await,
            LookedAt::Postgres(_) | LookedAt::Nothing => return,
        };
        match found {
            Ok(found) => policies::tell(found, &self.entry.name, &self.path, problems, warnings),
            Err(error) => problems.push(Problem::new(format!("{}.policies", self.path), error.to_string())),
        }
    }
}

fn open(loaded: &Loaded, entry: &DatabaseEntry, path: String, engine: &Engine) -> Result<Opened, Vec<Problem>> {
    check_members(entry, &path)?;
    let resolve = |paths: &super::quantities::OneOrMany| -> Vec<PathBuf> {
        paths.clone().into_vec().into_iter().map(|path| loaded.resolve(path)).collect()
    };
    let wrong =
        |member: &str, error: tidegate_core::Error| vec![Problem::new(format!("{path}.{member}"), error.to_string())];
    let name = entry.name.clone();
    let (database, looked_at): (Arc<dyn Database>, _) = match (&entry.files, &entry.sqlite, &entry.postgres) {
        (Some(files), None, None) => {
            let told = tables::text_tables(&entry.tables, &path)?;
            let opened = FileDatabase::open_told(name, resolve(files), engine, FileLimits::default(), told);
            let policies = policies::row_policies(entry, &loaded.config, &path)?;
            let opened = Arc::new(opened.map_err(|error| wrong("files", error))?.with_row_policies(policies));
            (opened.clone(), LookedAt::Files(opened))
        }
        (None, Some(files), None) => {
            let default = SqliteOptions::default();
            let connections_max = entry.connections.unwrap_or(default.connections_max);
            let row_policies = policies::row_policies(entry, &loaded.config, &path)?;
            let answers_kept = entry.cache.map(|time| time.0);
            let options = SqliteOptions { connections_max, answers_kept, row_policies, ..default };
            let opened = SqliteDatabase::open(name, resolve(files), options);
            let opened = Arc::new(opened.map_err(|error| wrong("sqlite", error))?);
            (opened.clone(), LookedAt::Sqlite(opened))
        }
        (None, None, Some(target)) => {
            let opened = Arc::new(postgres::database(entry, target, &loaded.config, &path)?);
            (opened.clone(), LookedAt::Postgres(opened))
        }
        _ => return Err(vec![Problem::new(path, ONE_KIND)]),
    };
    let policies_key = loaded.config.policies_key.clone();
    Ok(Opened { entry: entry.clone(), path, policies_key, database, looked_at })
}

/// Complains about what is said of a kind of database that it is not.
fn check_members(entry: &DatabaseEntry, path: &str) -> Result<(), Vec<Problem>> {
    let of_postgres = [
        ("role", entry.role.is_some()),
        ("claims", entry.claims.is_some()),
        ("settings", !entry.settings.is_empty()),
        ("tenancy", entry.tenancy != Default::default()),
        ("schemas", entry.schemas.is_some()),
        ("strict", entry.strict),
        ("pgbouncer", entry.pgbouncer),
        ("max_cost", entry.max_cost.is_some()),
        ("connection_wait", entry.connection_wait.is_some()),
        ("handlers", entry.handlers.is_some()),
        ("lock_timeout", entry.lock_timeout.is_some()),
    ];
    let misplaced = of_postgres.into_iter().filter(|(_, is_said)| *is_said && entry.postgres.is_none());
    let mut problems: Vec<Problem> = misplaced
        .map(|(member, _)| Problem::new(format!("{path}.{member}"), "is for PostgreSQL, and this database is not"))
        .collect();
    problems.extend(policies::check_kind(entry, path));
    if !entry.tables.is_empty() && entry.files.is_none() {
        problems.push(Problem::new(format!("{path}.tables"), "is for files, and this database has none"));
    }
    for (member, is_said) in [("connections", entry.connections.is_some()), ("cache", entry.cache.is_some())] {
        if is_said && (entry.files.is_some() || entry.federated.is_some()) {
            let message = "is for PostgreSQL and SQLite, and this database is neither";
            problems.push(Problem::new(format!("{path}.{member}"), message));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
