//! `tidegate pg install`.

use std::io::Write as _;

use clap::Args;

use super::change;
use super::place::{Manner, Place};
use crate::failure::Failure;

/// Make the schema in which tools, resources and prompts are written in SQL, or bring it to this version
#[derive(Debug, Args)]
pub(crate) struct Install {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    manner: Manner,
}

impl Install {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { place, manner } = self;
        if manner.print {
            return Ok(write!(std::io::stdout(), "{}", place.schema.install_script())?);
        }
        let ending = manner.ending();
        let change = place.installer()?.install(ending).await?;
        Ok(write!(std::io::stdout(), "{}", change::told(&change, ending))?)
    }
}
