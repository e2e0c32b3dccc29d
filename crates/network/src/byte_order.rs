//! The byte order of Arrow messages.

use arrow_flight::FlightData;
use arrow_ipc::root_as_message;

/// Why messages of other machines are refused.
pub(crate) const OTHER_BYTE_ORDER: &str = "its numbers have the byte order of other machines";

/// Whether numbers that follow the schema in `message` have the byte order of this machine. The decoder of the Arrow library
/// reads others in the wrong order.
pub(crate) fn has_native_byte_order(message: &FlightData) -> bool {
    let message = root_as_message(&message.data_header).ok();
    let schema = message.and_then(|message| message.header_as_schema());
    schema.is_none_or(|schema| schema.endianness().equals_to_target_endianness())
}
