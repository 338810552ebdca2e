//! Contents and sizes of each released file, compared with a stored list, so that no change goes unnoticed.

use super::Release;
use crate::exec::{cmd, find};
use crate::paths;
use crate::setup;
use crate::steps::Done;
use std::collections::BTreeSet;
use std::path::Path;

/// Path of the list. `UPDATE=1 cargo xtask dist --check` rewrites it.
const LIST: &str = "xtask/dist/contents.txt";
/// Maximum change of a file's size that is not reported, percent.
const MAX_CHANGE: u64 = 10;
/// First word of a line with a size: machine, file, bytes.
const SIZE: &str = "size";

/// Compares the artifacts with the list.
pub fn check(release: &Release) -> Result<Done, String> {
    let (mut now, mut sizes) = (BTreeSet::new(), Vec::new());
    for (kind, path, names) in [
        ("wheel", release.wheel(), names_in_wheel as fn(&Path) -> Result<Option<String>, String>),
        ("archive", release.archive(), |path| cmd("tar").arg("-tzf").arg(path).output().map(Some)),
        ("deb", release.deb(), names_in_deb),
    ] {
        let Ok(meta) = std::fs::metadata(&path) else { continue };
        let Some(names) = names(&path)? else { continue };
        let files = names.lines().filter(|name| !name.is_empty() && !name.ends_with('/'));
        now.extend(files.map(|name| format!("{kind} {}", plain(release, name))));
        sizes.push((format!("{SIZE} {} {kind}", release.arch()), meta.len()));
    }
    let list = paths::root().join(LIST);
    let (kept, had): (Vec<String>, Vec<String>) =
        paths::read(&list)?.lines().map(str::to_owned).partition(|line| line.starts_with(SIZE));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let others = kept.into_iter().filter(|line| !sizes.iter().any(|(begin, _)| line.starts_with(begin)));
        let mut all: BTreeSet<String> = others.chain(sizes.iter().map(|(of, bytes)| format!("{of} {bytes}"))).collect();
        all.extend(now);
        paths::write(&list, &(all.into_iter().collect::<Vec<_>>().join("\n") + "\n"))?;
        return Ok(Done::Now(format!("{LIST} is written anew")));
    }
    // Artifacts that were not built this time are not compared.
    let made = |line: &&String| sizes.iter().any(|(of, _)| of.ends_with(line.split(' ').next().unwrap_or_default()));
    let had: BTreeSet<String> = had.iter().filter(made).cloned().collect();
    let (gone, new): (Vec<_>, Vec<_>) = (had.difference(&now).collect(), now.difference(&had).collect());
    if !gone.is_empty() || !new.is_empty() {
        return Err(format!(
            "{LIST} says otherwise: gone {gone:?}, new {new:?}; write it anew by UPDATE=1 if that is meant"
        ));
    }
    let changed: Vec<String> = sizes.iter().filter_map(|(of, bytes)| changed(&kept, of, *bytes)).collect();
    let text = format!("{} files as listed", now.len());
    if changed.is_empty() { Ok(Done::Now(text)) } else { Ok(Done::But(format!("{text}; {}", changed.join(", ")))) }
}

/// The message for a size that differs from the stored one by more than a tenth.
fn changed(kept: &[String], of: &str, bytes: u64) -> Option<String> {
    let before: u64 = kept.iter().find_map(|line| line.strip_prefix(of)?.trim().parse().ok())?;
    (bytes.abs_diff(before) * 100 > before * MAX_CHANGE).then(|| format!("{of} has {bytes} bytes and had {before}"))
}

fn names_in_wheel(path: &Path) -> Result<Option<String>, String> {
    const NAMES: &str = "import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep='\\n')";
    setup::python().map(|python| cmd(python).args(["-c", NAMES]).arg(path).output()).transpose()
}

fn names_in_deb(path: &Path) -> Result<Option<String>, String> {
    let Some(dpkg) = find("dpkg-deb") else { return Ok(None) };
    let list = cmd(dpkg).arg("-c").arg(path).output()?;
    let name = |line: &str| line.split_whitespace().nth(5).map(|name| name.trim_start_matches("./").to_owned());
    Ok(Some(list.lines().filter_map(name).collect::<Vec<_>>().join("\n")))
}

/// A name without the parts that differ between releases: version, machine, hashes of contents.
fn plain(release: &Release, name: &str) -> String {
    let named = [(release.name(), "NAME"), (release.version.clone(), "V"), (release.python_version(), "V")];
    let name = named.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from.as_str(), to));
    let is_hash = |word: &str| word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split('.').map(|word| if is_hash(word) { "HASH" } else { word }).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn a_size_is_told_of_when_it_changed_by_more_than_a_tenth() {
        let kept = ["size x86_64 wheel 1000".to_owned()];
        assert_eq!(changed(&kept, "size x86_64 wheel", 1_100), None);
        assert!(changed(&kept, "size x86_64 wheel", 1_101).is_some_and(|text| text.contains("1101")));
        assert!(changed(&kept, "size x86_64 wheel", 899).is_some());
        assert_eq!(changed(&kept, "size aarch64 wheel", 5), None, "it was never kept");
    }
}
