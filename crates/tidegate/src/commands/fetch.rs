//! `tidegate fetch`: a stored result of a server, as a file.

use clap::Args;
use tidegate_fetch::{FetchError, ResultAddress};

use crate::failure::Failure;
use crate::fetching::{DownloadFlags, FileFlags};
use crate::shutdown::Shutdown;

/// Download a stored result into a file; an interrupted download goes on where it was
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// The result, as http://HOST/results/ID or as a link to it
    url: String,

    #[command(flatten)]
    file: FileFlags,

    #[command(flatten)]
    download: DownloadFlags,
}

impl Fetch {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let address = ResultAddress::parse(&self.url).map_err(FetchError::from)?;
        let destination = self.file.destination_of_any()?;
        let options = self.download.options(address.server())?;
        let shutdown = Shutdown::on_signals()?;
        self.file.download(&address, &destination, options, &shutdown).await
    }
}
