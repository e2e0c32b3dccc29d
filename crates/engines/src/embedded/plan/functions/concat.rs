//! A limit for `||`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::result_bytes::argument_bytes;
use super::result_too_large_error;

/// Maximum number of bytes of all results of `||` in a batch.
const JOINED_BYTES_MAX: f64 = (256 << 20) as f64;

/// `expr` with a limit, if it is a concatenation that needs one. A literal only adds its own length.
pub(super) fn bound_concat(expr: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) = expr else { return None };
    if matches!(**left, Expr::Literal(..)) || matches!(**right, Expr::Literal(..)) {
        return None;
    }
    let joined = BoundedConcat { signature: Signature::any(1, Volatility::Immutable) };
    Some(ScalarUDF::new_from_impl(joined).call(vec![expr.clone()]))
}

/// The result of `||`. It is refused if it is too long, after it is computed: each `||` may double the length.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BoundedConcat {
    signature: Signature,
}

impl ScalarUDFImpl for BoundedConcat {
    tidegate_pgsql::name_and_signature!("joined");

    #[allow(deprecated, reason = "it must read what the operator says")]
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
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
