//! `explore`: an introduction to a database.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Content, ContentRole, Error};
use tidegate_runtime::{Handler, Job, Metadata, Prompt, ReplySender};

use super::{database_argument, describe_database};
use crate::arguments::parse_arguments;
use crate::name_completer::NameCompleter;
use crate::node_view::NodeView;

pub(crate) fn prompt(node: &Arc<NodeView>) -> Prompt {
    let mut prompt = Prompt::new(
        "explore",
        "Get to know a database: what its tables hold, how they join, what can be asked.",
        Arc::new(Explore(node.clone())),
    );
    prompt.title = Some("Explore a database".to_owned());
    prompt.arguments = vec![database_argument()];
    prompt.completer = Some(Arc::new(NameCompleter(node.clone())));
    prompt
}

struct Explore(Arc<NodeView>);

#[derive(serde::Deserialize)]
struct Arguments {
    database: Option<String>,
}

#[async_trait]
impl Handler for Explore {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let Arguments { database } = parse_arguments(&job)?;
        let database = self.0.databases.get(database.as_deref(), job.principal())?;
        let text = format!(
            "Help me get to know the database {:?}, which uses {}. These are its tables and columns:\n\n{}\n\
             Look at the most important tables with get_schema (samples=3) and at a few aggregates with query. Then \
             tell me briefly what each table holds, over which columns they join, which period or scope the data \
             covers, what is missing or odd in it, and five questions that it can answer well.",
            database.name(),
            database.dialect().name(),
            describe_database(&**database, &job).await?,
        );
        reply.send_prompt_message(ContentRole::User, Content::text(text)).await?;
        Ok(Metadata::new())
    }
}
