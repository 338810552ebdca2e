//! The tool for work on this project: `cargo xtask
//! setup|run|test|build|bench|insight|torture|fuzz|dist|release|docs|screenshots|strings|check-page`.
//!
//! It depends only on the standard library, so that it compiles in a second or two. It depends on no package of the
//! workspace, so that it still runs when one of them does not compile. Reading order: [`steps`] (reports and times of
//! steps), [`setup`] (prerequisites of the machine), [`page`] (the page for wasm32), [`test`] (all checks).
//!
//! Messages go to standard error. Standard output belongs to the programs that xtask starts: the first line of `run`
//! there is the address.

mod bench;
mod book;
mod bundle;
mod cpu;
mod deny;
mod dist;
mod exec;
mod failures;
mod flaky;
mod fuzz;
mod insight;
mod left;
mod measured;
mod page;
mod paths;
mod release;
mod room;
mod run;
mod screenshots;
mod setup;
#[path = "../../tests/house/source.rs"]
mod source;
mod steps;
mod strings;
mod test;
mod torture;

use setup::PageFor;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  setup [--browser]  make ready what the page needs: wasm32 and wasm-bindgen; with --browser Chromium too
  build              one release binary with the page inside it: target/release/watchglass
  run [-- ARGS]      setup and build, then start it with ARGS; its first line is the address
  test [--quick]     setup, format, lints, unit, integration and browser tests; --quick leaves out those beside
                     other programs
  bench [-- ARGS]    the figures that we publish, each beside its goal and its peer
  insight [-- ARGS]  how often findings are right, into docs/reference/insight.md; --quick for a minute's look, --help for more
  torture [-- ARGS]  a server killed, cut from power, its disk filled: what was seen is there; the last two need root
  fuzz [TARGET...]   whatever bytes for every decoder, --seconds 60 each; needs a nightly compiler and a C++ one
  dist [FLAGS]       what people install, in dist/: wheel, archive, package for Debian; --check tries them
  release VERSION    checks, dist for each processor, recipes, checksums, signatures, notes and a tag; publishes nothing
  docs               the book of docs/, into frontend/dist/docs; the program serves it at /docs
  screenshots        the pictures of the page in static/, taken anew
  page [--dist]      the page alone, into frontend/dist; the next build of a binary takes it in; --dist: as it is handed out
  check-page [ARGS]  `cargo check` of the page for wasm32 (ARGS go to cargo)
  strings [PATH]     every text that a user can read, as file:line: text, to be read in one go
  help               this text

Tools are kept in the user's cache folder (XDG_CACHE_HOME or ~/.cache, below watchglass/).
";

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let command = if args.is_empty() { "help".to_owned() } else { args.remove(0) };
    let result = match command.as_str() {
        "setup" => setup_only(&args),
        "build" => no_more(&args).and_then(|()| run::build()),
        "run" => run::run(after_dashes(&args)),
        "test" => test::test(&args),
        "bench" => bench::bench(after_dashes(&args)),
        "insight" => insight::insight(after_dashes(&args)),
        "torture" => torture::torture(after_dashes(&args)),
        "fuzz" => fuzz::fuzz(after_dashes(&args)),
        "dist" => dist::dist(&args),
        "release" => release::release(&args),
        "docs" => no_more(&args).and_then(|()| book::docs()),
        "screenshots" => no_more(&args).and_then(|()| screenshots::screenshots()),
        "page" => run::page(&args),
        "check-page" => page::check(&args),
        "strings" => strings::strings(&args),
        "help" | "--help" | "-h" => {
            eprint!("{HELP}");
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{other}`\n\n{HELP}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {}", failure.text);
            if let Some(reason) = room::full() {
                eprintln!("xtask: {reason}");
            }
            ExitCode::from(failure.status)
        }
    }
}

fn setup_only(args: &[String]) -> Result<(), Failure> {
    let browser = match args {
        [] => false,
        [flag] if flag == "--browser" => true,
        _ => return Err(Failure::usage("`setup` knows one flag: --browser".to_owned())),
    };
    let mut steps = steps::Steps::new("setup");
    steps.expect(left::tools());
    let tools = setup::page_tools(&mut steps, PageFor::Builders)?;
    tools.describe();
    if browser {
        setup::browser(&mut steps)?;
    }
    Ok(())
}

/// The arguments for the program that xtask starts; a leading `--` is dropped.
fn after_dashes(args: &[String]) -> &[String] {
    match args {
        [first, rest @ ..] if first == "--" => rest,
        _ => args,
    }
}

fn no_more(args: &[String]) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::usage(format!("unexpected `{arg}`: this command takes no arguments"))),
    }
}

/// Reason of a failed command: a sentence for the reader, and the exit status (1 failure, 2 wrong usage).
#[derive(Debug)]
pub struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    fn usage(text: String) -> Self {
        Self { text, status: 2 }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, status: 1 }
    }
}
