//! [2025-06-18](https://modelcontextprotocol.io/specification/2025-06-18/changelog): no batches;
//! structured content, resource links, titles, elicitation.

use super::{Dialect, v2025_03_26};

pub(super) const DIALECT: Dialect = Dialect { batches: false, titles: true, elicitation: true, ..v2025_03_26::DIALECT };
