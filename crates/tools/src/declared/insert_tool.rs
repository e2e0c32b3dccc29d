//! A declared tool that adds one row to a table that takes rows.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Access, Error, ErrorKind, Principal, PrincipalRule, nearest_names};
use tidegate_query::IngestTarget;
use tidegate_runtime::{Handler, Job, Metadata, ReplySender, Tool, ToolAnnotations};

use super::confirmation::Confirmation;
use super::elicited_parameters::ElicitedParameters;
use super::input::DeclaredInput;
use super::{DeclarationProblem, DeclaredTool};
use crate::ingest_tools::{IngestContext, IngestToolOptions, insert_row};

const INSERT_INTO: &str = "insert_into";

/// The table that a declared tool adds a row to. Each parameter is a column.
#[derive(Debug, Clone, Default)]
pub struct DeclaredInsert {
    /// The table with its database: `database.table`.
    pub table: String,
}

impl DeclaredTool<DeclaredInsert> {
    /// Builds the tool, which writes to one of `targets`. Callers have it only if they may write to the table.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub async fn prepare(
        self,
        targets: &[Arc<dyn IngestTarget>],
        options: IngestToolOptions,
    ) -> Result<Tool, Vec<DeclarationProblem>> {
        let (elicited, confirmation) = self.elicitation(false)?;
        let (target, table) = find_table(&self.action.table, targets).map_err(|error| problem(INSERT_INTO, error))?;
        let found = target.table(&table).await.map_err(|error| problem(INSERT_INTO, error))?;
        if let Some(schema) = &found.schema {
            let columns = schema.fields().iter().map(|field| field.name().as_str());
            let stamped = |name: &str| found.stamps.iter().any(|stamp| stamp.column == name);
            self.check(&columns.filter(|name| !stamped(name)).collect::<Vec<_>>())?;
        } else {
            self.check(&[])?;
        }
        let (database, table) = (target.database().to_owned(), found.name);
        let access = restrict(self.access.clone(), &options, &database, &table);
        let annotations = ToolAnnotations {
            read_only: Some(false),
            destructive: self.annotations.destructive.or(Some(false)),
            open_world: self.annotations.open_world.or(Some(false)),
            idempotent: self.annotations.idempotent.or(Some(false)),
        };
        let context = Arc::new(IngestContext::new(vec![target.clone()], options));
        let inputs = self.inputs.clone();
        let handler = InsertToolHandler { context, database, table, inputs, elicited, confirmation };
        Self { access, ..self }.into_tool(Arc::new(handler), annotations, Map::new())
    }

    /// Checks the declaration without the table. Each parameter must be one of `columns`, unless these are not known and
    /// there are none.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn check(&self, columns: &[&str]) -> Result<(), Vec<DeclarationProblem>> {
        self.output.reject_row_options("a tool with insert_into")?;
        if columns.is_empty() {
            return Ok(());
        }
        let unknown = self.inputs.iter().filter(|input| !columns.contains(&input.name.as_str()));
        let problems: Vec<DeclarationProblem> = unknown
            .map(|input| {
                let near = nearest_names(&input.name, columns.iter().copied());
                let all = || columns.iter().map(|name| (*name).to_owned()).collect();
                let choices = if near.is_empty() { all() } else { near };
                let message = "is no column of the table that can be written; each parameter is a column";
                let error = Error::new(ErrorKind::InvalidArguments, message).with_choices(choices);
                DeclarationProblem::new(format!("input.{}", input.name), error)
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

struct InsertToolHandler {
    context: Arc<IngestContext>,
    database: String,
    table: String,
    inputs: Vec<DeclaredInput>,
    elicited: ElicitedParameters,
    confirmation: Option<Confirmation>,
}

#[async_trait]
impl Handler for InsertToolHandler {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let destination = self.context.destination(&self.database, &self.table, job.principal()).await?;
        let arguments = self.elicited.complete(&job, &reply).await?;
        if let Some(confirmation) = &self.confirmation {
            confirmation.request(&arguments, None, &reply).await?;
        }
        let values = self.inputs.iter().map(|input| (input.name.clone(), input.value(&arguments).clone()));
        // A column without a value has its default, where it has one.
        let row: Map<String, Value> = values.filter(|(_, value)| !value.is_null()).collect();
        insert_row(&self.context, &destination, row, &job, &reply).await
    }
}

/// The target and the name of the table in it. The names of databases may contain dots.
fn find_table<'a>(
    name: &str,
    targets: &'a [Arc<dyn IngestTarget>],
) -> Result<(&'a Arc<dyn IngestTarget>, String), Error> {
    let tables = targets.iter().filter_map(|target| {
        let table = name.strip_prefix(target.database())?.strip_prefix('.').filter(|table| !table.is_empty())?;
        Some((target, table.to_owned()))
    });
    tables.max_by_key(|(target, _)| target.database().len()).ok_or_else(|| {
        let databases: Vec<&str> = targets.iter().map(|target| target.database()).collect();
        let known = match databases.is_empty() {
            true => "none takes rows in this process".to_owned(),
            false => format!("there are {}", databases.join(", ")),
        };
        let message = format!("{name:?} is no table of a database that takes rows ({known}); write database.table");
        Error::new(ErrorKind::InvalidArguments, message)
    })
}

fn restrict(access: Access, options: &IngestToolOptions, database: &str, table: &str) -> Access {
    let (database_name, table) = (database.to_owned(), table.to_owned());
    let may_write = move |principal: &Principal| principal.grants.may_ingest(&database_name, &table);
    let access = Access { principal_rule: Some(PrincipalRule::new(may_write)), ..access };
    options.tenancy.restrict(database, access)
}

fn problem(path: &str, error: Error) -> Vec<DeclarationProblem> {
    vec![DeclarationProblem::new(path, error)]
}
