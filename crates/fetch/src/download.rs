//! A whole download: blocks come several at once, and are written in order.
//!
//! Two things run beside each other and hand blocks over one at a time: the network brings blocks into the folder beside
//! the file, and another thread turns them into the file.

use std::path::PathBuf;
use std::pin::pin;

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tidegate_core::AnswerFormat;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::address::ResultAddress;
use crate::block::Blocks;
use crate::client::Client;
use crate::destination::Destination;
use crate::error::{FetchError, Kept};
use crate::following::{self, Following};
use crate::manifest::{Block, Manifest, Status};
use crate::options::FetchOptions;
use crate::partial::Partial;
use crate::tally::Tally;
use crate::words::printable;
use crate::writing::{Form, Held, Writing};

/// More connections to one server help nobody.
const PARALLEL_MAX: usize = 32;

/// A result that is a file now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The file.
    pub path: PathBuf,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Why it is not all of the answer, where that was asked for.
    pub incomplete: Option<String>,
}

/// Fetches the result at `address` into `destination`, following it to its end if it is still being written.
///
/// A download that fails or is stopped keeps the blocks that were fetched, for the next one of the same result to the
/// same file.
///
/// # Errors
/// When the result cannot be had or written; the file then does not exist, or is what it was.
pub async fn fetch(
    address: &ResultAddress,
    destination: &Destination,
    options: FetchOptions,
    stop: &CancellationToken,
) -> Result<Fetched, FetchError> {
    let access = Access::new(address.link(), options.bearer.as_ref());
    let client = Client::new(address.to_string(), access, options)?;
    let manifest = until(stop, following::read(&client, address)).await?;
    // What is known to be too little is not fetched at all.
    refuse_incomplete(&manifest, client.options())?;
    let form = form(&manifest, destination)?;
    let (to, id) = (destination.clone(), address.id());
    let partial = blocking(move || Partial::open(&to, id)).await?;
    let tally = Tally::new(client.options().heard_by.clone());
    let download = Download { client: &client, address, destination, form, partial: &partial, tally: &tally };
    let fetched = download.run(manifest, stop).await;
    partial.rest().await;
    match fetched {
        Ok(fetched) => {
            blocking(move || {
                partial.remove();
                Ok(())
            })
            .await?;
            Ok(fetched)
        }
        Err(error) => Err(leave(partial, error, &command(address, destination, client.options()))),
    }
}

struct Download<'a> {
    client: &'a Client,
    address: &'a ResultAddress,
    destination: &'a Destination,
    form: Form,
    partial: &'a Partial,
    tally: &'a Tally,
}

impl Download<'_> {
    async fn run(&self, manifest: Manifest, stop: &CancellationToken) -> Result<Fetched, FetchError> {
        self.tally.knows(&manifest);
        let (to, folder) = (self.destination.clone(), self.partial.folder().to_owned());
        let file = blocking(move || to.begin_in(&folder)).await?;
        let manifest = Mutex::new(manifest);
        let stop = stop.child_token();
        let (sender, receiver) = mpsc::channel(1);
        let bring = until(&stop, self.bring(&manifest, sender));
        let write = async {
            let written = write(Writing::new(file, self.form), receiver).await;
            if written.is_err() {
                stop.cancel();
            }
            written
        };
        // Neither is dropped on its way: what runs on another thread comes to its end.
        let (brought, written) = tokio::join!(bring, write);
        let writing = written?;
        brought?;
        let manifest = manifest.into_inner();
        refuse_incomplete(&manifest, self.client.options())?;
        let rows = writing.rows;
        let incomplete = (manifest.status == Status::Incomplete).then(|| reason(&manifest));
        let is_part = incomplete.is_some();
        let length = manifest.file.as_ref().filter(|_| self.form == Form::File && !is_part).map(|file| file.bytes);
        let bytes = blocking(move || writing.finish(is_part, length)).await?;
        Ok(Fetched { path: self.destination.path().to_owned(), rows, bytes, incomplete })
    }

    /// Hands over the blocks in order, several of which are on their way at once.
    async fn bring(&self, manifest: &Mutex<Manifest>, sender: mpsc::Sender<Held>) -> Result<(), FetchError> {
        let following = Following::new(self.client, self.address, self.tally, manifest);
        let known = stream::unfold(following, |mut following| async move {
            let next = following.next().await.transpose()?;
            Some((next, following))
        });
        let parallel = self.client.options().parallel.clamp(1, PARALLEL_MAX);
        let mut held = pin!(known.map(|block| async move { self.hold(block?).await }).buffered(parallel));
        while let Some(held) = held.next().await {
            if sender.send(held?).await.is_err() {
                // Whoever writes has failed, and says why.
                return Ok(());
            }
        }
        if manifest.lock().blocks.is_empty() {
            let bytes = self.blocks().fetch_empty().await?;
            self.partial.keep(0, bytes).await?;
            // As above.
            let _ = sender.send(Held { index: 0, rows: 0, path: self.partial.path(0) }).await;
        }
        Ok(())
    }

    /// `block`, from the folder or from the server.
    async fn hold(&self, block: Block) -> Result<Held, FetchError> {
        if self.partial.has(&block).await? {
            self.tally.arrived(block.bytes);
        } else {
            let bytes = self.blocks().fetch(&block).await?;
            self.partial.keep(block.index, bytes).await?;
        }
        self.tally.checked(block.rows);
        Ok(Held { index: block.index, rows: block.rows, path: self.partial.path(block.index) })
    }

    fn blocks(&self) -> Blocks<'_> {
        Blocks { client: self.client, address: self.address, tally: self.tally }
    }
}

/// Writes blocks until no more come.
async fn write(mut writing: Writing, mut blocks: mpsc::Receiver<Held>) -> Result<Writing, FetchError> {
    while let Some(held) = blocks.recv().await {
        writing = blocking(move || {
            writing.append(&held)?;
            Ok(writing)
        })
        .await?;
    }
    Ok(writing)
}

/// What becomes of the rows of `manifest`: those that are the bytes of a file become that file, unless blocks are wanted.
fn form(manifest: &Manifest, destination: &Destination) -> Result<Form, FetchError> {
    match (&manifest.file, destination.format_said()) {
        (None, _) => destination.format_of_rows().map(Form::Rows),
        (Some(_), None) => Ok(Form::File),
        (Some(_), Some(AnswerFormat::Arrow)) => Ok(Form::Rows(AnswerFormat::Arrow)),
        (Some(_), Some(format)) => Err(FetchError::HoldsFile { format }),
    }
}

fn refuse_incomplete(manifest: &Manifest, options: &FetchOptions) -> Result<(), FetchError> {
    match manifest.status {
        Status::Incomplete if !options.takes_incomplete => {
            Err(FetchError::Incomplete { rows: manifest.rows, reason: reason(manifest) })
        }
        _ => Ok(()),
    }
}

/// Why `manifest` is of a result that ended incomplete.
fn reason(manifest: &Manifest) -> String {
    manifest.reason.as_deref().map_or_else(|| "the server does not say why".to_owned(), printable)
}

/// What `work` gives, unless `stop` comes first.
pub(crate) async fn until<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(FetchError::Interrupted),
        done = work => done,
    }
}

/// What `work` gives, from a thread that may wait for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| FetchError::broken_off(&error))?
}

/// Leaves the blocks for another run, and says so with the `error`.
fn leave(partial: Partial, error: FetchError, command: &str) -> FetchError {
    let blocks = partial.count();
    if blocks == 0 {
        partial.remove();
        return error;
    }
    let kept = Kept { blocks, folder: partial.folder().to_owned(), command: command.to_owned() };
    FetchError::Kept { error: Box::new(error), kept }
}

/// What goes on where a download of this result ended. It holds no secret, so that a link is not whole.
fn command(address: &ResultAddress, destination: &Destination, options: &FetchOptions) -> String {
    let link = if address.link().is_some() { "?link=…" } else { "" };
    let path = destination.path().display().to_string().replace('\'', r"'\''");
    let mut command = format!("tidegate fetch '{address}{link}' -o '{path}'");
    if let Some(format) = destination.format_said().filter(|_| destination.names_other_format()) {
        command.push_str(" --format ");
        command.push_str(format.name());
    }
    if options.takes_incomplete {
        command.push_str(" --partial");
    }
    command
}
