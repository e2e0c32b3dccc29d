//! Filters that a scan applies while it decodes, for as long as they remove rows.
//!
//! The operator above a scan keeps each filter: a `FilterExec` evaluates it again, and a join or a sort with a limit
//! does not depend on what its dynamic filter removed. So a scan may leave a filter out at any row. A filter that
//! removes most rows saves the decoding of their other columns. One that removes few costs its own evaluation, and
//! splits the rows that are decoded into many pieces.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_expr_common::physical_expr::{is_volatile, snapshot_generation};
use datafusion::physical_plan::ColumnarValue;

/// The number of rows after which a filter is judged.
const SAMPLE_ROWS: u64 = 16_384;

/// The percentage of rows up to which a filter may pass on what it reads, to be evaluated further.
const PASSED_PERCENT_MAX: u64 = 40;

/// Makes each part of `filter` one that ends when it removes few rows. Parts with `random()` are left out, because the
/// operator above would compute them again.
pub(super) fn while_selective(filter: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    let parts = split_conjunction(filter).into_iter().filter(|part| !is_volatile(part));
    conjunction(parts.map(|part| Arc::new(SelectiveFilter::new(part.clone())) as Arc<dyn PhysicalExpr>))
}

/// A filter that passes all rows after it has passed most rows of a sample.
///
/// An error of `filter` ends it, too: the operator above evaluates it again, and reports the error with its cause.
#[derive(Debug)]
struct SelectiveFilter {
    filter: Arc<dyn PhysicalExpr>,
    sample: Arc<Sample>,
}

/// What a filter passed, in all files and partitions of a scan.
#[derive(Debug, Default)]
struct Sample {
    /// The version of a dynamic filter. A new one is judged again.
    generation: AtomicU64,
    rows: AtomicU64,
    passed: AtomicU64,
    has_failed: AtomicBool,
}

impl Sample {
    /// Whether the filter is worth its evaluation, as far as is known.
    fn is_selective(&self, generation: u64) -> bool {
        if self.generation.swap(generation, Ordering::Relaxed) != generation {
            self.rows.store(0, Ordering::Relaxed);
            self.passed.store(0, Ordering::Relaxed);
        }
        let (rows, passed) = (self.rows.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        !self.has_failed.load(Ordering::Relaxed)
            && (rows < SAMPLE_ROWS || passed.saturating_mul(100) <= rows.saturating_mul(PASSED_PERCENT_MAX))
    }

    fn count(&self, rows: usize, passed: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.passed.fetch_add(passed as u64, Ordering::Relaxed);
    }
}

impl SelectiveFilter {
    fn new(filter: Arc<dyn PhysicalExpr>) -> Self {
        Self { filter, sample: Arc::default() }
    }

    /// Whether the text of `filter` needs parentheses beside others. `BinaryExpr` writes them only around its own kind.
    fn is_disjunction(&self) -> bool {
        self.filter.downcast_ref::<BinaryExpr>().is_some_and(|binary| *binary.op() == Operator::Or)
    }

    fn sampled(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.filter.evaluate(batch)?.into_array(batch.num_rows())?;
        self.sample.count(values.len(), as_boolean_array(&values)?.true_count());
        Ok(ColumnarValue::Array(values))
    }
}

impl PartialEq for SelectiveFilter {
    fn eq(&self, other: &Self) -> bool {
        self.filter.eq(&other.filter)
    }
}

impl Eq for SelectiveFilter {}

impl Hash for SelectiveFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

impl fmt::Display for SelectiveFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_disjunction() { write!(f, "({})", self.filter) } else { write!(f, "{}", self.filter) }
    }
}

impl PhysicalExpr for SelectiveFilter {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.filter.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.filter.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.sample.is_selective(snapshot_generation(&self.filter)) {
            if let Ok(values) = self.sampled(batch) {
                return Ok(values);
            }
            self.sample.has_failed.store(true, Ordering::Relaxed);
        }
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { filter: children.swap_remove(0), sample: self.sample.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begin, end) = if self.is_disjunction() { ("(", ")") } else { ("", "") };
        f.write_str(begin)?;
        self.filter.fmt_sql(f)?;
        f.write_str(end)
    }

    /// The filter itself, by whose kind row groups and pages are skipped.
    fn snapshot(&self) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        Ok(Some(self.filter.clone()))
    }
}
