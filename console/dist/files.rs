//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/access_view-Cir-LYEY.js", include_bytes!("_console/access_view-Cir-LYEY.js")),
    ("_console/agents_view-D1LnorQc.js", include_bytes!("_console/agents_view-D1LnorQc.js")),
    ("_console/chart_box-h5iDPvez.js", include_bytes!("_console/chart_box-h5iDPvez.js")),
    ("_console/chart_pane-BAu1l_07.js", include_bytes!("_console/chart_pane-BAu1l_07.js")),
    ("_console/console-B6CKYyJT.js", include_bytes!("_console/console-B6CKYyJT.js")),
    ("_console/editor-6PpcjEk0.js", include_bytes!("_console/editor-6PpcjEk0.js")),
    ("_console/fact-Sql2WRg5.js", include_bytes!("_console/fact-Sql2WRg5.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/ingestion_view-DNxlhmZN.js", include_bytes!("_console/ingestion_view-DNxlhmZN.js")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/logs_view-BXp9pj1A.js", include_bytes!("_console/logs_view-BXp9pj1A.js")),
    ("_console/metrics_view-BEpRM65j.js", include_bytes!("_console/metrics_view-BEpRM65j.js")),
    ("_console/network_view-DFQvZfRa.js", include_bytes!("_console/network_view-DFQvZfRa.js")),
    ("_console/style-B8iBX_rB.css", include_bytes!("_console/style-B8iBX_rB.css")),
    ("_console/time_range-CIUuGb4e.js", include_bytes!("_console/time_range-CIUuGb4e.js")),
    ("_console/tools_view-COaQH13u.js", include_bytes!("_console/tools_view-COaQH13u.js")),
    ("index.html", include_bytes!("index.html")),
];
