//! The installation lines of README, run unchanged.

use super::Release;
use crate::exec::{cmd, find};
use crate::paths;
use crate::setup;
use crate::steps::Done;
use std::path::Path;

/// The section of README that contains them.
const PART: &str = "## Without a compiler";
/// Programs that only some machines have, or that need the network or root. Their lines are counted, not run.
const ELSEWHERE: [&str; 2] = ["sudo", "podman"];

/// Runs them in a folder with only the files, and a Python environment for those that pip installs.
pub fn check(release: &Release, scratch: &Path) -> Result<Done, String> {
    let Some(python) = setup::python() else { return Ok(Done::Without("Python is missing".to_owned())) };
    if !release.wheel().is_file() || !release.runs_here() {
        return Ok(Done::Without("there is no wheel for this machine".to_owned()));
    }
    let (folder, python_home) = (scratch.join("files"), scratch.join("python"));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in [release.wheel(), release.archive(), release.deb(), release.image()] {
        if file.is_file() {
            cmd("cp").arg(&file).arg(&folder).run()?;
        }
    }
    cmd(python).args(["-m", "venv"]).arg(&python_home).run()?;
    let (mut ran, mut left) = (Vec::new(), Vec::new());
    for line in lines(&paths::read(&paths::root().join("README.md"))?) {
        let program = line.split(' ').next().unwrap_or_default().to_owned();
        if ELSEWHERE.contains(&program.as_str()) {
            left.push(program);
            continue;
        }
        // A line that starts a server is ended once the server has printed its address.
        let ends = "s=$(mktemp -u); mkfifo $s; (exec timeout 60 sh -c \"$1\" > $s) & read first < $s; kill %1 2> /dev/null; \
                    echo \"$first\"";
        let starts = line.ends_with("/watchglass");
        let shell = cmd(find("bash").ok_or("bash is missing")?).dir(&folder).path_first(&[python_home.join("bin")]);
        let shell = shell.env("PIP_NO_INDEX", "1").env("PIP_DISABLE_PIP_VERSION_CHECK", "1").env("PIP_QUIET", "1");
        let shell = shell.env("XDG_STATE_HOME", scratch.join("state"));
        let said = if starts { shell.args(["-mc", ends, "bash", &line]) } else { shell.args(["-c", &line]) }.output();
        let said = said.map_err(|why| format!("`{line}` fails: {why}"))?;
        if starts && !said.starts_with("http://") {
            return Err(format!("`{line}` does not say where the page is: {said}"));
        }
        ran.push(program);
    }
    let version = cmd(python_home.join("bin").join("watchglass")).arg("--version").output()?;
    if ran.is_empty() || !version.contains(&release.python_version()) {
        return Err(format!("after README's lines there is no watchglass of this version: {version}"));
    }
    let ran = format!("run as they stand: {}", ran.join(", "));
    if left.is_empty() {
        Ok(Done::Now(ran))
    } else {
        Ok(Done::But(format!("{ran}; not run here: {}", left.join(", "))))
    }
}

/// The lines of the first code block in that section, without their comments.
fn lines(readme: &str) -> Vec<String> {
    let part = readme.split_once(PART).map_or("", |(_, rest)| rest);
    let block = part.split("```").nth(1).unwrap_or_default();
    let plain = |line: &str| line.split_once(" #").map_or(line, |(line, _)| line).trim().to_owned();
    block.lines().skip(1).map(plain).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_are_those_of_the_first_block_without_comments() {
        let text = "```sh\nno\n```\n## Without a compiler\nwords\n```sh\npip install x   # so\ntar xf x\n\n```\n```sh\nno\n```";
        assert_eq!(lines(text), ["pip install x", "tar xf x"]);
        let readme = include_str!("../../../README.md");
        assert!(lines(readme).len() >= 4 && lines(readme)[0].starts_with("pip install "), "{:?}", lines(readme));
    }
}
