//! `explain_slow_query`: why a query is slow, and how to fix it.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Content, ContentRole, Error};
use tidegate_query::Database;
use tidegate_runtime::{Handler, Job, Metadata, Prompt, PromptArgument, ReplySender};
use tidegate_sql::Statement;

use super::{database_argument, describe_database, describe_tables};
use crate::arguments::parse_arguments;
use crate::name_completer::NameCompleter;
use crate::node_view::NodeView;
use crate::query_tools::explain;

/// Characters of a plan at most.
const PLAN_CHARACTERS_MAX: usize = 20_000;

pub(crate) fn prompt(node: &Arc<NodeView>) -> Prompt {
    let mut prompt = Prompt::new(
        "explain_slow_query",
        "Find out why a query is slow and how to fix it; includes its plan and tables.",
        Arc::new(ExplainSlowQuery(node.clone())),
    );
    prompt.title = Some("Explain a slow query".to_owned());
    let sql = PromptArgument {
        name: "sql".to_owned(),
        title: Some("SQL".to_owned()),
        description: Some("The query; it is planned and not run".to_owned()),
        required: true,
    };
    prompt.arguments = vec![sql, database_argument()];
    prompt.completer = Some(Arc::new(NameCompleter(node.clone())));
    prompt
}

struct ExplainSlowQuery(Arc<NodeView>);

#[derive(serde::Deserialize)]
struct Arguments {
    sql: String,
    database: Option<String>,
}

#[async_trait]
impl Handler for ExplainSlowQuery {
    async fn handle(&self, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
        let Arguments { sql, database } = parse_arguments(&job)?;
        let database = self.0.databases.get(database.as_deref(), job.principal())?;
        let (plan, tables) = match self.0.statement(&sql, &[], database.dialect()) {
            Ok(statement) => (
                describe_plan(&**database, &statement, &job).await,
                describe_tables(&**database, statement.tables(), &job).await?,
            ),
            Err(error) => (missing_plan_text(&error), describe_database(&**database, &job).await?),
        };
        let text = format!(
            "This query of the database {:?}, which uses {}, is slow:\n\n{sql}\n\n{plan}\n\n\
             These are the tables and columns:\n\n{tables}\n\
             Say which steps of the plan cost most and why: rows that are read and not needed, large inputs that are \
             sorted or joined, conditions without an index to use. Then give the query as it answers the \
             same with less work, having compared the plans with explain, and say what the database's owner could do \
             besides. Do not run the slow query itself.",
            database.name(),
            database.dialect().name(),
        );
        reply.send_prompt_message(ContentRole::User, Content::text(text)).await?;
        Ok(Metadata::new())
    }
}

/// The plan, or the error of planning, which the model can explain as well.
async fn describe_plan(database: &dyn Database, statement: &Statement, job: &Job) -> String {
    let planned = match database.plan(statement, job.principal()).await {
        Ok(plan) => explain::describe_plan(statement, &*plan).await,
        Err(error) => Err(error),
    };
    match planned {
        Ok(plan) => match plan.char_indices().nth(PLAN_CHARACTERS_MAX) {
            Some((end, _)) => format!("Its plan:\n\n{}…", &plan[..end]),
            None => format!("Its plan:\n\n{plan}"),
        },
        Err(error) => missing_plan_text(&error),
    }
}

fn missing_plan_text(error: &Error) -> String {
    format!("It cannot be planned: {error}")
}
