//! Tells the target to `--version`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=WATCHGLASS_TARGET={}", std::env::var("TARGET").expect("cargo sets it"));
}
