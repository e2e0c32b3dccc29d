//! Methods of DataFusion's traits that are the same in several wrappers.

/// Methods of a wrapper that call the same method of its field `inner`.
macro_rules! delegate_to_inner {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $output:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $output {
            self.inner.$name($($arg),*)
        })*
    };
}
pub(crate) use delegate_to_inner;
