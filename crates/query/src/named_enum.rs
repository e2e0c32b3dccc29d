//! Enums whose variants have names in arguments.

/// Defines an enum with `ALL`, the variants in order, and `name`. With `parse_as "noun"` also `parse`, whose error lists
/// the names.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $enum:ident $(parse_as $noun:literal)? {
            $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $enum {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $enum {
            /// All variants, in order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in arguments.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            $(
                /// Parses a name.
                ///
                /// # Errors
                /// `InvalidArguments` with the valid names.
                pub fn parse(name: &str) -> Result<Self, tidegate_core::Error> {
                    Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
                        let message = format!("there is no {} {name:?}", $noun);
                        tidegate_core::Error::new(tidegate_core::ErrorKind::InvalidArguments, message)
                            .with_choices(Self::ALL.map(|one| one.name().to_owned()))
                    })
                }
            )?
        }
    };
}
pub(crate) use named_enum;
