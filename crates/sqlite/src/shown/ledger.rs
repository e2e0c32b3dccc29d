//! What a connection knows of the views that it has made, and for whom.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use tidegate_core::Seal;
use tidegate_query::{HashKey, Mask};

use super::sight::{self, Guarded, Made, Sight};
use super::{Asker, Key, Shown, generated, key};
use crate::failure::Failure;
use crate::files::Files;
use crate::tables::{self, Kind, Table, TableColumn, quoted};

/// What the name of the function begins with that shortens and hashes values.
pub(crate) const MASK_PREFIX: &str = "tidegate_mask_";

/// Principals whose sights a connection remembers; of more the oldest is forgotten.
const KNOWN_MAX: usize = 64;

/// The views of one connection.
pub(crate) struct Ledger {
    /// What nobody else knows, and the names of barriers end in.
    token: String,
    known: RefCell<Vec<Arc<Shown>>>,
    shapes: RefCell<Option<Arc<Shapes>>>,
    /// Whose views stand.
    stands_for: RefCell<Option<Arc<Shown>>>,
    /// Their names, in the order in which they were made, and the tables that they are of.
    standing: RefCell<(Vec<String>, BTreeSet<Key>)>,
    is_changed: Cell<bool>,
}

/// The tables and columns of the files.
struct Shapes {
    versions: Vec<i64>,
    tables: Vec<Shape>,
    /// The tables that modules keep their rows in.
    kept_by_modules: Vec<Key>,
}

/// One table, and what each of its columns is made of.
pub(super) struct Shape {
    pub(super) table: Table,
    pub(super) columns: Vec<TableColumn>,
    pub(super) sources: Vec<BTreeSet<usize>>,
}

impl Ledger {
    /// The ledger of `connection`, which hashes with `key`.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn new(connection: &Connection, key: &HashKey) -> Result<Self> {
        let mut token = String::new();
        for byte in Seal::random().signature("views", &[]) {
            // Writing to a String cannot fail.
            let _ = write!(token, "{byte:02x}");
        }
        let key = key.clone();
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function(format!("{MASK_PREFIX}{token}").as_str(), 3, flags, move |context| {
            let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = context.get_raw(0) else { return Ok(None) };
            let mask = match (context.get::<i64>(1)?, u32::try_from(context.get::<i64>(2)?).unwrap_or(0)) {
                (1, kept) => Mask::KeepFirst(kept),
                (2, kept) => Mask::KeepLast(kept),
                _ => Mask::Hash,
            };
            Ok(mask.shown(&String::from_utf8_lossy(bytes), &key))
        })?;
        Ok(Self {
            token,
            known: RefCell::default(),
            shapes: RefCell::default(),
            stands_for: RefCell::default(),
            standing: RefCell::default(),
            is_changed: Cell::new(false),
        })
    }

    /// Whether views were made or taken down since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.is_changed.take()
    }

    /// How the tables of `files` are shown to `asker`; none if all are as they are. Called with the wall open.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn shown(
        &self,
        connection: &Connection,
        files: &Files,
        asker: &Asker,
    ) -> std::result::Result<Option<Arc<Shown>>, Failure> {
        let versions = versions(connection, files)?;
        let is_known = |shown: &&Arc<Shown>| shown.stamp == asker.stamp && shown.versions == versions;
        let found = self.known.borrow().iter().find(is_known).cloned();
        let shown = match found {
            Some(shown) => shown,
            None => {
                let shapes = self.shapes(connection, files, versions)?;
                let shown = Arc::new(self.looked_up(connection, files, asker, &shapes));
                let mut known = self.known.borrow_mut();
                known.truncate(KNOWN_MAX - 1);
                known.insert(0, shown.clone());
                shown
            }
        };
        Ok((!shown.sights.is_empty()).then_some(shown))
    }

    fn shapes(
        &self,
        connection: &Connection,
        files: &Files,
        versions: Vec<i64>,
    ) -> std::result::Result<Arc<Shapes>, Failure> {
        if let Some(shapes) = self.shapes.borrow().as_ref().filter(|shapes| shapes.versions == versions) {
            return Ok(shapes.clone());
        }
        let mut tables = Vec::new();
        for table in tables::all(connection)? {
            let of_file = files.all.iter().any(|file| file.schema.eq_ignore_ascii_case(&table.schema));
            // The columns of a view that cannot be read are not known; a policy does not fit it then.
            let columns = tables::columns_of(connection, &table).unwrap_or_default();
            let sources = generated::sources(connection, &table, &columns);
            tables.extend(of_file.then_some(Shape { table, columns, sources }));
        }
        let kept_by_modules = tables::kept_by_modules(connection)?.into_iter();
        let kept_by_modules = kept_by_modules.map(|(schema, name)| key(&schema, &name)).collect();
        let shapes = Arc::new(Shapes { versions, tables, kept_by_modules });
        *self.shapes.borrow_mut() = Some(shapes.clone());
        Ok(shapes)
    }

    fn looked_up(&self, connection: &Connection, files: &Files, asker: &Asker, shapes: &Shapes) -> Shown {
        let (mut sights, mut views) = (BTreeMap::new(), BTreeMap::new());
        let count = |name: &str| shapes.tables.iter().filter(|one| one.table.name.eq_ignore_ascii_case(name)).count();
        for shape in &shapes.tables {
            let (table, is_alone) = (&shape.table, count(&shape.table.name) == 1);
            let Some(mut sight) = sight::sight(asker, files, shape, is_alone, &self.token) else { continue };
            if let (Sight::Guarded(guarded), Kind::View, true) = (&mut sight, table.kind, files.is_single()) {
                let again = sight::made_again(connection, table, &format!("{}#{}#", table.name, self.token));
                guarded.made.splice(0..0, again);
            }
            sights.insert(key(&table.schema, &table.name), sight);
        }
        if !sights.is_empty() {
            for table in shapes.tables.iter().map(|shape| &shape.table) {
                let key = key(&table.schema, &table.name);
                match table.kind {
                    Kind::View if files.is_single() && !sights.contains_key(&key) => {
                        views.extend(sight::made_again(connection, table, &table.name).map(|made| (key, made)));
                    }
                    Kind::Virtual => {
                        sights.entry(key).or_insert_with(|| Sight::Barred(sight::of_unknown_rows(files, table)));
                    }
                    Kind::View | Kind::Table => {}
                }
            }
            for kept in &shapes.kept_by_modules {
                let barred = || Sight::Barred(sight::kept_by_a_module(&kept.1));
                sights.entry(kept.clone()).or_insert_with(barred);
            }
        }
        let (versions, token) = (shapes.versions.clone(), self.token.clone());
        let barriers = sights.values().flat_map(Sight::barriers).collect();
        Shown { stamp: asker.stamp, versions, token, sights, barriers, views }
    }

    /// Takes down what stands for others than `shown`. Called with the wall open.
    ///
    /// # Errors
    /// What SQLite says; the connection must be closed then.
    pub(crate) fn clear_for(&self, connection: &Connection, shown: Option<&Arc<Shown>>) -> Result<()> {
        let stands = self.stands_for.borrow().clone();
        let is_same = match (&stands, shown) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let (names, _) = std::mem::take(&mut *self.standing.borrow_mut());
        let drops = names.iter().rev().map(|name| format!("DROP VIEW IF EXISTS temp.{}", quoted(name)));
        self.change(connection, drops)?;
        *self.stands_for.borrow_mut() = shown.cloned();
        Ok(())
    }

    /// Makes the views of `wanted` that do not stand yet. Called with the wall open.
    ///
    /// # Errors
    /// What SQLite says; the connection must be closed then.
    pub(crate) fn make(&self, connection: &Connection, shown: &Shown, wanted: BTreeSet<Key>) -> Result<()> {
        let mut standing = self.standing.borrow_mut();
        let mut missing: Vec<&Made> = Vec::new();
        for key in wanted {
            if standing.1.contains(&key) {
                continue;
            }
            match shown.sights.get(&key) {
                Some(Sight::Guarded(guarded)) => missing.extend(&guarded.made),
                Some(Sight::Barred(_)) => {}
                None => missing.extend(shown.views.get(&key)),
            }
            standing.1.insert(key);
        }
        standing.0.extend(missing.iter().map(|made| made.name.clone()));
        self.change(connection, missing.into_iter().map(|made| made.sql.clone()))
    }

    /// Makes the view before the table `key` that is no barrier, if it does not stand yet. Called with the wall open.
    ///
    /// # Errors
    /// What SQLite says; the connection must be closed then.
    pub(crate) fn make_open(&self, connection: &Connection, shown: &Shown, key: &Key) -> Result<()> {
        let Some(Sight::Guarded(Guarded { open: Some(open), .. })) = shown.sights.get(key) else { return Ok(()) };
        if self.standing.borrow().0.contains(&open.name) {
            return Ok(());
        }
        self.standing.borrow_mut().0.push(open.name.clone());
        self.change(connection, std::iter::once(open.sql.clone()))
    }

    /// The names of the views that stand, in lower case.
    pub(crate) fn standing(&self) -> BTreeSet<String> {
        self.standing.borrow().0.iter().map(|name| name.to_ascii_lowercase()).collect()
    }

    fn change(&self, connection: &Connection, statements: impl Iterator<Item = String>) -> Result<()> {
        let mut statements = statements.peekable();
        if statements.peek().is_none() {
            return Ok(());
        }
        self.is_changed.set(true);
        // The files themselves are open for reading only.
        connection.execute_batch("PRAGMA query_only = OFF")?;
        let outcome = statements.try_for_each(|statement| connection.execute_batch(&statement));
        connection.execute_batch("PRAGMA query_only = ON")?;
        outcome
    }
}

fn versions(connection: &Connection, files: &Files) -> Result<Vec<i64>> {
    let version =
        |schema: &str| connection.query_row(&format!("PRAGMA {}.schema_version", quoted(schema)), [], |row| row.get(0));
    files.all.iter().map(|file| version(&file.schema)).collect()
}

/// The code and the number of a mask of text; none of one that shows nothing.
pub(crate) fn mask_code(mask: Mask) -> Option<(u8, u32)> {
    match mask {
        Mask::KeepFirst(kept) => Some((1, kept)),
        Mask::KeepLast(kept) => Some((2, kept)),
        Mask::Hash => Some((3, 0)),
        Mask::Deny | Mask::Null => None,
    }
}
