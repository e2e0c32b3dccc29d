//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/chart_pane-BKpFIlq7.js", include_bytes!("_console/chart_pane-BKpFIlq7.js")),
    ("_console/console-Dig6MVLe.js", include_bytes!("_console/console-Dig6MVLe.js")),
    ("_console/editor-Bkn5xl6L.js", include_bytes!("_console/editor-Bkn5xl6L.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/style-CUKow1i-.css", include_bytes!("_console/style-CUKow1i-.css")),
    ("_console/tools_view-DrFvGrAh.js", include_bytes!("_console/tools_view-DrFvGrAh.js")),
    ("index.html", include_bytes!("index.html")),
];
