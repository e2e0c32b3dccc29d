//! [2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/changelog): no handshake
//! and no sessions; result types, cache hints, `-32602` for a missing resource.

use super::{Dialect, v2025_11_25};

pub(super) const DIALECT: Dialect = Dialect {
    stateless: true,
    resource_not_found_is_32002: false,
    structured_content_is_any_value: true,
    ..v2025_11_25::DIALECT
};
