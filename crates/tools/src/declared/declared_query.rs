//! SQL with typed parameters on one database, for declared tools and resources. It may have attributes of the caller:
//! `:caller.subject`, `:caller.tenant`, `:caller.claims.NAME`.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::Database;
use tidegate_sql::{
    Parameter, SqlDialect, SqlTemplate, Statement, StatementCache, TemplateName, TemplateValue, Transaction,
};

use super::DeclarationProblem;
use super::input::DeclaredInput;
use crate::tool_services::ToolServices;

#[derive(Clone)]
pub(super) struct DeclaredQuery {
    pub(super) database: Arc<dyn Database>,
    template: SqlTemplate,
    inputs: Vec<DeclaredInput>,
    transaction: Arc<Transaction>,
}

impl DeclaredQuery {
    pub(super) fn parse(
        services: &ToolServices,
        database: Option<&str>,
        sql: &str,
        inputs: Vec<DeclaredInput>,
    ) -> Result<Self, Vec<DeclarationProblem>> {
        let owner = Principal::process_user();
        let database = services
            .databases
            .get(database, &owner)
            .map_err(|error| vec![DeclarationProblem::new("database", error)])?;
        let template =
            SqlTemplate::parse(sql, database.dialect()).map_err(|error| vec![DeclarationProblem::new("sql", error)])?;
        let problems = check_parameters(&template, &inputs);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { database: database.clone(), template, inputs, transaction: Transaction::read_only() })
    }

    pub(super) fn in_transaction(self, transaction: Arc<Transaction>) -> Result<Self, Vec<DeclarationProblem>> {
        if transaction.writes && !self.database.dialect().can_write() {
            let message = format!("the database {} is read-only", self.database.name());
            return Err(vec![DeclarationProblem::new(
                "transaction.writes",
                Error::new(ErrorKind::InvalidArguments, message),
            )]);
        }
        Ok(Self { transaction, ..self })
    }

    pub(super) fn writes(&self) -> bool {
        self.transaction.writes
    }

    /// The statement for `arguments` of `principal`. The arguments are already checked against the schema of the inputs.
    pub(super) fn bind_statement(
        &self,
        arguments: &Map<String, Value>,
        principal: &Principal,
        statements: &StatementCache,
    ) -> Result<Statement, Error> {
        let attribute = |path: &[String]| bind(path, principal);
        self.bind_values(|input| input.value(arguments).clone(), attribute, statements)
    }

    /// Plans the statement with sample values. Returns its columns; `None` if they depend on the identifiers.
    pub(super) async fn prepare(&self, statements: &StatementCache) -> Result<Option<SchemaRef>, Error> {
        let first = |input: &DeclaredInput| input.sample_values().into_iter().next().unwrap_or(Value::Null);
        let mut schema = Some(self.describe_with(first, statements).await?);
        for chosen in &self.inputs {
            for sample in chosen.sample_values().into_iter().skip(1) {
                let pick =
                    |input: &DeclaredInput| if input.name == chosen.name { sample.clone() } else { first(input) };
                let other = self.describe_with(pick, statements).await?;
                schema = schema.filter(|schema| *schema == other);
            }
        }
        Ok(schema)
    }

    async fn describe_with(
        &self,
        value: impl Fn(&DeclaredInput) -> Value,
        statements: &StatementCache,
    ) -> Result<SchemaRef, Error> {
        let null = |_: &[String]| Ok(TemplateValue::CallerAttribute(Vec::new()));
        let statement = self.bind_values(value, null, statements)?;
        self.database.describe(&statement, &Principal::process_user()).await
    }

    fn bind_values(
        &self,
        value: impl Fn(&DeclaredInput) -> Value,
        attribute: impl Fn(&[String]) -> Result<TemplateValue, Error>,
        statements: &StatementCache,
    ) -> Result<Statement, Error> {
        let dialect = self.database.dialect();
        let filled = self.template.fill(|name| match name {
            TemplateName::Parameter(name) => {
                let input = self.inputs.iter().find(|input| input.name == *name);
                let input = input.ok_or_else(|| Error::internal(format!("the parameter {name} is not declared")))?;
                input.bind(&value(input), dialect)
            }
            TemplateName::CallerAttribute(path) => attribute(path),
        })?;
        let statement = match dialect {
            SqlDialect::DataFusion => statements.parse(&filled.sql, dialect)?.with_parameters(filled.parameters)?,
            SqlDialect::Postgres | SqlDialect::Sqlite | SqlDialect::MySql => {
                Statement::from_owner(filled.sql, filled.parameters, dialect)
            }
        };
        Ok(statement.in_transaction(self.transaction.clone()))
    }
}

fn check_parameters(template: &SqlTemplate, inputs: &[DeclaredInput]) -> Vec<DeclarationProblem> {
    let invalid = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    let declared: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let names = template.names();
    let undeclared = names.iter().filter(|name| !declared.iter().any(|other| other == *name)).map(|name| {
        let error = invalid(format!("the SQL uses :{name}, which is not declared under input"));
        DeclarationProblem::new("sql", error.with_choices(declared.clone()))
    });
    let unused = declared.iter().filter(|name| !names.contains(name.as_str())).map(|name| {
        let error = invalid(format!("the SQL does not use {name}; write it as :{name}, or remove it"));
        DeclarationProblem::new(format!("input.{name}"), error)
    });
    let attributes = template.caller_attributes().filter_map(|path| check_path(path).err());
    let attributes = attributes.map(|error| DeclarationProblem::new("sql", error));
    undeclared.chain(unused).chain(attributes).collect()
}

/// Whether `path` names an attribute.
fn check_path(path: &[String]) -> Result<(), Error> {
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
