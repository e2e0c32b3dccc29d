//! The smallest files that are a picture and a sound.

use tidegate::core::Content;

/// One red pixel.
pub(crate) fn pixel() -> Content {
    let data: &'static [u8] = include_bytes!("pixel.png");
    Content::Image { data: data.into(), mime_type: "image/png".to_owned() }
}

/// A millisecond of silence.
pub(crate) fn silence() -> Content {
    let data: &'static [u8] = include_bytes!("silence.wav");
    Content::Audio { data: data.into(), mime_type: "audio/wav".to_owned() }
}
