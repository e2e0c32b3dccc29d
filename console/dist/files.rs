//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/access_view-Bhvd4IiM.js", include_bytes!("_console/access_view-Bhvd4IiM.js")),
    ("_console/chart_box-DlFxpwNN.js", include_bytes!("_console/chart_box-DlFxpwNN.js")),
    ("_console/chart_pane-BSlOAMd4.js", include_bytes!("_console/chart_pane-BSlOAMd4.js")),
    ("_console/console-1_dfICbr.js", include_bytes!("_console/console-1_dfICbr.js")),
    ("_console/editor-BSXPqtHE.js", include_bytes!("_console/editor-BSXPqtHE.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/logs_view-DZPIyzli.js", include_bytes!("_console/logs_view-DZPIyzli.js")),
    ("_console/metrics_view-DJnKFfsg.js", include_bytes!("_console/metrics_view-DJnKFfsg.js")),
    ("_console/style-DSr_FUc5.css", include_bytes!("_console/style-DSr_FUc5.css")),
    ("_console/time_range-i17u196k.js", include_bytes!("_console/time_range-i17u196k.js")),
    ("_console/tools_view-DMSHBPAY.js", include_bytes!("_console/tools_view-DMSHBPAY.js")),
    ("index.html", include_bytes!("index.html")),
];
