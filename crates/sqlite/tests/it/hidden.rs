//! Random questions of those who are bound by policies, beside the same over a copy without what is hidden.
