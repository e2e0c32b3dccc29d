//! `explain_slow_query`: why a query is slow, and how to fix it.

use std::sync::Arc;

use serde::Deserialize;
use tidegate_core::{Error, shorten};
use tidegate_query::Database;
use tidegate_runtime::{Job, Prompt};
use tidegate_sql::Statement;

use super::{argument, database_argument, describe_database, describe_tables, text_prompt};
use crate::arguments::parse_arguments;
use crate::query_tools;
use crate::tool_context::ToolContext;

const PLAN_CHARACTERS_MAX: usize = 20_000;

pub(crate) fn prompt(node: &Arc<ToolContext>) -> Prompt {
    text_prompt(
        node,
        "explain_slow_query",
        "Explain a slow query",
        "Find out why a query is slow and how to fix it; includes its plan and tables.",
        vec![argument("sql", "SQL", "The query; it is planned and not run", true), database_argument()],
        render,
    )
}

#[derive(Deserialize)]
struct Arguments {
    sql: String,
    database: Option<String>,
}

async fn render(node: Arc<ToolContext>, job: Arc<Job>) -> Result<String, Error> {
    let Arguments { sql, database } = parse_arguments(&job)?;
    let (database, plan, tables) = match node.resolve_statement(database.as_deref(), &sql, &[], job.principal()).await {
        Ok((database, statement)) => {
            let plan = describe_plan(&*database, &statement, &job).await;
            let tables = describe_tables(&*database, statement.tables(), &job).await?;
            (database, plan, tables)
        }
        Err(error) => {
            let database = node.databases.get(database.as_deref(), job.principal())?.clone();
            let tables = describe_database(&*database, &job).await?;
            (database, missing_plan_text(&error), tables)
        }
    };
    Ok(format!(
        "This query of the database {:?}, which uses {}, is slow:\n\n{sql}\n\n{plan}\n\n\
         These are the tables and columns:\n\n{tables}\n\
         Say which steps of the plan cost most and why: rows that are read and not needed, large inputs that are \
         sorted or joined, conditions without an index to use. Then give the query as it answers the \
         same with less work, having compared the plans with explain, and say what the database's owner could do \
         besides. Do not run the slow query itself.",
        database.name(),
        database.dialect().name(),
    ))
}

/// The plan, or the error of planning, which the model can explain as well.
async fn describe_plan(database: &dyn Database, statement: &Statement, job: &Job) -> String {
    let planned = match database.plan(statement, job.principal()).await {
        Ok(plan) => query_tools::describe_plan(statement, &*plan).await,
        Err(error) => Err(error),
    };
    match planned {
        Ok(plan) => format!("Its plan:\n\n{}", shorten(plan, PLAN_CHARACTERS_MAX)),
        Err(error) => missing_plan_text(&error),
    }
}

fn missing_plan_text(error: &Error) -> String {
    format!("It cannot be planned: {error}")
}
