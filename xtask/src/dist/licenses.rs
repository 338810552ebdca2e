//! THIRD-PARTY.md: the crates in the binary and in the page, and the texts of their licenses, each text once.

use super::Release;
use crate::exec::cargo;
use crate::paths;
use crate::setup::TARGET;
use crate::steps::Done;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

/// Allowed licenses of a crate. In an expression with alternatives, one must be allowed.
const ALLOWED: [&str; 13] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "0BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Writes the file, unless a crate's license is not allowed.
pub fn write(release: &Release) -> Result<Done, String> {
    let mut crates = foreign("watchglass", &release.target)?;
    crates.extend(foreign(crate::page::PACKAGE, TARGET)?);
    let wrong: Vec<String> = crates
        .iter()
        .filter(|(_, _, license)| !is_allowed(license))
        .map(|(name, version, license)| format!("{name} {version} ({license})"))
        .collect();
    if !wrong.is_empty() {
        return Err(format!("no license of these is allowed here: {}", wrong.join(", ")));
    }
    let mut text = String::from(
        "# What others have written\n\nThese crates are in the binary, and in the page inside it. The texts of their licenses follow.\n\n| crate | version | license |\n| --- | --- | --- |\n",
    );
    let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut without = Vec::new();
    for (name, version, license) in &crates {
        let _ = writeln!(text, "| {name} | {version} | {license} |");
        let own = license_texts(name, version)?;
        if own.is_empty() {
            without.push(name.as_str());
        }
        for one in own {
            texts.entry(one).or_default().insert(name);
        }
    }
    let font = paths::read(&paths::root().join("static").join("fonts").join("LICENSE-OFL.txt"))?;
    texts.entry(font).or_default().insert("the font Inter");
    if !without.is_empty() {
        let _ = writeln!(text, "\nOf {} the license's own text holds; they bring no file of it.", without.join(", "));
    }
    for (license, names) in &texts {
        let names: Vec<&str> = names.iter().copied().collect();
        let _ = write!(text, "\n## {}\n\n```text\n{}\n```\n", names.join(", "), license.trim_end());
    }
    let path = release.out.join("THIRD-PARTY.md");
    paths::write(&path, &text)?;
    Ok(Done::Now(format!("{} crates, {} texts", crates.len(), texts.len())))
}

/// The external crates from which a package is built for a target: name, version, license.
fn foreign(package: &str, target: &str) -> Result<BTreeSet<(String, String, String)>, String> {
    let tree = ["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}"];
    let text = cargo().args(tree).args(["--package", package, "--target", target]).output()?;
    let one = |line: &str| {
        let (named, license) = line.trim_end_matches(" (*)").split_once('|')?;
        let mut words = named.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        // Crates of the workspace are followed by their path.
        (words.next().is_none_or(|more| more == "(proc-macro)")).then(|| (name.into(), version.into(), license.into()))
    };
    Ok(text.lines().filter_map(one).collect())
}

/// Whether a license expression is allowed: one alternative of OR, all parts of AND.
fn is_allowed(license: &str) -> bool {
    let plain = license.replace(['(', ')'], "").replace(" / ", " OR ").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|one| ALLOWED.contains(&one.trim())))
}

/// The license texts of a crate, from cargo's copy of its sources.
fn license_texts(name: &str, version: &str) -> Result<Vec<String>, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let sources = home.ok_or("neither CARGO_HOME nor HOME is set")?.join("registry").join("src");
    let places = std::fs::read_dir(&sources).map_err(|e| format!("{}: {e}", sources.display()))?;
    let folder =
        places.flatten().map(|entry| entry.path().join(format!("{name}-{version}"))).find(|path| path.is_dir());
    let folder = folder.ok_or_else(|| format!("the sources of {name} {version} are not here: cargo fetch"))?;
    let list = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_one = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        path.is_file()
            && ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"].iter().any(|known| name.starts_with(known))
    };
    Ok(paths.iter().filter(is_one).filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::{foreign, is_allowed};

    #[test]
    fn an_expression_needs_one_of_what_it_offers_and_all_that_holds_together() {
        for license in
            ["MIT", "MIT/Apache-2.0", "Apache-2.0 / MIT", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert!(is_allowed(license), "{license}");
        }
        for license in ["GPL-3.0", "MIT AND GPL-3.0", "", "(MIT OR GPL-2.0) AND LGPL-2.1"] {
            assert!(!is_allowed(license), "{license}");
        }
    }

    #[test]
    fn what_the_binary_is_made_of_is_allowed() {
        let crates = foreign("watchglass", "x86_64-unknown-linux-gnu").expect("cargo tells");
        assert!(crates.len() > 50 && crates.iter().all(|(name, ..)| name != "watchglass-shared"), "{}", crates.len());
        let wrong: Vec<_> = crates.iter().filter(|(_, _, license)| !is_allowed(license)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
