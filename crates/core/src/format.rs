//! The formats of answers with rows: everything about them that needs no rows. `tidegate-query` has their writers.

use strum::VariantArray;

use crate::{Error, ErrorKind};

/// A format of answers with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, VariantArray)]
pub enum Format {
    /// Bare rows: `[{…},{…}]`.
    #[default]
    Mcp,
    /// Rows with columns and statistics: `{"Query":[…],"columns":[…],…}`.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// RFC 4180, with a header line.
    Csv,
    /// A stream of Arrow's IPC format.
    Arrow,
    /// A file of Arrow's IPC format. It has the name of the stream: callers request the stream, and a download writes a
    /// file of it, because programs expect an index in all files of Arrow except streams.
    ArrowFile,
    /// A Parquet file.
    Parquet,
    /// Aligned text for people.
    Table,
    /// A Markdown table.
    Markdown,
    /// Token-Oriented Object Notation.
    Toon,
}

/// What a format is called, and how it is written.
struct FormatProperties {
    /// The name that callers use.
    name: &'static str,
    /// The media type of a body, with its parameters.
    content_type: &'static str,
    /// Other media types that clients use for it.
    media_type_aliases: &'static [&'static str],
    /// The extensions of its files, first the one that a download gets; none if no file has the format.
    extensions: &'static [&'static str],
    is_binary: bool,
    needs_several_rows: bool,
    writes_content: bool,
    /// Another format with a media type that clients display.
    displayed_as: Option<Format>,
}

impl FormatProperties {
    const fn new(name: &'static str, content_type: &'static str, extensions: &'static [&'static str]) -> Self {
        Self {
            name,
            content_type,
            media_type_aliases: &[],
            extensions,
            is_binary: false,
            needs_several_rows: false,
            writes_content: false,
            displayed_as: None,
        }
    }
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The formats that the argument of a tool or a declaration can name: text for models and people.
    pub const FOR_MODELS: [Self; 7] =
        [Self::Mcp, Self::Json, Self::Table, Self::Csv, Self::Markdown, Self::Ndjson, Self::Toon];

    /// The formats of a body that a client of REST or stored results can request, in order of preference for clients
    /// that state none. `mcp` has the media type of `json`, so that only its name requests it.
    pub const FOR_REST: [Self; 8] =
        [Self::Json, Self::Ndjson, Self::Csv, Self::Arrow, Self::Parquet, Self::Table, Self::Markdown, Self::Mcp];

    /// The formats in which a result can be downloaded.
    pub const FOR_DOWNLOADS: [Self; 5] = [Self::Arrow, Self::Ndjson, Self::Csv, Self::Json, Self::Parquet];

    fn properties(self) -> FormatProperties {
        match self {
            Self::Mcp => {
                FormatProperties { writes_content: true, ..FormatProperties::new("mcp", "application/json", &[]) }
            }
            Self::Json => FormatProperties {
                writes_content: true,
                ..FormatProperties::new("json", "application/json", &["json"])
            },
            Self::Ndjson => FormatProperties {
                media_type_aliases: &["application/ndjson", "application/jsonl", "application/x-jsonlines"],
                ..FormatProperties::new("ndjson", "application/x-ndjson", &["ndjson", "jsonl"])
            },
            Self::Csv => FormatProperties::new("csv", "text/csv; charset=utf-8; header=present", &["csv"]),
            Self::Arrow => FormatProperties {
                is_binary: true,
                // The registered extension of streams.
                ..FormatProperties::new("arrow", "application/vnd.apache.arrow.stream", &["arrows"])
            },
            Self::ArrowFile => FormatProperties {
                is_binary: true,
                ..FormatProperties::new("arrow", "application/vnd.apache.arrow.file", &["arrow", "feather"])
            },
            Self::Parquet => FormatProperties {
                is_binary: true,
                ..FormatProperties::new("parquet", "application/vnd.apache.parquet", &["parquet"])
            },
            Self::Table => FormatProperties {
                needs_several_rows: true,
                writes_content: true,
                ..FormatProperties::new("table", "text/plain; charset=utf-8", &[])
            },
            Self::Markdown => FormatProperties {
                writes_content: true,
                ..FormatProperties::new("markdown", "text/markdown; charset=utf-8", &[])
            },
            Self::Toon => FormatProperties {
                needs_several_rows: true,
                // Few clients know its own type.
                displayed_as: Some(Self::Table),
                ..FormatProperties::new("toon", "text/toon; charset=utf-8", &[])
            },
        }
    }

    /// The name that callers use.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// The one of `formats` with that name.
    pub fn parse(name: &str, formats: &[Self]) -> Option<Self> {
        formats.iter().copied().find(|format| format.name() == name)
    }

    /// The format that the argument of a tool or a declaration names.
    ///
    /// # Errors
    /// `InvalidArguments` with the names of [`Format::FOR_MODELS`].
    pub fn parse_for_model(name: &str) -> Result<Self, Error> {
        Self::parse(name, &Self::FOR_MODELS).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("there is no format {name:?}"))
                .with_choices(Self::FOR_MODELS.map(|format| format.name().to_owned()))
        })
    }

    /// The media type, without parameters.
    pub fn media_type(self) -> &'static str {
        let content_type = self.properties().content_type;
        content_type.split_once(';').map_or(content_type, |(media_type, _)| media_type)
    }

    /// The media type of a body, with its parameters. A list of values has no header line.
    pub fn content_type(self, is_list: bool) -> &'static str {
        match self {
            Self::Csv if is_list => "text/csv; charset=utf-8; header=absent",
            _ => self.properties().content_type,
        }
    }

    /// Whether `media_type`, in lower case and without parameters, stands for this format.
    pub fn has_media_type(self, media_type: &str) -> bool {
        self.media_type() == media_type || self.properties().media_type_aliases.contains(&media_type)
    }

    /// The extension that a download gets; the name, if no file has the format.
    pub fn extension(self) -> &'static str {
        let FormatProperties { name, extensions, .. } = self.properties();
        extensions.first().copied().unwrap_or(name)
    }

    /// The format of files with that extension, in upper or lower case.
    pub fn from_extension(extension: &str) -> Option<Self> {
        let has_extension =
            |format: &Self| format.properties().extensions.iter().any(|known| known.eq_ignore_ascii_case(extension));
        Self::ALL.iter().copied().find(has_extension)
    }

    /// Whether the format is binary and compressed internally, rather than text.
    pub fn is_binary(self) -> bool {
        self.properties().is_binary
    }

    /// Whether the first row is better written when further rows are known: for the widths of columns, or a count.
    pub fn needs_several_rows(self) -> bool {
        self.properties().needs_several_rows
    }

    /// Whether an answer that is not a table can have the format: JSON, or the text of its blocks.
    pub fn writes_content(self) -> bool {
        self.properties().writes_content
    }

    /// The media type of a resource, without parameters: one that clients display.
    pub fn displayed_media_type(self) -> &'static str {
        self.properties().displayed_as.unwrap_or(self).media_type()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_in_their_lists() {
        let lists = [Format::FOR_MODELS.as_slice(), Format::FOR_REST.as_slice(), Format::FOR_DOWNLOADS.as_slice()];
        for list in lists {
            for format in list {
                assert_eq!(Format::parse(format.name(), list), Some(*format));
            }
        }
        assert_eq!(Format::parse("toon", &Format::FOR_REST), None);
        assert_eq!(Format::parse("JSON", &Format::FOR_REST), None);
        let refused = Format::parse_for_model("arrow").unwrap_err();
        insta::assert_snapshot!(refused, @r#"
        there is no format "arrow"
        Valid choices: mcp, json, table, csv, markdown, ndjson, toon
        "#);
    }

    #[test]
    fn every_format_can_be_requested() {
        for format in Format::ALL {
            let is_listed = Format::FOR_MODELS.contains(format) || Format::FOR_REST.contains(format);
            // A file of Arrow is made of its stream.
            assert!(is_listed || *format == Format::ArrowFile, "add {format:?} to FOR_MODELS or FOR_REST");
            assert!(!format.is_binary() || !Format::FOR_MODELS.contains(format), "models read text, not {format:?}");
        }
        assert!(Format::FOR_DOWNLOADS.iter().all(|format| Format::FOR_REST.contains(format)));
    }

    #[test]
    fn every_media_type_is_read_back() {
        // The bare rows are JSON too.
        for format in Format::ALL.iter().filter(|format| **format != Format::Mcp) {
            let is_own = |media_type: &str| {
                let formats = Format::ALL.iter().filter(|other| **other != Format::Mcp);
                formats.filter(|other| other.has_media_type(media_type)).eq([format])
            };
            assert!(is_own(format.media_type()), "{format:?} needs a media type of its own");
            assert!(format.properties().media_type_aliases.iter().all(|alias| is_own(alias)), "{format:?}");
            assert!(!format.media_type().contains(';'));
        }
    }

    #[test]
    fn every_extension_is_read_back() {
        for format in Format::ALL {
            for extension in format.properties().extensions {
                assert_eq!(Format::from_extension(&extension.to_uppercase()), Some(*format));
            }
        }
        for format in Format::FOR_DOWNLOADS {
            assert_eq!(Format::from_extension(format.extension()), Some(format), "{format:?} needs an extension");
        }
        assert_eq!(Format::from_extension("txt"), None);
    }
}
