//! `cargo xtask fuzz`: feeds the inputs of a fuzzer to every decoder, for a minute each.
//!
//! It is not part of `test`, because the instrumentation needs a nightly compiler, and the fuzzer a C++ compiler.

use crate::Failure;
use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::{Done, Steps};

/// The targets; each is the file tests/fuzz/src/bin/NAME.rs.
const TARGETS: [&str; 6] = ["column", "tick", "segment", "log", "wire", "import"];

/// Compiler flags of the fuzzer: coverage of edges and comparisons, and the address sanitizer.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address";

/// Runs the named targets, or all of them, for `--seconds N` each.
pub fn fuzz(args: &[String]) -> Result<(), Failure> {
    let (mut seconds, mut targets) = ("60", Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let given = args.next().filter(|n| n.parse::<u32>().is_ok_and(|n| n > 0));
                seconds = given.ok_or_else(|| Failure::usage("--seconds takes a number above 0".to_owned()))?;
            }
            name if TARGETS.contains(&name) => targets.push(name),
            other => {
                let known = TARGETS.join(", ");
                return Err(Failure::usage(format!("there is no target `{other}`; there are {known}")));
            }
        }
    }
    if targets.is_empty() {
        targets = TARGETS.to_vec();
    }
    let folder = paths::root().join("tests/fuzz");
    let built = paths::target().join("fuzz");
    let mut steps = Steps::new("fuzz");
    steps.step("compilers", || {
        let nightly = cmd("rustc").args(["+nightly", "--version"]).env_remove("RUSTC").output();
        let nightly =
            nightly.map_err(|_| "a nightly compiler is missing; install it by: rustup toolchain install nightly")?;
        let cpp = ["c++", "g++", "clang++"].into_iter().find_map(find);
        cpp.ok_or("a C++ compiler is missing; install it by: apt-get install g++")?;
        Ok(Done::Already(nightly.trim().to_owned()))
    })?;
    steps.step("compile", || {
        let host = cmd("rustc").args(["+nightly", "-vV"]).output()?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
        // With an explicit target, build scripts and macros are compiled without the instrumentation.
        cmd("cargo")
            .args(["+nightly", "build", "--quiet", "--release", "--bins", "--target", host, "--target-dir"])
            .arg(&built)
            .env("RUSTFLAGS", FLAGS)
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN")
            .dir(&folder)
            .run()?;
        let from = built.join(host).join("release");
        for name in TARGETS {
            let to = built.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
            std::fs::copy(from.join(name), to).map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(Done::Now(format!("{} targets", TARGETS.len())))
    })?;
    for name in targets {
        // A fault in one target must not stop the other targets. The table of steps has the result.
        let _ = steps.step(name, || {
            let corpus = built.join("corpus").join(name);
            std::fs::create_dir_all(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
            let finds = format!("-artifact_prefix={}/{name}-", built.display());
            let limits = [format!("-max_total_time={seconds}"), "-rss_limit_mb=2048".into(), "-timeout=10".into()];
            cmd(built.join(name))
                .args(limits)
                .arg("-max_len=65536")
                .arg("-print_final_stats=1")
                .arg(finds)
                .arg(&corpus)
                .run()?;
            Ok(Done::Now(format!("{seconds} s without a find")))
        });
    }
    Ok(steps.finish()?)
}
