//! `cargo xtask dist`: the installable artifacts, in `dist/`. The wheel, the archive, the Debian package and the image
//! contain the same binary, which needs glibc 2.17 or newer.
//!
//! Two builds of one commit are identical: times are that of the commit, names are in order, and paths of this machine
//! are replaced.

mod archive;
mod check;
mod clean_root;
mod contents;
mod deb;
mod image;
mod licenses;
mod readme;
mod serving;
mod wheel;

use crate::Failure;
use crate::book;
use crate::exec::{cmd, find};
use crate::page;
use crate::paths;
use crate::setup::{self, PageFor};
use crate::steps::{Done, Steps};
use std::path::{Path, PathBuf};

/// Maximum version of glibc's symbols in a released binary.
const GLIBC: (u32, u32) = (2, 17);

/// The release to build.
#[derive(Clone)]
struct Release {
    /// The version in Cargo.toml, with the suffix `-dev` when it is not a release.
    version: String,
    /// The target triple.
    target: String,
    /// Seconds since the Unix epoch: the time of the commit.
    time: String,
    /// Abbreviated hash of the commit.
    commit: String,
    /// Date of the commit.
    date: String,
    /// Output folder of the artifacts.
    out: PathBuf,
    /// Work folder in which they are assembled.
    work: PathBuf,
}

/// Options of the command line.
struct Asked {
    only: Option<String>,
    target: String,
    snapshot: bool,
    check: bool,
}

const USAGE: &str = "\
dist knows: --only wheel|archive|deb|image  --target x86_64-unknown-linux-gnu|aarch64-unknown-linux-gnu  --snapshot  --check";

fn asked(args: &[String]) -> Result<Asked, Failure> {
    let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut asked = Asked { only: None, target: here, snapshot: false, check: false };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match (arg.as_str(), rest.clone().next().map(String::as_str)) {
            ("--snapshot", _) => asked.snapshot = true,
            ("--check", _) => asked.check = true,
            ("--only", Some("wheel" | "archive" | "deb" | "image")) => asked.only = rest.next().cloned(),
            ("--target", Some("x86_64-unknown-linux-gnu" | "aarch64-unknown-linux-gnu")) => {
                asked.target = rest.next().cloned().unwrap_or_default();
            }
            _ => return Err(Failure::usage(format!("unexpected `{arg}`: {USAGE}"))),
        }
    }
    Ok(asked)
}

/// Builds the release, or with `--check` tests it.
pub fn dist(args: &[String]) -> Result<(), Failure> {
    let asked = asked(args)?;
    let mut steps = Steps::new("dist");
    let release = release(&asked)?;
    if !asked.check {
        make(&mut steps, &release, asked.only.as_deref())?;
    } else {
        check::all(&mut steps, &release);
    }
    Ok(steps.finish()?)
}

/// Builds the release for a target, from a checkout without changes.
pub fn build(steps: &mut Steps, target: &str) -> Result<(), String> {
    let asked = Asked { only: None, target: target.to_owned(), snapshot: false, check: false };
    make(steps, &release(&asked)?, None)
}

fn release(asked: &Asked) -> Result<Release, String> {
    let root = paths::root();
    let git = |args: &[&str]| cmd("git").args(args).dir(&root).output().map(|text| text.trim().to_owned());
    let cargo = paths::read(&root.join("Cargo.toml"))?;
    let version = cargo.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let mut version = version.ok_or("Cargo.toml has no version")?.to_owned();
    if asked.snapshot {
        version += "-dev";
    } else if !asked.check {
        if !git(&["status", "--porcelain"])?.is_empty() {
            return Err("the checkout has changes that are in no commit; commit them, or add --snapshot".to_owned());
        }
        let changes = paths::read(&root.join("CHANGELOG.md"))?;
        if !changes.lines().any(|line| line.starts_with(&format!("## [{version}]"))) {
            return Err(format!("CHANGELOG.md has no section for {version}; add one with its date, or add --snapshot"));
        }
    }
    let work = paths::target().join("dist").join("work");
    std::fs::create_dir_all(&work).map_err(|e| format!("{} could not be made: {e}", work.display()))?;
    let (target, time) = (asked.target.clone(), git(&["log", "-1", "--format=%ct"])?);
    let (mut commit, date) = (git(&["rev-parse", "--short=12", "HEAD"])?, git(&["log", "-1", "--format=%cs"])?);
    // The sources of a snapshot may differ from every commit.
    if !git(&["status", "--porcelain"])?.is_empty() {
        commit += "+";
    }
    Ok(Release { version, target, time, commit, date, out: paths::dist_out(), work })
}

fn make(steps: &mut Steps, release: &Release, only: Option<&str>) -> Result<(), String> {
    let wants = |name: &str| only.is_none_or(|only| only == name);
    let tools = setup::page_tools(steps, PageFor::Release)?;
    let packers = setup::packers(steps)?;
    if setup::jupyter(steps).is_none() {
        return Err("the wheel holds the extension for JupyterLab, which could not be made: see above".to_owned());
    }
    steps.step(page::STEP, || page::build(&tools, PageFor::Release))?;
    book::ready(steps)?;
    paths::remove(&release.out)?;
    steps.step("licenses", || licenses::write(release))?;
    steps.step("wheel", || wheel::build(release, &packers))?;
    steps.step("binary", || wheel::binary(release, &packers))?;
    // The packages contain the manual that the binary writes.
    steps.step("manual and completions", || archive::words(release))?;
    if wants("archive") {
        steps.step("archive", || archive::build(release))?;
    }
    if wants("deb") {
        steps.step("package for Debian", || deb::build(release))?;
    }
    if wants("image") {
        steps.step("image for containers", || image::build(release))?;
    }
    if !wants("wheel") {
        paths::remove_file(&release.wheel())?;
    }
    steps.step("checksums", || sums(release))
}

impl Release {
    fn arch(&self) -> &str {
        self.target.split('-').next().unwrap_or("x86_64")
    }

    /// The version in Python's format.
    fn python_version(&self) -> String {
        self.version.replace("-dev", "")
    }

    fn wheel(&self) -> PathBuf {
        let arch = self.arch();
        let tags = format!("py3-none-manylinux2014_{arch}.manylinux_2_17_{arch}");
        self.out.join(format!("watchglass-{}-{tags}.whl", self.python_version()))
    }

    /// The archive's name without its extension, which is also the name of the folder in it.
    fn name(&self) -> String {
        format!("watchglass-{}-{}", self.version, self.target)
    }

    fn archive(&self) -> PathBuf {
        self.out.join(format!("{}.tar.gz", self.name()))
    }

    fn deb(&self) -> PathBuf {
        self.out.join(format!("watchglass_{}-1_{}.deb", self.version.replace("-dev", "~dev"), self.debian_arch()))
    }

    fn debian_arch(&self) -> &'static str {
        if self.arch() == "aarch64" { "arm64" } else { "amd64" }
    }

    fn image(&self) -> PathBuf {
        self.out.join(format!("watchglass-{}-{}.oci.tar", self.version, image::architecture(self)))
    }

    /// The binary in all artifacts.
    fn binary(&self) -> PathBuf {
        self.work.join("watchglass")
    }

    /// Whether it runs on this machine.
    fn runs_here(&self) -> bool {
        self.arch() == std::env::consts::ARCH
    }

    /// Whether the kernel of this machine has an emulator registered for it.
    fn is_emulated_here(&self) -> bool {
        Path::new("/proc/sys/fs/binfmt_misc").join(format!("qemu-{}", self.arch())).exists()
    }
}

/// Writes SHA256SUMS and prints the table of artifacts.
fn sums(release: &Release) -> Result<Done, String> {
    let list = std::fs::read_dir(&release.out).map_err(|e| format!("{}: {e}", release.out.display()))?;
    let mut names: Vec<String> = list.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let text = cmd("sha256sum").args(&names).dir(&release.out).output()?;
    paths::write(&release.out.join("SHA256SUMS"), &text)?;
    eprintln!("{:>11}  {:16}  file", "bytes", "SHA-256");
    for line in text.lines() {
        let Some((sum, name)) = line.split_once("  ") else { continue };
        let bytes = std::fs::metadata(release.out.join(name)).map_or(0, |meta| meta.len());
        eprintln!("{bytes:>11}  {:16}  {name}", &sum[..16.min(sum.len())]);
    }
    let glibc = newest_glibc(&release.binary())?;
    Ok(Done::Now(format!("{}; the binary asks for glibc {}.{}", release.out.display(), glibc.0, glibc.1)))
}

/// The newest version of glibc among the non-weak symbols of a binary.
fn newest_glibc(binary: &Path) -> Result<(u32, u32), String> {
    let objdump = find("objdump").ok_or("objdump is missing; install binutils")?;
    let text = cmd(objdump).arg("-T").arg(binary).output()?;
    let versions = text.lines().filter(|line| !line.contains(" w ")).filter_map(|line| {
        let (_, version) = line.split_once("GLIBC_")?;
        let mut numbers = version.split([')', ' ', '.']).map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max().ok_or_else(|| format!("{} asks for no glibc", binary.display()))
}

/// Packs a part of a folder and compresses it.
fn tar(release: &Release, folder: &Path, inside: &str, to: &Path) -> Result<(), String> {
    let plain = to.with_extension("");
    pack(release, folder, &[inside], &plain)?;
    // Without the file's name and time.
    cmd("gzip").args(["-9", "-n", "-f"]).arg(&plain).run()
}

/// Packs parts of a folder with names in order, owner 0, and the time of the commit.
fn pack(release: &Release, folder: &Path, inside: &[&str], to: &Path) -> Result<(), String> {
    let order = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", "--mode=go=rX,u+rw,a-s"];
    let packing = cmd("tar").args(order).arg(format!("--mtime=@{}", release.time)).arg("-cf").arg(to);
    let there = inside.iter().filter(|name| folder.join(name).exists());
    packing.arg("-C").arg(folder).args(there).run()
}
