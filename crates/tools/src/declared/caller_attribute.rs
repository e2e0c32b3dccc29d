//! Attributes of the caller in the SQL of a declared entry: `:caller.subject`, `:caller.tenant`, `:caller.claims.NAME`.

use serde_json::Value;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_sql::{Parameter, TemplateValue};

/// Whether `path` names an attribute.
pub(super) fn check_path(path: &[String]) -> Result<(), Error> {
    match path {
        [name] if name == "subject" || name == "tenant" => Ok(()),
        [name, _, ..] if name == "claims" => Ok(()),
        path => {
            let message = format!("the SQL uses :caller.{}, which is no attribute of the caller", path.join("."));
            Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Write :caller.subject, :caller.tenant or :caller.claims.NAME."))
        }
    }
}

/// The value of the attribute at `path`; `Forbidden` for a caller that does not have it.
pub(super) fn bind(path: &[String], principal: &Principal) -> Result<TemplateValue, Error> {
    let value = match path {
        [name] if name == "subject" => Some(Value::from(principal.subject.as_str())),
        [name] if name == "tenant" => principal.tenant.as_deref().map(Value::from),
        [name, first, further @ ..] if name == "claims" => {
            let claim = principal.claims.get(first);
            claim.and_then(|claim| further.iter().try_fold(claim, |value, name| value.get(name))).cloned()
        }
        _ => None,
    };
    let values = match value {
        None | Some(Value::Null) => return Err(missing_error(path)),
        Some(Value::Array(values)) if values.is_empty() => return Err(missing_error(path)),
        Some(Value::Array(values)) => values,
        Some(single) => vec![single],
    };
    let values = values.iter().map(Parameter::from_json_or_reason).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|reason| {
        let message = format!("{} of the caller cannot be used: {reason}", describe(path));
        Error::new(ErrorKind::Forbidden, message)
    })?;
    Ok(TemplateValue::CallerAttribute(values))
}

fn missing_error(path: &[String]) -> Error {
    let subject = describe(path);
    Error::new(ErrorKind::Forbidden, format!("this tool or resource needs {subject} of the caller, and you have none"))
        .with_hint("Call with credentials that carry it. It cannot be passed as an argument.")
}

fn describe(path: &[String]) -> String {
    match path {
        [name, path @ ..] if name == "claims" => format!("the claim {}", path.join(".")),
        path => format!("the {}", path.join(".")),
    }
}
