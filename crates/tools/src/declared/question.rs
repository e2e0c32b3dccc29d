//! SQL with typed parameters on one database, as declared tools and resources ask it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use serde_json::{Map, Value};
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Database, SqlDialect, SqlTemplate, Statement, StatementCache, Transaction};

use super::Problem;
use super::input::Input;
use crate::node::NodeView;

/// SQL with typed parameters on one database.
#[derive(Clone)]
pub(super) struct DeclaredQuestion {
    pub(super) database: Arc<dyn Database>,
    template: SqlTemplate,
    inputs: Vec<Input>,
    transaction: Arc<Transaction>,
}

impl DeclaredQuestion {
    /// Reads the declaration; all that is wrong is told together.
    pub(super) fn read(
        node: &NodeView,
        database: Option<&str>,
        sql: &str,
        inputs: Vec<Input>,
    ) -> Result<Self, Vec<Problem>> {
        let owner = Principal::owner();
        let database = node.databases.get(database, &owner).map_err(|error| vec![Problem::at("database", error)])?;
        let template = SqlTemplate::parse(sql, database.dialect()).map_err(|error| vec![Problem::at("sql", error)])?;
        let problems = unmatched(&template, &inputs);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { database: database.clone(), template, inputs, transaction: Transaction::read_only() })
    }

    /// The question, run in `transaction`.
    pub(super) fn in_transaction(self, transaction: Arc<Transaction>) -> Result<Self, Vec<Problem>> {
        if transaction.writes && self.database.dialect() != SqlDialect::Postgres {
            let message = format!("the database {} can only be read", self.database.name());
            return Err(vec![Problem::at("transaction.writes", Error::new(ErrorKind::InvalidArguments, message))]);
        }
        Ok(Self { transaction, ..self })
    }

    /// Whether the statement may write.
    pub(super) fn writes(&self) -> bool {
        self.transaction.writes
    }

    /// The statement for `arguments`, which have been checked against the schema of the inputs.
    pub(super) fn statement(&self, arguments: &Map<String, Value>, known: &StatementCache) -> Result<Statement, Error> {
        self.filled(|input| input.value(arguments).clone(), known)
    }

    /// Plans the statement with sample values, each identifier that is allowed in turn, and gives the columns of
    /// its answer; none if they depend on the identifiers.
    ///
    /// # Errors
    /// Whatever the database says of the statement.
    pub(super) async fn prepare(&self, known: &StatementCache) -> Result<Option<SchemaRef>, Error> {
        let first = |input: &Input| input.samples().into_iter().next().unwrap_or(Value::Null);
        let mut schema = Some(self.schema_with(first, known).await?);
        for chosen in &self.inputs {
            for sample in chosen.samples().into_iter().skip(1) {
                let pick = |input: &Input| if input.name == chosen.name { sample.clone() } else { first(input) };
                let other = self.schema_with(pick, known).await?;
                schema = schema.filter(|schema| *schema == other);
            }
        }
        Ok(schema)
    }

    async fn schema_with(&self, value: impl Fn(&Input) -> Value, known: &StatementCache) -> Result<SchemaRef, Error> {
        let statement = self.filled(value, known)?;
        self.database.describe(&statement, &Principal::owner()).await
    }

    fn filled(&self, value: impl Fn(&Input) -> Value, known: &StatementCache) -> Result<Statement, Error> {
        let dialect = self.database.dialect();
        let filled = self.template.fill(|name| {
            let input = self.inputs.iter().find(|input| input.name == name);
            let input = input.ok_or_else(|| Error::internal(format!("the parameter {name} was never declared")))?;
            input.filling(&value(input), dialect)
        })?;
        let statement = match dialect {
            SqlDialect::DataFusion => known.parse(&filled.sql, dialect)?.with_parameters(filled.parameters)?,
            SqlDialect::Postgres | SqlDialect::Sqlite => Statement::of_owner(filled.sql, filled.parameters, dialect),
        };
        Ok(statement.in_transaction(self.transaction.clone()))
    }
}

/// Names of the SQL that are not declared, and declared ones that the SQL does not use.
fn unmatched(template: &SqlTemplate, inputs: &[Input]) -> Vec<Problem> {
    let wrong = |message: String| Error::new(ErrorKind::InvalidArguments, message);
    let declared: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let names = template.names();
    let undeclared = names.iter().filter(|name| !declared.iter().any(|other| other == *name)).map(|name| {
        let error = wrong(format!("the SQL uses :{name}, which is not declared under input"));
        Problem::at("sql", error.with_choices(declared.clone()))
    });
    let unused = declared.iter().filter(|name| !names.contains(name.as_str())).map(|name| {
        let error = wrong(format!("the SQL does not use {name}; write it as :{name}, or take it away"));
        Problem::at(format!("input.{name}"), error)
    });
    undeclared.chain(unused).collect()
}
