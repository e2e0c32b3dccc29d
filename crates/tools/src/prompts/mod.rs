//! Prompts for people. They include table and column names, so that the model need not look them up.

pub(crate) mod ask;
pub(crate) mod explain_slow_query;
pub(crate) mod explore;
mod overview;
pub(crate) mod summarise_table;

use overview::{describe_database, describe_tables};
use tidegate_runtime::PromptArgument;

fn database_argument() -> PromptArgument {
    PromptArgument {
        name: "database".to_owned(),
        title: Some("Database".to_owned()),
        description: Some("The database; optional when there is only one".to_owned()),
        required: false,
    }
}
