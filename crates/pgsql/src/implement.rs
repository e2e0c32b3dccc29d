//! What several types of DataFusion's traits implement in the same way.

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

/// The methods `name` and `signature` of a function with a field `signature`: the name is a text, or that of a field.
#[macro_export]
macro_rules! name_and_signature {
    (.$name:ident) => {
        fn name(&self) -> &str {
            &self.$name
        }

        $crate::name_and_signature!(@signature);
    };
    (@signature) => {
        fn signature(&self) -> &::datafusion::logical_expr::Signature {
            &self.signature
        }
    };
    ($name:expr) => {
        fn name(&self) -> &str {
            $name
        }

        $crate::name_and_signature!(@signature);
    };
}
