//! Typed variables of a declared resource's URI.

use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, JsonSchema};
use tidegate_runtime::Job;

use super::DeclarationProblem;
use super::input::{DeclaredInput, InputKind, ScalarType, object_schema};

#[derive(Debug)]
pub(super) struct TypedUriVariables {
    inputs: Vec<DeclaredInput>,
    schema: JsonSchema,
}

impl TypedUriVariables {
    /// The variables `names`, declared by `inputs`; text by default.
    pub(super) fn new(names: &[String], mut inputs: Vec<DeclaredInput>) -> Result<Self, Vec<DeclarationProblem>> {
        let problem = |at: String, message: String| {
            let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(names.iter().cloned());
            vec![DeclarationProblem::new(at, error)]
        };
        if let Some(input) = inputs.iter().find(|input| !names.contains(&input.name)) {
            let message = format!("{} is not a variable of the URI; a resource has no other parameters", input.name);
            return Err(problem(format!("input.{}", input.name), message));
        }
        if let Some(input) = inputs.iter().find(|input| input.ask.is_some()) {
            let message = format!("{} is part of the URI and always has a value; only tools support ask", input.name);
            let error = Error::new(ErrorKind::InvalidArguments, message);
            return Err(vec![DeclarationProblem::new(format!("input.{}.ask", input.name), error)]);
        }
        let is_untyped = |name: &&String| inputs.iter().all(|input| input.name != **name);
        let untyped: Vec<DeclaredInput> = names
            .iter()
            .filter(is_untyped)
            .map(|name| DeclaredInput::new(name.clone(), InputKind::Scalar(ScalarType::String)))
            .collect();
        inputs.extend(untyped);
        let schema = JsonSchema::object(object_schema(&inputs, Map::new()));
        let schema = schema.map_err(|error| problem("input".to_owned(), error.to_string()))?;
        Ok(Self { inputs, schema })
    }

    pub(super) fn inputs(&self) -> &[DeclaredInput] {
        &self.inputs
    }

    /// The values in the URI that `job` reads, checked like the arguments of a tool.
    pub(super) fn parse_from_job(&self, job: &Job) -> Result<Map<String, Value>, Error> {
        self.parse_values(|name| job.variable(name).unwrap_or_default().to_owned())
    }

    pub(super) fn parse_values(&self, text: impl Fn(&str) -> String) -> Result<Map<String, Value>, Error> {
        let mut values = Map::new();
        for input in &self.inputs {
            values.insert(input.name.clone(), parse_value(input, &text(&input.name))?);
        }
        let values = Value::Object(values);
        self.schema
            .check(&values)
            .map_err(|violations| Error::invalid_arguments("the variables of the URI are invalid:", violations))?;
        match values {
            Value::Object(values) => Ok(values),
            _ => Ok(Map::new()),
        }
    }
}

fn parse_value(input: &DeclaredInput, text: &str) -> Result<Value, Error> {
    match &input.kind {
        InputKind::Scalar(scalar) => parse_scalar(*scalar, &input.name, text),
        InputKind::List(scalar) => text.split(',').map(|item| parse_scalar(*scalar, &input.name, item)).collect(),
        InputKind::Identifier(_) => Ok(Value::from(text)),
    }
}

fn parse_scalar(scalar: ScalarType, name: &str, text: &str) -> Result<Value, Error> {
    let expected = |subject: &str| {
        let message = format!("{name} is {text:?} in the URI; expected {subject}");
        Err(Error::new(ErrorKind::InvalidArguments, message))
    };
    match scalar {
        ScalarType::Integer => text.parse::<i64>().map(Value::from).or_else(|_| expected("a whole number")),
        ScalarType::Number => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::from(number)),
            _ => expected("a number"),
        },
        ScalarType::Boolean => text.parse::<bool>().map(Value::from).or_else(|_| expected("true or false")),
        ScalarType::String | ScalarType::Date | ScalarType::Timestamp => Ok(Value::from(text)),
    }
}
