//! The session for planning and running a statement: DataFusion's functions with limits, the number of partitions, the
//! batch size, and sorts with a limit. No writes, no access to files by name, no change of settings.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use chrono::Utc;
use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::object_store::DefaultObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, Join, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::prelude::SessionConfig;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use parking_lot::Mutex;
use tidegate_core::Principal;
use tidegate_pgsql::for_each_part;

use super::functions::limit_functions;
use super::scope::{CATALOG, ScopeNames, SnapshotTables, StatementScope};
use crate::embedded::engine::{Engine, EngineOptions, LoadShare};
use crate::embedded::query_cancellation::{CancellationExtension, QueryCancellation};
use crate::embedded::scan::files_url;

/// Maximum number of bytes of cached Parquet footers of a database.
const FOOTER_CACHE_BYTES: usize = 32 << 20;

/// The kind of a function, which determines where a statement may call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionKind {
    /// Computed from the values of one row.
    Scalar,
    /// Computed from the values of a group.
    Aggregate,
    /// Computed over a window of rows, with OVER.
    Window,
    /// Returns a table, in FROM.
    Table,
}

/// A function that statements over files may call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineFunction {
    /// The name of the function.
    pub name: String,
    /// The kind of the function.
    pub kind: FunctionKind,
}

/// What the sessions of one database share.
#[derive(Debug)]
pub(crate) struct SessionFactory {
    engine: Engine,
    base: SessionState,
    /// The functions in order: of two with the same name or alias, the later one is used. A session that is built from
    /// another one would register them in arbitrary order.
    scalar_functions: Vec<Arc<ScalarUDF>>,
    aggregate_functions: Vec<Arc<AggregateUDF>>,
    window_functions: Vec<Arc<WindowUDF>>,
    unused: Arc<UnusedStates>,
    /// Only for its caches, which no other database shares: footers are cached by location, and locations are unique
    /// only within a database.
    environment: RuntimeEnv,
}

/// The states of ended statements, for the next ones: a state contains all functions, and to copy it takes longer than
/// to plan a short statement.
#[derive(Debug)]
struct UnusedStates {
    /// Without anything of a statement.
    config: SessionConfig,
    states: Mutex<Vec<Arc<SessionState>>>,
}

/// The maximum number of unused states of a database.
const UNUSED_STATES_MAX: usize = 64;

/// The session of one statement.
#[derive(Debug)]
pub(crate) struct StatementSession {
    /// For planning. Its environment has no files.
    state: Arc<SessionState>,
    /// In which the plan runs: with the memory of the query, and the files of its snapshot.
    environment: Arc<RuntimeEnv>,
    /// Where the state returns to; `None` if it has functions of its own.
    unused: Option<Arc<UnusedStates>>,
    engine: Engine,
}

impl StatementSession {
    /// The engine on which the statement runs.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number of bytes of memory that the query may use.
    pub(super) fn memory_limit(&self) -> MemoryLimit {
        self.environment.memory_pool.memory_limit()
    }

    /// The context in which the plan runs. Operators look up no functions by name.
    pub(crate) fn task_context(&self) -> Arc<TaskContext> {
        let config = self.state.config().clone();
        let (scalar, higher_order, aggregate, window) = Default::default();
        let environment = self.environment.clone();
        let context =
            TaskContext::new(None, String::new(), config, scalar, higher_order, aggregate, window, environment);
        Arc::new(context)
    }
}

impl Deref for StatementSession {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        &self.state
    }
}

impl DerefMut for StatementSession {
    fn deref_mut(&mut self) -> &mut SessionState {
        Arc::make_mut(&mut self.state)
    }
}

impl Drop for StatementSession {
    fn drop(&mut self) {
        let Some(unused) = self.unused.take() else { return };
        // A copy belongs to someone else.
        let Some(state) = Arc::get_mut(&mut self.state) else { return };
        // An unused state must keep neither a snapshot of the files nor the job.
        state.register_catalog_list(Arc::new(MemoryCatalogProviderList::new()));
        *state.execution_props_mut() = ExecutionProps::new();
        *state.config_mut() = unused.config.clone();
        let mut states = unused.states.lock();
        if states.len() < UNUSED_STATES_MAX {
            states.push(self.state.clone());
        }
    }
}

impl SessionFactory {
    pub(crate) fn new(database: &str, engine: &Engine) -> Result<Self> {
        let environment = RuntimeEnvBuilder::new()
            .with_metadata_cache_limit(FOOTER_CACHE_BYTES)
            .with_object_list_cache_limit(0)
            .with_file_statistics_cache_limit(0)
            .build()?;
        let scalar_functions = limit_functions(tidegate_pgsql::scalar_functions());
        let aggregate_functions = tidegate_pgsql::aggregate_functions();
        let window_functions = tidegate_pgsql::window_functions();
        let base = SessionStateBuilder::new()
            .with_config(session_config(database, engine.options()))
            .with_expr_planners(tidegate_pgsql::expression_planners())
            .with_relation_planners(tidegate_pgsql::relation_planners())
            .with_type_planner(tidegate_pgsql::type_planner())
            .with_analyzer_rules(tidegate_pgsql::analyzer_rules())
            .with_optimizer_rules(tidegate_pgsql::optimizer_rules())
            .with_query_planner(tidegate_pgsql::query_planner())
            .with_physical_optimizer_rules(tidegate_pgsql::physical_optimizer_rules())
            .with_scalar_functions(scalar_functions.clone())
            .with_aggregate_functions(aggregate_functions.clone())
            .with_window_functions(window_functions.clone())
            .with_table_functions(tidegate_pgsql::table_functions())
            .build();
        let unused = UnusedStates { config: base.config().clone(), states: Mutex::default() };
        Ok(Self {
            engine: engine.clone(),
            base,
            scalar_functions,
            aggregate_functions,
            window_functions,
            unused: Arc::new(unused),
            environment,
        })
    }

    pub(crate) fn base(&self) -> &SessionState {
        &self.base
    }

    pub(crate) fn functions(&self) -> Vec<EngineFunction> {
        let scalar = self.base.scalar_functions().keys().map(|name| (name, FunctionKind::Scalar));
        let aggregate = self.base.aggregate_functions().keys().map(|name| (name, FunctionKind::Aggregate));
        let window = self.base.window_functions().keys().map(|name| (name, FunctionKind::Window));
        let table = self.base.table_functions().keys().map(|name| (name, FunctionKind::Table));
        let named = |(name, kind): (&String, FunctionKind)| EngineFunction { name: name.clone(), kind };
        let all = scalar.chain(aggregate).chain(window).chain(table);
        // Names that end in an asterisk are internal: no statement can contain them.
        let mut functions: Vec<_> = all.filter(|(name, _)| !name.ends_with('*')).map(named).collect();
        functions.sort();
        functions
    }

    /// The cache of Parquet footers of this database.
    pub(crate) fn footer_cache(&self) -> Arc<FileMetadataCache> {
        self.environment.cache_manager.get_file_metadata_cache()
    }

    pub(crate) fn create_session(&self, tables: &SnapshotTables) -> StatementSession {
        let store = Arc::new(tables.snapshot.store.clone());
        self.create_session_for(&tables.principal_policies.principal, Arc::new(tables.clone()), store)
    }

    /// Creates a session for one statement of `principal` on the tables of `scope`, none of which reads files.
    pub(crate) fn create_session_without_files(
        &self,
        principal: &Principal,
        scope: Arc<dyn StatementScope>,
    ) -> StatementSession {
        self.create_session_for(principal, scope, Arc::new(InMemory::new()))
    }

    /// Creates a session for one statement of `principal` on the tables of `scope`, which read only from `store`.
    pub(crate) fn create_session_for(
        &self,
        principal: &Principal,
        scope: Arc<dyn StatementScope>,
        store: Arc<dyn ObjectStore>,
    ) -> StatementSession {
        let environment = RuntimeEnv {
            memory_pool: self.engine.create_query_memory_pool(principal),
            disk_manager: self.engine.disk().clone(),
            cache_manager: self.environment.cache_manager.clone(),
            object_store_registry: Arc::new(DefaultObjectStoreRegistry::new()),
        };
        // Replaces the local file system, which DataFusion registers by default, so that nothing else can be read.
        environment.register_object_store(files_url().as_ref(), store);
        let functions: Vec<_> = scope.catalogs().functions().collect();
        let (mut state, unused) = if functions.is_empty() {
            let unused = self.unused.states.lock().pop();
            (unused.unwrap_or_else(|| Arc::new(self.build_state(functions))), Some(self.unused.clone()))
        } else {
            (Arc::new(self.build_state(functions)), None)
        };
        let changed = Arc::make_mut(&mut state);
        changed.register_catalog_list(Arc::new(ScopeNames::new(scope)));
        // A counter of generated names for each plan: a shared one would reveal the number of other plans.
        // `now()` is the same moment in the whole statement.
        *changed.execution_props_mut() = ExecutionProps::new().with_query_execution_start_time(Utc::now());
        StatementSession { state, environment: Arc::new(environment), unused, engine: self.engine.clone() }
    }

    /// A state with all functions and `further` ones.
    fn build_state(&self, further: Vec<Arc<ScalarUDF>>) -> SessionState {
        SessionStateBuilder::new_from_existing(self.base.clone())
            .with_scalar_functions(self.scalar_functions.iter().cloned().chain(further).collect())
            .with_aggregate_functions(self.aggregate_functions.clone())
            .with_window_functions(self.window_functions.clone())
            .build()
    }
}

/// `session`, whose functions stop when `cancellation` is cancelled, also during planning, which evaluates calls with
/// constant arguments.
pub(crate) fn with_cancellation(
    mut session: StatementSession,
    query_cancellation: &QueryCancellation,
) -> StatementSession {
    session.config_mut().options_mut().extensions.insert(CancellationExtension(query_cancellation.clone()));
    session
}

fn session_config(database: &str, options: &EngineOptions) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.threads.max(1))
        .with_batch_size(options.batch_rows.max(1))
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, database);
    let settings = config.options_mut();
    // Names are case-sensitive: `tailNum` must work without quotes, because models write names as they were displayed.
    settings.sql_parser.enable_ident_normalization = false;
    // In PostgreSQL, `0.1` is a numeric, so that `0.1 + 0.2 = 0.3`.
    settings.sql_parser.parse_float_as_decimal = true;
    // An analyzer rule of the crate `pgsql` drops the sorts on which nothing depends.
    settings.sql_parser.enable_subquery_sort_elimination = false;
    // The filter of `max(a), max(b + 1)` has no bound of `b + 1`, nor one of a column that has been NULL so far: rows with
    // their largest values would be skipped. It also compares intervals and NaN in another way.
    settings.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // Repartitioning both sides of a join costs more than it gains on few threads. The rows of the smaller side are in
    // memory in both cases.
    settings.optimizer.repartition_joins = options.threads > BROADCAST_THREADS_MAX;
    // `timestamptz` is stored in UTC, and so is the time zone of the session.
    settings.execution.time_zone = Some("UTC".to_owned());
    config
}

/// Maximum number of threads with which a join has the smaller of its sides in one table for all threads.
const BROADCAST_THREADS_MAX: usize = 4;

/// Maximum number of bytes that one literal, repeated for each row of a batch, may take.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// The share of each partition in the memory limit of a query.
const PARTITION_BYTES_MIN: usize = 16 << 20;

/// The number of rows of a batch that is not shortened for other queries.
const BATCH_ROWS_MIN: usize = 2_048;

/// The parts of a plan that determine its settings.
#[derive(Default)]
struct PlanTraits {
    /// Whether the plan sorts, aggregates, joins or combines rows, so that their order in the files is irrelevant.
    reorders_rows: bool,
    /// Whether rows are numbered in input order.
    numbers_rows: bool,
    /// Whether the dynamic filter of a join would fail, or skip rows that match.
    has_unfilterable_keys: bool,
    literal_bytes: usize,
}

/// Sets the number of partitions and the batch size.
///
/// - If the plan only selects rows, the result has the row order of the file. Then the plan has one partition and reads
///   the files one after the other, and the first row is available after the first batch.
/// - `SELECT 'a long text' FROM t` repeats the text for each row of a batch. This memory is not accounted for, so the
///   batch must be short.
/// - With little memory, the plan has fewer partitions, so that each has enough to sort and to aggregate.
/// - While many queries run, the plan has fewer partitions and shorter batches.
/// - Dynamic filters, which skip rows of one side of a join based on the values of the other, do not support arrays, and
///   distinguish the zeros of floating-point numbers, which are equal.
pub(super) fn configure_session(
    session: &mut StatementSession,
    logical: &LogicalPlan,
    load_share: LoadShare,
) -> Result<()> {
    let traits = PlanTraits::find(logical)?;
    let rows_max = load_share.of(session.config().batch_size(), BATCH_ROWS_MIN);
    let batch_rows = (REPEATED_BYTES_MAX / traits.literal_bytes.max(1)).clamp(1, rows_max);
    let memory_limit = session.memory_limit();
    let options = session.config_mut().options_mut();
    options.execution.batch_size = ConfigNonZeroUsize::try_new(batch_rows)?;
    let partitions = load_share.of(options.execution.target_partitions, 1);
    options.execution.target_partitions = match memory_limit {
        _ if !traits.reorders_rows || traits.numbers_rows => 1,
        MemoryLimit::Finite(bytes) => partitions.min(bytes / PARTITION_BYTES_MIN).max(1),
        _ => partitions,
    };
    if traits.has_unfilterable_keys {
        options.optimizer.enable_join_dynamic_filter_pushdown = false;
    }
    Ok(())
}

impl PlanTraits {
    fn find(plan: &LogicalPlan) -> Result<Self> {
        let mut traits = Self::default();
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::Aggregate(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::RecursiveQuery(_)
                | LogicalPlan::Union(_) => traits.reorders_rows = true,
                LogicalPlan::Join(join) => {
                    traits.reorders_rows = true;
                    traits.has_unfilterable_keys |= has_unfilterable_keys(join);
                }
                LogicalPlan::Window(window) => {
                    traits.reorders_rows |= !window.window_expr.iter().all(depends_on_row_order);
                    traits.numbers_rows |= window.window_expr.iter().any(depends_on_row_order);
                }
                _ => {}
            }
            for_each_part(node, |part| {
                if let Expr::Literal(value, _) = part {
                    traits.literal_bytes = traits.literal_bytes.max(value.size());
                }
                Ok(())
            })
        })?;
        Ok(traits)
    }
}

fn has_unfilterable_keys(join: &Join) -> bool {
    let is_unfilterable = |key: &Expr, side: &LogicalPlan| {
        key.get_type(side.schema()).is_ok_and(|data_type| data_type.is_nested() || data_type.is_floating())
    };
    join.on.iter().any(|(left, right)| is_unfilterable(left, &join.left) || is_unfilterable(right, &join.right))
}

/// Whether a window function depends on input order, like `row_number() OVER ()`.
fn depends_on_row_order(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => depends_on_row_order(&alias.expr),
        Expr::WindowFunction(function) => {
            function.params.partition_by.is_empty() && function.params.order_by.is_empty()
        }
        _ => false,
    }
}

/// Maximum number of rows that a sort with a limit may keep in memory.
const KEPT_ROWS_MAX: usize = 100_000;
/// The same while many queries run.
const KEPT_ROWS_MIN: usize = 1_000;

/// Replaces sorts with a large limit in `plan` by sorts that can spill, followed by a limit.
///
/// A sort with a limit keeps its best rows in memory and cannot spill, which suits the usual small limits.
pub(super) fn replace_large_top_k(
    plan: Arc<dyn ExecutionPlan>,
    load_share: LoadShare,
) -> Result<Arc<dyn ExecutionPlan>> {
    let kept_rows_max = load_share.of(KEPT_ROWS_MAX, KEPT_ROWS_MIN);
    plan.transform_up(|node| {
        if let Some(sort) = node.downcast_ref::<SortExec>()
            && let Some(rows) = sort.fetch().filter(|rows| *rows > kept_rows_max)
        {
            let sorted = Arc::new(sort.with_fetch(None));
            return Ok(Transformed::yes(Arc::new(LocalLimitExec::new(sorted, rows)) as Arc<dyn ExecutionPlan>));
        }
        Ok(Transformed::no(node))
    })
    .data()
}
