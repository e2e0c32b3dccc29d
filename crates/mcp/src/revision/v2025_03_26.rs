//! [2025-03-26](https://modelcontextprotocol.io/specification/2025-03-26/changelog): Streamable
//! HTTP, batches, tool annotations, audio, the completions capability.

use super::{Dialect, v2024_11_05};

pub(super) const DIALECT: Dialect = Dialect { batches: true, annotations: true, ..v2024_11_05::DIALECT };
