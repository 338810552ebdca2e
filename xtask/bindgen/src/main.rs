//! `bindgen [--parts] WASM FOLDER NAME` runs wasm-bindgen, which writes NAME.js and NAME_bg.wasm into FOLDER.
//!
//! With `--parts`, the module is first taken apart: the code behind each `wasm_split` goes into a file of its own,
//! and NAME_parts.js loads these files. The module must be linked with `--emit-relocs`.
//!
//! wasm-bindgen's own program also compiles a web server and a test runner, which more than doubles the time of a first
//! build. Cargo.lock pins the version of the library that the page uses; any other version rejects its wasm.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;
use wasm_split_cli_support::{Options, transform};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (has_parts, args) = match args.as_slice() {
        [flag, rest @ ..] if flag == "--parts" => (true, rest),
        all => (false, all),
    };
    let [wasm, folder, name] = args else {
        eprintln!("usage: bindgen [--parts] WASM FOLDER NAME");
        return ExitCode::from(2);
    };
    match made(Path::new(wasm), Path::new(folder), name, has_parts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{wasm}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn made(wasm: &Path, folder: &Path, name: &str, has_parts: bool) -> Result<(), Box<dyn Error>> {
    let whole = if has_parts { taken_apart(wasm, folder, name)? } else { wasm.to_path_buf() };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&whole).out_name(name).typescript(false).omit_default_module_path(false);
    // The parts import the table of functions from the rest. Without this, wasm-bindgen drops its name.
    bindgen.keep_lld_exports(has_parts);
    bindgen.web(true)?.generate(folder)?;
    if has_parts {
        std::fs::remove_file(whole)?;
    }
    Ok(())
}

/// Writes the parts of a module and the script that loads them, and returns the path of the rest.
fn taken_apart(wasm: &Path, folder: &Path, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let input = std::fs::read(wasm)?;
    let (rest, script, link) = (folder.join("whole.wasm"), format!("./{name}.js"), format!("./{name}_parts.js"));
    let mut options = Options::new(&input);
    options.output_dir = folder;
    options.main_out_path = &rest;
    options.main_module = &script;
    options.link_name = &link;
    let parts = transform(options)?;
    if parts.split_modules.is_empty() {
        return Err(
            "no part was found in it; is it linked with --emit-relocs, and built with the feature `parts`?".into()
        );
    }
    Ok(rest)
}
