//! Chromium and chromedriver, which only the browser tests need.

use super::apt;
use crate::exec::{cmd, find};
use crate::steps::Done;

/// Finds both programs, or installs them if that is possible.
pub fn ready() -> Result<Done, String> {
    if let Some(version) = found() {
        return Ok(Done::Already(version));
    }
    eprintln!("    Chromium and its driver run the tests of the page.");
    apt::install(&["chromium", "chromium-driver"])
        .map_err(|reason| format!("the browser tests need Chromium and chromedriver of the same version: {reason}"))?;
    found().map(Done::Now).ok_or_else(|| "chromium and chromedriver are installed but not on PATH".to_owned())
}

fn found() -> Option<String> {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(find)?;
    find("chromedriver")?;
    let version = cmd(browser).arg("--version").output().ok()?;
    version.lines().next().map(|line| line.trim().to_owned())
}
