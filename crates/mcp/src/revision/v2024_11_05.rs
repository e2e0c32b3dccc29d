//! [2024-11-05](https://modelcontextprotocol.io/specification/2024-11-05): the first revision.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    batches: false,
    annotations: false,
    titles: false,
    icons: false,
    elicitation: false,
    elicitation_by_url: false,
    stateless: false,
    resource_not_found_is_32002: true,
    structured_content_is_any_value: false,
};
