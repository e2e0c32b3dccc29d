//! Standard input and output as a pipe in memory.

use tokio::io::{BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The capacity of the pipe, like that of operating systems.
const PIPE_BYTES: usize = 64 * 1024;

pub type Reader = ReadHalf<DuplexStream>;
pub type Writer = WriteHalf<DuplexStream>;
/// The task that serves the other end.
pub type ServerTask = JoinHandle<std::io::Result<()>>;

/// The client end of a pipe, and the task that serves the other end.
pub struct PipeEnds {
    pub writer: Writer,
    pub reader: BufReader<Reader>,
    pub served: ServerTask,
    pub shutdown: CancellationToken,
}

impl PipeEnds {
    /// A pipe whose other end `serve` serves.
    pub fn new(serve: impl FnOnce(Reader, Writer, CancellationToken) -> ServerTask) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let served = serve(reader, writer, shutdown.clone());
        let (reader, writer) = tokio::io::split(ours);
        Self { writer, reader: BufReader::new(reader), served, shutdown }
    }
}
