//! `tidegate fetch`: downloads a stored result.

use clap::Args;
use tidegate_client::fetch::{FetchError, ResultAddress};

use crate::command_error::CommandError;
use crate::download_flags::{DownloadFlags, OutputFileFlags};
use crate::shutdown::Shutdown;

/// Download a stored result into a file; the same command continues an interrupted download
#[derive(Debug, Args)]
pub(crate) struct FetchCommand {
    /// The result, as http://HOST/results/ID or as a link to it
    url: String,

    #[command(flatten)]
    file: OutputFileFlags,

    #[command(flatten)]
    download: DownloadFlags,
}

impl FetchCommand {
    pub(crate) async fn run(self) -> Result<(), CommandError> {
        let address = ResultAddress::parse(&self.url).map_err(FetchError::from)?;
        let output_file = self.file.output_file_with_optional_format()?;
        let options = self.download.options(address.server())?;
        let shutdown = Shutdown::on_signals()?;
        self.file.download(&address, &output_file, options, &shutdown).await
    }
}
