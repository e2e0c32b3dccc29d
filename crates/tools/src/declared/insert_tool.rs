//! A declared tool that adds one row to a table that takes rows.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_core::{Access, Error, ErrorKind, Principal, PrincipalRule, nearest_names};
use tidegate_query::{IngestTable, IngestTarget};
use tidegate_runtime::{Answer, Handler, RunningCall, Tool, ToolAnnotations};

use super::confirmation::Confirmation;
use super::elicited_parameters::ElicitedParameters;
use super::input::DeclaredInput;
use super::{DeclarationProblem, DeclaredTool};
use crate::ingest_tools::{IngestContext, IngestToolOptions, insert_row};

/// A declared tool that adds a row to a table. Each parameter is a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeclaredInsert;

impl DeclaredTool<DeclaredInsert> {
    /// Builds the tool, which writes to `table` of `target`, as far as it is `known`. Callers have it only if they may write
    /// to the table.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn prepare(
        self,
        target: Arc<dyn IngestTarget>,
        table: &str,
        known: Option<&IngestTable>,
        options: IngestToolOptions,
    ) -> Result<Tool, Vec<DeclarationProblem>> {
        self.check(known)?;
        let (elicited, confirmation) = self.elicitation(false)?;
        let table = known.map_or(table, |known| known.name.as_str()).to_owned();
        let access = restrict(self.access.clone(), &options, target.database(), &table);
        let annotations = ToolAnnotations {
            read_only: Some(false),
            destructive: self.annotations.destructive.or(Some(false)),
            open_world: self.annotations.open_world.or(Some(false)),
            idempotent: self.annotations.idempotent.or(Some(false)),
        };
        let (database, inputs) = (target.database().to_owned(), self.inputs.clone());
        let context = Arc::new(IngestContext::new(vec![target], options));
        let handler = InsertToolHandler { context, database, table, inputs, elicited, confirmation };
        Self { access, ..self }.into_tool(Arc::new(handler), annotations, Map::new())
    }

    /// Checks the declaration for a table that is `known`, or for any.
    ///
    /// # Errors
    /// All errors of the declaration.
    pub fn check(&self, known: Option<&IngestTable>) -> Result<(), Vec<DeclarationProblem>> {
        self.elicitation(false)?;
        self.output.reject_row_options("a tool with insert_into")?;
        let Some(IngestTable { schema: Some(schema), stamps, .. }) = known else { return Ok(()) };
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let columns: Vec<&str> = names.filter(|name| stamps.iter().all(|stamp| stamp.column != *name)).collect();
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
    async fn handle(&self, call: RunningCall) -> Result<Answer, Error> {
        let destination = self.context.destination(&self.database, &self.table, call.principal()).await?;
        let arguments = self.elicited.complete(&call).await?;
        if let Some(confirmation) = &self.confirmation {
            confirmation.request(&arguments, None, &call).await?;
        }
        let values = self.inputs.iter().map(|input| (input.name.clone(), input.value(&arguments).clone()));
        // A column without a value has its default, where it has one.
        let row: Map<String, Value> = values.filter(|(_, value)| !value.is_null()).collect();
        insert_row(&self.context, &destination, row, call.job()).await
    }
}

fn restrict(access: Access, options: &IngestToolOptions, database: &str, table: &str) -> Access {
    let (database_name, table) = (database.to_owned(), table.to_owned());
    let may_write = move |principal: &Principal| principal.grants.may_ingest(&database_name, &table);
    let access = Access { principal_rule: Some(PrincipalRule::new(may_write)), ..access };
    options.tenancy.restrict(database, access)
}
