//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/console-DPeIl7K3.js", include_bytes!("_console/console-DPeIl7K3.js")),
    ("_console/editor-BPVnEz-W.js", include_bytes!("_console/editor-BPVnEz-W.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/style-DmYZOSIj.css", include_bytes!("_console/style-DmYZOSIj.css")),
    ("index.html", include_bytes!("index.html")),
];
