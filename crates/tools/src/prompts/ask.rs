//! `ask`: a plain-language question about a database.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Content, ContentRole, Error};
use tidegate_runtime::{Handler, Job, Metadata, Prompt, PromptArgument, ReplySender};

use super::{database_argument, describe_database};
use crate::arguments::parse_arguments;
use crate::name_completer::NameCompleter;
use crate::node_view::NodeView;

pub(crate) fn prompt(node: &Arc<NodeView>) -> Prompt {
    let mut prompt = Prompt::new(
        "ask",
        "Ask a question in plain words; the answer comes with the query that gave it.",
        Arc::new(AskPrompt(node.clone())),
    );
    prompt.title = Some("Ask a question".to_owned());
    let question = PromptArgument {
        name: "question".to_owned(),
        title: Some("Question".to_owned()),
        description: Some("What you want to know".to_owned()),
        required: true,
    };
    prompt.arguments = vec![question, database_argument()];
    prompt.completer = Some(Arc::new(NameCompleter(node.clone())));
    prompt
}

struct AskPrompt(Arc<NodeView>);

#[derive(serde::Deserialize)]
struct Arguments {
    question: String,
    database: Option<String>,
}

#[async_trait]
impl Handler for AskPrompt {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let Arguments { question, database } = parse_arguments(&job)?;
        let database = self.0.databases.get(database.as_deref(), job.principal())?;
        let text = format!(
            "{question}\n\n\
             Answer this from the database {:?}, which uses {}. These are its tables and columns:\n\n{}\n\
             If a column's values matter for the question, look at them first with get_schema (samples=5). Let the \
             database filter and aggregate, with query or sql, and check that the result is plausible. Give the answer \
             first, then the query that gave it, then what it leaves out (nulls, missing rows, assumptions).",
            database.name(),
            database.dialect().name(),
            describe_database(&**database, &job).await?,
        );
        reply.send_prompt_message(ContentRole::User, Content::text(text)).await?;
        Ok(Metadata::new())
    }
}
