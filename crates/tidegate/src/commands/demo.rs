//! `tidegate demo`: something real to ask at once.

use clap::Args;

use super::serve::{Help, HttpArguments, serve};
use crate::demo_data::{DATABASE, DemoData};
use crate::failure::Failure;
use crate::options::Options;
use crate::source::Source;

/// Serve all flights that left New York City in 2013, with weather, planes, airports and airlines
#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    http: HttpArguments,
}

impl Demo {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let data = DemoData::write()?;
        let source = Source::named(DATABASE, data.path());
        serve(&[source], &self.http, Help::ConnectingAndAsking, options).await
    }
}
