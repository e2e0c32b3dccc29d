//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/access_view-Blw3pFuf.js", include_bytes!("_console/access_view-Blw3pFuf.js")),
    ("_console/agents_view-yYonZdtJ.js", include_bytes!("_console/agents_view-yYonZdtJ.js")),
    ("_console/chart_box--i6ivKno.js", include_bytes!("_console/chart_box--i6ivKno.js")),
    ("_console/chart_pane-CvV91CAJ.js", include_bytes!("_console/chart_pane-CvV91CAJ.js")),
    ("_console/console-BWJKi6B5.js", include_bytes!("_console/console-BWJKi6B5.js")),
    ("_console/editor-BVnrzuOw.js", include_bytes!("_console/editor-BVnrzuOw.js")),
    ("_console/fact-BwE907U0.js", include_bytes!("_console/fact-BwE907U0.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/ingestion_view-CMuU-pqZ.js", include_bytes!("_console/ingestion_view-CMuU-pqZ.js")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/logs_view-DPfg6vF5.js", include_bytes!("_console/logs_view-DPfg6vF5.js")),
    ("_console/metrics_view-CFb9iNqD.js", include_bytes!("_console/metrics_view-CFb9iNqD.js")),
    ("_console/network_view-C7_6Of1e.js", include_bytes!("_console/network_view-C7_6Of1e.js")),
    ("_console/style-B8iBX_rB.css", include_bytes!("_console/style-B8iBX_rB.css")),
    ("_console/time_range-hha5MoXy.js", include_bytes!("_console/time_range-hha5MoXy.js")),
    ("_console/tools_view-3DydRlis.js", include_bytes!("_console/tools_view-3DydRlis.js")),
    ("index.html", include_bytes!("index.html")),
];
