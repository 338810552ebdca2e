//! The lines below the cells of a notebook, and the saved notebook.

use super::{BOOK, idle, lab, run, run_cell, until};
use serde_json::Value;
use watchglass_tests::jupyter::Home;
use watchglass_tests::programs;
use watchglass_tests::waiting::until_so;

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_line_stands_under_each_cell_and_what_a_notebook_shows_is_saved_with_it() {
    let home = Home::new();
    let cells = [
        "%load_ext watchglass",
        "import time; time.sleep(1.5); x = bytearray(1)",
        "%%watch\ny = 1",
        "%watchglass",
        "import watchglass as w; w.figure('cpu.*.cpu_percent', last='1m')",
    ];
    home.notebook("train.ipynb", &cells);
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, Some("train.ipynb"));
    until(&browser, &home, "!!document.querySelector('.wg-Status')");
    idle(&browser, &home, BOOK);
    browser.click(".jp-Notebook .jp-Cell .cm-content");
    until(&browser, &home, &format!("window.jupyterapp.shell.currentWidget === {BOOK}"));
    run(&browser, "notebook:run-all-cells");
    until(&browser, &home, "[...document.querySelectorAll('.wg-Line')].some(l => l.textContent.startsWith('[2] '))");
    until(&browser, &home, "document.querySelectorAll('.jp-OutputArea-output iframe').length === 1");
    until(
        &browser,
        &home,
        "document.querySelectorAll('.jp-OutputArea-output svg, .jp-OutputArea-output img').length >= 1",
    );
    run(&browser, "docmanager:save");
    let saved = || std::fs::read_to_string(home.at("work/train.ipynb")).unwrap_or_default();
    until_so("it is saved", || saved().contains("Watchglass: /user/ada/watchglass/"));
    let book: Value = serde_json::from_str(&saved()).expect("a notebook");
    let text = |at: usize| book["cells"][at]["outputs"].to_string();
    assert!(text(4).contains("image/svg+xml") && text(4).contains("<title>"), "a figure stays: {}", text(4));
    assert!(text(2).contains("[3] "), "what %%watch says is kept: {}", text(2));
    assert!(!text(1).contains("watchglass"), "a line under a cell is no output of it: {}", text(1));
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_cells_have_their_lines_without_anything_to_load_however_short_and_however_they_end() {
    let home = Home::new();
    let cells = ["import time; time.sleep(0.005)", "time.sleep(1)", "print('begun'); time.sleep(600)", "{}['<b>']"];
    home.notebook("train.ipynb", &cells);
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, Some("train.ipynb"));
    until(&browser, &home, "!!document.querySelector('.wg-Status')");
    idle(&browser, &home, BOOK);
    let line = |text: &str| {
        let found = format!(
            "[...document.querySelectorAll('.wg-Line')].some(line => {{ const t = line.textContent; return {text} }})"
        );
        until(&browser, &home, &found);
    };
    run_cell(&browser, &home, 0);
    line("/^\\[1\\] \\d+ ms|^\\[1\\] [\\d.]+ s/.test(t)");
    run_cell(&browser, &home, 1);
    line("/^\\[2\\] [1-9]/.test(t) && t.includes(' s')");
    run_cell(&browser, &home, 2);
    // A kernel that is interrupted before the cell's own code runs goes on with it.
    let begun =
        "[...document.querySelectorAll('.jp-OutputArea-output')].some(one => one.textContent.includes('begun'))";
    until(&browser, &home, begun);
    run(&browser, "notebook:interrupt-kernel");
    line("t.startsWith('[3] ') && t.includes('KeyboardInterrupt')");
    run_cell(&browser, &home, 3);
    line("t.startsWith('[4] ') && t.includes('KeyError')");
    // One line each, with the times that the kernel itself reported.
    assert_eq!(browser.eval("document.querySelectorAll('.wg-Line').length"), 4);
}

/// Delays the start of a cell, and later kernel messages, until the reply has come; counts the cells. The two come by
/// two sockets of a kernel. A server reads these in any order, so the reply can also come first by itself.
const REPLY_FIRST: &str = "(() => {
  const socket = BOOK.sessionContext.session.kernel._ws;
  const [pass, held] = [socket.onmessage, []];
  let replies = 0; // Those whose begin is still to come.
  window.__swapped = 0;
  socket.onmessage = event => {
    const text = typeof event.data === 'string' ? event.data : new TextDecoder('latin1').decode(event.data);
    const begins = text.includes('\"execute_input\"');
    if (begins && replies > 0) {
      replies -= 1;
      window.__swapped += 1;
    } else if (begins || (held.length && text.includes('iopub'))) {
      held.push(event);
      return;
    }
    pass.call(socket, event);
    if (text.includes('\"execute_reply\"')) {
      window.__swapped += held.length ? 1 : 0;
      replies += held.length ? 0 : 1;
      held.splice(0).forEach(one => pass.call(socket, one));
    }
  };
  return 1;
})()";

/// An expression: whether a line below a cell begins with this text.
fn begins(line: &str) -> String {
    format!("[...document.querySelectorAll('.wg-Line')].some(l => l.textContent.startsWith({line:?}))")
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_cell_whose_reply_comes_before_its_begin_has_its_line() {
    let home = Home::new();
    home.notebook("train.ipynb", &["1 + 1", "{}['<b>']"]);
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, Some("train.ipynb"));
    until(&browser, &home, "!!document.querySelector('.wg-Status')");
    idle(&browser, &home, BOOK);
    browser.eval(&REPLY_FIRST.replace("BOOK", BOOK));
    for at in 0..2 {
        run_cell(&browser, &home, at);
        until(&browser, &home, &begins(&format!("[{}] ", at + 1)));
    }
    assert_eq!(browser.eval("window.__swapped"), 2, "both came the other way round");
    assert_eq!(browser.eval("document.querySelectorAll('.wg-Line').length"), 2);
}

#[test]
#[ignore = "it needs JupyterLab; run by cargo xtask test"]
fn with_jupyter_a_cell_that_ran_while_the_program_was_away_has_its_line_when_it_is_back() {
    let home = Home::new();
    home.notebook("train.ipynb", &["1 + 1"]);
    let jupyter = home.jupyter();
    let browser = lab(&home, &jupyter, Some("train.ipynb"));
    until(&browser, &home, "window.jupyterapp.commands.isVisible('watchglass:open')");
    until(&browser, &home, "(document.querySelector('.wg-Status') || {}).textContent");
    idle(&browser, &home, BOOK);
    let first = home.programs()[0].0;
    let killed = programs::run("kill", &["-KILL", &first.to_string()], "");
    assert!(killed.status.success(), "{killed:?}");
    until_so("it is gone", || home.programs().iter().all(|(pid, _)| *pid != first));
    run_cell(&browser, &home, 0);
    until(&browser, &home, &begins("[1] "));
    assert!(home.programs().iter().any(|(pid, _)| *pid != first), "another one runs");
}
