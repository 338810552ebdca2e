//! Puts the fake tool into the folder of a test under the name of a vendor's tool.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Makes a tool called `name` in `dir` that plays the steps in `play`. The tool's own documentation lists the steps.
/// Files that it prints must be in `dir`. Each start adds a line with its arguments to `<name>.log`.
pub fn place(dir: &Path, name: &str, play: &str) -> PathBuf {
    let tool = dir.join(name);
    std::fs::write(dir.join(format!("{name}.play")), play).expect("the test's folder can be written");
    #[cfg(unix)]
    let placed = std::os::unix::fs::symlink(binary(), &tool);
    #[cfg(not(unix))]
    let placed = std::fs::copy(binary(), &tool).map(drop);
    match placed {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{}: {error}", tool.display()),
        _ => tool,
    }
}

/// The arguments of each start of the tool so far.
pub fn starts(tool: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(tool.with_extension("log")).unwrap_or_default();
    log.lines().map(str::to_string).collect()
}

/// The binary of the tool, in the folder of the test's binary. `cargo test -p` does not build the binary of another
/// package. So it is built here when it is missing or older than its source.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let profile = test.ancestors().nth(2).expect("a test lies in target/<profile>/deps");
        let binary = profile.join(format!("fake-tool{}", std::env::consts::EXE_SUFFIX));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("main.rs");
        let changed = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
        if changed(&binary).is_none_or(|built| Some(built) < changed(&source)) {
            build();
        }
        assert!(binary.is_file(), "{} is missing: cargo build -p watchglass-fake-tool", binary.display());
        binary
    })
}

#[allow(clippy::disallowed_methods, reason = "cargo, in tests only")]
fn build() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args(["build", "--quiet", "--package", "watchglass-fake-tool"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "cargo build -p watchglass-fake-tool failed");
}
