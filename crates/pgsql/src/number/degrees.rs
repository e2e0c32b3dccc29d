//! Trigonometry in degrees, exact where the result is a simple fraction.
//!
//! An angle is reduced to the first quadrant, and there to the smaller half, by the symmetries of the functions. Each half is
//! scaled so that its last angle, 30, 45 or 60 degrees, has its exact result.

/// Computes the sine of an acute angle.
fn acute_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 {
        degrees.to_radians().sin() / 30_f64.to_radians().sin() / 2.0
    } else {
        small_cosine(90.0 - degrees)
    }
}

/// Computes the cosine of an acute angle.
fn acute_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { small_cosine(degrees) } else { acute_sine(90.0 - degrees) }
}

/// Computes the cosine of an angle of at most 60 degrees.
fn small_cosine(degrees: f64) -> f64 {
    let below_one = |degrees: f64| 1.0 - degrees.to_radians().cos();
    1.0 - below_one(degrees) / below_one(60.0) / 2.0
}

/// Reduces an angle to one from 0 to 180 degrees. Returns whether the sine changes its sign.
fn half_turn(degrees: f64) -> (f64, bool) {
    let turned = degrees % 360.0;
    let (turned, is_negative) = if turned < 0.0 { (-turned, true) } else { (turned, false) };
    if turned > 180.0 { (360.0 - turned, !is_negative) } else { (turned, is_negative) }
}

fn with_sign(value: f64, is_negative: bool) -> f64 {
    if is_negative { -value } else { value }
}

pub(super) fn sine(degrees: f64) -> f64 {
    let (angle, is_negative) = half_turn(degrees);
    with_sign(acute_sine(if angle > 90.0 { 180.0 - angle } else { angle }), is_negative)
}

pub(super) fn cosine(degrees: f64) -> f64 {
    let (angle, _) = half_turn(degrees);
    if angle > 90.0 { -acute_cosine(180.0 - angle) } else { acute_cosine(angle) }
}

/// Computes the quotient of two functions of an acute angle, which is 1 at 45 degrees.
fn quotient(degrees: f64, over: fn(f64) -> f64, under: fn(f64) -> f64) -> f64 {
    let (angle, is_negative) = half_turn(degrees);
    let (angle, is_negative) = if angle > 90.0 { (180.0 - angle, !is_negative) } else { (angle, is_negative) };
    let of = |angle: f64| over(angle) / under(angle);
    let result = with_sign(of(angle) / of(45.0), is_negative);
    // Never a negative zero.
    if result == 0.0 { 0.0 } else { result }
}

pub(super) fn tangent(degrees: f64) -> f64 {
    quotient(degrees, acute_sine, acute_cosine)
}

pub(super) fn cotangent(degrees: f64) -> f64 {
    quotient(degrees, acute_cosine, acute_sine)
}

/// Computes the angle from 0 to 90 degrees with this sine, which is positive.
fn acute_arcsine(sine: f64) -> f64 {
    if sine <= 0.5 { sine.asin() / 0.5_f64.asin() * 30.0 } else { 90.0 - sine.acos() / 0.5_f64.acos() * 60.0 }
}

/// Computes the angle from 0 to 90 degrees with this cosine, which is positive.
fn acute_arccosine(cosine: f64) -> f64 {
    if cosine <= 0.5 { 90.0 - cosine.asin() / 0.5_f64.asin() * 30.0 } else { cosine.acos() / 0.5_f64.acos() * 60.0 }
}

pub(super) fn arcsine(sine: f64) -> f64 {
    if sine >= 0.0 { acute_arcsine(sine) } else { -acute_arcsine(-sine) }
}

pub(super) fn arccosine(cosine: f64) -> f64 {
    if cosine >= 0.0 { acute_arccosine(cosine) } else { 90.0 + acute_arcsine(-cosine) }
}

/// Converts an angle of an arctangent from radians to degrees.
pub(super) fn arctangent(radians: f64) -> f64 {
    radians / 1_f64.atan() * 45.0
}
