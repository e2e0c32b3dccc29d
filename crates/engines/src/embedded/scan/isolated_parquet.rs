//! Parquet's reader, whose errors and panics name the file.
//!
//! DataFusion reads a Parquet file in steps: planners read the footer and choose row groups, morsels decode them. Each
//! step may panic on a damaged file. Everything else is DataFusion's source.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::ObjectStore;

use super::delta_types::TypeMismatch;
use super::footer::PagesTooLarge;
use super::read_failure::{find_cause, unreadable_error};
use crate::embedded::files::{
    READER_PANICKED, STORE_ERROR_PREFIX, catch_reader_panic, from_location, strip_error_kind,
};

/// A [`ParquetSource`], also after DataFusion has changed it.
pub(super) struct IsolatedParquetSource(Arc<dyn FileSource>);

impl IsolatedParquetSource {
    pub(super) fn new(source: ParquetSource) -> Self {
        Self(Arc::new(source))
    }
}

fn isolated(source: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
    Arc::new(IsolatedParquetSource(source))
}

impl FileSource for IsolatedParquetSource {
    tidegate_pgsql::delegate_to! { 0 =>
        fn create_file_opener(
            &self, store: Arc<dyn ObjectStore>, base: &FileScanConfig, partition: usize
        ) -> Result<Arc<dyn FileOpener>>;
        fn table_schema(&self) -> &TableSchema;
        fn filter(&self) -> Option<Arc<dyn PhysicalExpr>>;
        fn projection(&self) -> Option<&ProjectionExprs>;
        fn metrics(&self) -> &ExecutionPlanMetricsSet;
        fn file_type(&self) -> &str;
        fn fmt_extra(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result;
        fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile>;
        fn apply_expressions(
            &self, visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>
        ) -> Result<TreeNodeRecursion>;
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        base: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        Ok(Box::new(IsolatedMorselizer(self.0.create_morselizer(store, base, partition)?)))
    }

    fn with_batch_size(&self, batch_rows: usize) -> Arc<dyn FileSource> {
        isolated(self.0.with_batch_size(batch_rows))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let pushed = self.0.try_pushdown_filters(filters, config)?;
        Ok(FilterPushdownPropagation { filters: pushed.filters, updated_node: pushed.updated_node.map(isolated) })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.0.try_pushdown_sort(order, properties)?.map(isolated))
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(self.0.try_pushdown_projection(projection)?.map(isolated))
    }
}

#[derive(Debug)]
struct IsolatedMorselizer(Box<dyn Morselizer>);

impl Morselizer for IsolatedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let location: Arc<str> = from_location(&file.object_meta.location).into();
        let planner = named(catch_reader_panic(|| self.0.plan_file(file)), &location)?;
        Ok(Box::new(IsolatedPlanner { planner, location }))
    }
}

#[derive(Debug)]
struct IsolatedPlanner {
    planner: Box<dyn MorselPlanner>,
    location: Arc<str>,
}

impl MorselPlanner for IsolatedPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { planner, location } = *self;
        let plan = named(catch_reader_panic(|| planner.plan()), &location)?;
        Ok(plan.map(|plan| isolated_plan(plan, &location)))
    }
}

fn isolated_plan(mut plan: MorselPlan, location: &Arc<str>) -> MorselPlan {
    let morsel = |morsel| Box::new(IsolatedMorsel { morsel, location: location.clone() }) as Box<dyn Morsel>;
    let planner = |planner| Box::new(IsolatedPlanner { planner, location: location.clone() }) as Box<dyn MorselPlanner>;
    let steps = MorselPlan::new()
        .with_morsels(plan.take_morsels().into_iter().map(morsel).collect())
        .with_planners(plan.take_ready_planners().into_iter().map(planner).collect());
    let Some(pending) = plan.take_pending_planner() else { return steps };
    let location = location.clone();
    steps.with_pending_planner(async move {
        let planner = named(AssertUnwindSafe(pending).catch_unwind().await, &location)?;
        Ok(Box::new(IsolatedPlanner { planner, location }) as Box<dyn MorselPlanner>)
    })
}

#[derive(Debug)]
struct IsolatedMorsel {
    morsel: Box<dyn Morsel>,
    location: Arc<str>,
}

impl Morsel for IsolatedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { morsel, location } = *self;
        // The first batch may be decoded before there is a stream.
        let batches = futures::stream::once(async move { morsel.into_stream() }).flatten();
        AssertUnwindSafe(batches).catch_unwind().map(move |batch| named(batch, &location)).boxed()
    }
}

/// The result of a step that reads the file at `location`. `Err` of `outcome` is a panic.
fn named<T, P>(outcome: Result<Result<T>, P>, location: &str) -> Result<T> {
    match outcome {
        Ok(result) => result.map_err(|error| name_file(error, location)),
        Err(_) => Err(unreadable_error(location, READER_PANICKED)),
    }
}

/// Names the file in an error of Parquet's reader, or about its types or pages. Errors of the store name it already.
fn name_file(error: DataFusionError, location: &str) -> DataFusionError {
    let of_type = find_cause::<TypeMismatch>(&error).map(ToString::to_string);
    let reason = of_type.or_else(|| find_cause::<PagesTooLarge>(&error).map(ToString::to_string));
    if let Some(reason) = reason {
        return unreadable_error(location, &reason);
    }
    match parquet_reason(&error) {
        Some(reason) if !reason.contains(STORE_ERROR_PREFIX) => {
            let reason = format!("it is not a readable Parquet file: {}", strip_error_kind(&reason));
            unreadable_error(location, &reason)
        }
        _ => error,
    }
}

fn parquet_reason(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::ParquetError(error) => Some(error.to_string()),
        DataFusionError::ArrowError(error, _) => match &**error {
            ArrowError::ParquetError(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}
