//! The binary `watchglass`: the server with the page inside.

use std::process::ExitCode;

fn main() -> ExitCode {
    backend::program::main(page::PAGE)
}
