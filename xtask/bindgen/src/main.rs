//! `bindgen WASM FOLDER NAME` runs wasm-bindgen, which writes NAME.js and NAME_bg.wasm into FOLDER.
//!
//! wasm-bindgen's own program also compiles a web server and a test runner, which more than doubles the time of a first
//! build. Cargo.lock pins the version of the library that the page uses; any other version rejects its wasm.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [wasm, folder, name] = args.as_slice() else {
        eprintln!("usage: bindgen WASM FOLDER NAME");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).out_name(name).typescript(false).omit_default_module_path(false);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{wasm}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
