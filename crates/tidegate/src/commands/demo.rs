//! `tidegate demo`: something real to ask at once.

use clap::Args;

use super::serve::{HttpArguments, StartupHelp, serve};
use crate::command_error::CommandError;
use crate::demo_data::{DEMO_DATABASE, DemoData};
use crate::options::GlobalOptions;
use crate::source::DatabaseSource;

/// Serve all flights that left New York City in 2013, with weather, planes, airports and airlines
#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    #[command(flatten)]
    http: HttpArguments,
}

impl DemoCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let data = DemoData::write()?;
        let source = DatabaseSource::with_name(DEMO_DATABASE, data.path());
        serve(&[source], &self.http, StartupHelp::ConnectionAndExampleQuestions, options).await
    }
}
