//! The moment of the statement: one for all of it, however often and wherever it is named.

use arrow::datatypes::DataType;
use chrono::Utc;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::calendar::DAY;
use crate::data_type::{DATE, TIME, TIMESTAMP, timestamptz};

/// Returns the functions that return the current time.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let stable = [
        ("now", timestamptz()),
        ("current_timestamp", timestamptz()),
        ("transaction_timestamp", timestamptz()),
        ("statement_timestamp", timestamptz()),
        ("localtimestamp", TIMESTAMP),
        ("localtime", TIME),
        ("current_date", DATE),
    ];
    let stable =
        stable.into_iter().map(|(name, data_type)| CurrentTimeFunction::new(name, data_type, Volatility::Stable));
    stable
        .chain([
            CurrentTimeFunction::new("clock_timestamp", timestamptz(), Volatility::Volatile),
            CurrentTimeFunction::new("timeofday", DataType::Utf8, Volatility::Volatile),
        ])
        .map(ScalarUDF::new_from_impl)
        .collect()
}

/// A function that gives a moment.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentTimeFunction {
    name: &'static str,
    data_type: DataType,
    signature: Signature,
}

impl CurrentTimeFunction {
    fn new(name: &'static str, data_type: DataType, volatility: Volatility) -> Self {
        Self { name, data_type, signature: Signature::nullary(volatility) }
    }

    fn value(&self, moment: chrono::DateTime<Utc>) -> ScalarValue {
        let micros = moment.timestamp_micros();
        match &self.data_type {
            DataType::Date32 => ScalarValue::Date32(i32::try_from(micros.div_euclid(DAY)).ok()),
            DataType::Time64(_) => ScalarValue::Time64Microsecond(Some(micros.rem_euclid(DAY))),
            DataType::Timestamp(_, zone) => ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()),
            _ => ScalarValue::Utf8(Some(moment.format("%a %b %d %H:%M:%S%.6f %Y UTC").to_string())),
        }
    }
}

impl ScalarUDFImpl for CurrentTimeFunction {
    crate::name_and_signature!(.name);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match info.query_execution_start_time() {
            Some(start) if self.signature.volatility == Volatility::Stable => {
                Ok(ExprSimplifyResult::Simplified(lit(self.value(start))))
            }
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.signature.volatility == Volatility::Stable {
            let message = format!("the start time of the statement is missing for {}", self.name);
            return Err(DataFusionError::Internal(message));
        }
        Ok(ColumnarValue::Scalar(self.value(Utc::now())))
    }
}
