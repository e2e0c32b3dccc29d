//! Parameters in text form: the server's input functions parse them as the types that it inferred.

use std::error::Error as StdError;
use std::fmt::Write as _;

use bytes::BytesMut;
use tidegate_core::{Error, Violation};
use tidegate_sql::Parameter;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// A parameter in the form that PostgreSQL accepts.
#[derive(Debug, Clone, Copy)]
pub struct BoundParameter<'a>(&'a Parameter);

impl<'a> BoundParameter<'a> {
    /// Binds the `parameters` in order, `$1` first.
    ///
    /// # Errors
    /// `InvalidArguments` with each text that contains a NUL character, which PostgreSQL cannot store.
    pub fn bind_all(parameters: &'a [Parameter]) -> Result<Vec<Self>, Error> {
        let holds_nul = |parameter: &Parameter| matches!(parameter, Parameter::Text(text) if text.contains('\0'));
        let violations: Vec<Violation> = parameters
            .iter()
            .enumerate()
            .filter(|(_, parameter)| holds_nul(parameter))
            .map(|(index, _)| Violation {
                path: format!("${}", index + 1),
                message: "the text holds a NUL character, which PostgreSQL cannot store or compare".to_owned(),
            })
            .collect();
        if !violations.is_empty() {
            return Err(Error::invalid_arguments("a parameter cannot be bound", violations));
        }
        Ok(parameters.iter().map(Self).collect())
    }
}

impl ToSql for BoundParameter<'_> {
    fn to_sql(&self, _kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            Parameter::Null => return Ok(IsNull::Yes),
            Parameter::Boolean(value) => write!(out, "{value}")?,
            Parameter::Integer(value) => write!(out, "{value}")?,
            Parameter::Float(value) if value.is_infinite() => {
                out.write_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })?;
            }
            // The shortest digits that parse to the same number, without an exponent: `3` is also a valid integer.
            Parameter::Float(value) => write!(out, "{value}")?,
            Parameter::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    fn encode_format(&self, _kind: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parameter: &Parameter) -> Option<String> {
        let bound = BoundParameter::bind_all(std::slice::from_ref(parameter)).unwrap();
        let mut out = BytesMut::new();
        match bound[0].to_sql_checked(&Type::POINT, &mut out).unwrap() {
            IsNull::Yes => None,
            IsNull::No => Some(String::from_utf8(out.to_vec()).unwrap()),
        }
    }

    #[test]
    fn parameters_are_sent_as_text() {
        assert_eq!(written(&Parameter::Null), None);
        let cases = [
            (Parameter::Boolean(true), "true"),
            (Parameter::Integer(i64::MIN), "-9223372036854775808"),
            (Parameter::Float(3.0), "3"),
            (Parameter::Float(-0.0), "-0"),
            (Parameter::Float(0.1), "0.1"),
            (Parameter::Float(f64::NAN), "NaN"),
            (Parameter::Float(f64::INFINITY), "Infinity"),
            (Parameter::Float(f64::NEG_INFINITY), "-Infinity"),
            (Parameter::Text("it's".to_owned()), "it's"),
        ];
        for (parameter, text) in cases {
            assert_eq!(written(&parameter).as_deref(), Some(text));
        }
    }

    #[test]
    fn nul_in_text_is_rejected_with_its_position() {
        let parameters = [Parameter::Integer(1), Parameter::Text("a\0b".to_owned())];
        insta::assert_snapshot!(BoundParameter::bind_all(&parameters).unwrap_err(), @r"
        a parameter cannot be bound
        - $2: the text holds a NUL character, which PostgreSQL cannot store or compare
        ");
    }

    proptest::proptest! {
        #[test]
        fn floats_read_back_the_same(bits: u64) {
            let float = f64::from_bits(bits);
            let back: f64 = written(&Parameter::Float(float)).unwrap().parse().unwrap();
            proptest::prop_assert!(back.to_bits() == bits || back.is_nan() && float.is_nan());
        }
    }
}
