//! [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/changelog): icons, elicitation by
//! URL.
//! Invalid arguments are reported as an error of the tool, which the model sees; here this applies to every revision.

use super::{Dialect, v2025_06_18};

pub(super) const DIALECT: Dialect = Dialect { icons: true, elicitation_by_url: true, ..v2025_06_18::DIALECT };
