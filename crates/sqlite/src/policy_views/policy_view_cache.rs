//! The policy views of a connection and the principals that they were created for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use tidegate_core::HmacSigner;
use tidegate_query::{HashKey, Mask};

use super::visibility::{
    self, FilteredTable, MASK_PREFIX, TableShape, TableVisibility, ViewDefinition, determine_visibility,
};
use super::{PolicyCaller, PolicyViews, TableKey, find_source_columns, table_key};
use crate::files::DatabaseFiles;
use crate::tables::{self, TableKind, quote_identifier};
use crate::work_error::WorkError;

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
