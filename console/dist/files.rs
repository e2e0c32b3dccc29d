//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/chart_pane-DkFaCzVt.js", include_bytes!("_console/chart_pane-DkFaCzVt.js")),
    ("_console/console-kMRvAAYk.js", include_bytes!("_console/console-kMRvAAYk.js")),
    ("_console/editor-MlvQv1Kn.js", include_bytes!("_console/editor-MlvQv1Kn.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/style-BSh-7VBM.css", include_bytes!("_console/style-BSh-7VBM.css")),
    ("index.html", include_bytes!("index.html")),
];
