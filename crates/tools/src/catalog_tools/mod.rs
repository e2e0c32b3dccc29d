//! Tools that describe the catalogs of databases, for discovery. `list_databases` is here, the others have files of
//! their own.

pub(crate) mod get_schema;
mod knowledge;
pub(crate) mod list_tables;
mod profile;

use std::sync::Arc;

use futures::future::join_all;
use tidegate_core::{Error, Principal, shorten};
use tidegate_query::{Catalog, Database, Databases, KnowledgeLayers, QueryRows, TableStatus};
use tidegate_runtime::{Answer, Job, RunningCall, Tool};

use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::tool_services::ToolServices;
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) use self::get_schema::{fetch_examples, read_first_rows};
pub(crate) use self::knowledge::{KnowledgeText, find_measure};

pub(crate) struct DatabaseListing {
    pub(crate) database: Arc<dyn Database>,
    /// The tables, with their descriptions in place of comments.
    pub(crate) catalog: Result<Arc<Catalog>, Error>,
    pub(crate) knowledge: KnowledgeLayers,
}

/// The database of that name, or all by name. If one is unavailable, only its own listing contains the error.
pub(crate) async fn list_catalogs(
    databases: &Databases,
    name: Option<&str>,
    principal: &Principal,
) -> Result<Vec<DatabaseListing>, Error> {
    let chosen: Vec<Arc<dyn Database>> = match name {
        Some(_) => vec![databases.get(name, principal)?.clone()],
        None => databases.visible_to(principal).cloned().collect(),
    };
    Ok(join_all(chosen.into_iter().map(|database| async move {
        let (catalog, knowledge) = (database.catalog(principal).await, databases.knowledge(&*database).await);
        let catalog = catalog.map(|catalog| knowledge.describe_catalog(catalog));
        DatabaseListing { database, catalog, knowledge }
    }))
    .await)
}

/// Reports the errors of catalogs to the log, for an answer that contains their messages.
fn report_errors(found: &[DatabaseListing], job: &Job) {
    found.iter().filter_map(|listing| listing.catalog.as_ref().err()).for_each(|error| job.report_error_detail(error));
}

pub(crate) fn list_databases_tool(services: &Arc<ToolServices>) -> Tool {
    read_only_tool(
        "list_databases",
        "List databases",
        "Databases of this server with kind, SQL dialect, number of tables and status. Start here.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(services, handle_list_databases),
    )
}

async fn handle_list_databases(services: Arc<ToolServices>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let found = services.list_databases(None, &call).await?;
    report_errors(&found, &call);
    let output_options = shape.output_options("Call list_tables with one database.")?;
    Ok(services.executor.answer_rows(listings_as_rows(&found)?, output_options))
}

fn listings_as_rows(found: &[DatabaseListing]) -> Result<QueryRows, Error> {
    let tables = |listing: &DatabaseListing| listing.catalog.as_ref().ok().map(|catalog| catalog.tables.len() as u64);
    let listed = TableBuilder::new()
        .with_column("name", text_column(found.iter().map(|listing| Some(listing.database.name().to_owned()))))
        .with_column("kind", text_column(found.iter().map(|listing| Some(listing.database.kind().name().to_owned()))))
        .with_column(
            "dialect",
            text_column(found.iter().map(|listing| Some(listing.database.dialect().name().to_owned()))),
        )
        .with_column("tables", count_column(found.iter().map(tables)))
        .with_column("status", text_column(found.iter().map(|listing| Some(listing_status(listing)))));
    if !found.iter().any(|listing| first_note(listing).is_some()) {
        return listed.into_rows();
    }
    listed.with_column("notes", text_column(found.iter().map(first_note))).into_rows()
}

/// Characters of a note in a list of databases.
const NOTE_CHARACTERS_MAX: usize = 200;

/// The first line of what people wrote about a database, without the marks of a heading.
pub(crate) fn first_line(notes: &str) -> Option<String> {
    let line = notes.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    Some(shorten(line.to_owned(), NOTE_CHARACTERS_MAX))
}

fn first_note(listing: &DatabaseListing) -> Option<String> {
    listing.knowledge.layers().find_map(|layer| first_line(layer.notes.as_deref()?))
}

fn listing_status(listing: &DatabaseListing) -> String {
    match &listing.catalog {
        Err(error) => error.to_string(),
        Ok(catalog) => {
            let unreadable = catalog.tables.iter().filter(|table| table.status != TableStatus::Readable).count();
            match unreadable {
                0 => "ok".to_owned(),
                1 => "1 table cannot be read; see list_tables".to_owned(),
                n => format!("{n} tables cannot be read; see list_tables"),
            }
        }
    }
}
