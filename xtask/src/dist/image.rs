//! The container image: an OCI layout in one file, assembled without a daemon, a registry or an image tool. It contains
//! the binary, Debian's C library, and the certificates that the system trusts, but no shell.

use super::{Release, pack};
use crate::exec::{cmd, find};
use crate::paths;
use crate::setup;
use crate::steps::Done;
use std::path::{Path, PathBuf};

/// The user id under which it runs; the group has the same number.
const USER: u32 = 65_532;

/// Name of the machine in Docker and Kubernetes.
pub fn architecture(release: &Release) -> &'static str {
    if release.arch() == "aarch64" { "arm64" } else { "amd64" }
}

/// Builds it, or returns the reason why it is skipped.
pub fn build(release: &Release) -> Result<Done, String> {
    if !release.runs_here() {
        return Ok(Done::Without(format!("there is no image for {}: it is made on such a machine", release.target)));
    }
    let (base, packages) = match setup::image_base()? {
        Ok(base) => base,
        Err(why) => return Ok(Done::Without(format!("there is no image: {why}"))),
    };
    let (root, layout) = (release.work.join("image"), release.work.join("layout"));
    paths::remove(&root)?;
    paths::remove(&layout)?;
    fill(release, &base, &root)?;
    let blobs = layout.join("blobs").join("sha256");
    std::fs::create_dir_all(&blobs).map_err(|e| format!("{}: {e}", blobs.display()))?;
    let plain = release.work.join("layer.tar");
    pack(release, &root, &["etc", "lib", "lib64", "usr"], &plain)?;
    // The one folder that its user owns: a volume takes the ownership of the folder that it covers.
    let theirs = [format!("--owner={USER}"), format!("--group={USER}"), format!("--mtime=@{}", release.time)];
    let append =
        cmd("tar").args(["-r", "--format=gnu", "--numeric-owner", "--mode=0755"]).args(theirs).arg("-f").arg(&plain);
    append.arg("-C").arg(&root).arg("data").run()?;
    cmd("gzip").args(["-9", "-n", "-k", "-f"]).arg(&plain).run()?;
    let packed = plain.with_added_extension("gz");
    let diff = sha256(&plain)?;
    let layer = keep(&blobs, &packed)?;
    let config = blob(&blobs, &release.work, &config(release, &diff, &packages))?;
    let manifest = blob(&blobs, &release.work, &manifest(&config, &layer))?;
    paths::write(&layout.join("index.json"), &index(release, &manifest))?;
    paths::write(&layout.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}")?;
    paths::remove_file(&plain)?;
    pack(release, &layout, &["blobs", "index.json", "oci-layout"], &release.image())?;
    let bytes = std::fs::metadata(release.image()).map_or(0, |meta| meta.len());
    Ok(Done::Now(format!("{} ({:.1} MB; {packages})", release.image().display(), bytes as f64 / 1e6)))
}

/// Assembles the root of the image.
fn fill(release: &Release, base: &Path, root: &Path) -> Result<(), String> {
    let at = |path: &str| root.join(path);
    let arch = format!("{}-linux-gnu", release.arch());
    for folder in ["usr/bin", "etc/ssl/certs", "data"] {
        std::fs::create_dir_all(at(folder)).map_err(|e| format!("{folder}: {e}"))?;
    }
    for folder in [format!("lib/{arch}"), "lib64".to_owned()] {
        if base.join(&folder).is_dir() {
            std::fs::create_dir_all(at(&folder)).map_err(|e| format!("{folder}: {e}"))?;
            // Links are copied as links.
            cmd("cp").args(["-a", "-T"]).arg(base.join(&folder)).arg(at(&folder)).run()?;
        }
    }
    cmd("cp").arg(release.binary()).arg(at("usr/bin/watchglass")).run()?;
    cmd("chmod").arg("755").arg(at("usr/bin/watchglass")).run()?;
    paths::write(&at("etc/ssl/certs/ca-certificates.crt"), &authorities(base)?)?;
    // Host names in files precede DNS: a pod has some of its own.
    paths::write(&at("etc/nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    let people = format!("root:x:0:0:root:/:/\nwatchglass:x:{USER}:{USER}:watchglass:/data:/\n");
    paths::write(&at("etc/passwd"), &people)?;
    paths::write(&at("etc/group"), &format!("root:x:0:\nwatchglass:x:{USER}:\n"))
}

/// All certificates that the system trusts, in one file.
fn authorities(base: &Path) -> Result<String, String> {
    let folder = base.join("usr/share/ca-certificates/mozilla");
    let list = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().map(|file| paths::read(file)).collect()
}

/// Digest and size of a blob.
struct Blob {
    digest: String,
    bytes: u64,
}

pub fn sha256(file: &Path) -> Result<String, String> {
    let told = cmd("sha256sum").arg(file).output()?;
    told.split_whitespace().next().map(str::to_owned).ok_or_else(|| format!("{} has no sum", file.display()))
}

/// Moves a file to the blobs.
fn keep(blobs: &Path, file: &Path) -> Result<Blob, String> {
    let digest = sha256(file)?;
    let bytes = std::fs::metadata(file).map_err(|e| format!("{}: {e}", file.display()))?.len();
    std::fs::rename(file, blobs.join(&digest)).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(Blob { digest, bytes })
}

fn blob(blobs: &Path, work: &Path, text: &str) -> Result<Blob, String> {
    let file = work.join("blob.json");
    paths::write(&file, text)?;
    keep(blobs, &file)
}

/// The time of the commit in RFC 3339.
fn created(release: &Release) -> String {
    let told = cmd("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]).arg(format!("@{}", release.time)).output();
    told.map(|text| text.trim().to_owned()).unwrap_or_default()
}

// The texts in these need no JSON escapes: versions, digests, names of packages.
fn config(release: &Release, diff: &str, packages: &str) -> String {
    let (created, arch) = (created(release), architecture(release));
    let Release { version, commit, .. } = release;
    format!(
        "{{\"architecture\":\"{arch}\",\"config\":{{\
         \"Cmd\":[\"serve\",\"--root\",\"/host\",\"--data-dir\",\"/data\"],\
         \"Entrypoint\":[\"/usr/bin/watchglass\"],\
         \"Env\":[\"PATH=/usr/bin\",\"NVIDIA_VISIBLE_DEVICES=all\",\"NVIDIA_DRIVER_CAPABILITIES=utility\"],\
         \"ExposedPorts\":{{\"7171/tcp\":{{}}}},\
         \"Labels\":{{\
         \"org.opencontainers.image.description\":\"A live dashboard for the machines that train models\",\
         \"org.opencontainers.image.licenses\":\"MIT OR Apache-2.0\",\
         \"org.opencontainers.image.revision\":\"{commit}\",\
         \"org.opencontainers.image.title\":\"watchglass\",\
         \"org.opencontainers.image.version\":\"{version}\",\
         \"watchglass.base\":\"{packages}\"}},\
         \"StopSignal\":\"SIGTERM\",\"User\":\"{USER}:{USER}\",\"Volumes\":{{\"/data\":{{}}}},\"WorkingDir\":\"/data\"}},\
         \"created\":\"{created}\",\
         \"history\":[{{\"created\":\"{created}\",\"created_by\":\"cargo xtask dist\"}}],\
         \"os\":\"linux\",\"rootfs\":{{\"diff_ids\":[\"sha256:{diff}\"],\"type\":\"layers\"}}}}"
    )
}

fn manifest(config: &Blob, layer: &Blob) -> String {
    let described = |kind: &str, blob: &Blob| {
        let Blob { digest, bytes } = blob;
        format!(
            "{{\"mediaType\":\"application/vnd.oci.image.{kind}\",\"digest\":\"sha256:{digest}\",\"size\":{bytes}}}"
        )
    };
    format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":{},\"layers\":[{}]}}",
        described("config.v1+json", config),
        described("layer.v1.tar+gzip", layer)
    )
}

fn index(release: &Release, manifest: &Blob) -> String {
    let Blob { digest, bytes } = manifest;
    format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\"manifests\":[\
         {{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:{digest}\",\"size\":{bytes},\
         \"platform\":{{\"architecture\":\"{}\",\"os\":\"linux\"}},\
         \"annotations\":{{\"org.opencontainers.image.ref.name\":\"watchglass:{}\"}}}}]}}",
        architecture(release),
        release.version
    )
}

/// Unpacks it and reads it as a runtime does: each blob matches its digest and leads to the next.
pub fn check(release: &Release, scratch: &Path) -> Result<Done, String> {
    if !release.image().is_file() {
        return Ok(Done::Without("there is no image here".to_owned()));
    }
    let layout = scratch.join("layout");
    let root = scratch.join("root");
    for folder in [&layout, &root] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    cmd("tar").arg("-xf").arg(release.image()).arg("-C").arg(&layout).run()?;
    let blobs = layout.join("blobs").join("sha256");
    let list = std::fs::read_dir(&blobs).map_err(|e| format!("{}: {e}", blobs.display()))?;
    for file in list.flatten().map(|entry| entry.path()) {
        let digest = sha256(&file)?;
        if file.file_name().is_none_or(|name| name.to_string_lossy() != digest) {
            return Err(format!("{} has the sum {digest}", file.display()));
        }
    }
    let manifest = blobs.join(named(&paths::read(&layout.join("index.json"))?, "digest")?);
    let manifest = paths::read(&manifest)?;
    let (config, layer) = manifest.split_once("\"layers\"").ok_or("its manifest has no layers")?;
    let (config, layer) = (blobs.join(named(config, "digest")?), blobs.join(named(layer, "digest")?));
    for file in [&config, &layer] {
        let bytes = std::fs::metadata(file).map_err(|e| format!("{}: {e}", file.display()))?.len();
        if !manifest.contains(&format!("\"size\":{bytes}}}")) {
            return Err(format!("{} has {bytes} bytes, and its manifest says otherwise", file.display()));
        }
    }
    let config = paths::read(&config)?;
    let plain = scratch.join("layer.tar");
    cmd("cp").arg(&layer).arg(plain.with_added_extension("gz")).run()?;
    cmd("gzip").arg("-d").arg(plain.with_added_extension("gz")).run()?;
    if !config.contains(&format!("\"diff_ids\":[\"sha256:{}\"]", sha256(&plain)?)) {
        return Err("the layer is not the one that its configuration names".to_owned());
    }
    if !config.contains(&format!("\"User\":\"{USER}:{USER}\"")) {
        return Err("it runs as root".to_owned());
    }
    cmd("tar").arg("-xf").arg(&plain).arg("-C").arg(&root).run()?;
    cmd("cmp").arg(root.join("usr/bin/watchglass")).arg(release.binary()).run()?;
    let run = |args: &[&str]| {
        let unshare = ["--user", "--map-root-user", "--root"];
        cmd("unshare").args(unshare).arg(&root).arg("/usr/bin/watchglass").args(args).output()
    };
    let mut told = vec![format!("as its digests say; it runs: {}", run(&["--version"])?.trim())];
    if !run(&["doctor"])?.contains("cpu") {
        return Err("doctor says nothing of the CPU in it".to_owned());
    }
    match find("skopeo") {
        Some(skopeo) => {
            cmd(skopeo).arg("inspect").arg(format!("oci-archive:{}", release.image().display())).output()?;
            told.push("skopeo reads it".to_owned());
        }
        None => return Ok(Done::But(format!("{}; not read by skopeo, which is missing", told.join("; ")))),
    }
    Ok(Done::Now(told.join("; ")))
}

/// The SHA-256 digest under a key, in JSON that we wrote.
fn named(text: &str, key: &str) -> Result<String, String> {
    let rest = text.split_once(&format!("\"{key}\":\"sha256:")).map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split('"').next())
        .map(str::to_owned)
        .ok_or_else(|| format!("there is no {key} in {text}"))
}
