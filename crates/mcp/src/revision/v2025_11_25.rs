//! [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/changelog): icons; wrong
//! arguments are told as the tool's error, so that the model sees them.

use super::{Dialect, v2025_06_18};

pub(super) const DIALECT: Dialect = Dialect { icons: true, ..v2025_06_18::DIALECT };
