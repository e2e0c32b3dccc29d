//! Converts operators to functions, so that the limits of functions apply: `LIKE`, `~` and `SIMILAR TO` with patterns
//! that are large or not constant, and `||`.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::{BinaryTypeCoercer, like_coercion};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Like, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr::expressions::{Column, binary, lit};
use datafusion::physical_plan::PhysicalExpr;

use super::pattern_cost::{PatternCost, pattern_steps};
use super::result_bytes::argument_bytes;
use super::{BoundedFunction, EstimateSteps, result_too_large_error};

/// Maximum number of bytes of all results of `||` in a batch.
const JOINED_BYTES_MAX: f64 = (256 << 20) as f64;

/// `expr` with a limit, if it is an operator that needs one.
pub(super) fn bound_operator(expr: &Expr) -> Option<Expr> {
    let (operation, left, right) = match expr {
        Expr::Like(like) => like_match(like, OperatorSyntax::Like)?,
        Expr::SimilarTo(like) => like_match(like, OperatorSyntax::SimilarTo)?,
        // Concatenation with a literal only adds the length of the literal.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
            if !is_literal(left) && !is_literal(right) =>
        {
            let joined = BoundedConcat { signature: Signature::any(1, Volatility::Immutable) };
            return Some(ScalarUDF::new_from_impl(joined).call(vec![expr.clone()]));
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_match(*op) => {
            (PatternMatch::new(*op, OperatorSyntax::Operator), &**left, &**right)
        }
        _ => return None,
    };
    if operation.is_small(right) {
        return None;
    }
    let steps: EstimateSteps = match operation.op {
        Operator::LikeMatch | Operator::ILikeMatch | Operator::NotLikeMatch | Operator::NotILikeMatch => {
            |args| pattern_steps(args, Operator::LikeMatch)
        }
        _ => |args| pattern_steps(args, Operator::RegexMatch),
    };
    let inner = Arc::new(ScalarUDF::new_from_impl(operation));
    let bounded = BoundedFunction { inner, bytes: None, steps: Some(steps) };
    Some(ScalarUDF::new_from_impl(bounded).call(vec![left.clone(), right.clone()]))
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..))
}

fn is_match(op: Operator) -> bool {
    use Operator::{
        ILikeMatch, LikeMatch, NotILikeMatch, NotLikeMatch, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch,
    };
    matches!(
        op,
        LikeMatch
            | ILikeMatch
            | NotLikeMatch
            | NotILikeMatch
            | RegexMatch
            | RegexIMatch
            | RegexNotMatch
            | RegexNotIMatch
    )
}

/// An unusual escape character is refused later.
fn like_match(like: &Like, written: OperatorSyntax) -> Option<(PatternMatch, &Expr, &Expr)> {
    if like.escape_char.is_some_and(|escape| escape != '\\' || written == OperatorSyntax::SimilarTo) {
        return None;
    }
    let op = match (written, like.negated, like.case_insensitive) {
        (OperatorSyntax::SimilarTo, false, false) => Operator::RegexMatch,
        (OperatorSyntax::SimilarTo, false, true) => Operator::RegexIMatch,
        (OperatorSyntax::SimilarTo, true, false) => Operator::RegexNotMatch,
        (OperatorSyntax::SimilarTo, true, true) => Operator::RegexNotIMatch,
        (_, false, false) => Operator::LikeMatch,
        (_, false, true) => Operator::ILikeMatch,
        (_, true, false) => Operator::NotLikeMatch,
        (_, true, true) => Operator::NotILikeMatch,
    };
    let operation = PatternMatch { escape: like.escape_char, ..PatternMatch::new(op, written) };
    Some((operation, &like.expr, &like.pattern))
}

/// The syntax of the operator in the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OperatorSyntax {
    Operator,
    Like,
    SimilarTo,
}

/// An operator that matches a text against a pattern. Its column keeps the name of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PatternMatch {
    op: Operator,
    syntax: OperatorSyntax,
    /// The escape character of the statement.
    escape: Option<char>,
    signature: Signature,
}

impl PatternMatch {
    fn new(op: Operator, syntax: OperatorSyntax) -> Self {
        Self { op, syntax, escape: None, signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// Whether `pattern` is constant and needs no limit.
    fn is_small(&self, pattern: &Expr) -> bool {
        let Expr::Literal(value, _) = pattern else { return false };
        value.try_as_str().flatten().is_none_or(|pattern| PatternCost::new(self.op, pattern).is_small())
    }

    /// The original operator expression.
    fn to_operator_expr(&self, args: &[Expr]) -> Result<Expr> {
        let [left, right] = args else { return plan_err!("{} has two operands", self.op) };
        let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
        use Operator::{ILikeMatch, NotILikeMatch, NotLikeMatch, RegexIMatch, RegexNotIMatch, RegexNotMatch};
        let is_negated = matches!(self.op, NotLikeMatch | NotILikeMatch | RegexNotMatch | RegexNotIMatch);
        let is_caseless = matches!(self.op, ILikeMatch | NotILikeMatch | RegexIMatch | RegexNotIMatch);
        let like = |left, right| Like::new(is_negated, left, right, self.escape, is_caseless);
        Ok(match self.syntax {
            OperatorSyntax::Operator => Expr::BinaryExpr(BinaryExpr::new(left, self.op, right)),
            OperatorSyntax::Like => Expr::Like(like(left, right)),
            OperatorSyntax::SimilarTo => Expr::SimilarTo(like(left, right)),
        })
    }
}

impl ScalarUDFImpl for PatternMatch {
    fn name(&self) -> &str {
        match self.syntax {
            OperatorSyntax::Operator => "matches",
            OperatorSyntax::Like => "like",
            OperatorSyntax::SimilarTo => "similar_to",
        }
    }

    #[allow(deprecated, reason = "it must read what the operator says")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.to_operator_expr(args)?.to_string())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.to_operator_expr(args)?.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else { return plan_err!("{} has two operands", self.op) };
        if self.syntax == OperatorSyntax::Like {
            let common = like_coercion(left, right);
            return match common {
                Some(common) => Ok(vec![common.clone(), common]),
                None => plan_err!("There isn't a common type to coerce {left} and {right} in LIKE expression"),
            };
        }
        let (left, right) = BinaryTypeCoercer::new(left, &self.op, right).get_input_types()?;
        Ok(vec![left, right])
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if args.get(1).is_some_and(|pattern| is_literal(pattern) && self.is_small(pattern)) {
            return Ok(ExprSimplifyResult::Simplified(self.to_operator_expr(&args)?));
        }
        Ok(ExprSimplifyResult::Original(args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (mut fields, mut columns, mut operands) = (Vec::new(), Vec::new(), Vec::<Arc<dyn PhysicalExpr>>::new());
        for (position, arg) in args.args.iter().enumerate() {
            match arg {
                ColumnarValue::Scalar(value) => operands.push(lit(value.clone())),
                ColumnarValue::Array(values) => {
                    let name = format!("operand {position}");
                    operands.push(Arc::new(Column::new(&name, columns.len())));
                    fields.push(Field::new(name, values.data_type().clone(), true));
                    columns.push(values.clone());
                }
            }
        }
        let [left, right] = <[_; 2]>::try_from(operands)
            .map_err(|_| DataFusionError::Internal(format!("{} has two operands", self.op)))?;
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(args.number_rows));
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
        binary(left, self.op, right, &schema)?.evaluate(&batch)
    }
}

/// The result of `||`. It is refused if it is too long, after it is computed: each `||` may double the length.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BoundedConcat {
    signature: Signature,
}

impl ScalarUDFImpl for BoundedConcat {
    fn name(&self) -> &str {
        "joined"
    }

    #[allow(deprecated, reason = "it must read what the operator says")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("|| has a result".to_owned()))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let joined = args.args.pop().ok_or_else(|| DataFusionError::Internal("|| has a result".to_owned()))?;
        // A constant result is repeated only where it is used.
        if argument_bytes(&joined, 1) > JOINED_BYTES_MAX {
            return Err(result_too_large_error("||", JOINED_BYTES_MAX));
        }
        Ok(joined)
    }
}
