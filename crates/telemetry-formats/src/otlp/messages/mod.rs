//! The messages of OTLP, version 1 of `opentelemetry-proto`, for Protocol Buffers and JSON.
//!
//! Where the standard has a choice between fields (`oneof`), there are optional fields with the same numbers, so that a
//! record that sets two of them is noticed; `AnyValue` is the exception, for its size. Enumerations are their numbers, so
//! that a number without a name is kept.
//!
//! The types of the crate `opentelemetry-proto` are not used: their JSON has no bound of memory, and of two fields of a
//! choice they keep one without an error.

pub(crate) mod common;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod services;
pub(crate) mod traces;

/// Declares messages. A field has its number, its name, and its type:
///
/// - `text`, `identifier`, `boolean`, `double`; `one` or `many` and the name of a message;
/// - an integer of Protocol Buffers, and its type in Rust;
/// - `optional` or `many`, and a number of Protocol Buffers.
///
/// Each message has a function `shape` with what it takes in memory.
macro_rules! declare_messages {
    (@fields { $message:ident [$($declared:tt)*] [$($shape:tt)*] }) => {
        #[derive(Clone, PartialEq, prost::Message, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(crate) struct $message {
            $($declared)*
        }

        impl $message {
            pub(crate) fn shape() -> &'static $crate::message_size::MessageShape {
                static SHAPE: $crate::message_size::MessageShape =
                    $crate::message_size::MessageShape { bytes: size_of::<$message>(), fields: &[$($shape)*] };
                &SHAPE
            }
        }
    };
    (@fields $message:tt $number:tt $name:ident: text, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [string] ["json_fields::text"] [String] [] $($rest)*);
    };
    (@fields $message:tt $number:tt $name:ident: identifier, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [bytes = "vec"] ["json_fields::identifier"] [Vec<u8>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: boolean, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [bool] ["json_fields::boolean"] [bool] [] $($rest)*);
    };
    (@fields $message:tt $number:tt $name:ident: double, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [double] ["json_fields::double"] [f64] [] $($rest)*);
    };
    (@fields $message:tt $number:tt $name:ident: optional double, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [double, optional] ["json_fields::optional_double"] [Option<f64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: optional sfixed64, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [sfixed64, optional] ["json_fields::optional_integer"] [Option<i64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many double, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [double, repeated] ["json_fields::doubles"] [Vec<f64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many fixed64, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [fixed64, repeated] ["json_fields::integers"] [Vec<u64>] [] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many uint64, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [uint64, repeated] ["json_fields::integers"] [Vec<u64>]
            [Integers(size_of::<u64>())] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: one $type:ident, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [message, optional] [] [Option<$type>] [Message($type::shape)] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: many $type:ident, $($rest:tt)*) => {
        declare_messages!(
            @add $message $number $name [message, repeated] ["json_fields::list"] [Vec<$type>]
            [Message($type::shape)] $($rest)*
        );
    };
    (@fields $message:tt $number:tt $name:ident: $integer:ident $type:ident, $($rest:tt)*) => {
        declare_messages!(@add $message $number $name [$integer] ["json_fields::integer"] [$type] [] $($rest)*);
    };
    (
        @add { $message:ident [$($declared:tt)*] [$($shape:tt)*] }
        $number:tt $name:ident [$($wire:tt)*] [$($json:tt)?] [$($type:tt)*] [$($size:ident($($part:tt)*))?] $($rest:tt)*
    ) => {
        declare_messages!(
            @fields {
                $message
                [
                    $($declared)*
                    #[prost($($wire)*, tag = $number)]
                    $(#[serde(deserialize_with = $json)])?
                    pub(crate) $name: $($type)*,
                ]
                [$($shape)* $(($number, $crate::message_size::FieldShape::$size($($part)*)),)?]
            }
            $($rest)*
        );
    };
    ($($message:ident { $($fields:tt)* })*) => {
        $(declare_messages!(@fields { $message [] [] } $($fields)*);)*
    };
}
use declare_messages;
