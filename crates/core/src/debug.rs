//! Debug output of types that cannot derive it, or must not.

/// Implements `Debug` for a type whose other fields have none, are large or are secrets: with these fields, or as a text.
#[macro_export]
macro_rules! impl_debug {
    ($type:ident { $($field:ident),+ }) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))$(.field(stringify!($field), &self.$field))+.finish_non_exhaustive()
            }
        }
    };
    ($type:ident, $text:literal) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($text)
            }
        }
    };
}
