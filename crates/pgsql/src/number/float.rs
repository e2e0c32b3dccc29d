//! Functions that compute with doubles and, as PostgreSQL, fail where there is no result.

use std::sync::Arc;

use arrow::array::{AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

type Unary = fn(f64) -> Result<f64>;
type Binary = fn(f64, f64) -> Result<f64>;

const DOMAIN: &str = "input is out of range";

pub(super) fn functions() -> Vec<ScalarUDF> {
    let unary: [(&'static str, Unary); 27] = [
        ("sqrt", sqrt),
        ("cbrt", |x| Ok(x.cbrt())),
        ("exp", |x| in_range(x, x.exp())),
        ("ln", ln),
        ("log10", |x| ln(x).map(|_| x.log10())),
        ("degrees", |x| in_range(x, x.to_degrees())),
        ("radians", |x| Ok(x.to_radians())),
        ("sin", |x| apply_to_finite(x, f64::sin)),
        ("cos", |x| apply_to_finite(x, f64::cos)),
        ("tan", |x| apply_to_finite(x, f64::tan)),
        ("cot", |x| apply_to_finite(x, |x| 1.0 / x.tan())),
        ("asin", |x| apply_within_unit_range(x, f64::asin)),
        ("acos", |x| apply_within_unit_range(x, f64::acos)),
        ("atan", |x| Ok(x.atan())),
        ("sinh", |x| Ok(x.sinh())),
        ("cosh", |x| Ok(x.cosh())),
        ("tanh", |x| Ok(x.tanh())),
        ("asinh", |x| Ok(x.asinh())),
        ("acosh", |x| if x < 1.0 { exec_err!("{DOMAIN}") } else { Ok(x.acosh()) }),
        ("atanh", |x| apply_within_unit_range(x, f64::atanh)),
        ("sind", |x| apply_to_finite(x, |x| sine_of_degrees(x, 0))),
        ("cosd", |x| apply_to_finite(x, |x| sine_of_degrees(x, 1))),
        ("tand", |x| apply_to_finite(x, |x| sine_of_degrees(x, 0) / sine_of_degrees(x, 1))),
        ("cotd", |x| apply_to_finite(x, |x| sine_of_degrees(x, 1) / sine_of_degrees(x, 0))),
        ("asind", |x| apply_within_unit_range(x, |x| exact_angle(x.asin()))),
        ("acosd", |x| apply_within_unit_range(x, |x| exact_angle(x.acos()))),
        ("atand", |x| Ok(exact_angle(x.atan()))),
    ];
    let binary: [(&'static str, Binary); 3] = [("power", power), ("pow", power), ("atan2", |y, x| Ok(y.atan2(x)))];
    let unary = unary.into_iter().map(|(name, function)| FloatFunction::One(name, function));
    let binary = binary.into_iter().map(|(name, function)| FloatFunction::Two(name, function));
    let all = unary
        .chain(binary)
        .chain([FloatFunction::Two("atan2d", |y, x| Ok(exact_angle(y.atan2(x)))), FloatFunction::Log]);
    all.map(|function| {
        ScalarUDF::new_from_impl(FloatUdf { function, signature: Signature::user_defined(Volatility::Immutable) })
    })
    .collect()
}

fn sqrt(x: f64) -> Result<f64> {
    if x < 0.0 { exec_err!("cannot take square root of a negative number") } else { Ok(x.sqrt()) }
}

fn ln(x: f64) -> Result<f64> {
    if x == 0.0 {
        return exec_err!("cannot take logarithm of zero");
    }
    if x < 0.0 { exec_err!("cannot take logarithm of a negative number") } else { Ok(x.ln()) }
}

fn log(base: f64, x: f64) -> Result<f64> {
    let (base, x) = (ln(base)?, ln(x)?);
    if base == 0.0 { exec_err!("division by zero") } else { Ok(x / base) }
}

/// Infinity of something finite is an overflow.
fn in_range(x: f64, result: f64) -> Result<f64> {
    if x.is_finite() && result.is_infinite() {
        return exec_err!("value out of range: overflow");
    }
    Ok(result)
}

fn apply_to_finite(x: f64, function: impl Fn(f64) -> f64) -> Result<f64> {
    if x.is_infinite() { exec_err!("{DOMAIN}") } else { Ok(function(x)) }
}

fn apply_within_unit_range(x: f64, function: impl Fn(f64) -> f64) -> Result<f64> {
    if x.abs() > 1.0 { exec_err!("{DOMAIN}") } else { Ok(function(x)) }
}

fn power(x: f64, y: f64) -> Result<f64> {
    if x == 0.0 && y < 0.0 {
        return exec_err!("zero raised to a negative power is undefined");
    }
    if x < 0.0 && x.is_finite() && y.is_finite() && y.fract() != 0.0 {
        return exec_err!("a negative number raised to a non-integer power yields a complex result");
    }
    let result = x.powf(y);
    if y.is_finite() { in_range(x, result) } else { Ok(result) }
}

/// The sine of an angle in degrees, or the cosine for `shift` 1, exact where it is a simple fraction.
fn sine_of_degrees(degrees: f64, shift: u8) -> f64 {
    let turned = (degrees + 90.0 * f64::from(shift)).rem_euclid(360.0);
    let (sign, folded) = if turned >= 180.0 { (-1.0, turned - 180.0) } else { (1.0, turned) };
    let folded = if folded > 90.0 { 180.0 - folded } else { folded };
    let sine = match folded {
        0.0 => 0.0,
        30.0 => 0.5,
        90.0 => 1.0,
        other => other.to_radians().sin(),
    };
    sign * sine
}

/// Degrees of `radians`, whole where they are meant to be.
fn exact_angle(radians: f64) -> f64 {
    let degrees = radians.to_degrees();
    if (degrees - degrees.round()).abs() < 1e-12 { degrees.round() } else { degrees }
}

#[derive(Clone, Copy)]
enum FloatFunction {
    One(&'static str, Unary),
    Two(&'static str, Binary),
    /// `log(x)` to the base of 10, `log(base, x)`.
    Log,
}

impl FloatFunction {
    fn name(self) -> &'static str {
        match self {
            Self::One(name, _) | Self::Two(name, _) => name,
            Self::Log => "log",
        }
    }
}

struct FloatUdf {
    function: FloatFunction,
    signature: Signature,
}

impl std::fmt::Debug for FloatUdf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.function.name())
    }
}

impl PartialEq for FloatUdf {
    fn eq(&self, other: &Self) -> bool {
        self.function.name() == other.function.name()
    }
}

impl Eq for FloatUdf {}

impl std::hash::Hash for FloatUdf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.function.name().hash(state);
    }
}

impl ScalarUDFImpl for FloatUdf {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let counts = match self.function {
            FloatFunction::One(..) => 1..=1,
            FloatFunction::Two(..) => 2..=2,
            FloatFunction::Log => 1..=2,
        };
        let is_number =
            |data_type: &DataType| data_type.is_numeric() || data_type.is_null() || matches!(data_type, DataType::Utf8);
        if !counts.contains(&types.len()) || !types.iter().all(is_number) {
            return plan_err!("{}({types:?}) does not exist; it takes numbers", self.name());
        }
        Ok(vec![DataType::Float64; types.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let result: Float64Array = match (self.function, arrays.as_slice()) {
            (FloatFunction::One(_, function), [x]) => {
                let values = x.as_primitive::<Float64Type>().iter();
                values.map(|x| x.map(function).transpose()).collect::<Result<_>>()?
            }
            (FloatFunction::Log, [x]) => {
                let values = x.as_primitive::<Float64Type>().iter();
                values.map(|x| x.map(|x| ln(x).map(|_| x.log10())).transpose()).collect::<Result<_>>()?
            }
            (FloatFunction::Two(_, function), [x, y]) => pairs(x, y, function)?,
            (FloatFunction::Log, [base, x]) => pairs(base, x, log)?,
            _ => return plan_err!("{} does not accept these arguments", self.name()),
        };
        Ok(ColumnarValue::Array(Arc::new(result)))
    }
}

fn pairs(x: &arrow::array::ArrayRef, y: &arrow::array::ArrayRef, function: Binary) -> Result<Float64Array> {
    let pairs = x.as_primitive::<Float64Type>().iter().zip(y.as_primitive::<Float64Type>().iter());
    pairs.map(|(x, y)| x.zip(y).map(|(x, y)| function(x, y)).transpose()).collect()
}
