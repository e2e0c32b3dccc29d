//! [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/changelog): icons, elicitation by
//! URL.
//! That wrong arguments are told as the tool's error, so that the model sees them, holds for every revision here.

use super::{Dialect, v2025_06_18};

pub(super) const DIALECT: Dialect = Dialect { icons: true, elicitation_by_url: true, ..v2025_06_18::DIALECT };
