//! Equality of types that are identified by some of their fields.

/// Compares and hashes values of a type by these fields. The others follow from them, or have no comparison.
#[macro_export]
macro_rules! compare_by {
    ($type:ident { $($field:ident),+ }) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                $(PartialEq::eq(&self.$field, &other.$field))&&+
            }
        }

        impl Eq for $type {}

        impl ::std::hash::Hash for $type {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                $(::std::hash::Hash::hash(&self.$field, state);)+
            }
        }
    };
}
