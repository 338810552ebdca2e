//! Measures our cost in notebooks: in the kernel, in Jupyter, and in JupyterLab in the browser.

use crate::cost::cpu_of;
use crate::table::Table;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use watchglass_tests::browser::Browser;
use watchglass_tests::jupyter::{Home, Jupyter};

/// Number of cells that run while the hooks are timed.
const CELLS: &str = "2000";
/// Duration of the measurement of Jupyter, without a page and with one.
const MEASURED_TIME: Duration = Duration::from_secs(40);
/// Number of starts of JupyterLab, with the extension and without. The median counts.
const STARTS: usize = 7;
const ROWS: [(&str, &str); 5] = [
    ("CPU of %load_ext watchglass", "20 ms"),
    ("CPU of the hooks a cell, median", ""),
    ("CPU of the hooks a cell, worst", "0.5 ms"),
    ("relaying a tab costs Jupyter, of one core", "0.5 %"),
    ("JupyterLab's start takes longer by, CPU of its main thread", "20 ms"),
];

/// Measures all rows, if JupyterLab is installed.
pub fn measure(table: &mut Table) {
    let figures = match std::env::var_os("WATCHGLASS_JUPYTER").map(PathBuf::from) {
        None => Err("JupyterLab is missing, see cargo xtask test".to_string()),
        Some(environment) => in_kernel(&environment),
    };
    match figures {
        Err(why) => ROWS.into_iter().for_each(|(what, goal)| table.missing(what, goal, &why)),
        Ok([load, median, worst]) => {
            let home = Home::new();
            let cells = format!("IPython, {CELLS} cells, nobody takes the markers");
            let (starts, watched) =
                (format!("medians of {STARTS} each"), format!("{} s each", MEASURED_TIME.as_secs()));
            let rows = [
                (load, "ms", 20.0, "IPython, the package compiled, its shell warm"),
                (median, "ms", f64::INFINITY, &*cells),
                (worst, "ms", 0.5, &*cells),
                (relaying(&home), "%", 0.5, &*watched),
                (longer_start(&home), "ms", 20.0, &*starts),
            ];
            for ((what, goal), (figure, unit, most, on)) in ROWS.into_iter().zip(rows) {
                table.at_most(what, figure, unit, most, goal, "", on);
            }
        }
    }
}

/// CPU milliseconds: for loading the package, for its hooks per cell, and the maximum of those.
fn in_kernel(environment: &std::path::Path) -> Result<[f64; 3], String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/notebook.py");
    let run = || {
        #[allow(clippy::disallowed_methods, reason = "the bench starts Python itself")]
        let mut python = Command::new(environment.join("bin/python"));
        python.args([here, CELLS]).env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/../notebook/python"));
        python.env_remove("PYTHONDONTWRITEBYTECODE").env("PYTHONPYCACHEPREFIX", folder.path().join("compiled"));
        for home in ["HOME", "XDG_STATE_HOME", "IPYTHONDIR"] {
            python.env(home, folder.path());
        }
        let output = python.output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().last().unwrap_or_default();
        let figures: Vec<f64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
        <[f64; 3]>::try_from(figures).map_err(|_| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    // Python compiles it at the first start, as pip does on installation.
    run()?;
    run()
}

/// Additional CPU of Jupyter with a live tab, in percent of a core.
fn relaying(home: &Home) -> f64 {
    let jupyter = home.jupyter();
    let browser = Browser::alone();
    browser.open(&jupyter.url("watchglass/"));
    browser.until("document.documentElement.dataset.link === 'live'");
    let busy = busy(&jupyter);
    drop(browser);
    busy - self::busy(&jupyter)
}

/// CPU of Jupyter in percent of a core.
fn busy(jupyter: &Jupyter) -> f64 {
    let process = jupyter.id().to_string();
    let (begin, before) = (Instant::now(), cpu_of(&process));
    std::thread::sleep(MEASURED_TIME);
    (cpu_of(&process) - before).as_secs_f64() / begin.elapsed().as_secs_f64() * 100.0
}

/// Additional CPU time of Lab's main thread at its start with our extension, ms.
fn longer_start(home: &Home) -> f64 {
    let settings = home.at("config/labconfig");
    std::fs::create_dir_all(&settings).expect("made");
    let with = home.jupyter();
    std::fs::write(settings.join("page_config.json"), "{\"disabledExtensions\": {\"watchglass-lab\": true}}")
        .expect("written");
    let without = home.jupyter();
    let took = |jupyter: &Jupyter| {
        let browser = Browser::alone();
        browser.open(&jupyter.url("lab?reset"));
        browser.until("!!window.jupyterapp && !!document.querySelector('.jp-LauncherCard')");
        browser.main_thread()
    };
    // In turns, so that other load on the machine affects both.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        ours.push(took(&with));
        theirs.push(took(&without));
    }
    median(ours) - median(theirs)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
