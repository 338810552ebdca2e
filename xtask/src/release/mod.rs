//! `cargo xtask release VERSION`: checks the checkout, builds everything that people install, signs it, writes the notes
//! and the recipes of package managers, and tags the commit. It publishes nothing: it prints the commands that do.

mod recipes;

use crate::Failure;
use crate::deny;
use crate::dist;
use crate::exec::{Cmd, cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};
use recipes::{Archive, Published};
use std::path::{Path, PathBuf};

/// The processors of a release.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
const SUMS: &str = "SHA256SUMS";
const NOTES: &str = "NOTES.md";

const USAGE: &str = "\
release knows: VERSION  --forge URL (address of the project)  --only-this-machine (one processor)  --built (files of dist/ as they are)
  --minisign-key FILE  --cosign-key FILE";

/// Options of the command line.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    version: String,
    forge: Option<String>,
    only_this_machine: bool,
    built: bool,
    minisign: Option<PathBuf>,
    cosign: Option<PathBuf>,
}

fn asked(args: &[String]) -> Result<Asked, Failure> {
    let mut asked = Asked::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| Failure::usage(format!("{arg} needs a value: {USAGE}")));
        match arg.as_str() {
            "--only-this-machine" => asked.only_this_machine = true,
            "--built" => asked.built = true,
            "--forge" => asked.forge = Some(value()?.trim_end_matches('/').to_owned()),
            "--minisign-key" => asked.minisign = Some(key_file(value()?)),
            "--cosign-key" => asked.cosign = Some(key_file(value()?)),
            version if is_version(version) && asked.version.is_empty() => asked.version = version.to_owned(),
            _ => return Err(Failure::usage(format!("unexpected `{arg}`: {USAGE}"))),
        }
    }
    match asked.version.is_empty() {
        true => Err(Failure::usage(format!("a version is missing, as 1.2.3: {USAGE}"))),
        false => Ok(asked),
    }
}

/// The path of a key. It is absolute, because the program that signs runs in `dist/`.
fn key_file(text: &str) -> PathBuf {
    std::path::absolute(text).unwrap_or_else(|_| text.into())
}

/// Whether a text is a version without a suffix.
fn is_version(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u16>().is_ok_and(|n| n.to_string() == *number))
}

/// Makes a release in `dist/`.
pub fn release(args: &[String]) -> Result<(), Failure> {
    let asked = asked(args)?;
    let mut steps = Steps::new("release");
    let made = make(&mut steps, &asked);
    let finished = steps.finish();
    let forge = made?;
    finished?;
    eprint!("{}", commands(&asked.version, forge.as_deref(), &files(&paths::dist_out())?));
    Ok(())
}

/// All steps. Returns the address of the project, if it is known.
fn make(steps: &mut Steps, asked: &Asked) -> Result<Option<String>, String> {
    let out = paths::dist_out();
    let mut notes = String::new();
    steps.step("checkout", || {
        notes = checked(&asked.version)?;
        Ok(Done::Now(format!("clean, with notes for {}", asked.version)))
    })?;
    // Before the build, which takes most of an hour.
    steps.step("keys", || keys(asked))?;
    deny::check(steps);
    if steps.has_failed() {
        return Err("crates are not as deny.toml allows: see above".to_owned());
    }
    if asked.only_this_machine {
        let here = std::env::consts::ARCH;
        steps.step("processors", || Ok(Done::But(format!("only {here} is in this release: --only-this-machine"))))?;
    }
    if !asked.built {
        let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        build(steps, &targets(&here, asked.only_this_machine), &out)?;
    }
    steps.step("files", || fit(&asked.version, &files(&out)?))?;
    let forge = asked.forge.clone().or_else(origin);
    steps.step("recipes", || match &forge {
        None => Ok(Done::Without("the address of the project is unknown; add --forge URL".to_owned())),
        Some(forge) => {
            let archives = archives(&asked.version, &out)?;
            Published { version: asked.version.clone(), forge: forge.clone(), archives }.write(&out.join("recipes"))
        }
    })?;
    steps.step("notes", || {
        paths::write(&out.join(NOTES), &notes)?;
        Ok(Done::Now(out.join(NOTES).display().to_string()))
    })?;
    steps.step("checksums", || sums(&out))?;
    steps.step("signatures", || sign(asked, &out))?;
    steps.step("tag", || tag(&asked.version, &out.join(NOTES)))?;
    Ok(forge)
}

/// The targets to build. That of this machine is first, since its program writes the manual of the other one.
fn targets(here: &str, only: bool) -> Vec<&'static str> {
    let mut all: Vec<&str> = TARGETS.into_iter().filter(|target| !only || *target == here).collect();
    all.sort_by_key(|target| *target != here);
    all
}

/// Checks that each key is there, and the program that signs with it.
fn keys(asked: &Asked) -> Result<Done, String> {
    let mut found = Vec::new();
    for (program, key) in [("minisign", &asked.minisign), ("cosign", &asked.cosign)] {
        let Some(key) = key else { continue };
        if !key.is_file() {
            return Err(format!("there is no key {}; correct --{program}-key", key.display()));
        }
        if find(program).is_none() {
            return Err(format!("{program} is missing; install it, or leave out --{program}-key"));
        }
        found.push(program);
    }
    Ok(match found.is_empty() {
        true => Done::Without("no key was given, so nothing will be signed".to_owned()),
        false => Done::Now(format!("for {}", found.join(" and "))),
    })
}

/// Checks that the files of a release are all of this version, and that the main ones are there: `dist/` may have those
/// of an older build.
fn fit(version: &str, names: &[String]) -> Result<Done, String> {
    let is_of_it = |name: &str| {
        let marks = [format!("-{version}-"), format!("_{version}-"), format!("-{version}.")];
        marks.iter().any(|mark| name.contains(mark)) && !name.contains("-dev")
    };
    let other = names.iter().find(|name| name.starts_with("watchglass") && !is_of_it(name));
    if let Some(other) = other {
        return Err(format!("dist/{other} is not of version {version}; leave --built out"));
    }
    for ending in [".whl", ".tar.gz", ".cdx.json"] {
        if !names.iter().any(|name| name.ends_with(ending)) {
            return Err(format!("dist/ has no file *{ending}; leave --built out"));
        }
    }
    Ok(Done::Now(format!("{} of version {version}", names.len())))
}

fn git(args: &[&str]) -> Result<String, String> {
    cmd("git").args(args).dir(&paths::root()).output().map(|text| text.trim().to_owned())
}

/// Checks that the commit is the release, and returns its notes.
fn checked(version: &str) -> Result<String, String> {
    if !git(&["status", "--porcelain"])?.is_empty() {
        return Err("the checkout has changes that are in no commit; commit them".to_owned());
    }
    let manifest = paths::read(&paths::root().join("Cargo.toml"))?;
    if !manifest.lines().any(|line| line == format!("version = \"{version}\"")) {
        return Err(format!("Cargo.toml has another version; write {version} there, and commit it"));
    }
    // A test compares the versions of the Python package and of the extension with that of Cargo.toml.
    section(&paths::read(&paths::root().join("CHANGELOG.md"))?, version)
}

/// The section of a version in the changelog, without its heading.
fn section(changelog: &str, version: &str) -> Result<String, String> {
    let mut lines = changelog.lines();
    let heading = lines.by_ref().find(|line| line.starts_with(&format!("## [{version}]")));
    let heading = heading
        .ok_or_else(|| format!("CHANGELOG.md has no section for {version}; rename that of unreleased changes"))?;
    let date = heading.rsplit(' ').next().unwrap_or_default();
    if date.len() != 10 || !date.chars().all(|c| c.is_ascii_digit() || c == '-') {
        return Err(format!("the heading {heading:?} has no date; write it as ## [{version}] - 2026-05-01"));
    }
    let text = lines.take_while(|line| !line.starts_with("## ")).collect::<Vec<_>>().join("\n");
    match text.trim() {
        "" => Err(format!("CHANGELOG.md says nothing about {version}")),
        text => Ok(format!("{text}\n")),
    }
}

/// Builds the files for each target, and gathers them in one folder.
fn build(steps: &mut Steps, targets: &[&str], out: &Path) -> Result<(), String> {
    let arch = |target: &str| target.split('-').next().unwrap_or_default().to_owned();
    let folder = |target: &str| paths::target().join("dist").join(format!("release-{target}"));
    for target in targets {
        steps.step(&format!("library of {target}"), || library(target))?;
        // Each build begins with an empty folder.
        dist::build(steps, target)?;
        paths::remove(&folder(target))?;
        gather(out, &folder(target), &arch(target))?;
    }
    paths::remove(out)?;
    targets.iter().try_for_each(|target| gather(&folder(target), out, &arch(target)))
}

/// Prepares Rust's library of a target.
fn library(target: &str) -> Result<Done, String> {
    if target.starts_with(std::env::consts::ARCH) {
        return Ok(Done::Already("of this machine".to_owned()));
    }
    let added = cmd("rustup").args(["target", "add", target]).output();
    added.map(|_| Done::Now("ready".to_owned())).map_err(|reason| {
        format!("{reason}. To release without {target}, add --only-this-machine, and say so in the notes")
    })
}

/// Copies files into a common folder. A file that both processors have gets the processor's name, if it differs.
fn gather(from: &Path, out: &Path, arch: &str) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(out).map_err(|e| failed(out, e))?;
    for name in files(from)?.into_iter().filter(|name| name != SUMS) {
        let (path, mut to) = (from.join(&name), out.join(&name));
        let bytes = std::fs::read(&path).map_err(|e| failed(&path, e))?;
        if to.exists() && std::fs::read(&to).map_err(|e| failed(&to, e))? != bytes {
            // Programs know an SBOM by its two endings.
            let sbom = name.strip_suffix(".cdx.json").map(|stem| (stem, "cdx.json"));
            let (stem, ending) = sbom.or_else(|| name.rsplit_once('.')).unwrap_or((&name, ""));
            to = out.join(format!("{stem}-{arch}.{ending}"));
        }
        std::fs::write(&to, bytes).map_err(|e| failed(&to, e))?;
    }
    Ok(())
}

/// Names of the files in a folder, in order.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let list = std::fs::read_dir(folder)
        .map_err(|e| format!("{}: {e}; leave --built out, so that the files are built", folder.display()))?;
    let files = list.flatten().filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The archives of the release, each with its sum.
fn archives(version: &str, out: &Path) -> Result<Vec<Archive>, String> {
    let mut found = Vec::new();
    for target in TARGETS {
        let file = format!("watchglass-{version}-{target}.tar.gz");
        if !out.join(&file).is_file() {
            continue;
        }
        let line = cmd("sha256sum").arg(&file).dir(out).output()?;
        let sha256 = line.split(' ').next().unwrap_or_default().to_owned();
        found.push(Archive { arch: target.split('-').next().unwrap_or_default().to_owned(), file, sha256 });
    }
    match found.is_empty() {
        true => Err(format!("{} has no archive of {version}; leave --built out", out.display())),
        false => Ok(found),
    }
}

/// Writes the checksums of all files, without signatures. Those of an earlier list are removed: they would be published
/// beside a list that they do not sign.
fn sums(out: &Path) -> Result<Done, String> {
    let (old, names): (Vec<String>, Vec<String>) = files(out)?.into_iter().partition(|name| name.starts_with(SUMS));
    old.iter().try_for_each(|name| paths::remove_file(&out.join(name)))?;
    let text = cmd("sha256sum").args(&names).dir(out).output()?;
    paths::write(&out.join(SUMS), &text)?;
    Ok(Done::Now(format!("{} files in {SUMS}", names.len())))
}

/// Signs the checksums, which cover all files.
fn sign(asked: &Asked, out: &Path) -> Result<Done, String> {
    let mut signed = Vec::new();
    if let Some(key) = &asked.minisign {
        let comment = format!("watchglass {}", asked.version);
        let signing = cmd("minisign").arg("-S").arg("-s").arg(key).args(["-t", &comment, "-m", SUMS]);
        signing.dir(out).with_input().run()?;
        signed.push(format!("{SUMS}.minisig"));
    }
    if let Some(key) = &asked.cosign {
        let bundle = format!("{SUMS}.cosign.bundle");
        cosign(key, &bundle).dir(out).with_input().run()?;
        signed.push(bundle);
    }
    Ok(match signed.is_empty() {
        true => Done::Without("no key was given: --minisign-key FILE or --cosign-key FILE".to_owned()),
        false => Done::Now(signed.join(", ")),
    })
}

/// The command of cosign. Without `--yes` it asks before it writes the signature to its public log, which nobody can take
/// back.
fn cosign(key: &Path, bundle: &str) -> Cmd {
    cmd("cosign").args(["sign-blob", "--bundle", bundle, "--key"]).arg(key).arg(SUMS)
}

/// Tags the commit, unless it has the tag already.
fn tag(version: &str, notes: &Path) -> Result<Done, String> {
    let name = format!("v{version}");
    if let Ok(tagged) = git(&["rev-parse", "--quiet", "--verify", &format!("refs/tags/{name}^{{commit}}")]) {
        return match tagged == git(&["rev-parse", "HEAD"])? {
            true => Ok(Done::Already(name)),
            false => {
                Err(format!("the tag {name} is at another commit; a published tag never moves: raise the version"))
            }
        };
    }
    let notes = notes.display().to_string();
    git(&["tag", "--annotate", "--cleanup=verbatim", "--file", &notes, &name])?;
    Ok(Done::Now(format!("{name}, in this repository only")))
}

/// The address of the project, from the remote `origin`, if it is one of the web.
fn origin() -> Option<String> {
    let url = git(&["remote", "get-url", "origin"]).ok()?;
    web_address(&url)
}

/// The web address of a remote: that of `git@HOST:PATH` is `https://HOST/PATH`.
fn web_address(remote: &str) -> Option<String> {
    let url = match remote.strip_prefix("git@").and_then(|rest| rest.split_once(':')) {
        Some((host, path)) => format!("https://{host}/{path}"),
        None => remote.to_owned(),
    };
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    (url.starts_with("https://") && !url.contains('@')).then(|| url.to_owned())
}

/// The commands that publish.
fn commands(version: &str, forge: Option<&str>, files: &[String]) -> String {
    let with = |ending: &str| -> Vec<String> {
        files.iter().filter(|file| file.ends_with(ending)).map(|file| format!("dist/{file}")).collect()
    };
    let wheels = with(".whl").join(" ");
    let all = files.iter().filter(|file| *file != NOTES).map(|file| format!("dist/{file}"));
    let mut text = format!("\nNothing is published. Read dist/{NOTES}, then publish with these commands:\n\n");
    text += &format!("  git push origin v{version}\n");
    text += &format!("  python3 -m twine upload {wheels}\n");
    let mut images = Vec::new();
    for image in with(".oci.tar") {
        let arch = image.trim_end_matches(".oci.tar").rsplit('-').next().unwrap_or_default().to_owned();
        text += &format!("  skopeo copy oci-archive:{image} docker://REGISTRY/watchglass:{version}-{arch}\n");
        images.push(format!("REGISTRY/watchglass:{version}-{arch}"));
    }
    // Without the tools for it there is no image.
    if !images.is_empty() {
        text += &format!("  podman manifest create watchglass:{version} {}\n", images.join(" "));
        text += &format!("  podman manifest push watchglass:{version} docker://REGISTRY/watchglass:{version}\n");
    }
    let files = all.collect::<Vec<_>>().join(" ");
    text += &format!("  gh release create v{version} --verify-tag --notes-file dist/{NOTES} {files}\n\n");
    match forge {
        None => text += "  There are no recipes; add --forge URL for those of Homebrew, conda, Nix and the AUR.\n",
        Some(forge) => {
            text += &format!(
                "The recipes in dist/recipes name {forge}. Publish them last:\n\n  \
                 homebrew/watchglass.rb  into Formula/ of your tap\n  \
                 conda/recipe.yaml       into recipes/watchglass/ of a fork of conda-forge/staged-recipes\n  \
                 nix/flake.nix           into a repository that people name to nix profile add\n  \
                 aur/PKGBUILD            into the AUR, with .SRCINFO from makepkg --printsrcinfo\n"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests;
