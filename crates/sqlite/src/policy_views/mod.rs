//! Policy views: temporary views that replace tables with row policies for a principal, and those of a connection with the
//! principals that they were created for.
//!
//! A view in `temp` has the name of the table, so SQLite finds it first. It reads a second view, the security barrier,
//! whose name is secret. The authorizer allows only that view to read the table, and refuses every other read of it.
//! The barrier has a LIMIT and an OFFSET that remove no rows. SQLite pushes no condition into such a query and never
//! merges it with the outer query. Therefore nothing that a caller writes is evaluated for a row that is hidden from
//! the caller.

mod generated_columns;
mod visibility;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use tidegate_core::{Error, HmacSigner, Principal};
use tidegate_query::{HashKey, Mask, RowPolicies};
use tidegate_sql::{PointQuery, TableLocation};

pub(crate) use generated_columns::find_source_columns;
pub(crate) use visibility::{MASK_PREFIX, TableVisibility, policy_names, unreadable_under_policy_error};

use crate::tables::{self, DatabaseFiles, SqliteTable, TableKind, quote_identifier};
use crate::work_error::WorkError;
use visibility::{FilteredTable, TableShape, ViewDefinition, determine_visibility};

pub(crate) struct PolicyCaller {
    pub(crate) policies: RowPolicies,
    pub(crate) principal: Principal,
    /// Distinguishes callers with different policies.
    pub(crate) fingerprint: u64,
}

impl PolicyCaller {
    /// The caller for `principal`; `None` without `policies`.
    pub(crate) fn for_principal(policies: &RowPolicies, principal: &Principal) -> Option<Arc<Self>> {
        let (policies, principal) = (policies.clone(), principal.clone());
        (!policies.is_empty())
            .then(|| Arc::new(Self { fingerprint: policies.fingerprint(&principal), policies, principal }))
    }
}

/// Schema and name of a table, in lower case: SQLite ignores the case.
pub(crate) type TableKey = (String, String);

fn table_key(schema: &str, name: &str) -> TableKey {
    (schema.to_ascii_lowercase(), name.to_ascii_lowercase())
}

/// The visibility of all tables of the files for one principal.
pub(crate) struct PolicyViews {
    pub(super) fingerprint: u64,
    pub(super) versions: Vec<i64>,
    /// The secret suffix of the names of security barriers.
    pub(crate) token: String,
    /// Tables with a policy, and all others that must be read through a view only.
    visibilities: BTreeMap<TableKey, TableVisibility>,
    /// The names of the views that may read these tables directly.
    pub(super) security_barriers: BTreeSet<String>,
    /// Views of the owner, created again over policy views, by their keys.
    pub(super) views: BTreeMap<TableKey, visibility::ViewDefinition>,
}

impl PolicyViews {
    pub(crate) fn visibility(&self, table: &SqliteTable) -> Option<&TableVisibility> {
        self.visibilities.get(&table_key(&table.schema, &table.name))
    }

    /// Whether the table `name` (in lower case) of `schema` must be read through a view only.
    pub(crate) fn has_policy(&self, schema: &str, name: &str) -> bool {
        self.visibilities.contains_key(&table_key(schema, name))
    }

    /// Whether `accessor` is a policy view that may read a table directly.
    pub(crate) fn is_security_barrier(&self, accessor: &str) -> bool {
        self.security_barriers.contains(accessor)
    }

    pub(crate) fn contains_reserved_name(&self, sql: &str) -> bool {
        sql.to_ascii_lowercase().contains(&self.token)
    }

    pub(crate) fn has_policy_on_name(&self, name: &str) -> bool {
        self.visibilities.keys().any(|(_, table)| table == name)
    }

    pub(crate) fn is_policy_view(&self, schema: &str, name: &str) -> bool {
        let has_name = |visibility: &TableVisibility| match visibility {
            TableVisibility::Filtered(filtered) => filtered.view_name.eq_ignore_ascii_case(name),
            TableVisibility::Denied(_) => false,
        };
        name.ends_with(&self.token) || schema == "temp" && self.visibilities.values().any(has_name)
    }

    /// The mask of a column of a table; `None` if it is visible as it is.
    pub(crate) fn mask(&self, table: &SqliteTable, column: &str) -> Option<Mask> {
        match self.visibility(table)? {
            TableVisibility::Filtered(filtered) => {
                filtered.masks.iter().find(|(name, _)| name == column).and_then(|(_, mask)| *mask)
            }
            TableVisibility::Denied(_) => Some(Mask::Deny),
        }
    }

    /// Whether `column` of the table `name` of `schema` is hidden, or the whole table if no column is given.
    pub(crate) fn denies(&self, schema: &str, name: &str, column: Option<&str>) -> bool {
        match (self.visibilities.get(&table_key(schema, name)), column) {
            (Some(TableVisibility::Filtered(filtered)), Some(column)) => {
                let has_name = |(name, _): &&(String, Option<Mask>)| name.eq_ignore_ascii_case(column);
                filtered.masks.iter().find(has_name).is_none_or(|(_, mask)| *mask == Some(Mask::Deny))
            }
            (Some(TableVisibility::Denied(_)), _) => true,
            _ => false,
        }
    }

    /// The table or view from which the table `name` of `schema` is read.
    pub(crate) fn replacement_for(&self, schema: &str, name: &str) -> Option<TableLocation> {
        let key = table_key(schema, name);
        let view = match self.visibilities.get(&key) {
            Some(TableVisibility::Filtered(filtered)) => filtered.view_name.clone(),
            Some(TableVisibility::Denied(_)) => return None,
            None => self.views.get(&key)?.name.clone(),
        };
        Some(("temp".to_owned(), view))
    }

    /// The error of the first of `tables` that cannot be read.
    pub(crate) fn denial_for(&self, tables: &[String]) -> Option<&Error> {
        let is_named = |(schema, name): &TableKey| matches_any(tables, schema, name);
        self.visibilities.iter().find_map(|(key, visibility)| match visibility {
            TableVisibility::Denied(error) if is_named(key) => Some(error),
            _ => None,
        })
    }

    /// The table that `lookup` reads, and its mergeable view; `None` if it must stay behind a security barrier.
    pub(crate) fn mergeable_view_for(&self, lookup: &PointQuery) -> Option<(TableKey, String)> {
        let names = [lookup.table.join(".")];
        let mut matches = self.visibilities.iter().filter(|((schema, name), _)| matches_any(&names, schema, name));
        let (Some((key, TableVisibility::Filtered(filtered))), None) = (matches.next(), matches.next()) else {
            return None;
        };
        let is_unmasked = |compared: &String| {
            let mut columns = filtered.masks.iter().filter(|(name, _)| name.eq_ignore_ascii_case(compared));
            matches!((columns.next(), columns.next()), (Some((_, None)), None))
        };
        let view = filtered.mergeable_view.as_ref().filter(|_| lookup.filter_columns.iter().all(is_unmasked))?;
        Some((key.clone(), view.name.clone()))
    }

    /// The tables whose views must exist for a statement over `tables`; all tables if it may read any.
    pub(crate) fn required_views(&self, tables: Option<&[String]>) -> BTreeSet<TableKey> {
        let all = || self.visibilities.keys().chain(self.views.keys()).cloned().collect();
        let Some(tables) = tables else { return all() };
        let is_named = |(schema, name): &&TableKey| matches_any(tables, schema, name);
        // A view of the owner may read any table.
        let filtered_views = self.visibilities.iter().filter(|(_, visibility)| match visibility {
            TableVisibility::Filtered(filtered) => filtered.mergeable_view.is_none(),
            TableVisibility::Denied(_) => false,
        });
        if self.views.keys().chain(filtered_views.map(|(key, _)| key)).any(|key| is_named(&key)) {
            return all();
        }
        self.visibilities.keys().filter(is_named).cloned().collect()
    }
}

fn matches_any(tables: &[String], schema: &str, name: &str) -> bool {
    tables.iter().any(|table| {
        let table = table.to_ascii_lowercase();
        table == name || table.strip_suffix(name).is_some_and(|rest| rest == format!("{schema}."))
    })
}

/// Replaces each security barrier by one step with the name of its table. `token` is the suffix of such names.
pub(crate) fn redact_plan(steps: Vec<(i64, i64, String)>, token: &str) -> Vec<(i64, i64, String)> {
    let mut hidden = BTreeSet::new();
    let mut visible = Vec::with_capacity(steps.len());
    for (number, parent, text) in steps {
        // Parents precede their children.
        let is_barrier = (text.starts_with("CO-ROUTINE ") || text.starts_with("MATERIALIZE ")) && text.contains(token);
        if hidden.contains(&parent) {
            hidden.insert(number);
            continue;
        }
        if is_barrier {
            hidden.insert(number);
        }
        visible.push((number, parent, strip_token(&text, token)));
    }
    visible
}

fn strip_token(text: &str, token: &str) -> String {
    let words = text.split(' ').map(|word| match word.find(token) {
        Some(at) => word[..at].trim_end_matches('#').trim_start_matches("temp.").to_owned() + &word[at + token.len()..],
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The maximum number of cached principals for each connection; the oldest is removed first.
const CACHED_CALLERS_MAX: usize = 64;

pub(crate) struct PolicyViewCache {
    /// The secret suffix of the names of security barriers.
    token: String,
    cached: RefCell<Vec<Arc<PolicyViews>>>,
    shapes: RefCell<Option<Arc<FileSchemas>>>,
    active_set: RefCell<Option<Arc<PolicyViews>>>,
    /// Their names in the order of creation, and the tables that they replace.
    active_views: RefCell<(Vec<String>, BTreeSet<TableKey>)>,
    is_changed: Cell<bool>,
}

struct FileSchemas {
    versions: Vec<i64>,
    tables: Vec<TableShape>,
    shadow_tables: Vec<TableKey>,
}

impl PolicyViewCache {
    pub(crate) fn new(connection: &Connection, key: &HashKey) -> Result<Self> {
        let token = hex::encode(HmacSigner::with_random_key().sign("views", &[]));
        let key = key.clone();
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function(format!("{MASK_PREFIX}{token}").as_str(), 3, flags, move |context| {
            let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = context.get_raw(0) else { return Ok(None) };
            let mask = match (context.get::<i64>(1)?, u32::try_from(context.get::<i64>(2)?).unwrap_or(0)) {
                (1, length) => Mask::KeepFirst(length),
                (2, length) => Mask::KeepLast(length),
                _ => Mask::Hash,
            };
            Ok(mask.mask_text(&String::from_utf8_lossy(bytes), &key))
        })?;
        Ok(Self {
            token,
            cached: RefCell::default(),
            shapes: RefCell::default(),
            active_set: RefCell::default(),
            active_views: RefCell::default(),
            is_changed: Cell::new(false),
        })
    }

    pub(crate) fn take_changed(&self) -> bool {
        self.is_changed.take()
    }

    /// `None` if all tables are visible in full. Requires that the authorizer allows internal SQL.
    pub(crate) fn views_for(
        &self,
        connection: &Connection,
        files: &DatabaseFiles,
        policy_caller: &PolicyCaller,
    ) -> std::result::Result<Option<Arc<PolicyViews>>, WorkError> {
        let versions = read_schema_versions(connection, files)?;
        let is_current = |policy_views: &&Arc<PolicyViews>| {
            policy_views.fingerprint == policy_caller.fingerprint && policy_views.versions == versions
        };
        let cached = self.cached.borrow().iter().find(is_current).cloned();
        let policy_views = match cached {
            Some(policy_views) => policy_views,
            None => {
                let shapes = self.load_shapes(connection, files, versions)?;
                let policy_views = Arc::new(self.build_views(connection, files, policy_caller, &shapes));
                let mut cached = self.cached.borrow_mut();
                cached.truncate(CACHED_CALLERS_MAX - 1);
                cached.insert(0, policy_views.clone());
                policy_views
            }
        };
        Ok((!policy_views.visibilities.is_empty()).then_some(policy_views))
    }

    fn load_shapes(
        &self,
        connection: &Connection,
        files: &DatabaseFiles,
        versions: Vec<i64>,
    ) -> std::result::Result<Arc<FileSchemas>, WorkError> {
        if let Some(shapes) = self.shapes.borrow().as_ref().filter(|shapes| shapes.versions == versions) {
            return Ok(shapes.clone());
        }
        let mut tables = Vec::new();
        for table in tables::list_all_tables(connection)? {
            let of_file = files.files.iter().any(|file| file.schema.eq_ignore_ascii_case(&table.schema));
            // The columns of a view that cannot be read are unknown; then a policy does not match it.
            let columns = tables::load_columns(connection, &table).unwrap_or_default();
            let sources = find_source_columns(connection, &table, &columns);
            tables.extend(of_file.then_some(TableShape { table, columns, sources }));
        }
        let shadow_tables = tables::list_names(connection, "shadow")?.into_iter();
        let shadow_tables = shadow_tables.map(|(schema, name)| table_key(&schema, &name)).collect();
        let shapes = Arc::new(FileSchemas { versions, tables, shadow_tables });
        *self.shapes.borrow_mut() = Some(shapes.clone());
        Ok(shapes)
    }

    fn build_views(
        &self,
        connection: &Connection,
        files: &DatabaseFiles,
        policy_caller: &PolicyCaller,
        shapes: &FileSchemas,
    ) -> PolicyViews {
        let (mut visibilities, mut views) = (BTreeMap::new(), BTreeMap::new());
        let count = |name: &str| shapes.tables.iter().filter(|one| one.table.name.eq_ignore_ascii_case(name)).count();
        for shape in &shapes.tables {
            let (table, is_unique) = (&shape.table, count(&shape.table.name) == 1);
            let visibility = determine_visibility(policy_caller, files, shape, is_unique, &self.token);
            let Some(mut visibility) = visibility else { continue };
            if let TableVisibility::Filtered(filtered) = &mut visibility
                && table.kind == TableKind::View
                && files.is_single()
            {
                let name = format!("{}#{}#", table.name, self.token);
                filtered.views.splice(0..0, visibility::recreate_owner_view(connection, table, &name));
            }
            visibilities.insert(table_key(&table.schema, &table.name), visibility);
        }
        if !visibilities.is_empty() {
            for table in shapes.tables.iter().map(|shape| &shape.table) {
                let key = table_key(&table.schema, &table.name);
                match table.kind {
                    TableKind::View if files.is_single() && !visibilities.contains_key(&key) => {
                        let view = visibility::recreate_owner_view(connection, table, &table.name);
                        views.extend(view.map(|view| (key, view)));
                    }
                    TableKind::Virtual => {
                        let denied = || TableVisibility::Denied(visibility::virtual_table_error(files, table));
                        visibilities.entry(key).or_insert_with(denied);
                    }
                    TableKind::View | TableKind::Table => {}
                }
            }
            for key in &shapes.shadow_tables {
                let denied = || TableVisibility::Denied(visibility::shadow_table_error(&key.1));
                visibilities.entry(key.clone()).or_insert_with(denied);
            }
        }
        PolicyViews {
            fingerprint: policy_caller.fingerprint,
            versions: shapes.versions.clone(),
            token: self.token.clone(),
            security_barriers: visibilities.values().flat_map(TableVisibility::security_barriers).collect(),
            visibilities,
            views,
        }
    }

    /// Requires that the authorizer allows internal SQL. After an error, the connection must be closed.
    pub(crate) fn drop_views_of_others(
        &self,
        connection: &Connection,
        policy_views: Option<&Arc<PolicyViews>>,
    ) -> Result<()> {
        if self.active_set.borrow().as_ref().map(Arc::as_ptr) == policy_views.map(Arc::as_ptr) {
            return Ok(());
        }
        let (names, _) = std::mem::take(&mut *self.active_views.borrow_mut());
        let drops = names.iter().rev().map(|name| format!("DROP VIEW IF EXISTS temp.{}", quote_identifier(name)));
        self.execute_ddl(connection, drops)?;
        *self.active_set.borrow_mut() = policy_views.cloned();
        Ok(())
    }

    /// Requires that the authorizer allows internal SQL. After an error, the connection must be closed.
    pub(crate) fn create_views(
        &self,
        connection: &Connection,
        policy_views: &PolicyViews,
        keys: BTreeSet<TableKey>,
    ) -> Result<()> {
        let mut active_views = self.active_views.borrow_mut();
        let mut missing: Vec<&ViewDefinition> = Vec::new();
        for key in keys {
            if active_views.1.contains(&key) {
                continue;
            }
            match policy_views.visibilities.get(&key) {
                Some(TableVisibility::Filtered(filtered)) => missing.extend(&filtered.views),
                Some(TableVisibility::Denied(_)) => {}
                None => missing.extend(policy_views.views.get(&key)),
            }
            active_views.1.insert(key);
        }
        active_views.0.extend(missing.iter().map(|view| view.name.clone()));
        self.execute_ddl(connection, missing.into_iter().map(|view| view.sql.clone()))
    }

    /// Requires that the authorizer allows internal SQL. After an error, the connection must be closed.
    pub(crate) fn create_mergeable_view(
        &self,
        connection: &Connection,
        policy_views: &PolicyViews,
        key: &TableKey,
    ) -> Result<()> {
        let Some(TableVisibility::Filtered(FilteredTable { mergeable_view: Some(view), .. })) =
            policy_views.visibilities.get(key)
        else {
            return Ok(());
        };
        if self.active_views.borrow().0.contains(&view.name) {
            return Ok(());
        }
        self.active_views.borrow_mut().0.push(view.name.clone());
        self.execute_ddl(connection, std::iter::once(view.sql.clone()))
    }

    pub(crate) fn active_view_names(&self) -> BTreeSet<String> {
        self.active_views.borrow().0.iter().map(|name| name.to_ascii_lowercase()).collect()
    }

    fn execute_ddl(&self, connection: &Connection, statements: impl Iterator<Item = String>) -> Result<()> {
        let mut statements = statements.peekable();
        if statements.peek().is_none() {
            return Ok(());
        }
        self.is_changed.set(true);
        // The files themselves stay read-only.
        connection.execute_batch("PRAGMA query_only = OFF")?;
        let outcome = statements.try_for_each(|statement| connection.execute_batch(&statement));
        connection.execute_batch("PRAGMA query_only = ON")?;
        outcome
    }
}

fn read_schema_versions(connection: &Connection, files: &DatabaseFiles) -> Result<Vec<i64>> {
    let version = |schema: &str| {
        connection.query_row(&format!("PRAGMA {}.schema_version", quote_identifier(schema)), [], |row| row.get(0))
    };
    files.files.iter().map(|file| version(&file.schema)).collect()
}
