//! Window frames that exclude rows: `EXCLUDE CURRENT ROW`, `GROUP` and `TIES`.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{filter, partition};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    AggregateUDF, Expr, PartitionEvaluator, Signature, Volatility, WindowFunctionDefinition, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;

/// Marks an exclusion in PARTITION BY, where the parser puts it; its kind follows.
const EXCLUSION_MARK: &str = "exclude\u{1}";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Exclusion {
    CurrentRow,
    Group,
    Ties,
}

/// Whether `expression` is the mark of an exclusion.
pub(crate) fn is_exclusion_mark(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(text)), _) if text.starts_with(EXCLUSION_MARK))
}

/// Replaces the function of `call` with one that skips the rows that its window excludes. Returns whether it did.
pub(super) fn apply_exclusion(call: &mut WindowFunction) -> Result<bool> {
    let Some(position) = call.params.partition_by.iter().position(is_exclusion_mark) else { return Ok(false) };
    let kind = match call.params.partition_by.remove(position) {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => text,
        _ => return Ok(false),
    };
    let exclusion = match kind.strip_prefix(EXCLUSION_MARK) {
        Some("current row") => Exclusion::CurrentRow,
        Some("group") => Exclusion::Group,
        _ => Exclusion::Ties,
    };
    let inner = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => function.clone(),
        WindowFunctionDefinition::WindowUDF(function) => match function.name() {
            "first_value" => first_value_udaf(),
            "last_value" => last_value_udaf(),
            "nth_value" => nth_value_udaf(),
            // The results of these functions do not depend on the frame.
            _ => return Ok(true),
        },
    };
    if call.params.distinct || call.params.null_treatment.is_some() {
        return plan_err!("EXCLUDE with DISTINCT or IGNORE NULLS is not supported; filter in a subquery");
    }
    let arguments = call.params.args.len();
    let has_filter = call.params.filter.is_some();
    call.params.args.extend(call.params.filter.take().map(|filter| *filter));
    let signature = Signature::user_defined(Volatility::Immutable);
    let function = ExclusionFunction { inner, exclusion, arguments, has_filter, signature };
    call.fun = WindowFunctionDefinition::WindowUDF(Arc::new(WindowUDF::from(function)));
    Ok(true)
}

/// An aggregate over frames that exclude rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExclusionFunction {
    inner: Arc<AggregateUDF>,
    exclusion: Exclusion,
    /// The number of arguments of the aggregate.
    arguments: usize,
    /// Whether a filter follows the arguments.
    has_filter: bool,
    signature: Signature,
}

impl WindowUDFImpl for ExclusionFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let fields: Vec<FieldRef> =
            types[..self.arguments].iter().map(|kind| Field::new("x", kind.clone(), true).into()).collect();
        let fields = fields_with_udf(&fields, self.inner.as_ref())?;
        let coerced = fields.iter().map(|field| field.data_type().clone());
        Ok(coerced.chain(types[self.arguments..].iter().cloned()).collect())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field(&args.input_fields()[..self.arguments])?;
        Ok(Field::clone(&field).with_name(args.name()).with_nullable(true).into())
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let fields = args.input_fields()[..self.arguments].to_vec();
        Ok(Box::new(ExclusionEvaluator {
            return_field: self.inner.return_field(&fields)?,
            inner: self.inner.clone(),
            exclusion: self.exclusion,
            exprs: args.input_exprs()[..self.arguments].to_vec(),
            fields,
            has_filter: self.has_filter,
            row: 0,
            peers: Vec::new(),
        }))
    }
}

#[derive(Debug)]
struct ExclusionEvaluator {
    inner: Arc<AggregateUDF>,
    exclusion: Exclusion,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    return_field: FieldRef,
    has_filter: bool,
    /// The next row to evaluate.
    row: usize,
    /// The groups of peers.
    peers: Vec<Range<usize>>,
}

impl PartitionEvaluator for ExclusionEvaluator {
    fn uses_window_frame(&self) -> bool {
        true
    }

    /// Evaluates the frame of the next row. The columns of ORDER BY follow the arguments in `values`.
    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let arguments = self.fields.len();
        if self.row == 0 {
            let keys = &values[arguments + usize::from(self.has_filter)..];
            let rows = values.first().map_or(0, |column| column.len());
            self.peers = if keys.is_empty() { std::iter::once(0..rows).collect() } else { partition(keys)?.ranges() };
        }
        let row = self.row;
        self.row += 1;
        let group = self.peers.partition_point(|peers| peers.end <= row);
        let peers = self.peers.get(group).cloned().unwrap_or(row..row + 1);
        let parts = match self.exclusion {
            Exclusion::CurrentRow => vec![range.start..row, row + 1..range.end],
            Exclusion::Group => vec![range.start..peers.start, peers.end..range.end],
            Exclusion::Ties => vec![range.start..peers.start, row..row + 1, peers.end..range.end],
        };
        let mut accumulator = self.inner.accumulator(AccumulatorArgs {
            return_field: self.return_field.clone(),
            schema: &Schema::empty(),
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.inner.name(),
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })?;
        for part in parts {
            let (start, end) = (part.start.max(range.start), part.end.min(range.end));
            if start >= end {
                continue;
            }
            let mut columns: Vec<ArrayRef> =
                values[..arguments].iter().map(|column| column.slice(start, end - start)).collect();
            if self.has_filter {
                let condition = values[arguments].slice(start, end - start);
                for column in &mut columns {
                    *column = filter(column, condition.as_boolean())?;
                }
            }
            accumulator.update_batch(&columns)?;
        }
        accumulator.evaluate()
    }
}
