//! Prompts for people. They include table and column names, so that the model need not look them up.

mod database_description;
pub(crate) mod explain_slow_query;
pub(crate) mod investigate;
pub(crate) mod summarise_table;

use std::sync::Arc;

use serde::Deserialize;
use tidegate_core::{Content, ContentRole, Error};
use tidegate_runtime::{Answer, Job, Prompt, PromptArgument};

use self::database_description::{describe_database, describe_tables};
use crate::arguments::parse_arguments;
use crate::table_names::NameCompleter;
use crate::tool_context::ToolContext;
use crate::tool_definition::context_handler;

fn text_prompt<F, Fut>(
    node: &Arc<ToolContext>,
    name: &str,
    title: &str,
    description: &str,
    arguments: Vec<PromptArgument>,
    render: F,
) -> Prompt
where
    F: Fn(Arc<ToolContext>, Arc<Job>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Error>> + Send + 'static,
{
    let handler = context_handler(node, move |node, call| {
        let text = render(node, call.job().clone());
        async move { Ok(Answer::messages(vec![(ContentRole::User, Content::text(text.await?))])) }
    });
    let mut prompt = Prompt::new(name, description, handler);
    prompt.title = Some(title.to_owned());
    prompt.arguments = arguments;
    prompt.completer = Some(Arc::new(NameCompleter(node.clone())));
    prompt
}

fn argument(name: &str, title: &str, description: &str, required: bool) -> PromptArgument {
    PromptArgument {
        name: name.to_owned(),
        title: Some(title.to_owned()),
        description: Some(description.to_owned()),
        required,
    }
}

fn database_argument() -> PromptArgument {
    argument("database", "Database", "The database; optional when there is only one", false)
}

/// `explore`: an introduction to a database.
pub(crate) fn explore(node: &Arc<ToolContext>) -> Prompt {
    text_prompt(
        node,
        "explore",
        "Explore a database",
        "Get to know a database: what its tables hold, how they join, what can be asked.",
        vec![database_argument()],
        render_explore,
    )
}

#[derive(Deserialize)]
struct ExploreArguments {
    database: Option<String>,
}

async fn render_explore(node: Arc<ToolContext>, job: Arc<Job>) -> Result<String, Error> {
    let ExploreArguments { database } = parse_arguments(&job)?;
    let database = node.databases.get(database.as_deref(), job.principal())?;
    Ok(format!(
        "Help me get to know the database {:?}, which uses {}. These are its tables and columns:\n\n{}\n\
         Look at the most important tables with get_schema (samples=3) and at a few aggregates with query. Then tell \
         me briefly what each table holds, over which columns they join, which period or scope the data covers, what \
         is missing or odd in it, and five questions that it can answer well.",
        database.name(),
        database.dialect().name(),
        describe_database(&**database, &job).await?,
    ))
}

/// `ask`: a plain-language question about a database.
pub(crate) fn ask(node: &Arc<ToolContext>) -> Prompt {
    text_prompt(
        node,
        "ask",
        "Ask a question",
        "Ask a question in plain words; the answer comes with the query that gave it.",
        vec![argument("question", "Question", "What you want to know", true), database_argument()],
        render_ask,
    )
}

#[derive(Deserialize)]
struct AskArguments {
    question: String,
    database: Option<String>,
}

async fn render_ask(node: Arc<ToolContext>, job: Arc<Job>) -> Result<String, Error> {
    let AskArguments { question, database } = parse_arguments(&job)?;
    let database = node.databases.get(database.as_deref(), job.principal())?;
    Ok(format!(
        "{question}\n\n\
         Answer this from the database {:?}, which uses {}. These are its tables and columns:\n\n{}\n\
         If a column's values matter for the question, look at them first with get_schema (samples=5). Let the \
         database filter and aggregate, with query or sql, and check that the result is plausible. Give the answer \
         first, then the query that gave it, then what it leaves out (nulls, missing rows, assumptions).",
        database.name(),
        database.dialect().name(),
        describe_database(&**database, &job).await?,
    ))
}
