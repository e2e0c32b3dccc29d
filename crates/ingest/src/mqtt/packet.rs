//! The packets of MQTT 3.1.1 that a subscriber sends and receives, and how they are read from a connection.

use std::io;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::mqtt::options::MqttOptions;

const PROTOCOL_NAME: &str = "MQTT";
const PROTOCOL_LEVEL: u8 = 4;
/// The largest length after the first bytes of a packet.
const REMAINING_BYTES_MAX: usize = 268_435_455;

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
const DISCONNECT: u8 = 0xe0;
const KIND_MASK: u8 = 0xf0;

/// A message of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) topic: String,
    /// The content; of a message that is too large, its beginning.
    pub(crate) payload: Bytes,
    /// The identifier that is acknowledged. `None` with QoS 0.
    pub(crate) packet_id: Option<u16>,
    /// The bytes of a message that is too large to be read.
    pub(crate) excess: Option<usize>,
}

/// A packet of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Packet {
    Connected { session_present: bool, code: u8 },
    Subscribed { packet_id: u16, codes: Bytes },
    Message(Message),
    Pong,
}

/// Bytes of a broker that do not follow the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker does not follow MQTT 3.1.1: {0}")]
pub(crate) struct PacketError(String);

fn broken(reason: &str) -> PacketError {
    PacketError(reason.to_owned())
}

/// The first bytes of a packet: its first byte, how many bytes they are, and how many follow. `None` if there are too few.
fn header(bytes: &[u8]) -> Result<Option<(u8, usize, usize)>, PacketError> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let mut length = 0_usize;
    for index in 0..4_usize {
        let Some(&byte) = rest.get(index) else { return Ok(None) };
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((first, index + 2, length)));
        }
    }
    Err(broken("a length has more than four bytes"))
}

/// Whether a packet with this first byte is a message.
fn is_message(first: u8) -> bool {
    first & KIND_MASK == PUBLISH
}

/// Reads a packet after its first bytes. `excess` is the size of a message of which only the beginning is in `body`.
fn read_packet(first: u8, mut body: Bytes, excess: Option<usize>) -> Result<Packet, PacketError> {
    match first & KIND_MASK {
        PUBLISH => read_message(first, body, excess).map(Packet::Message),
        CONNACK if body.len() == 2 => {
            let flags = body.get_u8();
            Ok(Packet::Connected { session_present: flags & 1 == 1, code: body.get_u8() })
        }
        SUBACK if body.len() > 2 => Ok(Packet::Subscribed { packet_id: body.get_u16(), codes: body }),
        PINGRESP if body.is_empty() => Ok(Packet::Pong),
        _ => Err(PacketError(format!("a packet begins with {first:#04x} and has {} bytes", body.len()))),
    }
}

fn read_message(first: u8, mut body: Bytes, excess: Option<usize>) -> Result<Message, PacketError> {
    let has_id = match (first >> 1) & 3 {
        0 => false,
        1 => true,
        _ => return Err(broken("a message has a QoS that was not subscribed to")),
    };
    if body.len() < 2 {
        return Err(broken("a message has no topic"));
    }
    let length = usize::from(body.get_u16());
    if body.len() < length + if has_id { 2 } else { 0 } {
        return Err(broken("a topic is longer than its packet"));
    }
    let topic = String::from_utf8(body.split_to(length).to_vec()).map_err(|_| broken("a topic is not UTF-8"))?;
    let packet_id = has_id.then(|| body.get_u16());
    if packet_id == Some(0) {
        return Err(broken("a message has the identifier 0"));
    }
    Ok(Message { topic, payload: body, packet_id, excess })
}

/// The packet that begins a session.
pub(crate) fn connect(options: &MqttOptions, keep_alive_seconds: u16) -> BytesMut {
    let is_persistent = options.delivery.qos() > 0;
    let mut flags = if is_persistent { 0 } else { 0x02 };
    let mut body = BytesMut::new();
    put_bytes(&mut body, PROTOCOL_NAME.as_bytes());
    body.put_u8(PROTOCOL_LEVEL);
    let password = options.credentials.as_ref().and_then(|own| own.password.as_ref());
    if options.credentials.is_some() {
        flags |= 0x80;
    }
    if password.is_some() {
        flags |= 0x40;
    }
    body.put_u8(flags);
    body.put_u16(keep_alive_seconds);
    put_bytes(&mut body, options.client_id.as_bytes());
    if let Some(own) = &options.credentials {
        put_bytes(&mut body, own.username.as_bytes());
    }
    if let Some(password) = password {
        put_bytes(&mut body, password.as_bytes());
    }
    packet(CONNECT, &body)
}

/// The packet that subscribes to topics.
pub(crate) fn subscribe(packet_id: u16, topics: &[String], qos: u8) -> BytesMut {
    let mut body = BytesMut::new();
    body.put_u16(packet_id);
    for topic in topics {
        put_bytes(&mut body, topic.as_bytes());
        body.put_u8(qos);
    }
    packet(SUBSCRIBE, &body)
}

/// Adds the packet that acknowledges a message.
pub(crate) fn put_acknowledgement(bytes: &mut BytesMut, packet_id: u16) {
    bytes.put_slice(&[PUBACK, 2]);
    bytes.put_u16(packet_id);
}

/// The packet that keeps the connection.
pub(crate) fn ping() -> [u8; 2] {
    [PINGREQ, 0]
}

/// The packet that ends the connection. A persistent session stays.
pub(crate) fn disconnect() -> [u8; 2] {
    [DISCONNECT, 0]
}

/// `bytes` are at most 65,535, as the options are checked.
fn put_bytes(body: &mut BytesMut, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    body.put_u16(length);
    body.put_slice(bytes.get(..usize::from(length)).unwrap_or(bytes));
}

/// `body` is at most [`REMAINING_BYTES_MAX`], because so many filters of topics are not allowed.
fn packet(first: u8, body: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(body.len() + 5);
    bytes.put_u8(first);
    let mut length = body.len().min(REMAINING_BYTES_MAX);
    loop {
        let low = (length & 0x7f) as u8;
        length >>= 7;
        bytes.put_u8(if length > 0 { low | 0x80 } else { low });
        if length == 0 {
            break;
        }
    }
    bytes.put_slice(body);
    bytes
}

/// The largest packet that is read as a whole. Of a larger message, only the beginning is kept.
pub(crate) const PACKET_BYTES_MAX: usize = 16 << 20;
/// So many bytes of a message that is too large are kept: the longest topic, and the beginning of the content.
const EXCESS_HEAD_BYTES: usize = 70 << 10;
/// The bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Why no further packet can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the broker closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Packet(#[from] PacketError),
}

/// Reads packets. No byte is lost when [`Self::next`] is dropped before it returns.
#[derive(Debug)]
pub(crate) struct PacketReader<R> {
    stream: R,
    buffer: BytesMut,
    /// A message that is too large, and how many of its bytes are still to come.
    skipped: Option<(Packet, usize)>,
}

impl<R: AsyncRead + Unpin> PacketReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new(), skipped: None }
    }

    pub(crate) async fn next(&mut self) -> Result<Packet, ReadError> {
        loop {
            if let Some(packet) = self.buffered()? {
                return Ok(packet);
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
    }

    /// The next packet, if all of its bytes are there.
    fn buffered(&mut self) -> Result<Option<Packet>, PacketError> {
        if let Some((packet, rest)) = self.skipped.take() {
            let here = rest.min(self.buffer.len());
            self.buffer.advance(here);
            if here < rest {
                self.skipped = Some((packet, rest - here));
                return Ok(None);
            }
            return Ok(Some(packet));
        }
        let Some((first, header_bytes, length)) = header(&self.buffer)? else { return Ok(None) };
        if length > PACKET_BYTES_MAX {
            return self.begin_skipping(first, header_bytes, length);
        }
        if self.buffer.len() < header_bytes + length {
            return Ok(None);
        }
        self.buffer.advance(header_bytes);
        // A copy, so that a small message does not keep a large buffer.
        let body = Bytes::copy_from_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        read_packet(first, body, None).map(Some)
    }

    fn begin_skipping(&mut self, first: u8, header_bytes: usize, length: usize) -> Result<Option<Packet>, PacketError> {
        if !is_message(first) {
            return Err(PacketError(format!("a packet has {length} bytes and is no message")));
        }
        if self.buffer.len() < header_bytes + EXCESS_HEAD_BYTES {
            return Ok(None);
        }
        self.buffer.advance(header_bytes);
        let head = Bytes::copy_from_slice(&self.buffer[..EXCESS_HEAD_BYTES]);
        self.buffer.advance(EXCESS_HEAD_BYTES);
        let packet = read_packet(first, head, Some(length))?;
        self.skipped = Some((packet, length - EXCESS_HEAD_BYTES));
        self.buffered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_to_four_bytes() {
        for (length, bytes) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (2_097_152, 4)] {
            let written = packet(CONNECT, &vec![0; length]);
            assert_eq!(header(&written), Ok(Some((CONNECT, bytes + 1, length))));
            assert_eq!(header(&written[..bytes]), Ok(None));
        }
        assert!(header(&[CONNECT, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
    }

    #[test]
    fn broken_packets_are_errors() {
        let bodies: [(u8, &[u8]); 7] = [
            (0x32, &[0, 5, b'a', 0, 1]),
            (0x32, &[0, 1, b'a', 0]),
            (0x32, &[0, 1, b'a', 0, 0]),
            (0x34, &[0, 1, b'a', 0, 1]),
            (0x30, &[0]),
            (0x20, &[0]),
            (0x30, &[0, 1, 0xff]),
        ];
        for (first, body) in bodies {
            assert!(read_packet(first, Bytes::copy_from_slice(body), None).is_err(), "{first} {body:?}");
        }
    }
}
