//! The files of the console, written by its build.

/// Each file with its path below the address of the server.
pub(super) static FILES: &[(&str, &[u8])] = &[
    ("_console/access_view-Cc4pAYgd.js", include_bytes!("_console/access_view-Cc4pAYgd.js")),
    ("_console/chart_box-BjQL5Tl4.js", include_bytes!("_console/chart_box-BjQL5Tl4.js")),
    ("_console/chart_pane-ChTWW9w3.js", include_bytes!("_console/chart_pane-ChTWW9w3.js")),
    ("_console/console-B18PBPqW.js", include_bytes!("_console/console-B18PBPqW.js")),
    ("_console/editor-hS7kxkhj.js", include_bytes!("_console/editor-hS7kxkhj.js")),
    ("_console/favicon-U-7fjHfS.svg", include_bytes!("_console/favicon-U-7fjHfS.svg")),
    ("_console/licences.txt", include_bytes!("_console/licences.txt")),
    ("_console/logs_view-Ds0va58w.js", include_bytes!("_console/logs_view-Ds0va58w.js")),
    ("_console/metrics_view-BD-wicPX.js", include_bytes!("_console/metrics_view-BD-wicPX.js")),
    ("_console/style-kennjNXQ.css", include_bytes!("_console/style-kennjNXQ.css")),
    ("_console/time_range-CYTLXx0s.js", include_bytes!("_console/time_range-CYTLXx0s.js")),
    ("_console/tools_view-D0k3pSut.js", include_bytes!("_console/tools_view-D0k3pSut.js")),
    ("index.html", include_bytes!("index.html")),
];
