//! A database whose tables behave as their names say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind, MissingNode, MissingNodes, Principal, nearest_names};
use tidegate_query::{
    Catalog, ColumnEntry, Database, DatabaseKind, Plan, QueryRows, TableEntry, TableStatus, field_type_name,
};
use tidegate_runtime::Job;
use tidegate_sql::{Parameter, SqlDialect, Statement};

/// Rows of a batch of `endless`.
pub(crate) const BATCH_ROWS: i64 = 8192;
/// Bytes of the only value of `wide`.
pub(crate) const WIDE_BYTES: usize = 70 * 1024 * 1024;

/// What tests observe of a database.
#[derive(Default)]
pub(crate) struct Observed {
    /// Batches of `endless` that were pulled.
    pub(crate) batches: AtomicUsize,
    /// Answers of `endless` and `slow` that exist now.
    pub(crate) open: AtomicUsize,
    /// Statements that ran.
    pub(crate) runs: AtomicUsize,
}

impl Observed {
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

/// The names of the tables that exist, and of those that only tenants see.
pub(crate) struct TestTables {
    pub(crate) dialect: SqlDialect,
    pub(crate) names: Mutex<Vec<String>>,
    pub(crate) observed: Arc<Observed>,
    /// How often the tables were listed.
    pub(crate) listings: AtomicUsize,
}

impl TestTables {
    pub(crate) fn new(names: &[&str]) -> Arc<Self> {
        Self::with_dialect(names, SqlDialect::DataFusion)
    }

    pub(crate) fn with_dialect(names: &[&str], dialect: SqlDialect) -> Arc<Self> {
        let names = Mutex::new(names.iter().map(|name| (*name).to_owned()).collect());
        Arc::new(Self { dialect, names, observed: Arc::default(), listings: AtomicUsize::new(0) })
    }

    /// Tables that end with the name of a tenant are visible to it alone.
    fn visible(&self, principal: &Principal) -> Vec<String> {
        let names = self.names.lock();
        let is_visible = |name: &&String| match name.strip_prefix("of_") {
            Some(tenant) => principal.tenant.as_deref() == Some(tenant),
            None => true,
        };
        names.iter().filter(is_visible).cloned().collect()
    }

    fn check(&self, table: &str, principal: &Principal) -> Result<(), Error> {
        let names = self.visible(principal);
        if names.iter().any(|name| name == table) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, format!("there is no table {table:?}"))
            .with_choices(nearest_names(table, names.iter().map(String::as_str))))
    }
}

pub(crate) fn schema_of(table: &str) -> SchemaRef {
    let fields = match table {
        "callers" => vec![
            Field::new("subject", DataType::Utf8, false),
            Field::new("tenant", DataType::Utf8, true),
            Field::new("roles", DataType::Utf8, false),
        ],
        "wide" => vec![Field::new("t", DataType::Utf8, false)],
        "typed" => vec![
            Field::new("at", DataType::Timestamp(TimeUnit::Millisecond, Some("+00:00".into())), true),
            Field::new("code", DataType::LargeUtf8, false),
            Field::new("amount", DataType::Decimal128(12, 3), true),
            Field::new("small", DataType::UInt8, false),
        ],
        _ => vec![Field::new("n", DataType::Int64, false), Field::new("t", DataType::Utf8, true)],
    };
    Arc::new(Schema::new(fields))
}

#[async_trait]
impl Database for TestTables {
    fn name(&self) -> &str {
        "plant"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("memory")
    }

    fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    async fn catalog(&self, principal: &Principal) -> Result<Arc<Catalog>, Error> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        let entry = |name: String| TableEntry {
            rows: (name == "numbers").then_some(30),
            comment: (name == "numbers").then(|| "Some numbers".to_owned()),
            facts: None,
            status: match name.as_str() {
                "broken" => TableStatus::Unreadable("line 3 has 4 fields".to_owned()),
                _ => TableStatus::Readable,
            },
            name,
        };
        Ok(Arc::new(Catalog::from_tables(self.visible(principal).into_iter().map(entry).collect())))
    }

    async fn columns(&self, table: &str, principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        self.check(table, principal)?;
        if table == "broken" {
            return Err(Error::new(ErrorKind::Unavailable, "line 3 has 4 fields"));
        }
        let schema = schema_of(table);
        let column = |field: &Arc<Field>| ColumnEntry {
            name: field.name().clone(),
            type_name: field_type_name(field),
            nullable: field.is_nullable(),
            ..ColumnEntry::default()
        };
        Ok(schema.fields().iter().map(column).collect())
    }

    async fn plan(&self, statement: &Statement, principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        if statement.text().contains("missing_column") {
            let error = Error::new(ErrorKind::InvalidArguments, "there is no column \"missing_column\"");
            return Err(error.with_choices(["n".to_owned(), "t".to_owned()]).with_hint("Columns: n, t."));
        }
        let table = statement.tables().first().cloned();
        if let Some(table) = &table {
            self.check(table, principal)?;
        }
        Ok(Box::new(TestPlan {
            table: table.unwrap_or_default(),
            parameters: statement.parameters().to_vec(),
            has_no_rows: statement.text().contains("1 = 0"),
            principal: principal.clone(),
            observed: self.observed.clone(),
        }))
    }
}

struct TestPlan {
    table: String,
    parameters: Vec<Parameter>,
    has_no_rows: bool,
    principal: Principal,
    observed: Arc<Observed>,
}

/// The table `partial` lacks the rows of a node of a network.
fn missing_from(table: &str) -> Option<Arc<MissingNodes>> {
    let node = MissingNode { name: "rome".to_owned(), reason: "is away".to_owned(), rows: Some(7) };
    (table == "partial").then(|| Arc::new(MissingNodes { nodes: vec![node], rows_total: Some(37) }))
}

/// Counts an answer as long as it exists.
struct OpenAnswer(Arc<Observed>);

impl OpenAnswer {
    fn new(observed: &Arc<Observed>) -> Self {
        observed.open.fetch_add(1, Ordering::SeqCst);
        Self(observed.clone())
    }
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn numbers(first: i64, rows: i64) -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows));
    let t: ArrayRef = Arc::new(StringArray::from_iter((first..first + rows).map(|n| Some(format!("row {n}")))));
    RecordBatch::try_new(schema_of("numbers"), vec![n, t]).unwrap()
}

#[async_trait]
impl Plan for TestPlan {
    fn schema(&self) -> SchemaRef {
        match self.table.as_str() {
            "" => Arc::new(Schema::new(vec![Field::new("parameters", DataType::Utf8, false)])),
            table => schema_of(table),
        }
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok("Scan".to_owned())
    }

    async fn run(self: Box<Self>, _: &Arc<Job>) -> Result<QueryRows, Error> {
        let schema = self.schema();
        if self.has_no_rows {
            let rows = QueryRows::from_batch(RecordBatch::new_empty(schema));
            return Ok(QueryRows { missing: missing_from(&self.table), ..rows });
        }
        self.observed.runs.fetch_add(1, Ordering::SeqCst);
        let observed = self.observed.clone();
        let batches = match self.table.as_str() {
            "" => {
                let text: ArrayRef = Arc::new(StringArray::from(vec![format!("{:?}", self.parameters)]));
                stream::iter([Ok(RecordBatch::try_new(schema.clone(), vec![text]).unwrap())]).boxed()
            }
            "callers" => {
                let Principal { subject, tenant, roles, .. } = self.principal;
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(StringArray::from(vec![subject])),
                    Arc::new(StringArray::from(vec![tenant])),
                    Arc::new(StringArray::from(vec![roles.into_iter().collect::<Vec<_>>().join(",")])),
                ];
                stream::iter([Ok(RecordBatch::try_new(schema.clone(), columns).unwrap())]).boxed()
            }
            "wide" => {
                let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(WIDE_BYTES)]));
                stream::iter([Ok(RecordBatch::try_new(schema.clone(), vec![text]).unwrap())]).boxed()
            }
            "endless" => {
                let open = OpenAnswer::new(&observed);
                stream::unfold((0, open), move |(first, open)| async move {
                    open.0.batches.fetch_add(1, Ordering::SeqCst);
                    Some((Ok(numbers(first, BATCH_ROWS)), (first + BATCH_ROWS, open)))
                })
                .boxed()
            }
            "slow" => {
                let open = OpenAnswer::new(&observed);
                stream::once(async move {
                    std::future::pending::<()>().await;
                    drop(open);
                    Ok(numbers(0, 1))
                })
                .boxed()
            }
            "fails_later" => {
                let error = Error::new(ErrorKind::Unavailable, "the disk is away");
                stream::iter([Ok(numbers(0, 10)), Err(error)]).boxed()
            }
            _ => stream::iter([0, 10, 20].map(|first| Ok(numbers(first, 10)))).boxed(),
        };
        Ok(QueryRows { missing: missing_from(&self.table), ..QueryRows::new(schema, batches) })
    }
}
