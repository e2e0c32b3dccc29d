//! `list_databases`: what can be asked on this node.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Error, Handler, Job, Metadata, ReplySender, Tool};
use tidegate_query::{Rows, TableStatus};

use super::{Listing, listings};
use crate::arguments::{Shape, arguments};
use crate::definition::{Input, read_only};
use crate::node::NodeView;
use crate::table::{Table, count, text};

pub(crate) fn tool(node: &Arc<NodeView>) -> Tool {
    read_only(
        "list_databases",
        "List databases",
        "Databases of this node with kind, number of tables and status. Start here.",
        Input::new().with_shape(),
        ListDatabases(node.clone()),
    )
}

struct ListDatabases(Arc<NodeView>);

#[async_trait]
impl Handler for ListDatabases {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let shape: Shape = arguments(&job)?;
        let found = listings(&self.0.databases, None, job.principal()).await?;
        let presentation = shape.presentation("Ask list_tables about one database by its name.")?;
        self.0.executor.answer_rows(rows(&found)?, presentation, &job, &reply).await
    }
}

fn rows(found: &[Listing]) -> Result<Rows, Error> {
    let tables = |listing: &Listing| listing.catalog.as_ref().ok().map(|catalog| catalog.tables.len() as u64);
    Table::new()
        .column("name", text(found.iter().map(|listing| Some(listing.database.name().to_owned()))))
        .column("kind", text(found.iter().map(|listing| Some(listing.database.kind().to_owned()))))
        .column("tables", count(found.iter().map(tables)))
        .column("status", text(found.iter().map(|listing| Some(status(listing)))))
        .rows()
}

fn status(listing: &Listing) -> String {
    match &listing.catalog {
        Err(error) => error.to_string(),
        Ok(catalog) => {
            let unreadable = catalog.tables.iter().filter(|table| table.status != TableStatus::Readable).count();
            match unreadable {
                0 => "ok".to_owned(),
                1 => "1 table cannot be read; list_tables says why".to_owned(),
                n => format!("{n} tables cannot be read; list_tables says why"),
            }
        }
    }
}
