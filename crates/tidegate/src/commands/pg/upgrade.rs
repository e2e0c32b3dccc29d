//! `tidegate pg upgrade`.

use std::io::Write as _;

use clap::Args;

use super::change;
use super::place::{Manner, Place};
use crate::failure::Failure;

/// Bring a schema of handlers that is there to this version
#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    manner: Manner,
}

impl Upgrade {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { place, manner } = self;
        if manner.print {
            // What makes the schema finds out itself what is there.
            return Ok(write!(std::io::stdout(), "{}", place.schema.install_script())?);
        }
        let ending = manner.ending();
        let change = place.installer()?.upgrade(ending).await?;
        Ok(write!(std::io::stdout(), "{}", change::told(&change, ending))?)
    }
}
