//! The policy views of a connection and the principals that they were created for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use tidegate_core::{HmacSigner, to_hex};
use tidegate_query::{HashKey, Mask};

use super::visibility::{self, FilteredTable, MASK_PREFIX, TableShape, TableVisibility, ViewDefinition};
use super::{PolicyCaller, PolicyViews, TableKey, generated_columns, table_key};
use crate::files::DatabaseFiles;
use crate::tables::{self, TableKind, quote_identifier};
use crate::work_error::WorkError;

/// The maximum number of cached principals for each connection; the oldest is removed first.
const CACHED_CALLERS_MAX: usize = 64;

/// The policy views of one connection.
pub(crate) struct PolicyViewCache {
    /// The secret suffix of the names of security barriers.
    token: String,
    cached: RefCell<Vec<Arc<PolicyViews>>>,
    shapes: RefCell<Option<Arc<FileSchemas>>>,
    /// The views that are currently active.
    active_set: RefCell<Option<Arc<PolicyViews>>>,
    /// Their names in the order of creation, and the tables that they replace.
    active_views: RefCell<(Vec<String>, BTreeSet<TableKey>)>,
    is_changed: Cell<bool>,
}

/// The tables and columns of the files.
struct FileSchemas {
    versions: Vec<i64>,
    tables: Vec<TableShape>,
    /// The shadow tables, in which virtual tables store their rows.
    shadow_tables: Vec<TableKey>,
}

impl PolicyViewCache {
    /// Creates the cache of `connection`; `key` is the key of hashed values.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn new(connection: &Connection, key: &HashKey) -> Result<Self> {
        let token = to_hex(HmacSigner::with_random_key().sign("views", &[]));
        let key = key.clone();
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function(format!("{MASK_PREFIX}{token}").as_str(), 3, flags, move |context| {
            let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = context.get_raw(0) else { return Ok(None) };
            let mask = match (context.get::<i64>(1)?, u32::try_from(context.get::<i64>(2)?).unwrap_or(0)) {
                (1, kept) => Mask::KeepFirst(kept),
                (2, kept) => Mask::KeepLast(kept),
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

    /// Whether views were created or dropped since the last call.
    pub(crate) fn take_changed(&self) -> bool {
        self.is_changed.take()
    }

    /// The views of `files` for a caller; `None` if all tables are visible in full. Requires that the authorizer allows
    /// internal SQL.
    ///
    /// # Errors
    /// Returns SQLite's error.
    pub(crate) fn views_for(
        &self,
        connection: &Connection,
        files: &DatabaseFiles,
        policy_caller: &PolicyCaller,
    ) -> std::result::Result<Option<Arc<PolicyViews>>, WorkError> {
        let versions = read_schema_versions(connection, files)?;
        let is_known = |policy_views: &&Arc<PolicyViews>| {
            policy_views.fingerprint == policy_caller.fingerprint && policy_views.versions == versions
        };
        let found = self.cached.borrow().iter().find(is_known).cloned();
        let policy_views = match found {
            Some(policy_views) => policy_views,
            None => {
                let shapes = self.load_shapes(connection, files, versions)?;
                let policy_views = Arc::new(self.build_views(connection, files, policy_caller, &shapes));
                let mut known = self.cached.borrow_mut();
                known.truncate(CACHED_CALLERS_MAX - 1);
                known.insert(0, policy_views.clone());
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
            let sources = generated_columns::find_source_columns(connection, &table, &columns);
            tables.extend(of_file.then_some(TableShape { table, columns, sources }));
        }
        let kept_by_modules = tables::list_shadow_tables(connection)?.into_iter();
        let kept_by_modules = kept_by_modules.map(|(schema, name)| table_key(&schema, &name)).collect();
        let shapes = Arc::new(FileSchemas { versions, tables, shadow_tables: kept_by_modules });
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
        let (mut sights, mut views) = (BTreeMap::new(), BTreeMap::new());
        let count = |name: &str| shapes.tables.iter().filter(|one| one.table.name.eq_ignore_ascii_case(name)).count();
        for shape in &shapes.tables {
            let (table, is_alone) = (&shape.table, count(&shape.table.name) == 1);
            let Some(mut table_visibility) =
                visibility::determine_visibility(policy_caller, files, shape, is_alone, &self.token)
            else {
                continue;
            };
            if let (TableVisibility::Filtered(guarded), TableKind::View, true) =
                (&mut table_visibility, table.kind, files.is_single())
            {
                let view_definition =
                    visibility::recreate_owner_view(connection, table, &format!("{}#{}#", table.name, self.token));
                guarded.views.splice(0..0, view_definition);
            }
            sights.insert(table_key(&table.schema, &table.name), table_visibility);
        }
        if !sights.is_empty() {
            for table in shapes.tables.iter().map(|shape| &shape.table) {
                let key = table_key(&table.schema, &table.name);
                match table.kind {
                    TableKind::View if files.is_single() && !sights.contains_key(&key) => {
                        views.extend(
                            visibility::recreate_owner_view(connection, table, &table.name).map(|made| (key, made)),
                        );
                    }
                    TableKind::Virtual => {
                        sights
                            .entry(key)
                            .or_insert_with(|| TableVisibility::Denied(visibility::virtual_table_error(files, table)));
                    }
                    TableKind::View | TableKind::Table => {}
                }
            }
            for kept in &shapes.shadow_tables {
                let denied = || TableVisibility::Denied(visibility::shadow_table_error(&kept.1));
                sights.entry(kept.clone()).or_insert_with(denied);
            }
        }
        let (versions, token) = (shapes.versions.clone(), self.token.clone());
        let barriers = sights.values().flat_map(TableVisibility::security_barriers).collect();
        PolicyViews {
            fingerprint: policy_caller.fingerprint,
            versions,
            token,
            visibilities: sights,
            security_barriers: barriers,
            views,
        }
    }

    /// Drops the views that belong to another set. Requires that the authorizer allows internal SQL.
    ///
    /// # Errors
    /// Returns SQLite's error; the connection must then be closed.
    pub(crate) fn drop_views_of_others(
        &self,
        connection: &Connection,
        policy_views: Option<&Arc<PolicyViews>>,
    ) -> Result<()> {
        let stands = self.active_set.borrow().clone();
        let is_same = match (&stands, policy_views) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let (names, _) = std::mem::take(&mut *self.active_views.borrow_mut());
        let drops = names.iter().rev().map(|name| format!("DROP VIEW IF EXISTS temp.{}", quote_identifier(name)));
        self.execute_ddl(connection, drops)?;
        *self.active_set.borrow_mut() = policy_views.cloned();
        Ok(())
    }

    /// Creates the missing views among `required_views`. Requires that the authorizer allows internal SQL.
    ///
    /// # Errors
    /// Returns SQLite's error; the connection must then be closed.
    pub(crate) fn create_views(
        &self,
        connection: &Connection,
        policy_views: &PolicyViews,
        expected: BTreeSet<TableKey>,
    ) -> Result<()> {
        let mut ref_muts = self.active_views.borrow_mut();
        let mut missing: Vec<&ViewDefinition> = Vec::new();
        for key in expected {
            if ref_muts.1.contains(&key) {
                continue;
            }
            match policy_views.visibilities.get(&key) {
                Some(TableVisibility::Filtered(guarded)) => missing.extend(&guarded.views),
                Some(TableVisibility::Denied(_)) => {}
                None => missing.extend(policy_views.views.get(&key)),
            }
            ref_muts.1.insert(key);
        }
        ref_muts.0.extend(missing.iter().map(|made| made.name.clone()));
        self.execute_ddl(connection, missing.into_iter().map(|made| made.sql.clone()))
    }

    /// Creates the mergeable view of the table `table_key`, if it does not exist. Requires that the authorizer allows
    /// internal SQL.
    ///
    /// # Errors
    /// Returns SQLite's error; the connection must then be closed.
    pub(crate) fn create_mergeable_view(
        &self,
        connection: &Connection,
        policy_views: &PolicyViews,
        key: &TableKey,
    ) -> Result<()> {
        let Some(TableVisibility::Filtered(FilteredTable { mergeable_view: Some(open), .. })) =
            policy_views.visibilities.get(key)
        else {
            return Ok(());
        };
        if self.active_views.borrow().0.contains(&open.name) {
            return Ok(());
        }
        self.active_views.borrow_mut().0.push(open.name.clone());
        self.execute_ddl(connection, std::iter::once(open.sql.clone()))
    }

    /// The names of the active views, in lower case.
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
